// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the lanes of a warp do together: shuffles, ballots,
// and the matrix loads and products of the tensor cores.
#include <cstring>

#include "cuda_on_cpu.h"
#include "tensor_math.h"

namespace cuda_on_cpu {
namespace {

using Lanes32 = void* const (&)[32];
struct Shuffle {
  unsigned char value[16];
  unsigned char result[16];
  std::size_t bytes;
  unsigned source;
};

void do_shuffle(Lanes32 lanes) {
  for (void* lane : lanes) {
    if (lane == nullptr) continue;
    auto* shuffle = static_cast<Shuffle*>(lane);
    const auto* source = static_cast<const Shuffle*>(lanes[shuffle->source % 32]);
    if (source == nullptr) {
      std::memset(shuffle->result, kPoison, shuffle->bytes);
    } else {
      std::memcpy(shuffle->result, source->value, shuffle->bytes);
    }
  }
}

struct Ballot {
  bool condition;
  std::uint32_t result;
};

void do_ballot(Lanes32 lanes) {
  std::uint32_t mask = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if (lanes[i] != nullptr && static_cast<const Ballot*>(lanes[i])->condition) mask |= 1u << i;
  }
  for (void* lane : lanes) {
    if (lane != nullptr) static_cast<Ballot*>(lane)->result = mask;
  }
}

void require_whole_warp(Lanes32 lanes, const char* what) {
  for (unsigned i = 0; i < 32; ++i) {
    if (lanes[i] == nullptr) die("%s without lane %u, which has returned or never was", what, i);
  }
}

struct MatrixLoad {
  std::uint32_t* registers;
  const void* const* rows;
  int loads;
  int count;
  bool transposed;
};

// Lane l gets of each matrix the elements (l / 4, l % 4 * 2) and the one right of it; transposed, the
// elements (l % 4 * 2, l / 4) and the one below.
void do_load_matrices(Lanes32 lanes) {
  require_whole_warp(lanes, "ldmatrix");
  const auto* first = static_cast<const MatrixLoad*>(lanes[0]);
  for (int i = 0; i < first->loads * first->count; ++i) {
    const int load = i / first->count;
    const int matrix = i % first->count;
    std::uint32_t registers[8][4];
    std::uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row) {
      const void* from = static_cast<const MatrixLoad*>(lanes[matrix * 8 + row])->rows[load];
      std::memcpy(first->transposed ? static_cast<void*>(elements[row]) : registers[row], from, 16);
    }
    if (first->transposed) {
      for (int row = 0; row < 8; ++row) {
        for (int pair = 0; pair < 4; ++pair) {
          registers[row][pair] = elements[2 * pair][row] | std::uint32_t{elements[2 * pair + 1][row]} << 16;
        }
      }
    }
    for (int l = 0; l < 32; ++l) {
      static_cast<const MatrixLoad*>(lanes[l])->registers[i] = registers[l / 4][l % 4];
    }
  }
}

// d += a[0] * b[0] + ... + a[terms - 1] * b[terms - 1]; `is_apart`:
// the terms are summed before they are added.
struct Product {
  void* d;
  int rows;
  int columns;
  int terms;
  bool is_apart;
  const std::uint32_t* a[2];
  const std::uint32_t* b[2];
};

// The sums of two floats that lie side by side in a fragment.
struct Pair {
  float value[2];
};

