// Attention against loops in double: sizes around the edges of tiles, panels and blocks of columns, masks,
// causal rows, rows without columns, query heads that share keys, strides, and every split of the work.
#include <algorithm>
#include <limits>

#include "gcrt/cpu/attention_row.h"
#include "kernel_test.h"

namespace kernel_test {
namespace {

constexpr std::ptrdiff_t kSlots = 2;  // fewer than the key heads of some cases

enum class MaskKind { kNone, kAdded, kAddedToRows, kKept, kKeptRow, kKeptThenAdded };

struct Case {
  AttentionShape shape;
  std::ptrdiff_t key_heads = 2;
  std::ptrdiff_t group = 1;
  MaskKind mask = MaskKind::kNone;
  bool transposed_keys = false;  // K as (size, columns), V as (value size, columns)
  float fill = -std::numeric_limits<float>::infinity();
};

class Run {
 public:
  explicit Run(const Case& c)
      : c_(c),
        s_(c.shape),
        q_row_(s_.size + 5),
        q_(random_values<float>(index(heads() * s_.rows * q_row_), 1)),
        k_(random_values<float>(index(c.key_heads * s_.columns * s_.size), 2)),
        v_(random_values<float>(index(c.key_heads * s_.columns * s_.value_size), 3)),
        added_(random_values<float>(index(heads() * s_.rows * s_.columns), 4)),
        kept_(added_.size()),
        packed_(index(kSlots * packed_attention_size(s_) + 1), 7.0f) {
    for (std::size_t i = 0; i < added_.size(); ++i) {
      kept_[i] = added_[i] < 0.3f ? 1 : 0;
      if (added_[i] > 0.8f) added_[i] = -std::numeric_limits<float>::infinity();
    }
    k_strides_ = c.transposed_keys ? RowStrides{1, s_.columns} : RowStrides{s_.size, 1};
    v_strides_ = c.transposed_keys ? RowStrides{1, s_.columns} : RowStrides{s_.value_size, 1};
  }

  // The bits of all heads, one after the other.
  std::vector<float> check(const Threads* threads) {
    std::vector<Recorded<float>> results(index(heads()), Recorded<float>(s_.rows, s_.value_size));
    attention(
        threads, s_, c_.key_heads, c_.group, kSlots, packed_.data(),
        [&](std::ptrdiff_t head, float* packed) {
          pack_attention(s_, k_of(head), k_strides_, v_of(head), v_strides_, packed);
        },
        [&](std::ptrdiff_t head, const AttentionTask& task) {
          with_mask(head, [&](const auto& mask) {
            task(q_of(head), q_row_, mask, results[index(head)].epilogue());
          });
        });
    return checked(results);
  }

  // The same by the kernel for a single row.
  std::vector<float> check_row(const Threads* threads) {
    std::vector<Recorded<float>> results(index(heads()), Recorded<float>(s_.rows, s_.value_size));
    attention_row(
        threads, s_, c_.key_heads, c_.group,
        [&](std::ptrdiff_t head) {
          return KeysAndValues{k_of(head), k_strides_.row, v_of(head), v_strides_.row};
        },
        [&](std::ptrdiff_t head, const RowTask& task) {
          with_mask(head, [&](const auto& mask) { task(q_of(head), mask, results[index(head)].epilogue()); });
        });
    return checked(results);
  }

  // The same by what a run of any number of rows calls.
  std::vector<float> check_run(const Threads* threads) {
    std::vector<Recorded<float>> results(index(heads()), Recorded<float>(s_.rows, s_.value_size));
    attention_of_run(
        threads, s_, c_.key_heads, c_.group, kSlots, packed_.data(),
        [&](std::ptrdiff_t head) {
          return KeysAndValues{k_of(head), k_strides_.row, v_of(head), v_strides_.row};
        },
        [&](std::ptrdiff_t head, const auto& task) {
          with_mask(head, [&](const auto& mask) {
            task(q_of(head), q_row_, mask, results[index(head)].epilogue());
          });
        });
    return checked(results);
  }

 private:
  static std::size_t index(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }
  std::ptrdiff_t heads() const { return c_.key_heads * c_.group; }
  const float* q_of(std::ptrdiff_t head) const { return q_.data() + head * s_.rows * q_row_; }
  const float* k_of(std::ptrdiff_t head) const { return k_.data() + head * s_.columns * s_.size; }
  const float* v_of(std::ptrdiff_t head) const { return v_.data() + head * s_.columns * s_.value_size; }

