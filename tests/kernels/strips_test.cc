// Kernels in strips of rows: every row is made from the rows it needs, in the buffers of its part; and
// kernels of convolutions that make some rows read no others than their windows reach.
#include "gcrt/cpu/strips.h"

#include <algorithm>
#include <string>

#include "conv_reference.h"
#include "gcrt/cpu/image/conv.h"
#include "gcrt/cpu/image/depthwise.h"
#include "gcrt/cpu/strips_plan.h"

namespace kernel_test {
namespace {

struct Window {
  int span, stride, pad;
};

// Row r of image i is the sum of what its window reads of the image before it, weighted by the tap, plus i.
// Rows of the first image that the kernels read are their own numbers.
template <int Images>
struct Chain {
  int first_rows;
  Window windows[Images + 1];  // of each kernel
  int rows[Images + 1];        // of their results

  std::int64_t row(int kernel, std::ptrdiff_t r, const std::int64_t* before, std::ptrdiff_t step) const {
    const Window& w = windows[kernel];
    const int limit = kernel == 0 ? first_rows : rows[kernel - 1];
    std::int64_t sum = kernel;
    for (int tap = 0; tap < w.span; ++tap) {
      const std::ptrdiff_t at = r * w.stride - w.pad + tap;
      if (at >= 0 && at < limit) sum += (tap + 1) * (kernel == 0 ? at * at + 1 : before[at * step]);
    }
    return sum;
  }
};

// Parts run forwards, or as two threads would that take every other one.
void forwards(void*, std::ptrdiff_t count, void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t),
              void* argument) {
  body(argument, 0, count);
}
void backwards(void*, std::ptrdiff_t count, void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t),
               void* argument) {
  for (std::ptrdiff_t i = count; i-- > 0;) body(argument, i, i + 1);
}

constexpr std::ptrdiff_t kRowWords = 3;  // rows are wider than what is compared

template <int Images>
Strips<Images> strips_of(const Chain<Images>& chain, int step, int parts) {
  Strips<Images> strips{chain.rows[Images], step, parts, {}};
  int held = step;
  for (int i = Images; i-- > 0;) {
    const Window& reader = chain.windows[i + 1];
    held = std::min((held - 1) * reader.stride + reader.span, chain.rows[i]);
    strips.images[i] = {chain.rows[i], reader.span, reader.stride, reader.pad, kRowWords * 8, held};
  }
  return strips;
}

// With the memory of `parts` times `bytes`.
template <int Images>
void check_chain(const Chain<Images>& chain, const Strips<Images>& strips, int parts, std::ptrdiff_t bytes) {
  std::vector<std::int64_t> expected, next;
  for (int k = 0; k <= Images; ++k) {
    next.clear();
    for (int r = 0; r < chain.rows[k]; ++r) next.push_back(chain.row(k, r, expected.data(), 1));
    expected = next;
  }
  for (const auto parallel_for : {forwards, backwards}) {
    const Threads threads{nullptr, 2, parallel_for};
    std::vector<std::int64_t> buffers(static_cast<std::size_t>(parts * bytes / 8));
    std::vector<std::int64_t> result(expected.size(), -1);
    in_strips(
        &threads, strips, reinterpret_cast<std::byte*>(buffers.data()), [&](const Strip<Images>& strip) {
          for (int k = 0; k <= Images; ++k) {
            const std::int64_t* const before = k == 0 ? nullptr : strip.template image<std::int64_t>(k - 1);
            std::int64_t* const made = k == Images ? nullptr : strip.template image<std::int64_t>(k);
            ASSERT_LE(strip.begin[k], strip.end[k]);
            ASSERT_LE(strip.end[k], chain.rows[k]);
            for (std::ptrdiff_t r = strip.begin[k]; r < strip.end[k]; ++r) {
              const std::int64_t value = chain.row(k, r, before, kRowWords);
              if (made == nullptr) {
                result[static_cast<std::size_t>(r)] = value;
              } else {
                ASSERT_GE(made + r * kRowWords, buffers.data());
                ASSERT_LE(made + (r + 1) * kRowWords, buffers.data() + buffers.size());
                made[r * kRowWords] = value;
              }
            }
          }
        });
    EXPECT_EQ(result, expected) << "step " << strips.step << ", parts " << strips.parts;
  }
}

// As large as planned; or images of so many rows less, in the memory of that plan.
template <int Images>
void check_plan(const Chain<Images>& chain, const Chain<Images>& smaller, int step, int parts) {
  const Strips<Images> planned = strips_of(chain, step, parts);
  const std::ptrdiff_t bytes = part_bytes(planned);
  check_chain(chain, planned, parts, bytes);
  const Strips<Images> fitted = strips_fit(strips_of(smaller, step, parts), bytes);
  EXPECT_GE(fitted.step, step);
  EXPECT_LE(part_bytes(fitted), bytes);
  EXPECT_LE(fitted.parts, parts);
  check_chain(smaller, fitted, parts, bytes);
}

template <int Images>
Chain<Images> chain_of(int first_rows, const Window (&windows)[Images + 1]) {
  Chain<Images> chain{};
  chain.first_rows = first_rows;
  int rows = first_rows;
  for (int k = 0; k <= Images; ++k) {
    const Window& w = chain.windows[k] = windows[k];
    rows = (rows + 2 * w.pad - w.span) / w.stride + 1;
    chain.rows[k] = rows;
  }
  return chain;
}