// Gathers the operands from the fragments, multiplies, and adds to d in the fragments. With p elements in a
// register and lane l: a[i] holds row l/4 + 8 (i % 2), columns p (l%4 + 4 (i/2)) and on; b[i] the column l/4,
// rows p (l%4 + 4i) and on; d[i] row l/4 + 8 (i/2), column 2 (l%4) + i%2. Instructions of half the depth have
// the first half of the registers.
template <class Type, int Halves>
__attribute__((always_inline)) inline void multiply(Lanes32 lanes) {
  constexpr int per = Type::kPerRegister;
  constexpr int depth = 4 * per * Halves;
  const Product first = *static_cast<const Product*>(lanes[0]);
  const int columns = first.columns;
  Row8 b[2][kMostTiles][depth];
  for (int term = 0; term < first.terms; ++term) {
    for (int l = 0; l < 32; ++l) {
      const std::uint32_t* mine = static_cast<const Product*>(lanes[l])->b[term];
      float* target = reinterpret_cast<float*>(b[term]) + l % 4 * per * 8 + l / 4;
      for (int i = 0; i < Halves * columns; ++i) {
        for (int e = 0; e < per; ++e) target[(i * 4 * per + e) * 8] = Type::value(mine[i], e);
      }
    }
  }
  for (int r = 0; r < first.rows; ++r) {
    float a[16][depth];
    Row8 sums[16][kMostTiles];
    for (int l = 0; l < 32; ++l) {
      const auto* d = static_cast<const Pair*>(static_cast<const Product*>(lanes[l])->d) + r * columns * 2;
      auto* low = reinterpret_cast<Pair*>(sums[l / 4]) + l % 4;
      auto* high = reinterpret_cast<Pair*>(sums[l / 4 + 8]) + l % 4;
      for (int c = 0; c < columns; ++c) low[4 * c] = d[2 * c], high[4 * c] = d[2 * c + 1];
    }
    Row8 apart[16][kMostTiles];
    for (auto& row : apart)
      std::memset(row, 0, first.is_apart ? sizeof(row[0]) * static_cast<std::size_t>(columns) : 0);
    for (int term = 0; term < first.terms; ++term) {
      for (int l = 0; l < 32; ++l) {
        const std::uint32_t* mine = static_cast<const Product*>(lanes[l])->a[term] + r * 2 * Halves;
        for (int i = 0; i < 2 * Halves; ++i) {
          float* target = &a[l / 4 + i % 2 * 8][per * (l % 4 + i / 2 * 4)];
          for (int e = 0; e < per; ++e) target[e] = Type::value(mine[i], e);
        }
      }
      multiply_rows<depth>(a, b[term], first.is_apart ? apart : sums, columns);
    }
    for (int g = 0; g < 16 && first.is_apart; ++g) {
      for (int c = 0; c < columns; ++c) sums[g][c] += apart[g][c];
    }
    for (int l = 0; l < 32; ++l) {
      auto* d = static_cast<Pair*>(static_cast<const Product*>(lanes[l])->d) + r * columns * 2;
      const auto* low = reinterpret_cast<const Pair*>(sums[l / 4]) + l % 4;
      const auto* high = reinterpret_cast<const Pair*>(sums[l / 4 + 8]) + l % 4;
      for (int c = 0; c < columns; ++c) d[2 * c] = low[4 * c], d[2 * c + 1] = high[4 * c];
    }
  }
}

#if defined(__x86_64__)
template <class Type, int Halves>
__attribute__((target("avx2"))) void multiply_avx2(Lanes32 lanes) {
  multiply<Type, Halves>(lanes);
}
#endif

template <class Type, int Halves = 2>
void do_multiply(Lanes32 lanes) {
  require_whole_warp(lanes, "mma");
#if defined(__x86_64__)
  // The same roundings, twice as wide: products and sums stay apart (-ffp-contract has no fused form to use).
  if (__builtin_cpu_supports("avx2")) return multiply_avx2<Type, Halves>(lanes);
#endif
  multiply<Type, Halves>(lanes);
}

// Element i of a register of bytes.
std::int16_t byte_of(std::uint32_t bits, int i, bool is_signed) {
  const auto byte = static_cast<std::uint8_t>(bits >> (8 * i));
  return is_signed ? std::int16_t{static_cast<std::int8_t>(byte)} : std::int16_t{byte};
}

template <bool ASigned, bool BSigned>
void do_multiply_int8(Lanes32 lanes) {
  require_whole_warp(lanes, "mma");
  const auto* first = static_cast<const Product*>(lanes[0]);
  const int rows = first->rows;
  const int columns = first->columns;
  std::int16_t a[kMostTiles * 16][32];
  std::int16_t b[kMostTiles * 8][32];
  for (int l = 0; l < 32; ++l) {
    const auto* mine = static_cast<const Product*>(lanes[l]);
    for (int e = 0; e < 4; ++e) {
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < 4; ++i) {
          a[r * 16 + l / 4 + i % 2 * 8][4 * (l % 4 + i / 2 * 4) + e] =
              byte_of(mine->a[0][r * 4 + i], e, ASigned);
        }
      }
      for (int c = 0; c < columns; ++c) {
        for (int i = 0; i < 2; ++i) {
          b[c * 8 + l / 4][4 * (l % 4 + i * 4) + e] = byte_of(mine->b[0][c * 2 + i], e, BSigned);
        }
      }
    }
  }
  for (int m = 0; m < rows * 16; ++m) {
    for (int n = 0; n < columns * 8; ++n) {
      std::int32_t sum = 0;
      for (int k = 0; k < 32; ++k) sum += std::int32_t{a[m][k]} * b[n][k];
      const auto* owner = static_cast<const Product*>(lanes[m % 8 * 4 + n % 8 / 2]);
      std::int32_t* d = static_cast<std::int32_t*>(owner->d) + (m / 16 * columns + n / 8) * 4;
      std::int32_t& target = d[m % 16 / 8 * 2 + n % 2];
      target =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(target) + static_cast<std::uint32_t>(sum));
    }
  }
}

