// DFT and STFT as products with constant matrices of cosines and sines. A transform whose matrix would be large is
// one of n1 * n2: transforms of n1, factors between them, transforms of n2 (Cooley and Tukey, 1965).

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/interrupt.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Up to so many bytes a matrix of float32 is multiplied as it is.
constexpr std::int64_t kMatrixBytes = std::int64_t{4} << 20;
/// The same for a length that has no divisors, which nothing smaller makes up.
constexpr std::int64_t kMostMatrixBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLongest = std::int64_t{1} << 24;

/// cos and sin of 2 pi * product / length, for which angles beyond one turn are brought into it.
struct Turn {
  double cosine, sine;
};
Turn turn_of(std::int64_t product, std::int64_t length) {
  const double angle =
      2 * std::numbers::pi * static_cast<double>(product % length) / static_cast<double>(length);
  return {std::cos(angle), std::sin(angle)};
}

template <class Value>
ValueId filled(RewriteContext& context, ElementType type, const Shape& shape, Value value) {
  Tensor out(TensorType{type, shape});
  for (std::int64_t i = 0; i < out.count(); ++i) {
    if (i % 65536 == 0) poll_interrupt();
    out.set(i, Scalar::of_real(type, value(i)));
  }
  return context.constant(std::move(out));
}

/// What the input gives of each element and what is made of each frequency: 1, a real number, or 2, a complex one.
struct Transform {
  std::int64_t length;   // of the whole transform
  std::int64_t inputs;   // elements that are given; the others are zeros
  std::int64_t outputs;  // frequencies that are wanted
  std::int64_t parts_in, parts_out;
  double sign;  // of the exponent
  double scale;
};

std::int64_t matrix_bytes(const Transform& t) { return t.inputs * t.parts_in * t.outputs * t.parts_out * 4; }

/// x (rows, inputs * parts) as (rows, outputs * parts).
ValueId emit_product(RewriteContext& context, ValueId x, const Transform& t) {
  const std::int64_t columns = t.outputs * t.parts_out;
  const Shape shape = {t.inputs * t.parts_in, columns};
  const ValueId matrix = filled(context, context.type(x).element, shape, [&](std::int64_t i) {
    const std::int64_t row = i / columns, column = i % columns;
    const std::int64_t j = row / t.parts_in, k = column / t.parts_out;
    const bool of_imaginary = row % t.parts_in == 1, to_imaginary = column % t.parts_out == 1;
    const Turn turn = turn_of(j * k, t.length);
    const double sine = t.sign * turn.sine;
    const double value = of_imaginary == to_imaginary ? turn.cosine : of_imaginary ? -sine : sine;
    return t.scale * value;
  });
  return context.emit("MatMul", {x, matrix});
}

/// The divisor of n next to its root from below; 1 for primes.
std::int64_t divisor_of(std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) best = d;
  }
  return best;
}

Transform complex_transform(std::int64_t length, double sign) {
  return {length, length, length, 2, 2, sign, 1};
}

/// Whether a transform is one matrix: a small one, or one whose length has no divisor.
bool is_product(const Transform& t) { return matrix_bytes(t) <= kMatrixBytes || divisor_of(t.length) == 1; }

/// Refuses a matrix, of the transform or of those that it is made of, that would be too large.
void require_factors(const Transform& t) {
  if (is_product(t)) {
    if (matrix_bytes(t) <= kMostMatrixBytes) return;
    operator_error(
        fmt::format("transforms of {} elements are not supported, a number without divisors", t.length),
        "a length that is a product of smaller numbers is");
  }
  const std::int64_t divisor = divisor_of(t.length);
  require_factors(complex_transform(divisor, 1));
  require_factors(complex_transform(t.length / divisor, 1));
}

