// RNN, GRU and LSTM: recurrences over the first axis. Gates are stacked in the order of the specification:
// RNN i; GRU z, r, h; LSTM i, o, f, c. layout 1 (batch first) is decomposed into Transposes around layout 0.

#include "ir/ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/interrupt.h"
#include "ir/forms/rounding.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// One row per function of the specification: how many parameters it takes, and their defaults.
struct ActivationRow {
  std::string_view name;
  RecurrentFunction function;
  bool has_alpha;
  bool has_beta;
  double alpha;
  double beta;
};
constexpr std::array<ActivationRow, 11> kActivations = {{
    {"Affine", RecurrentFunction::kAffine, true, true, 1.0, 0.0},
    {"Elu", RecurrentFunction::kElu, true, false, 1.0, 0.0},
    {"HardSigmoid", RecurrentFunction::kHardSigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", RecurrentFunction::kLeakyRelu, true, false, 0.01, 0.0},
    {"Relu", RecurrentFunction::kRelu, false, false, 0.0, 0.0},
    {"ScaledTanh", RecurrentFunction::kScaledTanh, true, true, 1.0, 1.0},
    {"Sigmoid", RecurrentFunction::kSigmoid, false, false, 0.0, 0.0},
    {"Softplus", RecurrentFunction::kSoftplus, false, false, 0.0, 0.0},
    {"Softsign", RecurrentFunction::kSoftsign, false, false, 0.0, 0.0},
    {"Tanh", RecurrentFunction::kTanh, false, false, 0.0, 0.0},
    {"ThresholdedRelu", RecurrentFunction::kThresholdedRelu, true, false, 1.0, 0.0},
}};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

const ActivationRow& activation_row(std::string_view name) {
  for (const ActivationRow& row : kActivations) {
    if (lower_case(row.name) == lower_case(name)) return row;
  }
  operator_error(fmt::format("the activation '{}' is not known", printable(name)));
}

/// What differs between the three operators.
struct Cell {
  RecurrentCell cell;
  int gates;
  int functions;
  std::string_view default_functions[3];
  bool has_cell_state;
};
constexpr Cell kRnn = {RecurrentCell::kRnn, 1, 1, {"Tanh"}, false};
constexpr Cell kGru = {RecurrentCell::kGru, 3, 2, {"Sigmoid", "Tanh"}, false};
constexpr Cell kLstm = {RecurrentCell::kLstm, 4, 3, {"Sigmoid", "Tanh", "Tanh"}, true};

// Operands: X, W, R, B, sequence_lens, initial_h, then for LSTM initial_c, P.
constexpr int kBias = 3, kLengths = 4, kInitialH = 5, kInitialC = 6, kPeepholes = 7;

template <const Cell& kCell>
void normalise(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  attributes.erase("output_sequence");  // opset 1: whether output 0 is wanted at all
  if (!attributes.has("direction")) attributes.set("direction", std::string("forward"));
  const int directions = lower_case(attributes.string_of("direction")) == "bidirectional" ? 2 : 1;
  attributes.set("direction", lower_case(attributes.string_of("direction")));
  if (!attributes.has("activations") || attributes.strings_of("activations").empty()) {
    std::vector<std::string> names;
    for (int i = 0; i < directions * kCell.functions; ++i) {
      names.emplace_back(kCell.default_functions[i % kCell.functions]);
    }
    attributes.set("activations", std::move(names));
  } else {
    std::vector<std::string> names = attributes.strings_of("activations");
    for (std::string& name : names) name = activation_row(name).name;
    attributes.set("activations", std::move(names));
  }
  if (!attributes.has("hidden_size") && context.shape(2).size() == 3) {
    attributes.set("hidden_size", context.shape(2)[2]);
  }
}

void require_shape(const NodeView& node, int i, const Shape& expected, std::string_view name) {
  if (!node.has_operand(i) || assume_equal_shapes(node.shape(i), expected)) return;
  operator_error(fmt::format("input {} ({}) must have the shape {}, not {}", i, name, to_string(expected),
                             to_string(node.shape(i))));
}

/// Lengths that are only known at run time are clamped there.
void require_lengths(const NodeView& node, const RecurrentWork& r) {
  const Tensor* lengths = node.constant(kLengths);
  if (!lengths || is_float(lengths->element())) return;
  for (const std::int64_t length : lengths->ints()) {
    if (length < 0 || always_less(r.steps, length)) {
      operator_error(
          fmt::format("sequence_lens has the length {}, but there are {} steps", length, to_string(r.steps)));
    }
  }
}

template <const Cell& kCell>
void infer(InferContext& context) {
  require_float(context, 0);
  const RecurrentWork r = recurrent_work(context, kCell.cell);
  for (int i = 1; i < context.operand_count(); ++i) {
    if (!context.has_operand(i)) continue;
    const ElementType expected = i == kLengths ? ElementType::kInt32 : context.element(0);
    if (context.element(i) != expected) {
      operator_error(
          fmt::format("input {} must be {}, not {}", i, name_of(expected), name_of(context.element(i))));
    }
  }
  if (context.shape(2).size() != 3 || context.shape(2)[2] != r.hidden) {
    operator_error(
        fmt::format("hidden_size is {}, but R has the shape {}", r.hidden, to_string(context.shape(2))));
  }
  require_lengths(context, r);
  const std::int64_t d = r.directions, h = r.hidden, g = kCell.gates;
  const Shape state = r.batch_first ? Shape{r.batch, d, h} : Shape{d, r.batch, h};
  require_shape(context, 1, {d, g * h, r.inputs}, "W");
  require_shape(context, 2, {d, g * h, h}, "R");
  require_shape(context, kBias, {d, 2 * g * h}, "B");
  require_shape(context, kLengths, {r.batch}, "sequence_lens");
  require_shape(context, kInitialH, state, "initial_h");
  if (kCell.has_cell_state) {
    require_shape(context, kInitialC, state, "initial_c");
    require_shape(context, kPeepholes, {d, 3 * h}, "P");
  }
  const ElementType type = context.element(0);
  context.set_result(0, type, r.batch_first ? Shape{r.batch, r.steps, d, h} : Shape{r.steps, d, r.batch, h});
  context.set_result(1, type, state);
  if (kCell.has_cell_state) context.set_result(2, type, state);
}

bool decompose(RewriteContext& context) {
  if (!context.attributes().flag("layout")) return false;
  Attributes attributes = context.attributes();
  attributes.set("layout", std::int64_t{0});
  std::vector<ValueId> operands = context.node().operands;
  for (const int i : {0, kInitialH, kInitialC}) {
    if (context.has_operand(i)) {
      operands[i] = emit_transpose(context, operands[i], {1, 0, 2});
    }
  }
  const int results = context.result_count();
  const NodeId inner = context.emit_node(context.node().op->name, std::move(operands), attributes, results);
  for (int i = 0; i < results; ++i) {
    if (!context.has_result(i)) continue;
    const ValueId result = context.graph().node(inner).results[i];
    const std::vector<std::int64_t> perm =
        i == 0 ? std::vector<std::int64_t>{2, 0, 1, 3} : std::vector<std::int64_t>{1, 0, 2};
    context.replace_result(i, emit_transpose(context, result, perm));
  }
  return true;
}

using Reals = std::vector<double>;

/// Operands as double with the batch axis second, as layout 0 has it.
Reals reals(const Tensor* tensor, std::int64_t count, bool swap) {
  if (!tensor) return Reals(static_cast<std::size_t>(count), 0.0);
  Reals out(static_cast<std::size_t>(tensor->count()));
  const Shape& shape = tensor->shape();
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t to = i;
    if (swap) {
      const auto first = static_cast<std::size_t>(shape[0]), second = static_cast<std::size_t>(shape[1]),
                 third = static_cast<std::size_t>(shape[2]);
      to = (i / third % second * first + i / third / second) * third + i % third;
    }
    out[to] = tensor->real_at(static_cast<std::int64_t>(i));
  }
  return out;
}

