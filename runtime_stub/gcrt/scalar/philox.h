// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Random bits by Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3;
// SC 2011): four words of 32 bits are a function of a counter of four words and a key of two. The counter is
// the position of an element in its tensor and the stream of the tensor, so that every element has bits of
// its own wherever they are computed.
#pragma once

#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// The words of a block, each in the lower half of 64 bits.
template <class V>
struct PhiloxBlock {
  V words[4];
};

template <class V>
GCRT_INLINE PhiloxBlock<V> philox_block(V position, V key, V stream) {
  static_assert(std::is_same<ElementOf<V>, std::uint64_t>::value, "words are multiplied in 64 bits");
  const V half = splat_like<V>(std::uint64_t{0xffffffff}), width = splat_like<V>(std::uint64_t{32});
  const V multiplier_0 = splat_like<V>(std::uint64_t{0xD2511F53});
  const V multiplier_2 = splat_like<V>(std::uint64_t{0xCD9E8D57});
  const V step_0 = splat_like<V>(std::uint64_t{0x9E3779B9}),
          step_1 = splat_like<V>(std::uint64_t{0xBB67AE85});
  V a = bit_and(position, half), b = shift_right(position, width);
  V c = bit_and(stream, half), d = shift_right(stream, width);
  V key_0 = bit_and(key, half), key_1 = shift_right(key, width);
  for (int round = 0; round < 10; ++round) {
    const V first = mul(a, multiplier_0), second = mul(c, multiplier_2);
    a = bit_xor(bit_xor(shift_right(second, width), b), key_0);
    b = bit_and(second, half);
    c = bit_xor(bit_xor(shift_right(first, width), d), key_1);
    d = bit_and(first, half);
    key_0 = bit_and(add(key_0, step_0), half);
    key_1 = bit_and(add(key_1, step_1), half);
  }
  return {{a, b, c, d}};
}

// Words 0 and 1 of a block as 64 bits, and words 2 and 3; the first one is the lower half.
template <class V>
GCRT_INLINE V philox_low(V position, V key, V stream) {
  const PhiloxBlock<V> block = philox_block(position, key, stream);
  return bit_or(block.words[0], shift_left(block.words[1], splat_like<V>(std::uint64_t{32})));
}
template <class V>
GCRT_INLINE V philox_high(V position, V key, V stream) {
  const PhiloxBlock<V> block = philox_block(position, key, stream);
  return bit_or(block.words[2], shift_left(block.words[3], splat_like<V>(std::uint64_t{32})));
}

}  // namespace GCRT_NAMESPACE
