// Integer products of two matrices that only the run knows against plain 64-bit sums: every kind of operand,
// in both forms, awkward sizes and strides, extreme zero points, threads.
#include "gcrt/cpu/product/product_int8.h"

#include <limits>
#include <memory>

#include "kernel_test.h"

namespace kernel_test {
namespace {

// random; or the elements farthest from their zero points.
enum class Values { random, extreme };

// Elements of a matrix with its zero point, in a block of memory that ends with them, so that a sanitizer
// sees reads past it.
template <class T>
struct Bytes {
  Bytes(std::ptrdiff_t count, Values values, bool is_low, Random& random)
      : data(new T[static_cast<std::size_t>(count)]) {
    constexpr int kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    zero = values == Values::random ? kLow + random.below(256) : is_low ? kHigh : kLow;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const int value = values == Values::random ? kLow + random.below(256) : is_low ? kLow : kHigh;
      data[static_cast<std::size_t>(i)] = static_cast<T>(value);
    }
  }
  std::int64_t at(std::ptrdiff_t i) const { return std::int64_t{data[static_cast<std::size_t>(i)]} - zero; }
  std::unique_ptr<T[]> data;
  std::int32_t zero;
};

enum class Order { rows, columns, neither };

template <class TX, class TW>
void check_product(const ProductSizes& s, Order order, int gap, Values values, std::uint32_t seed) {
  SCOPED_TRACE(::testing::Message() << s.rows << "x" << s.depth << "x" << s.columns << " order "
                                    << static_cast<int>(order) << " gap " << gap << " seed " << seed);
  const std::ptrdiff_t lda = s.depth + gap;
  const std::ptrdiff_t step = order == Order::neither ? 3 : 1;
  const std::ptrdiff_t stride_k = order == Order::columns ? 1 : s.columns * step + gap;
  const std::ptrdiff_t stride_n = order == Order::columns ? s.depth + gap : step;
  Random random(seed);
  const Bytes<TX> a((s.rows - 1) * lda + s.depth, values, seed % 2 == 0, random);
  const Bytes<TW> b((s.depth - 1) * stride_k + (s.columns - 1) * stride_n + 1, values, seed % 3 == 0, random);
  std::vector<std::int64_t> expected;
  for (std::ptrdiff_t m = 0; m < s.rows; ++m) {
    for (std::ptrdiff_t n = 0; n < s.columns; ++n) {
      std::int64_t sum = 0;
      for (std::ptrdiff_t k = 0; k < s.depth; ++k)
        sum += a.at(m * lda + k) * b.at(k * stride_k + n * stride_n);
      expected.push_back(sum);
    }
  }
  const IntegerRows<TX> left{a.data.get(), lda, a.zero};
  const IntegerMatrix<TW> right{b.data.get(), stride_k, stride_n, b.zero};
  const auto run = [&](auto in_bytes, const Blocking& blocking, const Threads* threads) {
    const auto size = static_cast<std::size_t>(integer_sides_size(s.rows, s.columns, s.depth));
    const std::unique_ptr<std::int32_t[]> scratch(new std::int32_t[size]);
    Recorded<std::int32_t> result(s.rows, s.columns);
    multiply_integers<kInTiles&& decltype(in_bytes)::value, decltype(in_bytes)::value>(
        threads, s, left, right, blocking, scratch.get(), result.epilogue());
    result.check(expected, 0.0);
  };
  for (const Blocking& blocking : {Blocking{0, 0, 0, 0}, Blocking{9, 17, 5, 0}}) {
    for (int pieces : {1, 3, 16}) {
      const Threads threads{&pieces, pieces, last_range_first};
      run(std::true_type{}, blocking, &threads);
      run(std::false_type{}, blocking, &threads);
    }
  }
}

template <class T>
class ComputedSides : public ::testing::Test {};
template <class X, class W>
struct Kinds {
  using TX = X;
  using TW = W;
};
using AllKinds = ::testing::Types<Kinds<std::uint8_t, std::uint8_t>, Kinds<std::uint8_t, std::int8_t>,
                                  Kinds<std::int8_t, std::uint8_t>, Kinds<std::int8_t, std::int8_t>>;
TYPED_TEST_SUITE(ComputedSides, AllKinds);

constexpr Order kOrders[] = {Order::rows, Order::columns, Order::neither};

TYPED_TEST(ComputedSides, AwkwardSizes) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  std::uint32_t seed = 1;
  for (std::ptrdiff_t depth : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 67, 130}) {
    for (std::ptrdiff_t columns : {1, 5, 15, 16, 17, 32, 49}) {
      for (const Order order : kOrders) {
        const std::ptrdiff_t rows = 1 + static_cast<std::ptrdiff_t>(seed % 19);
        check_product<TX, TW>({rows, columns, depth}, order, static_cast<int>(seed % 4), Values::random,
                              seed);
        ++seed;
      }
    }
  }
}

TYPED_TEST(ComputedSides, HeadsAndExtremes) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (const Order order : kOrders) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed)
      check_product<TX, TW>({11, 33, 1031}, order, 0, Values::extreme, seed);
    check_product<TX, TW>({77, 77, 64}, order, 0, Values::random, 7);
    check_product<TX, TW>({61, 64, 128}, order, 1, Values::random, 8);
    check_product<TX, TW>({310, 90, 259}, order, 0, Values::random, 9);  // prepared in several pieces
  }
}

}  // namespace
}  // namespace kernel_test