template <int Images>
void check_chains(int first_rows, const std::vector<Window>& choices) {
  std::size_t count = 1;
  for (int i = 0; i <= Images; ++i) count *= choices.size();
  for (std::size_t n = 0; n < count; ++n) {
    Window windows[Images + 1];
    std::size_t digits = n;
    std::string name;
    for (int k = 0; k <= Images; ++k, digits /= choices.size()) {
      const Window& w = windows[k] = choices[digits % choices.size()];
      name += " " + std::to_string(w.span) + "/" + std::to_string(w.stride) + "/" + std::to_string(w.pad);
    }
    const Chain<Images> chain = chain_of<Images>(first_rows, windows);
    const int rows = chain.rows[Images];
    if (rows < 1) continue;
    const Chain<Images> half = chain_of<Images>(first_rows / 2, windows);
    const Chain<Images>& smaller = *std::min_element(half.rows, half.rows + Images + 1) > 0 ? half : chain;
    SCOPED_TRACE(name);
    for (const int step : {1, 2, 3, 5, 100}) {
      for (const int parts : {1, 2, 3, rows}) {
        if (parts <= rows) check_plan(chain, smaller, step, parts);
      }
    }
  }
}

const std::vector<Window> kWindows = {{1, 1, 0}, {3, 1, 1}, {3, 2, 1}, {2, 2, 0},
                                      {5, 1, 4}, {1, 3, 0}, {7, 2, 3}};

TEST(StripsTest, OneImage) { check_chains<1>(23, kWindows); }
TEST(StripsTest, TwoImages) { check_chains<2>(24, kWindows); }
TEST(StripsTest, FourImages) { check_chains<4>(19, {{1, 1, 0}, {3, 1, 1}, {3, 2, 1}}); }

TEST(StripsTest, SmallImagesFitInOneStrip) {
  const Window windows[] = {{1, 1, 0}, {3, 1, 1}, {1, 1, 0}};
  const std::ptrdiff_t bytes = part_bytes(strips_of(chain_of<2>(64, windows), 6, 8));
  const Strips<2> small = strips_fit(strips_of(chain_of<2>(7, windows), 6, 8), bytes);
  EXPECT_EQ(small.step, 7);
  EXPECT_EQ(small.parts, 1);  // of two, each would make two rows of seven that are the other's
  EXPECT_EQ(small.images[0].held, 7);
  Strips<2> narrow = strips_of(chain_of<2>(64, windows), 6, 8);
  for (StripImage& image : narrow.images) image.row_bytes /= 3;
  EXPECT_GT(strips_fit(narrow, bytes).step, 2 * 6);
  EXPECT_EQ(strips_fit(narrow, bytes).parts, 8);
}

// Rows that one call makes after the other, each from a copy of no more than the rows that it may read.
template <class Run>
void check_rows(const ConvShape& s, const std::vector<float>& x, const std::vector<double>& expected,
                const Run& run) {
  Recorded<float> result(out_pixels(s), s.out_c);
  const auto epilogue = result.epilogue();
  for (int row = 0; row < s.out_h; row += 2) {
    const int end = std::min(row + 2, s.out_h);
    const int low = std::max(0, row * s.stride_h - s.pad_top);
    const int high =
        std::min(s.in_h, (end - 1) * s.stride_h - s.pad_top + (s.kernel_h - 1) * s.dilation_h + 1);
    std::vector<float> rows(x.size(), 99.0f);  // what must not be read would show
    if (low < high) {
      std::copy(x.begin() + low * s.in_row_stride, x.begin() + high * s.in_row_stride,
                rows.begin() + low * s.in_row_stride);
    }
    run(rows.data(), epilogue, row, end);
    run(rows.data(), epilogue, end, end);
  }
  result.check(expected, 2e-5);
}

std::vector<ConvShape> shapes(bool depthwise) {
  std::vector<ConvShape> all;
  for (const int channels : {3, 16, 21}) {
    for (const int kernel : {1, 3, 5}) {
      for (const int stride : {1, 2}) {
        ConvOptions o;
        o.stride_h = o.stride_w = stride;
        o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = kernel / 2;
        o.groups = depthwise ? channels : channels % 2 == 0 ? 2 : 1;
        all.push_back(make_shape(11, 13, channels, depthwise ? channels : 34, kernel, kernel, o));
      }
    }
  }
  return all;
}

TEST(StripsTest, RowsOfConvolutions) {
  for (const ConvShape& s : shapes(false)) {
    const int channels = s.in_c / s.groups;
    const auto x = random_values<float>(input_size(s), 41);
    const auto w =
        random_values<float>(static_cast<std::size_t>(s.kernel_h * s.kernel_w * channels * s.out_c), 42);
    const std::ptrdiff_t depth = std::ptrdiff_t{channels} * s.kernel_h * s.kernel_w,
                         columns = s.out_c / s.groups;
    std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns) * s.groups));
    for (int g = 0; g < s.groups; ++g) {
      pack_b(depth, columns, w.data() + g * columns, s.out_c, 1,
             packed.data() + g * packed_b_size(depth, columns));
    }
    const std::vector<float> zeros(static_cast<std::size_t>(channels + 16), 0.0f);
    check_rows(s, x, conv_reference(s, x, w),
               [&](const float* rows, const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                 conv2d_rows(s, rows, packed.data(), zeros.data(), Blocking{}, epilogue, begin, end);
               });
  }
}

TEST(StripsTest, RowsOfDepthwiseConvolutions) {
  for (const ConvShape& s : shapes(true)) {
    const auto x = random_values<float>(input_size(s), 43);
    const auto w = random_values<float>(static_cast<std::size_t>(s.kernel_h * s.kernel_w * s.out_c), 44);
    check_rows(s, x, conv_reference(s, x, w),
               [&](const float* rows, const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                 depthwise2d(s, rows, w.data(), epilogue, begin, end);
               });
  }
}

}  // namespace
}  // namespace kernel_test
