// Transposed convolutions of integers against a plain scatter: every kind of operand, phases that see none,
// few and many taps, borders of the zero point, channels that fill no word, groups, split words.
#include "gcrt/cpu/image/conv_transpose_int8.h"

#include "conv_reference.h"
#include "integer_operands.h"

namespace kernel_test {
namespace {

template <class TX, class TW>
void check_transposed(const ConvShape& s, Values values = Values::random, std::uint32_t seed = 3) {
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << " stride " << s.stride_h << "," << s.stride_w << " pad "
                                    << s.pad_top << "," << s.pad_left << " dilation " << s.dilation_h
                                    << " groups " << s.groups);
  const int channels = s.in_c / s.groups, columns = s.out_c / s.groups, taps = s.kernel_h * s.kernel_w;
  const auto used =
      static_cast<std::size_t>((s.batch - 1) * s.in_image_stride + (s.in_h - 1) * s.in_row_stride +
                               (s.in_w - 1) * s.in_pixel_stride + s.in_c);
  const auto o =
      make_operands<TX, TW>(used, static_cast<std::size_t>(taps * channels * s.out_c), values, seed);
  const auto weight = [&](int tap, int k, int oc) {
    return o.w[static_cast<std::size_t>((tap * channels + k) * s.out_c + oc)];
  };
  std::vector<TW> packed;
  std::vector<std::int32_t> unused;
  for (int g = 0; g < s.groups; ++g) {
    append_packed<TX>(
        taps, channels, columns, [&](int tap, int k, int n) { return weight(tap, k, g * columns + n); },
        packed, unused);
  }
  std::vector<std::int32_t> offsets;
  for (int phase = 0; phase < s.stride_h * s.stride_w; ++phase) {
    std::vector<std::int32_t> sums(static_cast<std::size_t>(s.out_c));
    for (int tap = 0; tap < taps; ++tap) {
      const int row = phase / s.stride_w + s.pad_top - tap / s.kernel_w * s.dilation_h;
      const int column = phase % s.stride_w + s.pad_left - tap % s.kernel_w * s.dilation_w;
      if (row % s.stride_h != 0 || column % s.stride_w != 0) continue;
      for (int oc = 0; oc < s.out_c; ++oc) {
        for (int k = 0; k < channels; ++k) sums[static_cast<std::size_t>(oc)] += weight(tap, k, oc);
      }
    }
    for (const std::int32_t offset : offsets_of<TX, TW>(o.zero_point, sums)) offsets.push_back(offset);
  }
  std::vector<std::int32_t> x(o.x.begin(), o.x.end());
  for (std::int32_t& value : x) value -= o.zero_point;
  const std::vector<double> expected = transposed_reference(s, x, o.w);

  const Exact<TX> image(o.x),
      border(std::vector<TX>(static_cast<std::size_t>(channels), static_cast<TX>(o.zero_point)));
  const Exact<TW> whole(packed);
  const auto panels = static_cast<std::size_t>(s.groups * ((columns + 15) / 16));
  const Exact<std::int32_t> table(split_words<TX>(packed, packed.size() / 64 / panels));
  const Exact<TW> halved(packed);
  const Exact<std::int32_t> of_phases(offsets);
  for (const bool splits : {false, true}) {
    const TW* const w = splits ? halved.data.get() : whole.data.get();
    const std::int32_t* const split = splits && kAreBytes<TX, TW> ? table.data.get() : nullptr;
    const Recorded<std::int32_t> result = in_any_pieces<std::int32_t>(
        out_pixels(s), s.out_c, conv_transpose2d_work_items(s),
        [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
          conv_transpose2d_integer(s, image.data.get(), w, of_phases.data.get(), split, border.data.get(),
                                   epilogue, begin, end);
        });
    result.check(modulo(expected), 0.0);
  }
}

template <class T>
class TransposedIntegers : public ::testing::Test {};
TYPED_TEST_SUITE(TransposedIntegers, AllKinds);

TYPED_TEST(TransposedIntegers, KernelsStridesPads) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int kernel : {1, 2, 3, 4, 5, 9}) {
    for (int stride : {1, 2, 3}) {
      for (int pad : {0, 1}) {
        for (int dilation : {1, 2}) {
          ConvOptions o;
          o.stride_h = o.stride_w = stride;
          o.pad_top = o.pad_left = o.pad_right = pad;
          o.dilation_h = o.dilation_w = dilation;
          const ConvShape s = make_transposed(4, 5, 7, 19, kernel, o, stride > 1 ? pad : 0);
          if (is_possible(s)) check_transposed<TX, TW>(s);
        }
      }
    }
  }
}

TYPED_TEST(TransposedIntegers, SizesChannelsAndExtremes) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  ConvOptions o;
  o.stride_h = o.stride_w = 2;
  for (int size : {1, 2, 9}) {
    for (int in_c : {1, 3, 4, 8, 17, 64}) {
      for (int out_c : {1, 17, 40})
        check_transposed<TX, TW>(make_transposed(size, size + 2, in_c, out_c, 2, o, 0));
    }
  }
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  for (const Values values : {Values::extreme, Values::narrow}) {
    for (std::uint32_t seed : {1u, 2u})
      check_transposed<TX, TW>(make_transposed(6, 7, 48, 33, 4, o, 0), values, seed);
  }
}

TYPED_TEST(TransposedIntegers, GroupsBatchesSlices) {
  ConvOptions o;
  o.batch = 2;
  o.groups = 3;
  o.stride_h = 2;
  o.stride_w = 3;
  o.extra_pixel_stride = 5;
  o.extra_row_stride = 1;
  o.pad_top = 1;
  check_transposed<typename TypeParam::TX, typename TypeParam::TW>(make_transposed(5, 4, 6, 60, 3, o, 1));
  check_transposed<typename TypeParam::TX, typename TypeParam::TW>(make_transposed(5, 4, 24, 30, 3, o, 1),
                                                                   Values::narrow);
}

}  // namespace
}  // namespace kernel_test
