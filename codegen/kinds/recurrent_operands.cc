#include "codegen/kinds/recurrent_operands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/loops/c_types.h"

namespace gcompile {

namespace {

/// Its name in gcrt's RnnFunction.
const char* rnn_function(ir::RecurrentFunction function) {
  switch (function) {
    case ir::RecurrentFunction::kAffine:
      return "affine";
    case ir::RecurrentFunction::kElu:
      return "elu";
    case ir::RecurrentFunction::kHardSigmoid:
      return "hard_sigmoid";
    case ir::RecurrentFunction::kLeakyRelu:
      return "leaky_relu";
    case ir::RecurrentFunction::kRelu:
      return "relu";
    case ir::RecurrentFunction::kScaledTanh:
      return "scaled_tanh";
    case ir::RecurrentFunction::kSigmoid:
      return "sigmoid";
    case ir::RecurrentFunction::kSoftplus:
      return "softplus";
    case ir::RecurrentFunction::kSoftsign:
      return "softsign";
    case ir::RecurrentFunction::kTanh:
      return "tanh";
    case ir::RecurrentFunction::kThresholdedRelu:
      return "thresholded_relu";
  }
  GC_CHECK(false);
}

std::string literal_of(ir::ElementType element, double value) {
  return literal(ir::Scalar::of_real(element, value));
}

}  // namespace

const char* function_of(ir::RecurrentCell cell) {
  return cell == ir::RecurrentCell::kLstm ? "lstm" : cell == ir::RecurrentCell::kGru ? "gru" : "rnn";
}

RecurrentOperands::RecurrentOperands(const ir::Problem& problem, CallWriter& writer)
    : work_(std::get<ir::RecurrentWork>(problem.work)), writer_(writer), gates_(gates_of(work_.cell)) {
  writer.operand(0, "x");
}

void RecurrentOperands::weights(Packing w, Packing r) {
  const std::string format = fmt::format("packed for {}", function_of(work_.cell));
  writer_.packed(1, std::move(w), format, "w");
  writer_.packed(2, std::move(r), format, "r");
}

void RecurrentOperands::floats(int operand, const std::vector<float>& values, const char* what,
                               const char* parameter) {
  writer_.weights(writer_.blob().add_floats(values, writer_.name(operand), what), parameter, "float");
}

void RecurrentOperands::bias(std::int64_t units) {
  if (!writer_.has_operand(3)) {
    optional_ = {"nullptr", "nullptr"};
    return;
  }
  const ir::Tensor& b = *writer_.constant(3);
  std::vector<float> sums(static_cast<std::size_t>(work_.directions * gates_ * units), 0.0f);
  std::vector<float> apart(static_cast<std::size_t>(work_.directions * units), 0.0f);
  for (std::int64_t d = 0; d < work_.directions; ++d) {
    for (std::int64_t g = 0; g < gates_; ++g) {
      for (std::int64_t unit = 0; unit < work_.hidden; ++unit) {
        const std::int64_t row = d * 2 * gates_ * work_.hidden;
        const double own = b.real_at(row + g * work_.hidden + unit);
        const double other = b.real_at(row + (gates_ + g) * work_.hidden + unit);
        const bool separate = work_.linear_before_reset && g == 2;
        sums[static_cast<std::size_t>((d * gates_ + g) * units + unit)] =
            static_cast<float>(separate ? own : own + other);
        if (separate) apart[static_cast<std::size_t>(d * units + unit)] = static_cast<float>(other);
      }
    }
  }
  floats(3, sums, "bias of the gates, padded", "bias");
  optional_ = {"bias", "nullptr"};
  if (work_.linear_before_reset) {
    floats(3, apart, "recurrent bias of gate h, padded", "recurrent_bias");
    optional_.back() = "recurrent_bias";
  }
}

void RecurrentOperands::peepholes(std::int64_t units) {
  optional_.push_back("nullptr");
  if (!has_cell_state() || !writer_.has_operand(7)) return;
  const ir::Tensor& p = *writer_.constant(7);
  std::vector<float> padded(static_cast<std::size_t>(work_.directions * 3 * units), 0.0f);
  // ONNX stores i, o, f: the kernel's order too.
  for (std::int64_t block = 0; block < work_.directions * 3; ++block) {
    for (std::int64_t unit = 0; unit < work_.hidden; ++unit) {
      padded[static_cast<std::size_t>(block * units + unit)] =
          static_cast<float>(p.real_at(block * work_.hidden + unit));
    }
  }
  floats(7, padded, "peepholes, padded", "peepholes");
  optional_.back() = "peepholes";
}

void RecurrentOperands::optional_operand(int i, const char* parameter) {
  const bool exists = writer_.has_operand(i);
  if (exists) writer_.operand(i, parameter);
  optional_.push_back(exists ? parameter : "nullptr");
}

void RecurrentOperands::optional_result(int i, const char* parameter) {
  const bool exists = writer_.wants_result(i);
  if (exists) writer_.result(i, parameter);
  optional_.push_back(exists ? parameter : "nullptr");
}

void RecurrentOperands::rest(std::int64_t units) {
  bias(units);
  peepholes(units);
  states_and_results();
}

void RecurrentOperands::as_they_lie() {
  type_ = fmt::format("RnnTensors<{}>", kernel_type(writer_.type(0).element));
  writer_.operand(1, "w");
  writer_.operand(2, "r");
  optional_operand(3, "bias");
  if (has_cell_state()) {
    optional_operand(7, "peepholes");
  } else {
    optional_.push_back("nullptr");
  }
  states_and_results();
}

void RecurrentOperands::states_and_results() {
  optional_operand(4, "lengths");
  optional_operand(5, "initial_h");
  if (has_cell_state()) {
    optional_operand(6, "initial_c");
  } else {
    optional_.push_back("nullptr");
  }
  optional_result(0, "y");
  optional_result(1, "y_h");
  if (has_cell_state()) {
    optional_result(2, "y_c");
  } else {
    optional_.push_back("nullptr");
  }
}

std::string RecurrentOperands::shape_line() const {
  const auto number = [&](ir::Dim size) {
    const std::string text = writer_.call().sizes(size);
    return size.is_constant() ? text : fmt::format("static_cast<int>({})", text);
  };
  const bool is_fixed = work_.steps.is_constant() && work_.batch.is_constant();
  const std::string steps = number(work_.steps), batch = number(work_.batch);
  return fmt::format(
      "{} RnnShape shape{{/*steps, batch, input, hidden*/ {}, {}, {}, {}, /*directions*/ {}, "
      "/*reverse*/ {}}};",
      is_fixed ? "constexpr" : "const", steps, batch, work_.inputs, work_.hidden, work_.directions,
      work_.reverse_first);
}

std::string RecurrentOperands::options_line() const {
  const int functions = functions_of(work_.cell);
  const ir::ElementType element = writer_.type(0).element;
  std::string activations;
  for (int d = 0; d < 2; ++d) {
    activations += d ? ", {" : "{";
    for (int f = 0; f < 3; ++f) {
      const std::size_t at = static_cast<std::size_t>(std::min(d, work_.directions - 1) * functions +
                                                      std::min(f, functions - 1));
      const ir::RecurrentActivation& a = work_.activations[at];
      activations += fmt::format("{}{{RnnFunction::{}, {}, {}}}", f ? ", " : "", rnn_function(a.function),
                                 literal_of(element, a.alpha), literal_of(element, a.beta));
    }
    activations += "}";
  }
  return fmt::format(
      "constexpr {} options{{{{{}}}, /*clip*/ {}, /*input_forget*/ {}, "
      "/*linear_before_reset*/ {}}};",
      element == ir::ElementType::kFloat32 ? "RnnOptions"
                                           : fmt::format("RnnOptionsOf<{}>", kernel_type(element)),
      activations, literal_of(element, work_.has_clip ? work_.clip : 0), work_.input_forget,
      work_.linear_before_reset);
}

std::string RecurrentOperands::operands() const {
  return fmt::format("{}{{x, w, r, {}, scratch}}", type_, fmt::join(optional_, ", "));
}

}  // namespace gcompile