  template <class F>
  void with_mask(std::ptrdiff_t head, const F& f) const {
    const std::ptrdiff_t first = head * s_.rows * s_.columns;
    switch (c_.mask) {
      case MaskKind::kNone:
        return f(NoMask{});
      case MaskKind::kAdded:
        return f(AddedMask{added_.data() + first, s_.columns, 1});
      case MaskKind::kAddedToRows:
        return f(AddedMask{added_.data() + first, s_.columns, 0});
      case MaskKind::kKept:
        return f(KeptMask{kept_.data() + first, s_.columns, 1, c_.fill});
      case MaskKind::kKeptRow:
        return f(KeptMask{kept_.data() + first, 0, 1, c_.fill});
      case MaskKind::kKeptThenAdded:
        return f(MaskThen<KeptMask, AddedMask>{{kept_.data() + first, s_.columns, 1, c_.fill},
                                               {added_.data() + first, s_.columns, 0}});
    }
  }

  std::vector<float> checked(const std::vector<Recorded<float>>& results) const {
    EXPECT_EQ(packed_.back(), 7.0f);
    for (std::ptrdiff_t head = 0; head < heads(); ++head) {
      SCOPED_TRACE(::testing::Message() << "head " << head);
      check_head(results[index(head)], head);
    }
    std::vector<float> all;
    for (const Recorded<float>& head : results) all.insert(all.end(), head.y.begin(), head.y.end());
    return all;
  }

  double score(std::ptrdiff_t head, std::ptrdiff_t m, std::ptrdiff_t n) const {
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < s_.size; ++i) {
      sum += static_cast<double>(q_[index((head * s_.rows + m) * q_row_ + i)]) *
             static_cast<double>(k_[index(head / c_.group * s_.columns * s_.size + n * k_strides_.row +
                                          i * k_strides_.element)]);
    }
    sum *= static_cast<double>(s_.scale);
    const std::size_t at = index((head * s_.rows + m) * s_.columns);
    const std::size_t kept_at = c_.mask == MaskKind::kKeptRow ? index(head * s_.rows * s_.columns) : at;
    if (c_.mask == MaskKind::kKeptThenAdded) {
      if (kept_[at + index(n)] == 0) sum = static_cast<double>(c_.fill);
      sum += static_cast<double>(added_[at]);
    }
    if (c_.mask == MaskKind::kAdded) sum += static_cast<double>(added_[at + index(n)]);
    if (c_.mask == MaskKind::kAddedToRows) sum += static_cast<double>(added_[at]);
    if (c_.mask == MaskKind::kKept || c_.mask == MaskKind::kKeptRow) {
      if (kept_[kept_at + index(n)] == 0) sum = static_cast<double>(c_.fill);
    }
    return s_.causal && n > m + s_.past ? -std::numeric_limits<double>::infinity() : sum;
  }

  // Rows without columns are NaN, or zero: compared apart, as no tolerance holds NaN.
  void check_head(const Recorded<float>& got, std::ptrdiff_t head) const {
    std::vector<double> expected;
    Recorded<float> defined = got;
    for (std::ptrdiff_t m = 0; m < s_.rows; ++m) {
      std::vector<double> weights;
      for (std::ptrdiff_t n = 0; n < s_.columns; ++n) weights.push_back(score(head, m, n));
      const double top = *std::max_element(weights.begin(), weights.end());
      const bool empty = top == -std::numeric_limits<double>::infinity();
      double total = 0;
      for (double& weight : weights) total += weight = empty ? 0 : std::exp(weight - top);
      for (std::ptrdiff_t i = 0; i < s_.value_size; ++i) {
        double sum = 0;
        for (std::ptrdiff_t n = 0; n < s_.columns; ++n) {
          sum += weights[index(n)] / (empty ? 1 : total) *
                 static_cast<double>(v_[index(head / c_.group * s_.columns * s_.value_size +
                                              n * v_strides_.row + i * v_strides_.element)]);
        }
        if (empty && !s_.zero_if_empty) {
          float& value = defined.y[index(m * s_.value_size + i)];
          EXPECT_TRUE(std::isnan(value)) << "row " << m;
          value = 0;
        }
        expected.push_back(sum);
      }
    }
    defined.check(expected, 1e-5);
  }

