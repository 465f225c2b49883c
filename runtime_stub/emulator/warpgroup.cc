// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// wgmma: 64 rows by up to 256 columns, a warpgroup together. Products are recorded where they are issued and
// formed at the wait, by the last thread to come: an operand that has changed by then, or sums that are read
// before, show.
#include "warpgroup.h"

#include <cstring>

#include "block_runner.h"
#include "tensor_math.h"

namespace cuda_on_cpu {
namespace {

constexpr int kMostColumns = 256;

// The matrix descriptor of an operand whose rows are contiguous along the depth
// (PTX ISA, "Matrix-descriptor").
struct Descriptor {
  std::uint32_t start;
  std::uint32_t leading;  // bytes from 16 of depth to the next 16; without swizzle only
  std::uint32_t stride;   // bytes from 8 rows to the next 8
  int swizzle;            // as CUtensorMapSwizzle
};

Descriptor decode(std::uint64_t bits) {
  constexpr std::uint64_t kMeaning =
      0x3fffu | std::uint64_t{0x3fff} << 16 | std::uint64_t{0x3fff} << 32 | std::uint64_t{3} << 62;
  if ((bits & ~kMeaning) != 0) die("bits of a matrix descriptor that are not 0");
  const auto field = [&](int at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
  const int mode = static_cast<int>(bits >> 62);
  const Descriptor result = {field(0), field(16), field(32), mode == 0 ? 0 : 4 - mode};
  // The base offset is 0: the pattern must start at a multiple of its size, 8 rows.
  const std::uint32_t row = 16u << result.swizzle;
  const std::uint32_t start = result.start / row * row;
  if (result.swizzle != 0 && start % (8 * row) != 0) {
    die("a matrix descriptor starts %u bytes beyond a multiple of its swizzle pattern", start % (8 * row));
  }
  return result;
}

// The 32 bytes of depth of one row.
void read_row(const Descriptor& matrix, int row, const unsigned char* view, std::size_t bytes,
              std::uint32_t (&words)[8]) {
  const auto r = static_cast<std::uint32_t>(row);
  const std::uint32_t row_bytes = 16u << matrix.swizzle;
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
    std::uint32_t address = matrix.start + r / 8 * matrix.stride + r % 8 * row_bytes;
    address += matrix.swizzle == 0 ? chunk * matrix.leading : chunk * 16;
    const std::size_t at = std::size_t{swizzled(address, matrix.swizzle)} - kSharedAddress;
    if (at >= bytes || at + 16 > bytes) {
      die("a matrix descriptor reaches %zu of %zu bytes of shared memory", at, bytes);
    }
    std::memcpy(&words[chunk * 4], view + at, 16);
  }
}

// What the products of one step need: all threads of the warpgroup have issued the same.
struct Step {
  unsigned first_thread;
  std::size_t index;
  const unsigned char* view;
  std::size_t bytes;

  const WarpgroupProduct& product(unsigned thread) const {
    return runner->thread(first_thread + thread).products.issued[index];
  }
  float* sums(unsigned thread) const {
    ThreadProducts& mine = runner->thread(first_thread + thread).products;
    for (SumsUnderWay& sums : mine.sums) {
      if (sums.d == mine.issued[index].d) return sums.values.data();
    }
    die("sums of a warpgroup were lost");
  }
};

void check_same(const Step& step) {
  const WarpgroupProduct& first = step.product(0);
  for (unsigned i = 1; i < kWarpgroup; ++i) {
    if (step.index >= runner->thread(step.first_thread + i).products.issued.size()) {
      die("threads of a warpgroup have issued different numbers of products");
    }
    const WarpgroupProduct& other = step.product(i);
    if (other.type != first.type || other.columns != first.columns ||
        (other.a == nullptr) != (first.a == nullptr) || other.descriptor_a != first.descriptor_a ||
        other.descriptor_b != first.descriptor_b) {
      die("threads of a warpgroup have issued different products");
    }
  }
}

// Element `i` of the 32 bytes in `words`.
template <class Type>
float element(const std::uint32_t (&words)[8], int i) {
  return Type::value(words[i / Type::kPerRegister], i % Type::kPerRegister);
}

// Lane l of warp w: a[i] holds row 16 w + l/4 + 8 (i % 2), columns p (l%4 + 4 (i/2)) and on, with p elements
// in a register; d[4 j + i] row 16 w + l/4 + 8 (i/2), column 8 j + 2 (l%4) + i%2.
template <class Type>
__attribute__((always_inline)) inline void multiply(const Step& step) {
  constexpr int per = Type::kPerRegister;
  constexpr int depth = 8 * per;
  const WarpgroupProduct first = step.product(0);
  static thread_local Row8 b[kMostColumns / 8][depth];
  const Descriptor matrix_b = decode(first.descriptor_b);
  for (int n = 0; n < first.columns; ++n) {
    std::uint32_t words[8];
    read_row(matrix_b, n, step.view, step.bytes, words);
    for (int k = 0; k < depth; ++k) b[n / 8][k][n % 8] = element<Type>(words, k);
  }
  for (unsigned warp = 0; warp < kWarpgroup / kWarp; ++warp) {
    float a[16][depth];
    if (first.a == nullptr) {
      const Descriptor matrix_a = decode(first.descriptor_a);
      for (int row = 0; row < 16; ++row) {
        std::uint32_t words[8];
        read_row(matrix_a, static_cast<int>(warp) * 16 + row, step.view, step.bytes, words);
        for (int k = 0; k < depth; ++k) a[row][k] = element<Type>(words, k);
      }
    }
    float* sums[kWarp];
    for (unsigned l = 0; l < kWarp; ++l) {
      sums[l] = step.sums(warp * kWarp + l);
      const std::uint32_t* mine = step.product(warp * kWarp + l).a;
      for (unsigned i = 0; first.a != nullptr && i < 4; ++i) {
        for (int e = 0; e < per; ++e) {
          a[l / 4 + i % 2 * 8][per * static_cast<int>(l % 4 + i / 2 * 4) + e] = Type::value(mine[i], e);
        }
      }
    }
    const int tiles = first.columns / 8;
    for (int from = 0; from < tiles; from += kMostTiles) {
      const int count = tiles - from < kMostTiles ? tiles - from : kMostTiles;
      Row8 rows[16][kMostTiles];
      for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4 * count; ++i) {
          rows[l / 4 + i % 4 / 2 * 8][i / 4][l % 4 * 2 + i % 2] = sums[l][4 * from + i];
        }
      }
      multiply_rows<depth>(a, b + from, rows, count);
      for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4 * count; ++i) {
          sums[l][4 * from + i] = rows[l / 4 + i % 4 / 2 * 8][i / 4][l % 4 * 2 + i % 2];
        }
      }
    }
  }
}

