#include "codegen/kernels/cuda_shape.h"

#include <fmt/format.h>

#include "ir/diagnostics.h"

namespace gcompile {

const char* tile_name(gcrt::Tile tile) {
  switch (tile) {
    case gcrt::Tile::k16x64:
      return "k16x64";
    case gcrt::Tile::k32x64:
      return "k32x64";
    case gcrt::Tile::k64x64:
      return "k64x64";
    case gcrt::Tile::k128x32:
      return "k128x32";
    case gcrt::Tile::k128x64:
      return "k128x64";
    case gcrt::Tile::k128x128:
      return "k128x128";
    case gcrt::Tile::kGemv1:
      return "kGemv1";
    case gcrt::Tile::kGemv2:
      return "kGemv2";
    case gcrt::Tile::kGemv4:
      return "kGemv4";
    case gcrt::Tile::kGemv8:
      return "kGemv8";
  }
  GC_CHECK(false);
}

int narrow(std::int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN) ir::operator_error("a dimension does not fit 32 bits");
  return static_cast<int>(value);
}

gcrt::ConvShape conv_shape(const ImageShape& s) {
  return {narrow(s.batch),
          narrow(s.in_h),
          narrow(s.in_w),
          narrow(s.in_c),
          narrow(s.out_h),
          narrow(s.out_w),
          narrow(s.out_c),
          narrow(s.kernel_h),
          narrow(s.kernel_w),
          narrow(s.stride_h),
          narrow(s.stride_w),
          narrow(s.pad_top),
          narrow(s.pad_left),
          narrow(s.dilation_h),
          narrow(s.dilation_w),
          narrow(s.groups),
          s.pixel,
          s.row,
          s.image};
}

std::string precision_argument(Precision precision) {
  return fmt::format("Precision::{}", facts_of(precision).enumerator);
}

void note_plan(KernelCall& call, const gcrt::Plan& plan, Precision precision, std::int64_t products,
               std::int64_t entries) {
  call.microseconds = plan.microseconds * static_cast<double>(products);
  call.launches = narrow(products * gcrt::product_launches(entries, plan.splits));
  call.choice = tile_name(plan.tile) + 1;
  if (plan.splits > 1) call.choice += fmt::format(", depth in {} parts", plan.splits);
  if (precision != Precision::kFp32 && precision != Precision::kInt8) {
    call.choice += fmt::format(", {}", facts_of(precision).name);
  }
}

double predicted_microseconds(const KernelCall& call, int capability, std::int64_t bytes) {
  if (call.microseconds > 0) return call.microseconds;
  const gcrt::DeviceModel device = gcrt::device_model(capability);
  const double per_clock =
      call.products_per_clock > 0 ? call.products_per_clock : gcrt::scalar_products_per_clock(device);
  return gcrt::streaming_microseconds(device, call.launches, static_cast<double>(bytes),
                                      static_cast<double>(call.multiply_adds), per_clock);
}

const char* window_name(const gcrt::ConvShape& shape) {
  switch (gcrt::depthwise_window(shape)) {
    case gcrt::DepthwiseWindow::k3:
      return "k3";
    case gcrt::DepthwiseWindow::k3Stride2:
      return "k3Stride2";
    case gcrt::DepthwiseWindow::k5:
      return "k5";
    case gcrt::DepthwiseWindow::kAny:
      return "kAny";
  }
  GC_CHECK(false);
}

}  // namespace gcompile
