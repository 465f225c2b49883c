// Operands of integer contractions as the kernels read them: random and extreme ones, packed, with offsets
// and split words.
#pragma once

#include <limits>
#include <memory>

#include "kernel_test.h"

namespace kernel_test {

// The elements of both factors.
template <class X, class W>
struct Kinds {
  using TX = X;
  using TW = W;
};
using AllKinds = ::testing::Types<Kinds<std::uint8_t, std::int8_t>, Kinds<std::int8_t, std::int8_t>,
                                  Kinds<std::uint8_t, std::int16_t>, Kinds<std::int8_t, std::int16_t>,
                                  Kinds<std::uint16_t, std::int8_t>, Kinds<std::int16_t, std::int8_t>,
                                  Kinds<std::uint16_t, std::int16_t>, Kinds<std::int16_t, std::int16_t>>;

// Whether bytes are multiplied, four in a word; else two int16.
template <class TX, class TW>
constexpr bool kAreBytes = sizeof(TX) == 1 && sizeof(TW) == 1;

// A copy that ends where its memory block ends, so that a sanitizer sees reads past it.
template <class T>
struct Exact {
  explicit Exact(const std::vector<T>& values) : data(new T[values.size()]) {
    for (std::size_t i = 0; i < values.size(); ++i) data[i] = values[i];
  }
  std::unique_ptr<T[]> data;
};

// narrow: most weights as large as pairs of products in int16 allow, a few larger; the largest x.
enum class Values { random, extreme, narrow };

// Operands of a contraction; weights are stored without their zero point.
template <class TX, class TW>
struct Operands {
  std::vector<TX> x;
  std::vector<TW> w;
  int zero_point;
};

template <class TX, class TW>
Operands<TX, TW> make_operands(std::size_t x_count, std::size_t w_count, Values values, std::uint32_t seed) {
  constexpr int kLow = std::numeric_limits<TX>::min();
  constexpr int kHigh = std::numeric_limits<TX>::max();
  constexpr int kRange = kHigh - kLow + 1;
  constexpr int kWeight = sizeof(TW) == 1 ? 128 : sizeof(TX) == 1 ? 255 : 32768;
  Operands<TX, TW> o{std::vector<TX>(x_count), std::vector<TW>(w_count), 0};
  Random random(seed);
  if (values == Values::extreme) {
    const bool is_high = (seed & 1) != 0;
    o.zero_point = is_high ? kLow : kHigh;
    for (TX& x : o.x) x = static_cast<TX>(is_high ? kHigh : kLow);
    for (TW& w : o.w) w = static_cast<TW>(-kWeight);
  } else if (values == Values::narrow) {
    o.zero_point = kLow + random.below(kRange);
    for (TX& x : o.x) x = static_cast<TX>(kHigh - random.below(3));
    for (TW& w : o.w) w = static_cast<TW>(random.below(300) == 0 ? -kWeight : random.below(5) < 2 ? 64 : -64);
  } else {
    o.zero_point = kLow + random.below(kRange);
    for (TX& x : o.x) x = static_cast<TX>(kLow + random.below(kRange));
    for (TW& w : o.w) w = static_cast<TW>(random.below(2 * kWeight) - kWeight);
  }
  return o;
}

// w(tap, k, n) in the packed form, appended to `packed`, and the sums of its columns.
template <class TX, class TW, class F>
void append_packed(int taps, int depth, int columns, const F& w, std::vector<TW>& packed,
                   std::vector<std::int32_t>& sums) {
  constexpr int G = kAreBytes<TX, TW> ? 4 : 2;
  for (int panel = 0; panel < columns; panel += 16) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int k = 0; k < depth; k += G) {
        for (int n = panel; n < panel + 16; ++n) {
          for (int j = k; j < k + G; ++j) {
            packed.push_back(n < columns && j < depth ? w(tap, j, n) : TW(0));
          }
        }
      }
    }
  }
  for (int n = 0; n < columns; ++n) {
    std::int32_t sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
      for (int k = 0; k < depth; ++k) sum += w(tap, k, n);
    }
    sums.push_back(sum);
  }
}

// What sums of 32 bits hold of whole numbers below 2^53.
inline std::int64_t modulo(std::int64_t sum) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(sum)));
}
template <class T>
std::vector<std::int64_t> modulo(const std::vector<T>& sums) {
  std::vector<std::int64_t> out;
  for (const T sum : sums) out.push_back(modulo(static_cast<std::int64_t>(sum)));
  return out;
}

// What dot_int8.h asks for, from the sums of the columns.
template <class TX, class TW>
std::vector<std::int32_t> offsets_of(int zero_point, const std::vector<std::int32_t>& sums) {
  std::vector<std::int32_t> offsets;
  const auto add = [&](int read_zero) {
    for (const std::int32_t sum : sums)
      offsets.push_back(static_cast<std::int32_t>(modulo(-std::int64_t{read_zero} * sum)));
  };
  constexpr bool kIsSigned = std::is_signed<TX>::value;
  if (!kAreBytes<TX, TW>) {
    add(zero_point - (std::is_same<TX, std::uint16_t>::value ? 32768 : 0));
    return offsets;
  }
  add(zero_point + (kIsSigned ? 128 : 0));
  add(zero_point - (kIsSigned ? 0 : 128));
  return offsets;
}

// Splits words of packed bytes that pairs of products cannot hold, and returns the table of SplitWords; of
// what is multiplied as int16 there is none.
template <class TX, class TW>
std::vector<std::int32_t> split_words(std::vector<TW>& packed, std::size_t words_of_panel) {
  std::vector<std::int32_t> starts{0}, words;
  std::vector<std::int8_t> rests;
  if (!kAreBytes<TX, TW>) return {};
  for (std::size_t i = 0; i < packed.size(); i += 64) {
    int largest = 0;
    for (std::size_t j = i; j < i + 64; j += 2) {
      const int a = packed[j], b = packed[j + 1];
      largest = std::max(largest, std::max(a, 0) + std::max(b, 0));
      largest = std::max(largest, std::max(-a, 0) + std::max(-b, 0));
    }
    if (largest > 128) {
      words.push_back(static_cast<std::int32_t>(i / 64 % words_of_panel));
      for (std::size_t j = i; j < i + 64; ++j) {
        const int half = packed[j] / 2;
        rests.push_back(static_cast<std::int8_t>(packed[j] - half));
        packed[j] = static_cast<TW>(half);
      }
    }
    if ((i / 64 + 1) % words_of_panel == 0) starts.push_back(static_cast<std::int32_t>(words.size()));
  }
  std::vector<std::int32_t> table = starts;
  table.insert(table.end(), words.begin(), words.end());
  table.resize(table.size() + rests.size() / 4);
  if (!rests.empty()) std::memcpy(table.data() + starts.size() + words.size(), rests.data(), rests.size());
  return table;
}

}  // namespace kernel_test