  const Case c_;
  const AttentionShape& s_ = c_.shape;
  const std::ptrdiff_t q_row_;
  std::vector<float> q_, k_, v_, added_;
  std::vector<std::uint8_t> kept_;
  std::vector<float> packed_;
  RowStrides k_strides_{}, v_strides_{};
};

void check(const Case& c) {
  const AttentionShape& s = c.shape;
  SCOPED_TRACE(::testing::Message() << s.rows << " x " << s.columns << " of " << s.size << ", "
                                    << s.value_size << ", mask " << static_cast<int>(c.mask) << ", causal "
                                    << s.causal << " past " << s.past << ", group " << c.group);
  const auto check_by = [&](auto kernel) {
    const std::vector<float> alone = (Run(c).*kernel)(nullptr);
    for (const int count : {2, 64}) {
      OneLoop loop(count);
      const std::vector<float> together = (Run(c).*kernel)(&loop.threads);
      EXPECT_LE(loop.loops, 1);
      EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)), 0) << count;
    }
  };
  check_by(&Run::check);
  if (s.rows == 1 && !c.transposed_keys) check_by(&Run::check_row);
  if (!c.transposed_keys) check_by(&Run::check_run);
}

TEST(Attention, SizesAroundEdges) {
  for (const int rows : {1, 2, 7, 12, 13, 25, 49}) {
    for (const int columns : {1, 3, 15, 16, 17, 33, 100}) {
      for (const int size : {1, 8, 31}) {
        check({{rows, columns, size, 1 + size * 3 / 2, 0.3f, false, 0, false}});
      }
    }
  }
}

TEST(Attention, SeveralBlocksOfColumns) {
  for (const int columns : {255, 256, 257, 300, 513, 1000}) {
    for (const int size : {5, 64}) check({{19, columns, size, size, 1.5f, false, 0, false}});
  }
}

TEST(Attention, LargestHeads) {
  check({{26, 40, 256, 256, 0.06f, false, 0, false}});
  check({{3, 300, 256, 250, 0.06f, false, 0, false}});
}

TEST(Attention, Masks) {
  for (const MaskKind mask : {MaskKind::kAdded, MaskKind::kAddedToRows, MaskKind::kKept, MaskKind::kKeptRow,
                              MaskKind::kKeptThenAdded}) {
    for (const int columns : {1, 2, 17, 70, 300}) {
      for (const bool zero : {false, true}) {
        check({{14, columns, 9, 10, 0.5f, false, 0, zero}, 2, 1, mask});
        check({{14, columns, 9, 10, 0.5f, true, 1, zero}, 2, 1, mask});
      }
    }
  }
  check({{14, 3, 9, 10, 0.5f, false, 0, false}, 2, 1, MaskKind::kKept, false, -3e38f});
}

TEST(Attention, Causal) {
  for (const int past : {-3, 0, 1, 200, 1000}) {
    for (const int rows : {1, 20, 70, 300}) {
      for (const bool zero : {false, true}) check({{rows, 300, 12, 12, 0.5f, true, past, zero}});
    }
  }
}

TEST(Attention, SharedKeysAndStrides) {
  check({{13, 37, 8, 24, 1.0f, false, 0, false}, 3, 4, MaskKind::kAdded});
  check({{13, 37, 8, 24, 1.0f, false, 0, false}, 3, 2, MaskKind::kNone, true});
  check({{30, 301, 8, 17, 1.0f, true, 271, false}, 1, 3, MaskKind::kKept, true});
}

TEST(Attention, OneRow) {
  for (const MaskKind mask : {MaskKind::kNone, MaskKind::kAdded, MaskKind::kAddedToRows, MaskKind::kKept,
                              MaskKind::kKeptThenAdded}) {
    for (const int columns : {1, 7, 8, 17, 256, 257, 600}) {
      check({{1, columns, 20, 45, 0.5f, false, 0, true}, 2, 3, mask});
      check({{1, columns, 20, 45, 0.5f, true, columns - 2, false}, 2, 3, mask});
    }
  }
  check({{1, 300, 256, 250, 0.06f, false, 0, false}});
}

TEST(Attention, HugeScoresDoNotOverflow) {
  for (const int rows : {1, 5}) check({{rows, 300, 16, 16, 3000.0f, false, 0, false}});
}

}  // namespace
}  // namespace kernel_test
