// One row by a matrix where it lies, against plain loops, over sizes around every vector and block.
#include "gcrt/cpu/product/gemv.h"

#include "kernel_test.h"

namespace kernel_test {
namespace {

template <bool AlongDepth>
void check_gemv(std::ptrdiff_t columns, std::ptrdiff_t depth) {
  SCOPED_TRACE(::testing::Message() << columns << " columns of " << depth << ", along the depth "
                                    << AlongDepth);
  constexpr std::ptrdiff_t kEntries = 3;
  const std::ptrdiff_t step = (AlongDepth ? depth : columns) + 3;
  const std::ptrdiff_t matrix = step * (AlongDepth ? columns : depth);
  const auto a = random_values<float>(static_cast<std::size_t>(kEntries * depth), 1);
  const auto b = random_values<float>(static_cast<std::size_t>(kEntries * matrix), 2);
  std::vector<Recorded<float>> results(kEntries, Recorded<float>(1, static_cast<int>(columns)));
  for_columns(nullptr, kEntries, columns,
              [&](std::ptrdiff_t entry, std::ptrdiff_t begin, std::ptrdiff_t end) {
                gemv<AlongDepth>(depth, a.data() + entry * depth, b.data() + entry * matrix, step,
                                 results[static_cast<std::size_t>(entry)].epilogue(), begin, end);
              });
  for (std::ptrdiff_t entry = 0; entry < kEntries; ++entry) {
    std::vector<double> expected;
    for (std::ptrdiff_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        const std::ptrdiff_t at = entry * matrix + (AlongDepth ? n * step + k : k * step + n);
        sum += static_cast<double>(a[static_cast<std::size_t>(entry * depth + k)]) *
               static_cast<double>(b[static_cast<std::size_t>(at)]);
      }
      expected.push_back(sum);
    }
    results[static_cast<std::size_t>(entry)].check(expected, 1e-5);
  }
}

TEST(Gemv, SizesAroundEdges) {
  for (const std::ptrdiff_t columns : {1, 7, 8, 9, 16, 31, 65, 255, 256, 257, 600}) {
    for (const std::ptrdiff_t depth : {1, 2, 15, 16, 33, 64}) {
      check_gemv<true>(columns, depth);
      check_gemv<false>(columns, depth);
    }
  }
}

}  // namespace
}  // namespace kernel_test
