// Matrices of packed integers for the tests of products by them, and what they stand for.
#pragma once

#include "gcrt/cpu/product/decode.h"
#include "kernel_test.h"

namespace kernel_test {

template <class Zero>
struct ZeroPoints {
  std::vector<Zero> packed;
  double operator[](std::size_t i) const { return static_cast<double>(packed[i]); }
  const Zero* data() const { return packed.data(); }
};
template <>
struct ZeroPoints<void> {
  double operator[](std::size_t) const { return 0; }
  const void* data() const { return nullptr; }
};

template <class Zero>
ZeroPoints<Zero> random_zeros(std::size_t count, int middle) {
  ZeroPoints<Zero> zeros;
  Random random(5);
  if constexpr (!std::is_void<Zero>::value) {
    for (std::size_t i = 0; i < count; ++i) {
      const int zero = random.below(2 * middle) - middle;
      zeros.packed.push_back(static_cast<Zero>(zero + (std::is_integral<Zero>::value ? 0.0 : 0.5)));
    }
  }
  return zeros;
}

// A packed B, and what its elements stand for.
template <int Bits, class Zero>
struct PackedMatrix {
  std::vector<std::uint32_t> words;
  std::vector<float> scales;
  ZeroPoints<Zero> zeros;
  std::vector<double> values;  // [depth][columns]

  // Every column's scales are those of `scale(i)`, integers those of `integer(random)`.
  template <class Scale, class Integer>
  PackedMatrix(int depth, int columns, int block, const Scale& scale, const Integer& integer) {
    constexpr int kDepth = PackedBits<Bits>::kDepth, kMiddle = 1 << (Bits - 1);
    const int panels = (columns + 31) / 32, in_column = (depth + kDepth - 1) / kDepth;
    const int blocks = (depth + block - 1) / block;
    Random random(static_cast<std::uint32_t>(depth + columns));
    words.resize(static_cast<std::size_t>(panels * in_column * 32));
    for (int i = 0; i < panels * blocks * 32; ++i) scales.push_back(scale(i));
    zeros = random_zeros<Zero>(scales.size(), kMiddle);
    for (int k = 0; k < depth; ++k) {
      for (int n = 0; n < columns; ++n) {
        const int q = integer(random);
        words[static_cast<std::size_t>((n / 32 * in_column + k / kDepth) * 32 + n % 32)] |=
            static_cast<std::uint32_t>(q) << (k % kDepth * Bits);
        const auto at = static_cast<std::size_t>((n / 32 * blocks + k / block) * 32 + n % 32);
        values.push_back((q - kMiddle - zeros[at]) * static_cast<double>(scales[at]));
      }
    }
  }
  PackedMatrix(int depth, int columns, int block)
      : PackedMatrix(
            depth, columns, block, [](int i) { return 0.01f * static_cast<float>(i % 37 + 1); },
            [](Random& random) { return random.below(1 << Bits); }) {}
};

using OtherTile =
    TileOfLevel<RegisterTile<2, 2, 2>, RegisterTile<4, 4>, RegisterTile<4, 2>, RegisterTile<6, 4>>;

// check(tile, rows, columns, depth, block) around every edge, with the usual tile and another one.
template <class F>
void for_each_packed_product(const F& check) {
  for (const int rows : {1, 2, 3, 4, 5, 7, 13}) {
    for (const int columns : {1, 16, 17, 50, 70}) {
      for (const int block : {8, 32, 128}) {
        for (const int depth : {1, 7, 32, 41, 130}) check(UsualTile{}, rows, columns, depth, block);
      }
    }
  }
  for (const int rows : {1, 3, 100}) {
    for (const int block : {16, 256, 1000, 1024}) {
      check(OtherTile{}, rows, 40, 1000, block);
      check(UsualTile{}, rows, 90, 517, block);
    }
  }
}

}  // namespace kernel_test
