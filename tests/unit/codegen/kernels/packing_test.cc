#include "codegen/packing/packing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/packing/integer_packing.h"
#include "codegen/packing/weights.h"
#include "codegen/packing/word_packing.h"
#include "ir/tensors/element_type.h"

namespace gcompile {
namespace {

using ir::ElementType;

/// Numbers that tell every position apart, with denormals among them.
ir::Tensor floats(const ir::Shape& shape) {
  ir::Tensor tensor(ir::TensorType{ElementType::kFloat32, shape});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = i % 11 == 3 ? std::ldexp(1.0, -140) : 0.25 * static_cast<double>(i) - 3;
    tensor.set(i, ir::Scalar::of_real(ElementType::kFloat32, value));
  }
  return tensor;
}

ir::Tensor integers(const ir::Shape& shape, ElementType type) {
  ir::Tensor tensor(ir::TensorType{type, shape});
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, ir::Scalar::of_integer(type, i * 37 + 11));
  return tensor;
}

std::int64_t place_in(const MatrixView& view, std::int64_t m, std::int64_t k, std::int64_t n) {
  return m * view.matrix_step + view.taps[static_cast<std::size_t>(k / view.inner)] +
         k % view.inner * view.inner_step + n * view.column_step;
}

float flushed(double value) {
  return std::fpclassify(static_cast<float>(value)) == FP_SUBNORMAL ? 0.0f : static_cast<float>(value);
}

template <class T>
std::vector<T> written(const Packing& packing) {
  std::vector<T> out(static_cast<std::size_t>(packing.bytes) / sizeof(T));
  EXPECT_EQ(out.size() * sizeof(T), static_cast<std::size_t>(packing.bytes));
  packing.write(packing.source, std::as_writable_bytes(std::span<T>(out)));
  return out;
}

/// The law of pack_panels(), element by element.
std::vector<float> panels(const ir::Tensor& w, const MatrixView& view) {
  std::vector<float> out;
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    for (std::int64_t n = 0; n < view.columns; n += 16) {
      for (std::int64_t k = 0; k < view.depth(); ++k) {
        for (std::int64_t i = n; i < n + 16; ++i) {
          out.push_back(i < view.columns ? flushed(w.real_at(place_in(view, m, k, i))) : 0.0f);
        }
      }
    }
  }
  return out;
}

std::vector<float> rows(const ir::Tensor& w, const MatrixView& view, std::int64_t length,
                        std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    for (std::int64_t n = 0; n < count; ++n) {
      for (std::int64_t k = 0; k < length; ++k) {
        const bool inside = n < view.columns && k < view.depth();
        out.push_back(inside ? flushed(w.real_at(place_in(view, m, k, n))) : 0.0f);
      }
    }
  }
  return out;
}

struct Case {
  ir::Tensor weights;
  MatrixView view;
};

std::vector<Case> awkward_cases() {
  std::vector<Case> cases;
  for (const ir::Shape& shape :
       {ir::Shape{1, 1}, {3, 17}, {40, 16}, {33, 50}, {2, 3, 5, 7}, {0, 4}, {4, 0}}) {
    cases.push_back({floats(shape), product_matrices(shape)});
  }
  for (const auto& [shape, groups] : std::vector<std::pair<ir::Shape, std::int64_t>>{
           {{17, 3, 3, 3}, 1}, {{32, 20, 1, 1}, 1}, {{6, 2, 5}, 3}, {{4, 1, 1, 1}, 1}}) {
    cases.push_back({floats(shape), conv_matrices(shape, groups)});
  }
  cases.push_back({floats({6, 5, 2, 3}), conv_transpose_matrices({6, 5, 2, 3}, 2)});
  cases.push_back({floats({9, 1, 3, 3}), depthwise_rows({9, 1, 3, 3})});
  return cases;
}

TEST(Packing, PanelsFollowTheirLaw) {
  for (const Case& c : awkward_cases()) {
    EXPECT_EQ(written<float>(pack_panels(c.weights, c.view)), panels(c.weights, c.view))
        << ir::to_string(c.weights.shape());
  }
}

