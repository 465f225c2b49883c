// What the lanes of a warp do together: shuffles, ballots, and the matrix loads and products of the tensor
// cores.
#include <cstring>

#include "cuda_on_cpu.h"

namespace cuda_on_cpu {
namespace {

using Lanes32 = void* const (&)[32];
typedef float Row8 __attribute__((vector_size(32)));

constexpr int kMostTiles = 16;  // of one mma call along either side

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
  const void* row;
  int count;
  bool transposed;
};

// Lane l gets of each matrix the elements (l / 4, l % 4 * 2) and the one right of it; transposed, the
// elements (l % 4 * 2, l / 4) and the one below.
void do_load_matrices(Lanes32 lanes) {
  require_whole_warp(lanes, "ldmatrix");
  for (unsigned l = 0; l < 32; ++l) {
    const auto* mine = static_cast<const MatrixLoad*>(lanes[l]);
    for (int matrix = 0; matrix < mine->count; ++matrix) {
      const auto element = [&](unsigned row, unsigned column) {
        const auto* owner = static_cast<const MatrixLoad*>(lanes[static_cast<unsigned>(matrix) * 8 + row]);
        std::uint16_t bits;
        std::memcpy(&bits, static_cast<const char*>(owner->row) + column * 2, 2);
        return std::uint32_t{bits};
      };
      const unsigned outer = l / 4;
      const unsigned inner = l % 4 * 2;
      const std::uint32_t low = mine->transposed ? element(inner, outer) : element(outer, inner);
      const std::uint32_t high = mine->transposed ? element(inner + 1, outer) : element(outer, inner + 1);
      mine->registers[matrix] = low | high << 16;
    }
  }
}

struct Product {
  void* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
  int rows;
  int columns;
};

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Exact; by the multiplication that moves the exponent, which also makes subnormal halves normal.
float half_to_float(std::uint32_t half) {
  const float magnitude = float_of((half & 0x7fffu) << 13) * 0x1p112f;
  std::uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  if ((half & 0x7c00u) == 0x7c00u) bits |= 0x7f800000u;
  return float_of(bits | (half & 0x8000u) << 16);
}

// The element types by their place in a register of 32 bits.
struct F16 {
  static constexpr int kPerRegister = 2;
  static float value(std::uint32_t bits, int i) { return half_to_float(bits >> (16 * i) & 0xffffu); }
};
struct Bf16 {
  static constexpr int kPerRegister = 2;
  static float value(std::uint32_t bits, int i) { return float_of(i == 0 ? bits << 16 : bits & 0xffff0000u); }
};
struct Tf32 {
  static constexpr int kPerRegister = 1;
  // The hardware reads the upper 19 bits.
  static float value(std::uint32_t bits, int) { return float_of(bits & 0xffffe000u); }
};

// Gathers the operands from the fragments, multiplies, and adds to d in the fragments. With p elements in a
// register and lane l: a[i] holds row l/4 + 8 (i % 2), columns p (l%4 + 4 (i/2)) and on; b[i] the column l/4,
// rows p (l%4 + 4i) and on; d[i] row l/4 + 8 (i/2), column 2 (l%4) + i%2.
template <class Type>
__attribute__((always_inline)) inline void multiply(Lanes32 lanes) {
  constexpr int per = Type::kPerRegister;
  constexpr int depth = 8 * per;
  const auto* first = static_cast<const Product*>(lanes[0]);
  const int rows = first->rows;
  const int columns = first->columns;
  float a[kMostTiles * 16][depth];
  Row8 b[kMostTiles][depth];
  for (int l = 0; l < 32; ++l) {
    const auto* mine = static_cast<const Product*>(lanes[l]);
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < 4; ++i) {
        for (int e = 0; e < per; ++e) {
          a[r * 16 + l / 4 + i % 2 * 8][per * (l % 4 + i / 2 * 4) + e] = Type::value(mine->a[r * 4 + i], e);
        }
      }
    }
    for (int c = 0; c < columns; ++c) {
      for (int i = 0; i < 2; ++i) {
        for (int e = 0; e < per; ++e) {
          b[c][per * (l % 4 + i * 4) + e][l / 4] = Type::value(mine->b[c * 2 + i], e);
        }
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      for (int g = 0; g < 8; ++g) {
        Row8 low;
        Row8 high;
        const auto fragment = [&](int j) {
          const auto* owner = static_cast<const Product*>(lanes[g * 4 + j / 2]);
          return static_cast<float*>(owner->d) + (r * columns + c) * 4 + j % 2;
        };
        for (int j = 0; j < 8; ++j) {
          low[j] = fragment(j)[0];
          high[j] = fragment(j)[2];
        }
        for (int k = 0; k < depth; ++k) {
          low += a[r * 16 + g][k] * b[c][k];
          high += a[r * 16 + g + 8][k] * b[c][k];
        }
        for (int j = 0; j < 8; ++j) {
          fragment(j)[0] = low[j];
          fragment(j)[2] = high[j];
        }
      }
    }
  }
}