// A product of 8 rows and 8 columns: row m of a in lanes 4m and on, column n of b in lanes 4n and on,
// elements (m, n) and (m, n + 1) of d in lane 4m + n/2.
template <bool ASigned, bool BSigned>
void do_multiply_int8_k16(Lanes32 lanes) {
  require_whole_warp(lanes, "mma");
  const auto of = [&](int lane) { return static_cast<const Product*>(lanes[lane]); };
  for (int m = 0; m < 8; ++m) {
    for (int n = 0; n < 8; ++n) {
      std::int32_t sum = 0;
      for (int k = 0; k < 16; ++k) {
        sum += std::int32_t{byte_of(*of(4 * m + k / 4)->a[0], k % 4, ASigned)} *
               byte_of(*of(4 * n + k / 4)->b[0], k % 4, BSigned);
      }
      std::int32_t& target = static_cast<std::int32_t*>(of(4 * m + n / 2)->d)[n % 2];
      target =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(target) + static_cast<std::uint32_t>(sum));
    }
  }
}

void run_product(const char* name, Product product, Collective function, int least_capability = 80) {
  require_capability(least_capability, name);
  if (product.rows > kMostTiles || product.columns > kMostTiles)
    die("%s of more than %d tiles", name, kMostTiles);
  warp_collective(name, &product, function);
}

}  // namespace

void shuffle(void* value, std::size_t bytes, unsigned source_lane) {
  Shuffle operands = {{}, {}, bytes, source_lane};
  std::memcpy(operands.value, value, bytes);
  warp_collective("shuffle", &operands, &do_shuffle);
  std::memcpy(value, operands.result, bytes);
}

std::uint32_t ballot(bool condition) {
  Ballot operands = {condition, 0};
  warp_collective("ballot", &operands, &do_ballot);
  return operands.result;
}

void load_matrices(std::uint32_t* registers, int loads, int count, bool transposed, const void* const* rows) {
  const bool has_row = linear_thread % 32 < 8u * static_cast<unsigned>(count);
  for (int i = 0; has_row && i < loads; ++i) check_shared_access(rows[i], 16);
  MatrixLoad operands = {registers, rows, loads, count, transposed};
  warp_collective("ldmatrix", &operands, &do_load_matrices);
}

void mma_f16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_f16", {d, rows, columns, 1, false, {a, nullptr}, {b, nullptr}}, &do_multiply<F16>);
}
void mma_bf16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_bf16", {d, rows, columns, 1, false, {a, nullptr}, {b, nullptr}}, &do_multiply<Bf16>);
}
void mma_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_tf32", {d, rows, columns, 1, false, {a, nullptr}, {b, nullptr}}, &do_multiply<Tf32>);
}
void mma_tf32_by_parts(float* d, float* corrections, const std::uint32_t* a_large,
                       const std::uint32_t* a_small, const std::uint32_t* b_large,
                       const std::uint32_t* b_small, int rows, int columns) {
  run_product("mma_tf32_by_parts", {d, rows, columns, 1, true, {a_large, nullptr}, {b_large, nullptr}},
              &do_multiply<Tf32>);
  run_product("mma_tf32_by_parts",
              {corrections, rows, columns, 2, false, {a_small, a_large}, {b_large, b_small}},
              &do_multiply<Tf32>);
}
void mma_int8(std::int32_t* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns,
              bool a_is_signed, bool b_is_signed) {
  const Collective functions[] = {&do_multiply_int8<false, false>, &do_multiply_int8<false, true>,
                                  &do_multiply_int8<true, false>, &do_multiply_int8<true, true>};
  const char* names[] = {"mma_u8u8", "mma_u8s8", "mma_s8u8", "mma_s8s8"};
  const int kind = (a_is_signed ? 2 : 0) + (b_is_signed ? 1 : 0);
  run_product(names[kind], {d, rows, columns, 1, false, {a, nullptr}, {b, nullptr}}, functions[kind]);
}
void mma_f16_k8(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  run_product("mma_f16_k8", {d, 1, 1, 1, false, {a, nullptr}, {b, nullptr}}, &do_multiply<F16, 1>, 75);
}
void mma_int8_k16(std::int32_t* d, const std::uint32_t* a, const std::uint32_t* b, bool a_is_signed,
                  bool b_is_signed) {
  const Collective functions[] = {&do_multiply_int8_k16<false, false>, &do_multiply_int8_k16<false, true>,
                                  &do_multiply_int8_k16<true, false>, &do_multiply_int8_k16<true, true>};
  const int kind = (a_is_signed ? 2 : 0) + (b_is_signed ? 1 : 0);
  run_product("mma_int8_k16", {d, 1, 1, 1, false, {a, nullptr}, {b, nullptr}}, functions[kind], 75);
}

}  // namespace cuda_on_cpu
