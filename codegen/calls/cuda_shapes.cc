#include "codegen/calls/cuda_shapes.h"

#include <cstdint>

#include "base/diagnostics.h"
#include "ir/graph/operator.h"

namespace gcompile {

int narrow(std::int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN) operator_error("a dimension does not fit 32 bits");
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
