// Calls of kernels with their own control: recurrences, TopK, scatters, running sums.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/c_types.h"
#include "codegen/kernel_call.h"
#include "codegen/loop_printer.h"
#include "ir/ops/recurrent.h"
#include "ir/ops/support.h"

namespace gcompile {

using ir::ElementType;
using ir::NodeId;
using ir::Shape;

namespace {

std::string int64_array(const std::string& name, const Shape& values) {
  // An array of no elements is not C++; its length is never read.
  return fmt::format("constexpr std::int64_t {}[] = {{{}}};", name,
                     values.empty() ? "0" : fmt::format("{}", fmt::join(values, ", ")));
}

const char* rnn_function(const std::string& name) {
  if (name == "Sigmoid") return "sigmoid";
  if (name == "Tanh") return "tanh";
  if (name == "Relu") return "relu";
  if (name == "Affine") return "affine";
  if (name == "LeakyRelu") return "leaky_relu";
  if (name == "ThresholdedRelu") return "thresholded_relu";
  if (name == "ScaledTanh") return "scaled_tanh";
  if (name == "HardSigmoid") return "hard_sigmoid";
  if (name == "Elu") return "elu";
  if (name == "Softsign") return "softsign";
  if (name == "Softplus") return "softplus";
  ir::operator_error(fmt::format("activation '{}' has no kernel", ir::printable(name)));
}

std::string literal_of(double value) { return literal(ir::Scalar::of_real(ElementType::kFloat32, value)); }

}  // namespace

KernelCall KernelBuilder::recurrent(NodeId id) {
  const ir::Node& n = node(id);
  const std::string family = n.op->name == "LSTM" ? "lstm" : n.op->name == "GRU" ? "gru" : "rnn";
  const int gates = family == "lstm" ? 4 : family == "gru" ? 3 : 1;
  const int functions = family == "lstm" ? 3 : family == "gru" ? 2 : 1;
  const ir::NodeView view(graph_, id);
  if (view.element(0) != ElementType::kFloat32) {
    ir::operator_error(fmt::format("{} has no kernel for {} yet", n.op->name, name_of(view.element(0))));
  }
  const ir::Recurrence r = ir::recurrence_of(view, functions);
  if (r.batch_first) ir::operator_error("layout 1 has no kernel");
  const std::int64_t units = (r.hidden + 15) / 16 * 16;
  const bool linear_before_reset = family == "gru" && n.attributes.flag("linear_before_reset");
  const ir::Tensor* w = graph_.constant(n.operands[1]);
  const ir::Tensor* recurrence = graph_.constant(n.operands[2]);
  if (!w || !recurrence) ir::operator_error("the weights of a recurrent operator must be constants");

  KernelCall call;
  call.family = family;
  call.headers = {"gcrt/cpu/rnn.h"};
  call.multiply_adds = r.directions * r.steps * r.batch * gates * r.hidden * (r.inputs + r.hidden);
  operand_parameter(call, id, 0, "x");
  // [D][gates * H][depth] -> [D][gates][P / 16][depth][16]
  const auto pack = [&](const ir::Tensor& tensor, std::int64_t depth, const std::string& parameter,
                        int operand) {
    std::vector<float> packed;
    for (std::int64_t block = 0; block < r.directions * gates; ++block) {
      const std::vector<float> part = pack_panels(depth, units, [&](std::int64_t k, std::int64_t unit) {
        return unit < r.hidden ? static_cast<float>(tensor.real_at((block * r.hidden + unit) * depth + k))
                               : 0.0f;
      });
      packed.insert(packed.end(), part.begin(), part.end());
    }
    weights_parameter(
        call,
        weights_.add_floats(packed, graph_.value(n.operands[static_cast<std::size_t>(operand)]).name,
                            fmt::format("{} packed for {}", to_string(tensor.type()), family)),
        parameter, "float");
  };
  pack(*w, r.inputs, "w", 1);
  pack(*recurrence, r.hidden, "r", 2);
  std::string bias = "nullptr", recurrent_bias = "nullptr", peepholes = "nullptr";
  if (view.has_operand(3)) {
    const ir::Tensor* b = graph_.constant(n.operands[3]);
    if (!b) ir::operator_error("the bias of a recurrent operator must be a constant");
    std::vector<float> sums(static_cast<std::size_t>(r.directions * gates * units), 0.0f);
    std::vector<float> apart(static_cast<std::size_t>(r.directions * units), 0.0f);
    for (std::int64_t d = 0; d < r.directions; ++d) {
      for (std::int64_t g = 0; g < gates; ++g) {
        for (std::int64_t unit = 0; unit < r.hidden; ++unit) {
          const std::int64_t row = d * 2 * gates * r.hidden;
          const double own = b->real_at(row + g * r.hidden + unit);
          const double other = b->real_at(row + (gates + g) * r.hidden + unit);
          const bool separate = linear_before_reset && g == 2;
          sums[static_cast<std::size_t>((d * gates + g) * units + unit)] =
              static_cast<float>(separate ? own : own + other);
          if (separate) apart[static_cast<std::size_t>(d * units + unit)] = static_cast<float>(other);
        }
      }
    }
    const std::string& name = graph_.value(n.operands[3]).name;
    weights_parameter(call, weights_.add_floats(sums, name, "bias of the gates, padded"), "bias", "float");
    bias = "bias";
    if (linear_before_reset) {
      weights_parameter(call, weights_.add_floats(apart, name, "recurrent bias of gate h, padded"),
                        "recurrent_bias", "float");
      recurrent_bias = "recurrent_bias";
    }
  }
  if (family == "lstm" && view.has_operand(7)) {
    const ir::Tensor* p = graph_.constant(n.operands[7]);
    if (!p) ir::operator_error("peepholes must be constants");
    std::vector<float> padded(static_cast<std::size_t>(r.directions * 3 * units), 0.0f);
    // ONNX stores i, o, f: the kernel's order too.
    for (std::int64_t block = 0; block < r.directions * 3; ++block) {
      for (std::int64_t unit = 0; unit < r.hidden; ++unit) {
        padded[static_cast<std::size_t>(block * units + unit)] =
            static_cast<float>(p->real_at(block * r.hidden + unit));
      }
    }
    weights_parameter(call,
                      weights_.add_floats(padded, graph_.value(n.operands[7]).name, "peepholes, padded"),
                      "peepholes", "float");
    peepholes = "peepholes";
  }
  const auto optional_operand = [&](int i, const char* parameter) -> std::string {
    if (!view.has_operand(i)) return "nullptr";
    operand_parameter(call, id, i, parameter);
    return parameter;
  };
  const std::string lengths = optional_operand(4, "lengths");
  const std::string initial_h = optional_operand(5, "initial_h");
  const std::string initial_c = family == "lstm" ? optional_operand(6, "initial_c") : "nullptr";
  const auto optional_result = [&](int i, const char* parameter) -> std::string {
    if (!view.has_result(i) || graph_.use_count(n.results[static_cast<std::size_t>(i)]) == 0)
      return "nullptr";
    result_parameter(call, id, i, parameter);
    return parameter;
  };
  const std::string y = optional_result(0, "y");
  const std::string y_h = optional_result(1, "y_h");
  const std::string y_c = family == "lstm" ? optional_result(2, "y_c") : "nullptr";
  const std::int64_t block_steps =
      std::min(r.steps, std::max<std::int64_t>(1, 96 / std::max<std::int64_t>(1, r.batch)));
  scratch_parameter(call, units * r.batch * (gates * (block_steps + 1) + 3) * 4, "scratch", "float");

  CodeText code(1);
  code.line(fmt::format(
      "constexpr RnnShape shape{{/*steps, batch, input, hidden*/ {}, {}, {}, {}, /*directions*/ {}, "
      "/*reverse*/ {}}};",
      r.steps, r.batch, r.inputs, r.hidden, r.directions, r.reverse_first));
  code.line(fmt::format("static_assert(rnn_scratch_floats(shape, {}) * 4 <= {});", gates,
                        call.arguments.back().scratch_bytes));
  std::string activations;
  for (int d = 0; d < 2; ++d) {
    activations += d ? ", {" : "{";
    for (int f = 0; f < 3; ++f) {
      const std::size_t at =
          static_cast<std::size_t>(std::min(d, r.directions - 1) * functions + std::min(f, functions - 1));
      const ir::RecurrentActivation& a = r.activations[at];
      activations += fmt::format("{}{{RnnFunction::{}, {}, {}}}", f ? ", " : "", rnn_function(a.name),
                                 literal_of(a.alpha), literal_of(a.beta));
    }
    activations += "}";
  }
  code.line(
      fmt::format("constexpr RnnOptions options{{{{{}}}, /*clip*/ {}, /*input_forget*/ {}, "
                  "/*linear_before_reset*/ {}}};",
                  activations, literal_of(r.has_clip ? r.clip : 0),
                  family == "lstm" && n.attributes.flag("input_forget"), linear_before_reset));
  code.line(
      fmt::format("{}(shape, RnnOperands{{x, w, r, {}, {}, {}, {}, {}, {}, {}, {}, {}, scratch}}, options);",
                  family, bias, recurrent_bias, peepholes, lengths, initial_h, initial_c, y, y_h, y_c));
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::top_k(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element)
    ir::operator_error("TopK has no kernel for 16-bit floats yet");
  const int axis = ir::normalise_axis(n.attributes.int_of("axis"), type.rank());
  const ir::Tensor* k = graph_.constant(n.operands[1]);
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t inner = ir::row_major_strides(type.shape)[at];
  KernelCall call;
  call.family = "topk";
  call.headers = {"gcrt/cpu/library.h"};
  operand_parameter(call, id, 0, "x");
  const auto result = [&](std::size_t i, const char* parameter, ElementType element) {
    if (i < n.results.size() && n.results[i].valid()) {
      result_parameter(call, id, static_cast<int>(i), parameter);
    } else {
      const std::int64_t count = type.count() / std::max<std::int64_t>(1, type.shape[at]) * k->int_at(0);
      scratch_parameter(call, bytes_of(element, count), parameter, kernel_type(element));
    }
  };
  result(0, "values", type.element);
  result(1, "positions", ElementType::kInt64);
  call.body = fmt::format("  top_k<{}>(/*outer, extent, inner, k*/ {}, {}, {}, {}, x, values, positions);\n",
                          n.attributes.flag("largest"),
                          type.count() / std::max<std::int64_t>(1, inner * type.shape[at]), type.shape[at],
                          inner, k->int_at(0));
  return call;
}

KernelCall KernelBuilder::scatter(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& data = graph_.value(n.operands[0]).type;
  const ir::TensorType& indices = graph_.value(n.operands[1]).type;
  const std::string& reduction = n.attributes.string_of("reduction");
  const bool half = compute_type(data.element) != data.element;
  if (half && reduction != "none")
    ir::operator_error("scatter reductions have no kernel for 16-bit floats yet");
  const char* combine = reduction == "add"   ? "ScatterAdd"
                        : reduction == "mul" ? "ScatterMul"
                        : reduction == "max" ? "ScatterMax"
                        : reduction == "min" ? "ScatterMin"
                                             : "ScatterReplace";
  KernelCall call;
  call.headers = {"gcrt/cpu/library.h"};
  call.checked = true;
  operand_parameter(call, id, 0, "data");
  operand_parameter(call, id, 1, "indices");
  operand_parameter(call, id, 2, "updates");
  result_parameter(call, id, 0, "y");
  CodeText code(1);
  const Shape strides = ir::row_major_strides(data.shape);
  if (n.op->name == "ScatterND") {
    call.family = "scatter_nd";
    const std::int64_t depth = indices.shape.back();
    std::int64_t slice = 1;
    for (std::size_t i = static_cast<std::size_t>(depth); i < data.shape.size(); ++i) slice *= data.shape[i];
    const std::int64_t tuples = depth == 0 ? 1 : indices.count() / depth;
    code.line(int64_array("extents", Shape(data.shape.begin(), data.shape.begin() + depth)));
    code.line(int64_array("strides", Shape(strides.begin(), strides.begin() + depth)));
    code.line(fmt::format(
        "return scatter_nd<{}>(/*count, tuples, depth, slice*/ {}, {}, {}, {}, extents, strides, data, "
        "indices, updates, y);",
        combine, data.count(), tuples, depth, slice));
  } else {
    call.family = "scatter_elements";
    const int axis = ir::normalise_axis(n.attributes.int_of("axis"), data.rank());
    code.line(int64_array("extents", data.shape));
    code.line(int64_array("strides", strides));
    code.line(int64_array("box", indices.shape));
    code.line(fmt::format(
        "return scatter_elements<{}>(/*count, rank, axis*/ {}, {}, {}, extents, strides, box, data, "
        "indices, updates, y);",
        combine, data.count(), data.rank(), axis));
  }
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::cumulative_sum(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element)
    ir::operator_error("CumSum has no kernel for 16-bit floats yet");
  const ir::Tensor* axis_tensor = graph_.constant(n.operands[1]);
  if (!axis_tensor) ir::operator_error("the axis must be known at compile time");
  const auto axis = static_cast<std::size_t>(ir::normalise_axis(axis_tensor->int_at(0), type.rank()));
  const std::int64_t inner = ir::row_major_strides(type.shape)[axis];
  KernelCall call;
  call.family = "cumsum";
  call.headers = {"gcrt/cpu/library.h"};
  operand_parameter(call, id, 0, "x");
  result_parameter(call, id, 0, "y");
  call.body = fmt::format(
      "  cumulative_sum(/*outer, extent, inner*/ {}, {}, {}, /*exclusive*/ {}, /*reverse*/ {}, x, y);\n",
      type.count() / std::max<std::int64_t>(1, inner * type.shape[axis]), type.shape[axis], inner,
      n.attributes.flag("exclusive"), n.attributes.flag("reverse"));
  return call;
}

}  // namespace gcompile
