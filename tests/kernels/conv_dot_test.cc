// Convolutions to few output channels against plain loops: runs of every length around a vector, borders,
// strides, dilated rows, images apart, work items.
#include "gcrt/cpu/image/conv_dot.h"

#include "conv_reference.h"

namespace kernel_test {
namespace {

template <int N>
void check_dot(int in_h, int in_w, int in_c, int kernel_h, int kernel_w, const ConvOptions& o) {
  const ConvShape s = make_shape(in_h, in_w, in_c, N, kernel_h, kernel_w, o);
  if (!is_possible(s)) return;
  SCOPED_TRACE(::testing::Message() << N << " of " << in_h << "x" << in_w << "x" << in_c << " kernel "
                                    << kernel_h << "x" << kernel_w << " stride " << o.stride_w << " pad "
                                    << o.pad_left);
  ASSERT_TRUE(has_runs(s));
  const auto x = random_values<float>(input_size(s), 21);
  const std::ptrdiff_t depth = std::ptrdiff_t{in_c} * kernel_h * kernel_w;
  const auto w = random_values<float>(static_cast<std::size_t>(depth * N), 22);
  std::vector<float> rows(w.size());
  for (std::ptrdiff_t k = 0; k < depth; ++k) {
    for (int n = 0; n < N; ++n)
      rows[static_cast<std::size_t>(n * depth + k)] = w[static_cast<std::size_t>(k * N + n)];
  }
  // What the epilogue is told of a single channel: the row of the image, and the column.
  const std::ptrdiff_t result_rows = N == 1 ? std::ptrdiff_t{s.batch} * s.out_h : out_pixels(s);
  const int result_columns = N == 1 ? s.out_w : N;
  Recorded<float> whole(result_rows, result_columns);
  conv2d_dot<N>(s, x.data(), rows.data(), whole.epilogue(), 0, conv2d_dot_work_items(s));
  whole.check(conv_reference(s, x, w), 2e-5);
  const Recorded<float> pieces =
      in_any_pieces<float>(result_rows, result_columns, conv2d_dot_work_items(s),
                           [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                             conv2d_dot<N>(s, x.data(), rows.data(), epilogue, begin, end);
                           });
  EXPECT_EQ(pieces.y, whole.y);
}

template <int N>
void check_channels() {
  ConvOptions none, padded, strided;
  padded.pad_top = padded.pad_left = 2;
  padded.pad_bottom = 1;
  padded.pad_right = 3;
  strided = padded;
  strided.stride_h = 2;
  strided.stride_w = 3;
  strided.dilation_h = 2;
  strided.batch = 2;
  strided.extra_row_stride = 5;
  for (int in_c : {1, 3, 8, 16, 17, 33}) {
    for (const ConvOptions& o : {none, padded, strided}) {
      check_dot<N>(6, 9, in_c, 3, 5, o);
      check_dot<N>(5, 40, in_c, 2, 1, o);
    }
  }
  check_dot<N>(1, 700, 1, 1, 256, none);
  check_dot<N>(2, 150, 4, 1, 6, strided);
  check_dot<N>(2, 3, 8, 3, 7, padded);  // no window lies inside
}

TEST(ConvDot, EveryNumberOfChannels) {
  check_channels<1>();
  check_channels<2>();
  check_channels<3>();
  check_channels<4>();
  check_channels<5>();
  check_channels<8>();
}

TEST(ConvDot, WhatLiesOutsideAWindowIsNotRead) {
  ConvOptions o;
  const ConvShape s = make_shape(1, 40, 1, 1, 1, 19, o);
  std::vector<float> x(40, 1.0f);
  x[19] = std::numeric_limits<float>::infinity();  // just behind the first window
  const std::vector<float> w(19, 1.0f);
  Recorded<float> result(1, s.out_w);
  conv2d_dot<1>(s, x.data(), w.data(), result.epilogue(), 0, conv2d_dot_work_items(s));
  EXPECT_EQ(result.y[0], 19.0f);
  EXPECT_EQ(result.y[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(result.y[20], 19.0f);
}

}  // namespace
}  // namespace kernel_test