/// Everything a cell needs to advance one row of the batch by one step.
struct Step {
  const double* x;     // [inputs]
  const double* w;     // [gates * hidden, inputs]
  const double* r;     // [gates * hidden, hidden]
  const double* bias;  // [2 * gates * hidden]: of W, then of R
  const double* peep;  // [3 * hidden]: i, o, f
  double* h;           // [hidden]
  double* c;           // [hidden]
  std::size_t inputs, hidden, gates;
  const RecurrentActivation* functions;
  const RecurrentWork* options;
  bool flag;  // GRU: linear_before_reset, LSTM: input_forget
  ElementType type;
  Rounding* rounding;  // nullptr: none on the way

  double rounded(double value, double terms = 0) const {
    return rounding ? rounding->inside(value, type, roundings_of_sum(terms)) : value;
  }
  double from_input(std::size_t gate, std::size_t j) const {
    const std::size_t row = gate * hidden + j;
    double sum = bias[row];
    for (std::size_t k = 0; k < inputs; ++k) sum += w[row * inputs + k] * x[k];
    return rounded(sum, static_cast<double>(inputs));
  }
  double from_state(std::size_t gate, std::size_t j, const double* state) const {
    const std::size_t row = gate * hidden + j;
    double sum = bias[gates * hidden + row];
    for (std::size_t k = 0; k < hidden; ++k) sum += r[row * hidden + k] * state[k];
    return rounded(sum, static_cast<double>(hidden));
  }
  double apply(int function, double v) const {
    if (options->has_clip) v = std::clamp(v, -options->clip, options->clip);
    return rounded(activate(functions[function], rounded(v)));
  }
};