TEST(Packing, PanelsHoldElementsOf32And64Bits) {
  for (const ir::ElementType type : {ir::ElementType::kInt32, ir::ElementType::kUInt64}) {
    const ir::Shape shape = {2, 3, 17};
    const ir::Tensor w = integers(shape, type);
    const MatrixView view = product_matrices(shape);
    const Packing packing = pack_panels(w, view);
    const auto panel_of = [&](auto element) {
      const auto out = written<decltype(element)>(packing);
      for (std::int64_t m = 0; m < 2; ++m) {
        for (std::int64_t k = 0; k < 3; ++k) {
          for (std::int64_t n = 0; n < 32; ++n) {
            const std::int64_t at = m * 96 + n / 16 * 48 + k * 16 + n % 16;
            const std::int64_t expected = n < 17 ? w.at(place_in(view, m, k, n)).integer : 0;
            EXPECT_EQ(static_cast<std::int64_t>(out[static_cast<std::size_t>(at)]), expected);
          }
        }
      }
    };
    type == ir::ElementType::kInt32 ? panel_of(std::int32_t{}) : panel_of(std::uint64_t{});
  }
}

TEST(Packing, RowsFollowTheirLaw) {
  for (const Case& c : awkward_cases()) {
    for (const std::int64_t length : {c.view.depth(), (c.view.depth() + 15) / 16 * 16}) {
      EXPECT_EQ(written<float>(pack_rows(c.weights, c.view, length)),
                rows(c.weights, c.view, length, c.view.columns))
          << ir::to_string(c.weights.shape());
      const std::int64_t padded = c.view.columns + 3;
      EXPECT_EQ(written<float>(pack_rows(c.weights, c.view, length, ElementType::kFloat32, padded)),
                rows(c.weights, c.view, length, padded));
      const std::vector<std::uint16_t> halves =
          written<std::uint16_t>(pack_rows(c.weights, c.view, length, ElementType::kFloat16));
      for (std::int64_t n = 0; n < c.view.columns && c.view.matrices == 1; ++n) {
        for (std::int64_t k = 0; k < c.view.depth(); ++k) {
          EXPECT_EQ(halves[static_cast<std::size_t>(n * length + k)],
                    ir::float_to_half(static_cast<float>(c.weights.real_at(place_in(c.view, 0, k, n)))));
        }
      }
    }
  }
}