/// Complex x (rows, length, 2) times factors (n2, n1, 2) of elements (n2, n1), which follow each other.
ValueId emit_factors(RewriteContext& context, ValueId x, std::int64_t n1, std::int64_t n2, double sign) {
  const ElementType type = context.type(x).element;
  const auto angle_of = [&](std::int64_t i) { return turn_of((i / 2 / n1) * (i / 2 % n1), n1 * n2); };
  const ValueId cosines =
      filled(context, type, {n2, n1, 2}, [&](std::int64_t i) { return angle_of(i).cosine; });
  const ValueId sines = filled(context, type, {n2, n1, 2}, [&](std::int64_t i) {
    return (i % 2 == 0 ? -1 : 1) * sign * angle_of(i).sine;
  });
  Attributes last;
  last.set("axis", std::int64_t{3});
  const std::vector<std::int64_t> swapped = {1, 0};
  const ValueId other = context.emit("Gather", {x, context.constant_ints(swapped)}, last);
  return context.emit("Add", {context.emit("Mul", {x, cosines}), context.emit("Mul", {other, sines})});
}

/// Complex x (rows, length, 2) transformed, of the same shape.
ValueId emit_complex(RewriteContext& context, ValueId x, std::int64_t n, double sign) {
  const Transform whole = complex_transform(n, sign);
  const Dim rows = context.type(x).shape[0];
  if (is_product(whole)) {
    return emit_reshape(context, emit_product(context, emit_reshape(context, x, {rows, n * 2}), whole),
                        {rows, n, 2});
  }
  // Element j1 * n2 + j2 goes into frequency k1 + n1 * k2.
  const std::int64_t n1 = divisor_of(n), n2 = n / n1;
  x = emit_transpose(context, emit_reshape(context, x, {rows, n1, n2, 2}), {0, 2, 1, 3});
  x = emit_complex(context, emit_reshape(context, x, {rows * n2, n1, 2}), n1, sign);
  x = emit_factors(context, emit_reshape(context, x, {rows, n2, n1, 2}), n1, n2, sign);
  x = emit_transpose(context, x, {0, 2, 1, 3});
  x = emit_complex(context, emit_reshape(context, x, {rows * n1, n2, 2}), n2, sign);
  x = emit_transpose(context, emit_reshape(context, x, {rows, n1, n2, 2}), {0, 2, 1, 3});
  return emit_reshape(context, x, {rows, n, 2});
}

/// x (rows, inputs, parts_in) as (rows, outputs, parts_out).
ValueId emit_transform(RewriteContext& context, ValueId x, const Transform& t) {
  const Dim rows = context.type(x).shape[0];
  if (is_product(t)) {
    const ValueId y = emit_product(context, emit_reshape(context, x, {rows, t.inputs * t.parts_in}), t);
    return emit_reshape(context, y, {rows, t.outputs, t.parts_out});
  }
  const auto with_zeros = [&](std::int64_t axis, std::int64_t count) {
    Shape pads(6);
    pads[static_cast<std::size_t>(axis) + 3] = count;
    x = context.emit("Pad", {x, context.constant_ints(pads)});
  };
  if (t.parts_in == 1) with_zeros(2, 1);
  if (t.inputs < t.length) with_zeros(1, t.length - t.inputs);
  x = emit_complex(context, x, t.length, t.sign);
  if (t.outputs < t.length) x = emit_slice(context, x, 1, 0, t.outputs);
  if (t.parts_out == 1) x = emit_slice(context, x, 2, 0, 1);
  return emit_scale(context, x, t.scale);
}

/// The frequencies of a real signal beyond the middle, which are those before it with the other sign of the
/// imaginary part. x (rows, bins, 2), of `length` elements.
ValueId emit_both_sides(RewriteContext& context, ValueId x, std::int64_t length) {
  const std::int64_t bins = context.type(x).shape[1];
  std::vector<std::int64_t> mirrored;
  for (std::int64_t k = length / 2 + 1; k < length; ++k) mirrored.push_back(length - k);
  if (mirrored.empty()) return x;
  GC_CHECK(bins == length / 2 + 1);
  Attributes along;
  along.set("axis", std::int64_t{1});
  const ValueId others = context.emit("Gather", {x, context.constant_ints(mirrored)}, along);
  const ValueId signs =
      filled(context, context.type(x).element, {2}, [](std::int64_t i) { return i == 0 ? 1.0 : -1.0; });
  return emit_concat(context, {x, context.emit("Mul", {others, signs})}, 1);
}