#if defined(__x86_64__)
template <class Type>
__attribute__((target("avx2"))) void multiply_avx2(Lanes32 lanes) {
  multiply<Type>(lanes);
}
#endif

template <class Type>
void do_multiply(Lanes32 lanes) {
  require_whole_warp(lanes, "mma");
#if defined(__x86_64__)
  // The same roundings, twice as wide: products and sums stay apart (-ffp-contract has no fused form to use).
  if (__builtin_cpu_supports("avx2")) return multiply_avx2<Type>(lanes);
#endif
  multiply<Type>(lanes);
}

template <bool ASigned, bool BSigned>
void do_multiply_int8(Lanes32 lanes) {
  require_whole_warp(lanes, "mma");
  const auto* first = static_cast<const Product*>(lanes[0]);
  const int rows = first->rows;
  const int columns = first->columns;
  std::int16_t a[kMostTiles * 16][32];
  std::int16_t b[kMostTiles * 8][32];
  const auto element = [](std::uint32_t bits, int i, bool is_signed) {
    const auto byte = static_cast<std::uint8_t>(bits >> (8 * i));
    return is_signed ? std::int16_t{static_cast<std::int8_t>(byte)} : std::int16_t{byte};
  };
  for (int l = 0; l < 32; ++l) {
    const auto* mine = static_cast<const Product*>(lanes[l]);
    for (int e = 0; e < 4; ++e) {
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < 4; ++i) {
          a[r * 16 + l / 4 + i % 2 * 8][4 * (l % 4 + i / 2 * 4) + e] =
              element(mine->a[r * 4 + i], e, ASigned);
        }
      }
      for (int c = 0; c < columns; ++c) {
        for (int i = 0; i < 2; ++i) {
          b[c * 8 + l / 4][4 * (l % 4 + i * 4) + e] = element(mine->b[c * 2 + i], e, BSigned);
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

void run_product(const char* name, void* d, const std::uint32_t* a, const std::uint32_t* b, int rows,
                 int columns, Collective function) {
  if (rows > kMostTiles || columns > kMostTiles) die("%s of more than %d tiles", name, kMostTiles);
  Product product = {d, a, b, rows, columns};
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

void load_matrices(std::uint32_t* registers, int count, bool transposed, const void* row) {
  if (linear_thread() % 32 < 8u * static_cast<unsigned>(count)) check_shared_access(row, 16);
  MatrixLoad operands = {registers, row, count, transposed};
  warp_collective("ldmatrix", &operands, &do_load_matrices);
}

void mma_f16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_f16", d, a, b, rows, columns, &do_multiply<F16>);
}
void mma_bf16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_bf16", d, a, b, rows, columns, &do_multiply<Bf16>);
}
void mma_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns) {
  run_product("mma_tf32", d, a, b, rows, columns, &do_multiply<Tf32>);
}
void mma_int8(std::int32_t* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns,
              bool a_is_signed, bool b_is_signed) {
  const Collective functions[] = {&do_multiply_int8<false, false>, &do_multiply_int8<false, true>,
                                  &do_multiply_int8<true, false>, &do_multiply_int8<true, true>};
  const char* names[] = {"mma_u8u8", "mma_u8s8", "mma_s8u8", "mma_s8s8"};
  const int kind = (a_is_signed ? 2 : 0) + (b_is_signed ? 1 : 0);
  run_product(names[kind], d, a, b, rows, columns, functions[kind]);
}

}  // namespace cuda_on_cpu
