#include "ir/ops/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "base/interrupt.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Row-major coordinates of `position` in `shape`.
void unravel(std::int64_t position, const Shape& shape, Shape& at) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    at[i] = position % shape[i];
    position /= shape[i];
  }
}

std::int64_t product(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

/// How far from its image's first element a tap of the window of `at` lies; nullopt: outside of the image.
std::optional<std::int64_t> tap_offset(const Window& window, std::int64_t tap, const Shape& at,
                                       const Shape& image, const Shape& strides) {
  std::int64_t offset = 0;
  for (int i = window.spatial(); i-- > 0;) {
    const auto s = static_cast<std::size_t>(i);
    const std::int64_t k = tap % window.kernel[s];
    tap /= window.kernel[s];
    const std::int64_t coordinate = at[s + 2] * window.strides[s] + k * window.dilations[s] - window.begin(i);
    if (coordinate < 0 || coordinate >= image[s + 2]) return std::nullopt;
    offset += coordinate * strides[s + 2];
  }
  return offset;
}

/// Neighbouring results that a tap reaches inside the image: `count` from `to` on, and what it reads for them,
/// each `step` elements behind the one before.
struct TapRow {
  std::int64_t to, from, step, count;
};

/// All of one tap, within one image of `from` and one of `to`, whose first two axes are batch and channels.
std::vector<TapRow> rows_of_tap(const Window& window, std::int64_t tap, const std::vector<std::int64_t>& from,
                                const std::vector<std::int64_t>& to) {
  std::vector<TapRow> rows = {{0, 0, 1, 1}};
  std::int64_t from_stride = 1, to_stride = 1;
  for (int i = window.spatial(); i-- > 0;) {
    const auto s = static_cast<std::size_t>(i);
    const std::int64_t first = tap % window.kernel[s] * window.dilations[s] - window.begin(i);
    tap /= window.kernel[s];
    const std::int64_t stride = window.strides[s];
    const std::int64_t low = first >= 0 ? 0 : (-first + stride - 1) / stride;
    const std::int64_t high =
        first >= from[s + 2] ? 0 : std::min(to[s + 2], (from[s + 2] - 1 - first) / stride + 1);
    if (low >= high) return {};
    if (i == window.spatial() - 1) {
      rows = {{low, first + low * stride, stride, high - low}};
    } else {
      std::vector<TapRow> all;
      for (std::int64_t at = low; at < high; ++at) {
        for (const TapRow& row : rows)
          all.push_back(
              {row.to + at * to_stride, row.from + (first + at * stride) * from_stride, row.step, row.count});
      }
      rows = std::move(all);
    }
    from_stride *= from[s + 2];
    to_stride *= to[s + 2];
  }
  return rows;
}

/// y[i] += x[i * step] * factor.
void add_scaled(double* y, const double* x, std::int64_t step, double factor, std::int64_t count) {
  if (step == 1) {
    for (std::int64_t i = 0; i < count; ++i) y[i] += x[i] * factor;
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i] += x[i * step] * factor;
  }
}

std::int64_t product_of(const std::vector<std::int64_t>& sizes, std::size_t first) {
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end(), std::int64_t{1},
                         std::multiplies<>());
}

}  // namespace

RealTensor reals_of(const Tensor& tensor) {
  RealTensor out{tensor.shape(), std::vector<double>(static_cast<std::size_t>(tensor.count()))};
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.values[i] = tensor.real_at(i);
  return out;
}

void normalise_window_of(RewriteContext& context, int weights, int zero_point) {
  const Shape& shape = context.shape(weights);
  if (shape.size() < 3) operator_error(fmt::format("input {} must be (M, C/group, kernel...)", weights));
  const std::vector<std::int64_t> kernel = numbers_of(std::span(shape).subspan(2));
  std::function<ValueId()> border;
  if (zero_point >= 0 && context.has_operand(zero_point)) {
    border = [&] { return emit_reshape(context, context.operand_id(zero_point), {}); };
  }
  pad_open_axes(context, kernel, border);
  normalise_window(context, kernel);
}

void normalise_convolution(RewriteContext& context) { normalise_window_of(context, 1); }

Shape convolution_shape(const NodeView& node) {
  const Shape& x = node.shape(0);
  const Shape& w = node.shape(1);
  const Window window = window_of(node.attributes());
  const std::int64_t group = node.attributes().int_of("group");
  if (w.size() != x.size()) operator_error("inputs 0 and 1 must have the same rank");
  if (!std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2, w.end())) {
    operator_error("kernel_shape disagrees with the weight's shape");
  }
  if (group < 1 || w[0] % group != 0 || !assume_equal(x[1], w[1] * group)) {
    operator_error(
        fmt::format("the weight does not fit the input channels: W[1] = {}, expected {} / group {}",
                    to_string(w[1]), to_string(x[1]), group),
        "the weight must be (M, C/group, kernel...) and M a multiple of group");
  }
  Shape y = {x[0], w[0]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(window_count(window, i, x[i + 2], false));
  }
  return y;
}