// DFT -------------------------------------------------------------------------------------------------------

constexpr int kLength = 1, kAxis = 2;

/// Before opset 20 the axis was an attribute, the first one behind the batch where it was not given.
void normalise_dft(RewriteContext& context) {
  if (context.opset() >= 20) return;
  const std::int64_t axis = context.attributes().has("axis") ? context.attributes().int_of("axis") : 1;
  context.mutable_attributes().erase("axis");
  context.set_operand(kAxis, emit_number(context, axis));
}

struct DftPlan {
  int axis;
  Transform transform;
  bool is_onesided_inverse;
};

DftPlan plan_of(const NodeView& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 2 || (x.back() != 1 && x.back() != 2)) {
    operator_error(fmt::format("the last axis must have 1 element or 2, the shape is {}", to_string(x)));
  }
  std::int64_t axis = -2;
  if (node.has_operand(kAxis)) {
    const std::vector<std::int64_t> given = node.constant_ints(kAxis, "axis");
    if (given.size() != 1) operator_error("axis must be one value");
    axis = given[0];
  }
  DftPlan plan{};
  plan.axis = normalise_axis(axis, static_cast<int>(x.size()));
  if (plan.axis == static_cast<int>(x.size()) - 1) operator_error("axis is that of real and imaginary parts");
  const Dim extent = x[static_cast<std::size_t>(plan.axis)];
  if (!extent.is_constant()) {
    operator_error("the number of elements must be known at compile time",
                   "give it a size by --dim or --shape");
  }
  const bool is_inverse = node.attributes().flag("inverse"), is_onesided = node.attributes().flag("onesided");
  plan.is_onesided_inverse = is_inverse && is_onesided;
  std::int64_t length = plan.is_onesided_inverse ? 2 * (std::int64_t{extent} - 1) : std::int64_t{extent};
  if (node.has_operand(kLength)) {
    const std::vector<std::int64_t> given = node.constant_ints(kLength, "dft_length");
    if (given.size() != 1) operator_error("dft_length must be one value");
    length = given[0];
  }
  if (length < 1 || length > kLongest) operator_error(fmt::format("the transform has {} elements", length));
  const std::int64_t parts = x.back();
  if (is_onesided && !is_inverse && parts == 2) {
    operator_error("a complex signal has no one-sided transform");
  }
  const std::int64_t bins = length / 2 + 1;
  const std::int64_t most = plan.is_onesided_inverse ? bins : length;
  plan.transform = {length,
                    std::min<std::int64_t>(extent, most),
                    is_onesided && !is_inverse ? bins : length,
                    parts,
                    plan.is_onesided_inverse ? 1 : 2,
                    is_inverse ? 1.0 : -1.0,
                    is_inverse ? 1 / static_cast<double>(length) : 1.0};
  require_factors(plan.is_onesided_inverse ? Transform{length, length, length, 2, 1, 1.0, 1.0}
                                           : plan.transform);
  return plan;
}

void infer_dft(InferContext& context) {
  require_float(context, 0);
  const DftPlan plan = plan_of(context);
  Shape y = context.shape(0);
  y[static_cast<std::size_t>(plan.axis)] = plan.transform.outputs;
  y.back() = plan.transform.parts_out;
  context.set_result(0, context.element(0), std::move(y));
}