void advance_rnn(const Step& s) {
  const Reals before(s.h, s.h + s.hidden);
  for (std::size_t j = 0; j < s.hidden; ++j) {
    s.h[j] = s.apply(0, s.from_input(0, j) + s.from_state(0, j, before.data()));
  }
}

void advance_gru(const Step& s) {
  const Reals before(s.h, s.h + s.hidden);
  Reals update(s.hidden), reset(s.hidden), scaled(s.hidden);
  for (std::size_t j = 0; j < s.hidden; ++j) {
    update[j] = s.apply(0, s.from_input(0, j) + s.from_state(0, j, before.data()));
    reset[j] = s.apply(0, s.from_input(1, j) + s.from_state(1, j, before.data()));
    scaled[j] = reset[j] * before[j];
  }
  for (std::size_t j = 0; j < s.hidden; ++j) {
    const double recurrent =
        s.flag ? reset[j] * s.from_state(2, j, before.data()) : s.from_state(2, j, scaled.data());
    const double candidate = s.apply(1, s.from_input(2, j) + recurrent);
    s.h[j] = s.rounded((1 - update[j]) * candidate + update[j] * before[j]);
  }
}

void advance_lstm(const Step& s) {
  const Reals before(s.h, s.h + s.hidden);
  for (std::size_t j = 0; j < s.hidden; ++j) {
    const auto gate = [&](std::size_t g) { return s.from_input(g, j) + s.from_state(g, j, before.data()); };
    const double input = s.apply(0, gate(0) + s.peep[j] * s.c[j]);
    const double forget = s.flag ? 1 - input : s.apply(0, gate(2) + s.peep[2 * s.hidden + j] * s.c[j]);
    const double candidate = s.apply(1, gate(3));
    s.c[j] = s.rounded(forget * s.c[j] + input * candidate);
    const double output = s.apply(0, gate(1) + s.peep[s.hidden + j] * s.c[j]);
    s.h[j] = s.rounded(output * s.apply(2, s.c[j]));
  }
}

/// Advances `step` (whose pointers are those of the first row) through all steps of one direction.
using Advance = void (*)(const Step&);

/// Tensor of values in the order (steps if sequence, directions, batch, hidden), batch first when layout
/// is 1.
Tensor stored(const RecurrentWork& r, const Reals& values, ElementType type, bool sequence) {
  const std::int64_t outer = sequence ? std::int64_t{r.steps} : 1, batch = r.batch;
  Shape shape =
      r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
  if (sequence) shape.insert(shape.begin() + (r.batch_first ? 1 : 0), r.steps);
  Tensor tensor(TensorType{type, shape});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const std::int64_t j = i % r.hidden, b = i / r.hidden % batch, d = i / r.hidden / batch % r.directions,
                       t = i / r.hidden / batch / r.directions;
    const std::int64_t to = r.batch_first ? ((b * outer + t) * r.directions + d) * r.hidden + j : i;
    tensor.set(to, Scalar::of_real(type, values[i]));
  }
  return tensor;
}