template <class Stored>
void check_integers(const ir::Tensor& w, const MatrixView& view, const std::vector<std::int64_t>& zero,
                    bool narrow) {
  const auto weight = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    const std::int64_t column = m * view.columns + n;
    return w.int_at(place_in(view, m, k, n)) - zero[zero.size() == 1 ? 0 : static_cast<std::size_t>(column)];
  };
  const std::int64_t group = narrow ? 4 : 2;
  // Joined taps are as one.
  const std::int64_t inner = view.joins_taps ? view.depth() : view.inner, taps = view.depth() / inner;
  std::vector<Stored> panels, rows;
  std::vector<std::int64_t> sums;
  const std::int64_t length = view.depth() + 5;
  for (std::int64_t m = 0; m < view.matrices; ++m) {
    for (std::int64_t n = 0; n < view.columns; n += 16) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t g = 0; g < (inner + group - 1) / group; ++g) {
          for (std::int64_t i = n; i < n + 16; ++i) {
            for (std::int64_t k = g * group; k < (g + 1) * group; ++k) {
              const bool inside = i < view.columns && k < inner;
              panels.push_back(static_cast<Stored>(inside ? weight(m, tap * inner + k, i) : 0));
            }
          }
        }
      }
    }
    for (std::int64_t n = 0; n < view.columns; ++n) {
      sums.push_back(0);
      for (std::int64_t k = 0; k < length; ++k) {
        const std::int64_t value = k < view.depth() ? weight(m, k, n) : 0;
        rows.push_back(static_cast<Stored>(value));
        sums.back() += value;
      }
    }
  }
  if (narrow) {
    // Both parts together are the words; each of them, and what is whole, may be multiplied in pairs.
    const SplitTable table = split_words(w, view, zero);
    const std::vector<Stored> split = written<Stored>(pack_integer_panels(w, view, zero, true, true));
    std::vector<int> sums_of_parts(split.begin(), split.end());
    const std::size_t of_panel = static_cast<std::size_t>(taps * ((inner + 3) / 4));
    const auto fits = [](const auto* word) {
      for (int i = 0; i < 64; i += 2) {
        const int a = word[i], b = word[i + 1];
        if (std::max(a, 0) + std::max(b, 0) > 128 || std::max(-a, 0) + std::max(-b, 0) > 128) return false;
      }
      return true;
    };
    ASSERT_EQ(table.starts.size(), panels.size() / 64 / of_panel + 1);
    ASSERT_EQ(table.rests.size(), 64 * table.words.size());
    EXPECT_EQ(table.whole, static_cast<std::int64_t>(panels.size() / 64 - table.words.size()));
    for (std::size_t p = 0; p + 1 < table.starts.size(); ++p) {
      for (auto i = static_cast<std::size_t>(table.starts[p]);
           i < static_cast<std::size_t>(table.starts[p + 1]); ++i) {
        const std::size_t word = (p * of_panel + static_cast<std::size_t>(table.words[i])) * 64;
        EXPECT_FALSE(fits(panels.data() + word));
        EXPECT_TRUE(fits(table.rests.data() + 64 * i));
        for (std::size_t j = 0; j < 64; ++j) sums_of_parts[word + j] += table.rests[64 * i + j];
      }
    }
    EXPECT_EQ(sums_of_parts, std::vector<int>(panels.begin(), panels.end()));
    for (std::size_t word = 0; word < split.size(); word += 64) EXPECT_TRUE(fits(split.data() + word));
  }
  const IntegerFacts facts = integer_facts(w, view, zero);
  EXPECT_EQ(facts.narrow, narrow);
  EXPECT_EQ(facts.sums, sums);
  EXPECT_EQ(written<Stored>(pack_integer_panels(w, view, zero, narrow)), panels);
  EXPECT_EQ(written<Stored>(pack_integer_rows(w, view, zero, narrow, length)), rows);
}

TEST(Packing, IntegersFollowTheirLaw) {
  for (const ir::Shape& shape : {ir::Shape{5, 17}, {16, 16}, {3, 40}}) {
    const MatrixView view = product_matrices(shape);
    check_integers<std::int8_t>(integers(shape, ElementType::kInt8), view, {0}, true);
    check_integers<std::int8_t>(integers(shape, ElementType::kUInt8), view, {128}, true);
    check_integers<std::int16_t>(integers(shape, ElementType::kUInt8), view, {0}, false);
    std::vector<std::int64_t> each;
    for (std::int64_t n = 0; n < view.columns; ++n) each.push_back(n % 2 == 0 ? 128 : 100);
    check_integers<std::int16_t>(integers(shape, ElementType::kUInt8), view, each, false);
  }
  MatrixView conv = conv_matrices({18, 3, 3, 3}, 2);
  for (const bool joins : {false, true}) {
    conv.joins_taps = joins;
    check_integers<std::int8_t>(integers({18, 3, 3, 3}, ElementType::kInt8), conv, {0}, true);
    check_integers<std::int16_t>(integers({18, 3, 3, 3}, ElementType::kInt8), conv, {7}, false);
  }
}