bool decompose_dft(RewriteContext& context) {
  DftPlan plan = plan_of(context);
  Transform& t = plan.transform;
  const ElementType stored = context.element(0);
  ValueId x = emit_cast(context, context.operand_id(0), compute_type(stored));
  if (t.inputs < context.shape(0)[static_cast<std::size_t>(plan.axis)]) {
    x = emit_slice(context, x, plan.axis, 0, t.inputs);
  }
  // The axis goes before that of the parts.
  const int rank = context.operand(0).rank();
  std::vector<std::int64_t> perm, back;
  for (int i = 0; i < rank - 1; ++i) {
    if (i != plan.axis) perm.push_back(i);
  }
  perm.push_back(plan.axis);
  perm.push_back(rank - 1);
  back.resize(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  x = emit_transpose(context, x, perm);
  Shape shape = context.type(x).shape;
  const Dim rows = element_count(Shape(shape.begin(), shape.end() - 2));
  x = emit_reshape(context, x, {rows, t.inputs, t.parts_in});
  if (plan.is_onesided_inverse) {
    const std::int64_t bins = t.length / 2 + 1;
    if (t.inputs < bins) {
      x = context.emit("Pad", {x, context.constant_ints(Shape{0, 0, 0, 0, bins - t.inputs, 0})});
    }
    if (t.parts_in == 1) x = context.emit("Pad", {x, context.constant_ints(Shape{0, 0, 0, 0, 0, 1})});
    x = emit_both_sides(context, x, t.length);
    t.inputs = t.length;
    t.parts_in = 2;
  }
  x = emit_transform(context, x, t);
  shape[shape.size() - 2] = t.outputs;
  shape.back() = t.parts_out;
  x = emit_transpose(context, emit_reshape(context, x, shape), back);
  context.replace_result(0, emit_cast(context, x, stored));
  return true;
}

// STFT ------------------------------------------------------------------------------------------------------

constexpr int kStep = 1, kWindow = 2, kFrame = 3;

struct Frames {
  std::int64_t step, length, parts;
  Dim count;
  Transform transform;
};

std::int64_t one_value(const NodeView& node, int i, const char* what) {
  const std::vector<std::int64_t> given = node.constant_ints(i, what);
  if (given.size() != 1) operator_error(fmt::format("{} must be one value", what));
  if (given[0] < 1 || given[0] > kLongest) operator_error(fmt::format("{} is {}", what, given[0]));
  return given[0];
}

Frames frames_of(const NodeView& node) {
  const Shape& x = node.shape(0);
  if (x.size() != 2 && (x.size() != 3 || (x[2] != 1 && x[2] != 2))) {
    operator_error(fmt::format("the signal must be (batch, length, 1 or 2), its shape is {}", to_string(x)));
  }
  Frames out{};
  out.step = one_value(node, kStep, "frame_step");
  out.parts = x.size() == 2 ? 1 : std::int64_t{x[2]};
  if (node.has_operand(kWindow)) {
    const Shape& window = node.shape(kWindow);
    if (node.element(kWindow) != node.element(0))
      operator_error("the window must have the type of the signal");
    if (window.size() != 1 || !window[0].is_constant() || window[0] < 1) {
      operator_error(fmt::format("the window must have one axis, its shape is {}", to_string(window)));
    }
    out.length = window[0];
  }
  if (node.has_operand(kFrame)) {
    const std::int64_t length = one_value(node, kFrame, "frame_length");
    if (node.has_operand(kWindow) && length != out.length) {
      operator_error(fmt::format("frame_length is {}, the window has {} elements", length, out.length));
    }
    out.length = length;
  }
  if (out.length == 0) operator_error("neither a window nor frame_length is given");
  if (!always_less(out.length - 1, x[1])) {
    operator_error(
        fmt::format("a frame of {} elements does not fit into a signal of {}", out.length, to_string(x[1])));
  }
  const bool is_onesided = node.attributes().flag("onesided");
  if (is_onesided && out.parts == 2) operator_error("a complex signal has no one-sided transform");
  out.count = floor_div(x[1] - out.length, out.step) + 1;
  out.transform = {out.length, out.length, is_onesided ? out.length / 2 + 1 : out.length, out.parts, 2,
                   -1.0,       1.0};
  require_factors(out.transform);
  return out;
}

void infer_stft(InferContext& context) {
  require_float(context, 0);
  const Frames frames = frames_of(context);
  context.set_result(0, context.element(0), {context.shape(0)[0], frames.count, frames.transform.outputs, 2});
}

/// The matrix as taps of a convolution along the signal, of which each frame is a window.
ValueId emit_convolution(RewriteContext& context, ValueId x, ValueId window, const Frames& frames) {
  const Transform& t = frames.transform;
  const ElementType type = context.type(x).element;
  const Shape shape = {t.outputs * 2, frames.parts, frames.length};
  ValueId taps = filled(context, type, shape, [&](std::int64_t i) {
    const std::int64_t j = i % frames.length, part = i / frames.length % frames.parts;
    const std::int64_t channel = i / frames.length / frames.parts;
    const Turn turn = turn_of(j * (channel / 2), t.length);
    const bool of_imaginary = part == 1, to_imaginary = channel % 2 == 1;
    return of_imaginary == to_imaginary ? turn.cosine : of_imaginary ? turn.sine : -turn.sine;
  });
  if (window.valid()) taps = context.emit("Mul", {taps, window});
  Attributes attributes;
  attributes.set("kernel_shape", std::vector<std::int64_t>{frames.length});
  attributes.set("strides", std::vector<std::int64_t>{frames.step});
  attributes.set("dilations", std::vector<std::int64_t>{1});
  attributes.set("pads", std::vector<std::int64_t>{0, 0});
  const ValueId signal = emit_transpose(context, x, {0, 2, 1});
  const ValueId y = emit_transpose(context, context.emit("Conv", {signal, taps}, attributes), {0, 2, 1});
  return emit_reshape(context, y, {context.type(x).shape[0], frames.count, t.outputs, 2});
}

bool decompose_stft(RewriteContext& context) {
  const Frames frames = frames_of(context);
  const ElementType stored = context.element(0), compute = compute_type(stored);
  const Shape& given = context.shape(0);
  const Dim batch = given[0];
  ValueId x = emit_cast(context, context.operand_id(0), compute);
  x = emit_reshape(context, x, {batch, given[1], frames.parts});
  ValueId window = context.operand_id(kWindow);
  if (window.valid()) window = emit_cast(context, window, compute);
  ValueId y;
  if (matrix_bytes(frames.transform) <= kMatrixBytes || !frames.count.is_constant()) {
    y = emit_convolution(context, x, window, frames);
  } else {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < std::int64_t{frames.count}; ++i) {
      for (std::int64_t j = 0; j < frames.length; ++j) places.push_back(i * frames.step + j);
    }
    Attributes along;
    along.set("axis", std::int64_t{1});
    x = context.emit("Gather", {x, context.constant_ints(places)}, along);
    x = emit_reshape(context, x, {batch * frames.count, frames.length, frames.parts});
    if (window.valid()) x = context.emit("Mul", {x, emit_reshape(context, window, {frames.length, 1})});
    y = emit_transform(context, x, frames.transform);
    y = emit_reshape(context, y, {batch, frames.count, frames.transform.outputs, 2});
  }
  context.replace_result(0, emit_cast(context, y, stored));
  return true;
}

}  // namespace

const Operator& operator_DFT() {
  static const Operator op = {
      .name = "DFT",
      .versions = {17, 20},
      .operands = {1, 3},
      .attributes = {{"inverse", AttributeKind::kInt, std::int64_t{0}},
                     {"onesided", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "discrete Fourier transform along an axis of known length",
      .normalise = normalise_dft,
      .infer = infer_dft,
      .decompose = decompose_dft,
  };
  return op;
}

const Operator& operator_STFT() {
  static const Operator op = {
      .name = "STFT",
      .versions = {17},
      .operands = {2, 4},
      .attributes = {{"onesided", AttributeKind::kInt, std::int64_t{1}}},
      .accuracy = Accuracy::kSum,
      .summary = "discrete Fourier transforms of the frames of a signal",
      .infer = infer_stft,
      .decompose = decompose_stft,
  };
  return op;
}

}  // namespace gcompile::ir