template <const Cell& kCell>
std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const RecurrentWork r = recurrent_work(context, kCell.cell);
  const auto steps = static_cast<std::size_t>(r.steps), batch = static_cast<std::size_t>(r.batch),
             inputs = static_cast<std::size_t>(r.inputs), hidden = static_cast<std::size_t>(r.hidden),
             directions = static_cast<std::size_t>(r.directions);
  constexpr std::size_t gates = kCell.gates;
  const std::int64_t state_count = r.directions * r.batch * r.hidden;
  const Reals x = reals(context.value(0), 0, r.batch_first);
  const Reals w = reals(context.value(1), 0, false);
  const Reals recurrent = reals(context.value(2), 0, false);
  const Reals bias = reals(context.value(kBias), r.directions * 2 * kCell.gates * r.hidden, false);
  Reals h = reals(context.value(kInitialH), state_count, r.batch_first);
  Reals c(h.size(), 0.0), peep(directions * 3 * hidden, 0.0);
  if (kCell.has_cell_state) {
    c = reals(context.value(kInitialC), state_count, r.batch_first);
    peep = reals(context.value(kPeepholes), static_cast<std::int64_t>(peep.size()), false);
  }
  Reals y(steps * directions * batch * hidden, 0.0);
  const Advance advance = kCell.gates == 1 ? advance_rnn : kCell.gates == 3 ? advance_gru : advance_lstm;
  for (std::size_t d = 0; d < directions; ++d) {
    const bool reverse = d == 1 || r.reverse_first;
    for (std::size_t b = 0; b < batch; ++b) {
      const Tensor* lengths = context.value(kLengths);
      const std::size_t length = lengths ? static_cast<std::size_t>(std::clamp<std::int64_t>(
                                               lengths->int_at(static_cast<std::int64_t>(b)), 0, r.steps))
                                         : steps;
      for (std::size_t i = 0; i < length; ++i) {
        poll_interrupt();
        const std::size_t t = reverse ? length - 1 - i : i;
        Step step;
        step.x = x.data() + (t * batch + b) * inputs;
        step.w = w.data() + d * gates * hidden * inputs;
        step.r = recurrent.data() + d * gates * hidden * hidden;
        step.bias = bias.data() + d * 2 * gates * hidden;
        step.peep = peep.data() + d * 3 * hidden;
        step.h = h.data() + (d * batch + b) * hidden;
        step.c = c.data() + (d * batch + b) * hidden;
        step.inputs = inputs;
        step.hidden = hidden;
        step.gates = gates;
        step.functions = r.activations.data() + d * static_cast<std::size_t>(kCell.functions);
        step.options = &r;
        step.flag = r.linear_before_reset || r.input_forget;
        step.type = compute_type(context.value(0)->element());
        step.rounding = Rounding::in_force();
        advance(step);
        std::copy_n(step.h, hidden, y.data() + ((t * directions + d) * batch + b) * hidden);
      }
    }
  }
  const ElementType type = context.value(0)->element();
  std::vector<Tensor> results = {stored(r, y, type, true), stored(r, h, type, false)};
  if (kCell.has_cell_state) results.push_back(stored(r, c, type, false));
  return results;
}

template <const Cell& kCell>
Form lower(const LowerContext& context) {
  return LibraryForm{recurrent_work(context, kCell.cell)};
}

template <const Cell& kCell>
Operator record(std::string_view name, std::vector<int> versions, std::string_view summary) {
  Operator o;
  o.name = name;
  o.versions = std::move(versions);
  o.operands = {3, kCell.has_cell_state ? 8 : 6};
  o.results = {0, kCell.has_cell_state ? 3 : 2};
  o.attributes = {{"activation_alpha", AttributeKind::kFloats, std::vector<float>{}},
                  {"activation_beta", AttributeKind::kFloats, std::vector<float>{}},
                  {"activations", AttributeKind::kStrings, std::nullopt, true},
                  {"clip", AttributeKind::kFloat, std::nullopt},
                  {"direction", AttributeKind::kString, std::string("forward")},
                  {"hidden_size", AttributeKind::kInt, std::nullopt, true},
                  {"layout", AttributeKind::kInt, std::int64_t{0}}};
  o.accuracy = Accuracy::kSum;
  o.summary = summary;
  o.traits.computed_in_float = true;
  o.normalise = normalise<kCell>;
  o.infer = infer<kCell>;
  o.decompose = decompose;
  o.evaluate = evaluate<kCell>;
  o.lower = lower<kCell>;
  return o;
}

}  // namespace