RealTensor convolve(const RealTensor& x, const RealTensor& w, const Window& window, std::int64_t group) {
  RealTensor y;
  y.shape = {x.shape[0], w.shape[0]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.shape.push_back(window_count(window, i, x.shape[i + 2], false));
  }
  const std::vector<std::int64_t> from = numbers_of(x.shape), to = numbers_of(y.shape);
  const std::int64_t batch = to[0], outputs = to[1], inputs = w.shape[1];
  const std::int64_t taps = product(shape_of(window.kernel));
  const std::int64_t x_plane = product_of(from, 2), y_plane = product_of(to, 2);
  y.values.assign(static_cast<std::size_t>(batch * outputs * y_plane), 0.0);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::vector<TapRow> rows = rows_of_tap(window, tap, from, to);
    for (std::int64_t map = 0; map < batch * outputs; ++map) {
      const std::int64_t n = map / outputs, m = map % outputs;
      const double* xp = x.values.data() + (n * from[1] + m / (outputs / group) * inputs) * x_plane;
      const double* wp = w.values.data() + m * inputs * taps + tap;
      double* yp = y.values.data() + map * y_plane;
      for (const TapRow& row : rows) {
        poll_interrupt();
        for (std::int64_t c = 0; c < inputs; ++c)
          add_scaled(yp + row.to, xp + c * x_plane + row.from, row.step, wp[c * taps], row.count);
      }
    }
  }
  return y;
}

Dim transposed_count(const Window& window, int i, Dim input) {
  return (input - 1) * window.strides[i] + window.span(i) - window.begin(i) - window.end(i);
}

RealTensor convolve_transposed(const RealTensor& x, const RealTensor& w, const Window& window,
                               std::int64_t group) {
  const int spatial = window.spatial();
  RealTensor y;
  const std::int64_t group_outputs = w.shape[1];
  const std::int64_t group_inputs = w.shape[0] / group;
  y.shape = {x.shape[0], group_outputs * group};
  for (int i = 0; i < spatial; ++i) {
    y.shape.push_back(transposed_count(window, i, x.shape[i + 2]));
  }
  y.values.assign(static_cast<std::size_t>(product(y.shape)), 0.0);
  const std::int64_t taps = product(shape_of(window.kernel));
  const Shape y_strides = row_major_strides(y.shape);
  const std::int64_t plane = y_strides[1].constant();
  Shape at(x.shape.size(), 0);
  for (std::size_t position = 0; position < x.values.size(); ++position) {
    poll_interrupt();
    unravel(static_cast<std::int64_t>(position), x.shape, at);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t offset = at[0] * y_strides[0] + at[1] / group_inputs * group_outputs * y_strides[1];
      const std::optional<std::int64_t> spot = tap_offset(window, tap, at, y.shape, y_strides);
      if (!spot) continue;
      offset += *spot;
      const double* wp = w.values.data() + at[1] * group_outputs * taps + tap;
      for (std::int64_t m = 0; m < group_outputs; ++m) {
        y.values[static_cast<std::size_t>(offset + m * plane)] += x.values[position] * wp[m * taps];
      }
    }
  }
  return y;
}

ContractForm spatial_contract(Work work, const TensorType& result, ElementType accumulator,
                              int base_operands) {
  ContractForm form;
  form.work = std::move(work);
  form.base_operands = base_operands;
  form.accumulator = accumulator;
  form.epilogue = LoopForm::over(result.shape);
  Dag& dag = form.epilogue.dag;
  form.epilogue.set_root(dag.cast(dag.accumulator(0, accumulator), result.element));
  return form;
}

ContractForm biased_contract(Work work, const LowerContext& context) {
  const TensorType& result = context.result(0);
  ContractForm form = spatial_contract(std::move(work), result, compute_type(result.element), 2);
  if (!context.has_operand(2)) return form;
  Dag& dag = form.epilogue.dag;
  const int bias = dag.cast(dag.load(2, context.element(2), {Index::axis(1)}), form.accumulator);
  const int root = dag.apply(ScalarOp::kAdd, {dag.accumulator(0, form.accumulator), bias});
  form.epilogue.set_root(dag.cast(root, result.element));
  return form;
}

Tensor wrapped(const RealTensor& sums) {
  // Differences of bytes are below 2^9: every sum below 2^35 taps is exact in double.
  Tensor y(TensorType{ElementType::kInt32, sums.shape});
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const auto exact = static_cast<std::int64_t>(sums.values[i]);
    y.set(i, Scalar::of_integer(ElementType::kInt32, exact));
  }
  return y;
}

Tensor with_bias(const RealTensor& sums, ElementType type, const Tensor* bias) {
  Tensor y(TensorType{type, sums.shape});
  const std::int64_t plane = y.count() == 0 ? Dim(1) : y.count() / (sums.shape[0] * sums.shape[1]);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const double start = bias ? bias->real_at(i / plane % sums.shape[1]) : 0;
    y.set(i, Scalar::of_real(type, start + sums.values[i]));
  }
  return y;
}

}  // namespace gcompile::ir
