#include "codegen/kernels/recurrent_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/loops/c_types.h"

namespace gcompile {

namespace {

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

std::string literal_of(double value) {
  return literal(ir::Scalar::of_real(ir::ElementType::kFloat32, value));
}

}  // namespace

RecurrentCall::RecurrentCall(KernelBuilder& builder, KernelCall& call, ir::NodeId id)
    : builder_(builder), call_(call), id_(id), view_(builder.graph_, id) {
  const ir::Node& n = builder.node(id);
  call.family = n.op->name == "LSTM" ? "lstm" : n.op->name == "GRU" ? "gru" : "rnn";
  gates_ = call.family == "lstm" ? 4 : call.family == "gru" ? 3 : 1;
  functions_ = call.family == "lstm" ? 3 : call.family == "gru" ? 2 : 1;
  if (view_.element(0) != ir::ElementType::kFloat32) {
    ir::operator_error(fmt::format("{} has no kernel for {} yet", n.op->name, name_of(view_.element(0))));
  }
  sizes_ = ir::recurrence_of(view_, functions_);
  if (sizes_.batch_first) ir::operator_error("layout 1 has no kernel");
  linear_before_reset_ = call.family == "gru" && n.attributes.flag("linear_before_reset");
  input_weights_ = builder.graph_.constant(n.operands[1]);
  state_weights_ = builder.graph_.constant(n.operands[2]);
  if (!input_weights_ || !state_weights_)
    ir::operator_error("the weights of a recurrent operator must be constants");
  call.multiply_adds = sizes_.directions * sizes_.steps * sizes_.batch * gates_ * sizes_.hidden *
                       (sizes_.inputs + sizes_.hidden);
  builder.operand_parameter(call, id, 0, "x");
}

void RecurrentCall::pack(Packing packing, int operand, const char* parameter) {
  const ir::Value& value =
      builder_.graph_.value(builder_.node(id_).operands[static_cast<std::size_t>(operand)]);
  const std::string what = fmt::format("{} packed for {}", to_string(value.type), call_.family);
  builder_.weights_parameter(call_, builder_.weights_.add(std::move(packing), value.name, what), parameter,
                             "float");
}

void RecurrentCall::weights(Packing w, Packing r) {
  pack(std::move(w), 1, "w");
  pack(std::move(r), 2, "r");
}

void RecurrentCall::bias(std::int64_t units) {
  if (!view_.has_operand(3)) {
    optional_ = {"nullptr", "nullptr"};
    return;
  }
  const ir::ValueId value = builder_.node(id_).operands[3];
  const ir::Tensor* b = builder_.graph_.constant(value);
  if (!b) ir::operator_error("the bias of a recurrent operator must be a constant");
  std::vector<float> sums(static_cast<std::size_t>(sizes_.directions * gates_ * units), 0.0f);
  std::vector<float> apart(static_cast<std::size_t>(sizes_.directions * units), 0.0f);
  for (std::int64_t d = 0; d < sizes_.directions; ++d) {
    for (std::int64_t g = 0; g < gates_; ++g) {
      for (std::int64_t unit = 0; unit < sizes_.hidden; ++unit) {
        const std::int64_t row = d * 2 * gates_ * sizes_.hidden;
        const double own = b->real_at(row + g * sizes_.hidden + unit);
        const double other = b->real_at(row + (gates_ + g) * sizes_.hidden + unit);
        const bool separate = linear_before_reset_ && g == 2;
        sums[static_cast<std::size_t>((d * gates_ + g) * units + unit)] =
            static_cast<float>(separate ? own : own + other);
        if (separate) apart[static_cast<std::size_t>(d * units + unit)] = static_cast<float>(other);
      }
    }
  }
  const std::string& name = builder_.graph_.value(value).name;
  builder_.weights_parameter(call_, builder_.weights_.add_floats(sums, name, "bias of the gates, padded"),
                             "bias", "float");
  optional_ = {"bias", "nullptr"};
  if (linear_before_reset_) {
    builder_.weights_parameter(call_,
                               builder_.weights_.add_floats(apart, name, "recurrent bias of gate h, padded"),
                               "recurrent_bias", "float");
    optional_.back() = "recurrent_bias";
  }
}

void RecurrentCall::peepholes(std::int64_t units) {
  optional_.push_back("nullptr");
  if (call_.family != "lstm" || !view_.has_operand(7)) return;
  const ir::ValueId value = builder_.node(id_).operands[7];
  const ir::Tensor* p = builder_.graph_.constant(value);
  if (!p) ir::operator_error("peepholes must be constants");
  std::vector<float> padded(static_cast<std::size_t>(sizes_.directions * 3 * units), 0.0f);
  // ONNX stores i, o, f: the kernel's order too.
  for (std::int64_t block = 0; block < sizes_.directions * 3; ++block) {
    for (std::int64_t unit = 0; unit < sizes_.hidden; ++unit) {
      padded[static_cast<std::size_t>(block * units + unit)] =
          static_cast<float>(p->real_at(block * sizes_.hidden + unit));
    }
  }
  builder_.weights_parameter(
      call_, builder_.weights_.add_floats(padded, builder_.graph_.value(value).name, "peepholes, padded"),
      "peepholes", "float");
  optional_.back() = "peepholes";
}

void RecurrentCall::optional_operand(int i, const char* parameter) {
  const bool exists = view_.has_operand(i);
  if (exists) builder_.operand_parameter(call_, id_, i, parameter);
  optional_.push_back(exists ? parameter : "nullptr");
}

void RecurrentCall::optional_result(int i, const char* parameter) {
  const bool exists = view_.has_result(i) &&
                      builder_.graph_.use_count(builder_.node(id_).results[static_cast<std::size_t>(i)]) > 0;
  if (exists) builder_.result_parameter(call_, id_, i, parameter);
  optional_.push_back(exists ? parameter : "nullptr");
}

void RecurrentCall::rest(std::int64_t units) {
  bias(units);
  peepholes(units);
  optional_operand(4, "lengths");
  optional_operand(5, "initial_h");
  const bool has_cell = call_.family == "lstm";
  if (has_cell) {
    optional_operand(6, "initial_c");
  } else {
    optional_.push_back("nullptr");
  }
  optional_result(0, "y");
  optional_result(1, "y_h");
  if (has_cell) {
    optional_result(2, "y_c");
  } else {
    optional_.push_back("nullptr");
  }
}

std::string RecurrentCall::shape_line() const {
  return fmt::format(
      "constexpr RnnShape shape{{/*steps, batch, input, hidden*/ {}, {}, {}, {}, /*directions*/ {}, "
      "/*reverse*/ {}}};",
      sizes_.steps, sizes_.batch, sizes_.inputs, sizes_.hidden, sizes_.directions, sizes_.reverse_first);
}

std::string RecurrentCall::options_line() const {
  std::string activations;
  for (int d = 0; d < 2; ++d) {
    activations += d ? ", {" : "{";
    for (int f = 0; f < 3; ++f) {
      const std::size_t at = static_cast<std::size_t>(std::min(d, sizes_.directions - 1) * functions_ +
                                                      std::min(f, functions_ - 1));
      const ir::RecurrentActivation& a = sizes_.activations[at];
      activations += fmt::format("{}{{RnnFunction::{}, {}, {}}}", f ? ", " : "", rnn_function(a.name),
                                 literal_of(a.alpha), literal_of(a.beta));
    }
    activations += "}";
  }
  return fmt::format(
      "constexpr RnnOptions options{{{{{}}}, /*clip*/ {}, /*input_forget*/ {}, "
      "/*linear_before_reset*/ {}}};",
      activations, literal_of(sizes_.has_clip ? sizes_.clip : 0),
      call_.family == "lstm" && builder_.node(id_).attributes.flag("input_forget"), linear_before_reset_);
}

std::string RecurrentCall::operands() const {
  return fmt::format("RnnOperands{{x, w, r, {}, scratch}}", fmt::join(optional_, ", "));
}

}  // namespace gcompile