TEST(Packing, BytesBesideInt16LieInPairs) {
  for (const ir::Shape& shape : {ir::Shape{5, 17}, {16, 16}, {3, 40}}) {
    const ir::Tensor w = integers(shape, ElementType::kUInt8);
    const MatrixView view = product_matrices(shape);
    const auto panels = written<std::int8_t>(pack_integer_panels(w, view, {128}, true, false, true));
    const std::int64_t depth = shape[0], columns = shape[1], words = (depth + 1) / 2;
    ASSERT_EQ(static_cast<std::int64_t>(panels.size()), (columns + 15) / 16 * words * 32);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(panels.size()); ++i) {
      const std::int64_t n = i / 32 / words * 16 + i % 32 / 2, k = i / 32 % words * 2 + i % 2;
      const std::int64_t expected = n < columns && k < depth ? w.int_at(k * columns + n) - 128 : 0;
      EXPECT_EQ(panels[static_cast<std::size_t>(i)], expected) << k << ", " << n;
    }
  }
}

TEST(Packing, DepthwiseIntegersAreRowsOfChannels) {
  const ir::Tensor w = integers({5, 1, 2, 2}, ElementType::kInt8);
  const std::vector<std::int64_t> zero = {1, 2, 3, 4, 5};
  std::vector<std::int16_t> expected;
  for (std::int64_t tap = 0; tap < 4; ++tap) {
    for (std::int64_t c = 0; c < 5; ++c) {
      expected.push_back(
          static_cast<std::int16_t>(w.int_at(c * 4 + tap) - zero[static_cast<std::size_t>(c)]));
    }
  }
  EXPECT_EQ(written<std::int16_t>(pack_integer_depthwise(w, depthwise_rows(w.shape()), zero)), expected);
}

TEST(Packing, PartsLieBehindOneAnother) {
  const ir::Tensor w = floats({4, 6});
  MatrixView view = product_matrices(w.shape());
  std::vector<float> both = written<float>(pack_rows(w, view, 4));
  const std::vector<float> second = written<float>(pack_panels(w, view));
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(written<float>(pack_together({pack_rows(w, view, 4), pack_panels(w, view)})), both);
}

/// Counts how often it is written.
Packing counted(const ir::Tensor& source, const std::string& format, int& writes) {
  Packing packing = pack_as_is(source);
  packing.format = format;
  packing.write = [write = packing.write, &writes](const ir::Tensor& from, std::span<std::byte> out) {
    ++writes;
    write(from, out);
  };
  return packing;
}

TEST(Words, HaveRowsFromTheLowestBitsOn) {
  for (const std::int64_t columns : {1, 32, 45}) {
    for (const std::int64_t depth : {1, 8, 21}) {
      for (const int bits : {4, 8}) {
        ir::Tensor w(ir::TensorType{ElementType::kInt8, {depth, columns}});
        const std::int64_t middle = bits == 4 ? 8 : 128;
        for (std::int64_t i = 0; i < w.count(); ++i) {
          w.set(i, ir::Scalar::of_integer(ElementType::kInt8, i * 37 % (2 * middle) - middle));
        }
        const std::vector<std::uint32_t> words = written<std::uint32_t>(pack_words(w, bits));
        const std::int64_t in_word = 32 / bits, rows = (depth + in_word - 1) / in_word;
        ASSERT_EQ(words.size(), static_cast<std::size_t>((columns + 31) / 32 * 32 * rows));
        for (std::size_t at = 0; at < words.size(); ++at) {
          const auto place = static_cast<std::int64_t>(at);
          const std::int64_t n = place / 32 / rows * 32 + place % 32, first = place / 32 % rows * in_word;
          for (std::int64_t j = 0; j < in_word; ++j) {
            const bool inside = n < columns && first + j < depth;
            const std::int64_t expected = inside ? w.int_at((first + j) * columns + n) + middle : 0;
            EXPECT_EQ(words[at] >> (j * bits) & (2 * middle - 1), expected) << at << ", " << j;
          }
        }
      }
    }
  }
}