#if defined(__x86_64__)
template <class Type>
__attribute__((target("avx2"))) void multiply_avx2(const Step& step) {
  multiply<Type>(step);
}
#endif

template <class Type>
void do_multiply(const Step& step) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return multiply_avx2<Type>(step);
#endif
  multiply<Type>(step);
}

void form(const Step& step) {
  check_same(step);
  switch (step.product(0).type) {
    case WgmmaType::kF16:
      return do_multiply<F16>(step);
    case WgmmaType::kBf16:
      return do_multiply<Bf16>(step);
    case WgmmaType::kTf32:
      return do_multiply<Tf32>(step);
  }
}

thread_local int groups_to_leave = 0;

// How many products a wait that leaves so many groups ends.
std::size_t end_of_wait(const ThreadProducts& mine, int groups_left) {
  const auto left = static_cast<std::size_t>(groups_left);
  return mine.groups.size() <= left ? 0 : mine.groups[mine.groups.size() - left - 1];
}

// Run by the last thread of the warpgroup.
void form_all() {
  const unsigned first = linear_thread / kWarpgroup * kWarpgroup;
  AsyncCopies& async = runner->block().async;
  const std::size_t end = end_of_wait(runner->current()->products, groups_to_leave);
  for (std::size_t i = 0; i < end; ++i) {
    form({first, i, async.async_view(), runner->shared_bytes()});
  }
}

}  // namespace

void wgmma(WgmmaType type, int columns, float* d, const std::uint32_t* a, std::uint64_t descriptor_a,
           std::uint64_t descriptor_b) {
  require_warpgroups("wgmma");
  ThreadProducts& mine = runner->current()->products;
  if (columns % 8 != 0 || columns < 8 || columns > kMostColumns) die("wgmma of %d columns", columns);
  if (!mine.is_fenced) die("wgmma without a fence for its registers");
  bool is_under_way = false;
  for (const SumsUnderWay& sums : mine.sums) is_under_way |= sums.d == d;
  if (!is_under_way) {
    const auto count = static_cast<std::size_t>(columns / 2);
    mine.sums.push_back({d, {d, d + count}});
    std::memset(d, kPoison, count * sizeof(float));
  }
  mine.issued.push_back({type, columns, d, a, descriptor_a, descriptor_b});
}

void wgmma_fence() { runner->current()->products.is_fenced = true; }

void wgmma_commit() {
  ThreadProducts& mine = runner->current()->products;
  mine.groups.push_back(mine.issued.size());
}

void wgmma_wait(int groups_left) {
  ThreadProducts& mine = runner->current()->products;
  const std::size_t end = end_of_wait(mine, groups_left);
  mine.is_fenced = false;
  if (end == 0) return;
  const unsigned group = linear_thread / kWarpgroup;
  if ((group + 1) * kWarpgroup > runner->threads_per_block()) die("wgmma without a whole warpgroup");
  groups_to_leave = groups_left;
  runner->meet("wgmma_wait", runner->block().warpgroups[group], kWarpgroup, &form_all);
  mine.issued.erase(mine.issued.begin(), mine.issued.begin() + static_cast<std::ptrdiff_t>(end));
  mine.groups.erase(mine.groups.begin(), mine.groups.end() - groups_left);
  for (std::size_t& ends : mine.groups) ends -= end;
  for (std::size_t i = 0; i < mine.sums.size();) {
    SumsUnderWay& sums = mine.sums[i];
    bool is_under_way = false;
    for (const WarpgroupProduct& product : mine.issued) is_under_way |= product.d == sums.d;
    if (is_under_way) {
      ++i;
      continue;
    }
    std::memcpy(sums.d, sums.values.data(), sums.values.size() * sizeof(float));
    mine.sums.erase(mine.sums.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void set_registers(int count, int most) {
  require_warpgroups("setmaxnreg");
  if (count % 8 != 0 || count < 24 || count > most) die("a thread with %d registers", count);
}

}  // namespace cuda_on_cpu
