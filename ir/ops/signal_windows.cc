// HannWindow, HammingWindow, BlackmanWindow: a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for each n; and
// MelWeightMatrix, which gathers frequencies in bins of equal width on the mel scale.

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

Dim size_of(const NodeView& node) {
  const Shape size = node.known_sizes(0, "the size of the window");
  if (size.size() != 1) operator_error("the size must be one value");
  if (size[0] < 0) operator_error(fmt::format("the size is {}", to_string(size[0])));
  return size[0];
}

void infer_window(InferContext& context) {
  const ElementType type = computable_type_of(context.attributes(), "output_datatype");
  context.set_result(0, type, {size_of(context)});
}

struct Cosines {
  double constant, first, second;
};
constexpr Cosines kHann = {0.5, 0.5, 0}, kHamming = {25.0 / 46, 21.0 / 46, 0}, kBlackman = {0.42, 0.5, 0.08};

template <const Cosines& kCosines>
Form lower_window(const LowerContext& context) {
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const Dim size = type.shape[0], period = context.attributes().flag("periodic") ? size : size - 1;
  const auto number = [&](double value) { return dag.constant(ElementType::kFloat64, value); };
  const auto scaled_cosine = [&](double turns, double factor) {
    const int n = dag.cast(dag.iota(Index::axis(0)), ElementType::kFloat64);
    const int angle = dag.apply(ScalarOp::kMul, {n, number(turns * 2 * std::numbers::pi)});
    const int part = dag.apply(ScalarOp::kDiv, {angle, dag.size(ElementType::kFloat64, period)});
    return dag.apply(ScalarOp::kMul, {dag.apply(ScalarOp::kCos, {part}), number(factor)});
  };
  int sum = dag.apply(ScalarOp::kSub, {number(kCosines.constant), scaled_cosine(1, kCosines.first)});
  if (kCosines.second != 0) sum = dag.apply(ScalarOp::kAdd, {sum, scaled_cosine(2, kCosines.second)});
  form.set_root(dag.cast(sum, type.element));
  return form;
}

Operator window(std::string_view name, std::string_view summary, Form (*lower)(const LowerContext&)) {
  Operator o;
  o.name = name;
  o.versions = {17};
  o.attributes = {{"output_datatype", AttributeKind::kInt, std::int64_t{1}},
                  {"periodic", AttributeKind::kInt, std::int64_t{1}}};
  o.accuracy = Accuracy::kFunction;
  o.summary = summary;
  o.infer = infer_window;
  o.lower = lower;
  return o;
}

// MelWeightMatrix -------------------------------------------------------------------------------------------

struct MelBins {
  std::int64_t spectrogram_bins;
  std::vector<std::int64_t> edges;  // of each bin its first and middle, and the end of the last one
};

double number_of(const NodeView& node, int i, std::string_view what) {
  require_scalar(node, i, what);
  const Tensor* value = node.constant(i);
  if (!value) operator_error(fmt::format("{} must be known at compile time", what));
  return value->real_at(0);
}

/// The frequencies of the edges lie at equal distances on the mel scale.
MelBins bins_of(const NodeView& node) {
  const double bins = number_of(node, 0, "num_mel_bins"), length = number_of(node, 1, "dft_length");
  const double rate = number_of(node, 2, "sample_rate");
  const double low = number_of(node, 3, "lower_edge_hertz"), high = number_of(node, 4, "upper_edge_hertz");
  constexpr double kMostBins = 1 << 20;
  if (!(bins >= 0 && bins <= kMostBins)) operator_error(fmt::format("num_mel_bins is {}", bins));
  if (!(length >= 0 && length <= kMostBins)) operator_error(fmt::format("dft_length is {}", length));
  if (!(rate > 0)) operator_error(fmt::format("sample_rate is {}", rate));
  if (!(low >= 0 && high >= low)) {
    operator_error(fmt::format("lower_edge_hertz is {}, upper_edge_hertz {}", low, high));
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  MelBins out{static_cast<std::int64_t>(length) / 2 + 1, {}};
  const double step = (mel(high) - mel(low)) / (bins + 2);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(bins) + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    out.edges.push_back(static_cast<std::int64_t>(std::floor((length + 1) * hertz / rate)));
  }
  if (out.edges.back() > out.spectrogram_bins) {
    operator_error(fmt::format("upper_edge_hertz is {}, above half of the sample rate {}", high, rate));
  }
  return out;
}

void infer_mel(InferContext& context) {
  const ElementType type = computable_type_of(context.attributes(), "output_datatype");
  const MelBins bins = bins_of(context);
  context.set_result(0, type, {bins.spectrogram_bins, static_cast<std::int64_t>(bins.edges.size()) - 2});
}

std::vector<Tensor> evaluate_mel(const EvaluateContext& context) {
  const MelBins bins = bins_of(context);
  Tensor y(context.result(0));
  const auto count = static_cast<std::int64_t>(bins.edges.size()) - 2;
  const auto set = [&](std::int64_t row, std::int64_t column, double value) {
    if (row < bins.spectrogram_bins) {
      y.set(row * count + column, cast(Scalar::of_real(ElementType::kFloat64, value), y.element()));
    }
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t low = bins.edges[at], middle = bins.edges[at + 1], high = bins.edges[at + 2];
    if (low == middle) set(middle, i, 1);
    for (std::int64_t j = low; low < middle && j <= middle; ++j) {
      set(j, i, static_cast<double>(j - low) / static_cast<double>(middle - low));
    }
    for (std::int64_t j = middle; j < high; ++j) {
      set(j, i, static_cast<double>(high - j) / static_cast<double>(high - middle));
    }
  }
  return {y};
}

Form lower_mel(const LowerContext&) {
  operator_error("the matrix is made when the model is compiled; constant folding must remove this node");
}

}  // namespace

const Operator& operator_HannWindow() {
  static const Operator op = window("HannWindow", "0.5 - 0.5 cos(2 pi n / N)", lower_window<kHann>);
  return op;
}

const Operator& operator_HammingWindow() {
  static const Operator op = window("HammingWindow", "25/46 - 21/46 cos(2 pi n / N)", lower_window<kHamming>);
  return op;
}

const Operator& operator_BlackmanWindow() {
  static const Operator op =
      window("BlackmanWindow", "0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)", lower_window<kBlackman>);
  return op;
}

const Operator& operator_MelWeightMatrix() {
  static const Operator op = {
      .name = "MelWeightMatrix",
      .versions = {17},
      .operands = {5, 5},
      .attributes = {{"output_datatype", AttributeKind::kInt, std::int64_t{1}}},
      .accuracy = Accuracy::kRounding,
      .summary = "weights of a spectrum's frequencies in mel bins; of known values only",
      .infer = infer_mel,
      .evaluate = evaluate_mel,
      .lower = lower_mel,
  };
  return op;
}

}  // namespace gcompile::ir