TEST(WidePanels, HaveThirtyTwoColumns) {
  const ir::Tensor w = floats({3, 37}), b = integers({3, 37}, ElementType::kInt8);
  const std::vector<float> panels = written<float>(pack_wide_panels(w));
  const std::vector<std::int8_t> bytes = written<std::int8_t>(pack_wide_panels(b));
  ASSERT_EQ(panels.size(), 192u);
  ASSERT_EQ(bytes.size(), 192u);
  for (std::int64_t place = 0; place < 192; ++place) {
    const std::int64_t n = place / 96 * 32 + place % 32, k = place / 32 % 3;
    EXPECT_EQ(panels[static_cast<std::size_t>(place)], n < 37 ? flushed(w.real_at(k * 37 + n)) : 0);
    EXPECT_EQ(bytes[static_cast<std::size_t>(place)], n < 37 ? b.int_at(k * 37 + n) : 0);
  }
}

TEST(WeightBlob, WritesEachPackingOnceAndWhenItIsFinished) {
  int writes = 0;
  const ir::Tensor w = floats({100});
  WeightBlob blob;
  const int first = blob.add(counted(w, "a", writes), "w", "");
  EXPECT_EQ(blob.add(counted(w, "a", writes), "again", ""), first);
  const int other = blob.add(counted(w, "b", writes), "other", "");
  EXPECT_NE(other, first);
  EXPECT_EQ(blob.entries()[static_cast<std::size_t>(other)].bytes, 400);
  EXPECT_EQ(writes, 0);
  const ZeroedMemory payload = blob.finish(64);
  EXPECT_EQ(writes, 2);
  // Equal bytes of two formats are one entry after all.
  EXPECT_EQ(blob.place_of(other), blob.place_of(first));
  ASSERT_EQ(blob.entries().size(), 1u);
  EXPECT_EQ(blob.entries()[0].name, "w");
  EXPECT_EQ(payload.size(), 64u + 448u);
}

TEST(WeightBlob, ForgetsWhatIsNotKept) {
  WeightBlob blob;
  blob.add_floats({1, 2}, "kept", "");
  const std::size_t count = blob.entries().size();
  EXPECT_EQ(blob.add_floats({3, 4, 5}, "dropped", ""), 1);
  EXPECT_EQ(blob.zeros(64), 2);
  blob.keep(count);
  ASSERT_EQ(blob.entries().size(), 1U);
  EXPECT_EQ(blob.zeros(8), 1);
  EXPECT_EQ(blob.entries()[1].bytes, 8);
}

TEST(WeightBlob, MergesByContentAndAligns) {
  WeightBlob blob;
  const int a = blob.add(std::vector<std::uint8_t>{1, 2, 3}, "a", "");
  const int zeros = blob.zeros(10);
  const int b = blob.add(std::vector<std::uint8_t>{1, 2, 4}, "b", "");
  const int c = blob.add(std::vector<std::uint8_t>{1, 2, 3}, "c", "");
  const int nothing = blob.add(std::vector<std::uint8_t>{}, "nothing", "");
  EXPECT_EQ(blob.zeros(100), zeros);
  const ZeroedMemory payload = blob.finish();
  EXPECT_EQ(blob.place_of(c), blob.place_of(a));
  ASSERT_EQ(blob.entries().size(), 4u);
  EXPECT_EQ(blob.entries()[blob.place_of(zeros)].bytes, 100);
  EXPECT_EQ(blob.entries()[blob.place_of(b)].offset, 64 + 128);
  EXPECT_EQ(blob.entries()[blob.place_of(nothing)].bytes, 1);
  EXPECT_EQ(payload.size(), 64u + 128 + 64 + 64);
  EXPECT_EQ(payload[64 + 128 + 2], 4);
}

TEST(WeightBlob, AWeightWrittenToAfterItWasAddedKeepsItsBytes) {
  ir::Tensor w = floats({4});
  WeightBlob blob;
  blob.add_tensor(w, "w");
  w.set(0, ir::Scalar::of_real(ElementType::kFloat32, 77));
  const ZeroedMemory payload = blob.finish();
  float first = 0;
  std::memcpy(&first, payload.data(), sizeof first);
  EXPECT_EQ(first, -3.0f);
}

}  // namespace
}  // namespace gcompile