double activate(const RecurrentActivation& activation, double x) {
  const double alpha = activation.alpha, beta = activation.beta;
  switch (activation.function) {
    case RecurrentFunction::kAffine:
      return alpha * x + beta;
    case RecurrentFunction::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case RecurrentFunction::kHardSigmoid:
      return std::clamp(alpha * x + beta, 0.0, 1.0);
    case RecurrentFunction::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case RecurrentFunction::kRelu:
      return std::max(x, 0.0);
    case RecurrentFunction::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case RecurrentFunction::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case RecurrentFunction::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case RecurrentFunction::kSoftsign:
      return x / (1 + std::abs(x));
    case RecurrentFunction::kTanh:
      return std::tanh(x);
    case RecurrentFunction::kThresholdedRelu:
      return x > alpha ? x : 0;
  }
  GC_CHECK(false);
}

RecurrentWork recurrent_work(const NodeView& node, RecurrentCell cell) {
  const Attributes& attributes = node.attributes();
  const int functions = functions_of(cell);
  RecurrentWork r;
  r.cell = cell;
  r.linear_before_reset = cell == RecurrentCell::kGru && attributes.flag("linear_before_reset");
  r.input_forget = cell == RecurrentCell::kLstm && attributes.flag("input_forget");
  if (node.shape(0).size() != 3) {
    operator_error(fmt::format("X must have rank 3, its shape is {}", to_string(node.shape(0))));
  }
  r.batch_first = attributes.flag("layout");
  r.steps = node.shape(0)[r.batch_first ? 1 : 0];
  r.batch = node.shape(0)[r.batch_first ? 0 : 1];
  r.inputs = node.shape(0)[2];
  r.hidden = attributes.int_of("hidden_size");
  const std::string& direction = attributes.string_of("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    operator_error(fmt::format("direction '{}' is not known", printable(direction)));
  }
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.reverse_first = direction == "reverse";
  r.has_clip = attributes.has("clip") && attributes.float_of("clip") > 0;
  if (r.has_clip) r.clip = attributes.float_of("clip");
  const std::vector<std::string>& names = attributes.strings_of("activations");
  if (names.size() != static_cast<std::size_t>(functions * r.directions)) {
    operator_error(fmt::format("{} activations given, {} expected", names.size(), functions * r.directions));
  }
  // Parameters are consumed in order by the functions that take them.
  const std::vector<float>& alphas = attributes.floats_of("activation_alpha");
  const std::vector<float>& betas = attributes.floats_of("activation_beta");
  std::size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    const ActivationRow& row = activation_row(name);
    RecurrentActivation activation{row.function, row.alpha, row.beta};
    if (row.has_alpha && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (row.has_beta && beta < betas.size()) activation.beta = betas[beta++];
    r.activations.push_back(activation);
  }
  return r;
}

const Operator& operator_RNN() {
  static const Operator op = record<kRnn>(
      "RNN", {1, 7, 14, 22}, "simple recurrent layer; sequence_lens outside [0, steps] are clamped");
  return op;
}

const Operator& operator_GRU() {
  static const Operator op = [] {
    Operator o = record<kGru>("GRU", {1, 3, 7, 14, 22},
                              "gated recurrent unit; sequence_lens outside [0, steps] are clamped");
    o.attributes.push_back({"linear_before_reset", AttributeKind::kInt, std::int64_t{0}});
    return o;
  }();
  return op;
}

const Operator& operator_LSTM() {
  static const Operator op = [] {
    Operator o = record<kLstm>("LSTM", {1, 7, 14, 22},
                               "long short-term memory; sequence_lens outside [0, steps] are clamped");
    o.attributes.push_back({"input_forget", AttributeKind::kInt, std::int64_t{0}});
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
