// CausalConvWithState: a depthwise convolution along one axis that sees no later element, with the elements
// before the first one as a state. That of com.microsoft may leave elements out between the taps, and have
// the channels last, on any number of axes.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

constexpr int kWeight = 1, kBias = 2, kPast = 3;

struct Sizes {
  bool channels_last;
  std::int64_t batch, channels, length, kernel, dilation;
  std::int64_t state() const { return (kernel - 1) * dilation; }
};

Sizes sizes_of(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const Shape& x = node.shape(0);
  const Shape& w = node.shape(kWeight);
  Sizes s{};
  s.channels_last = attributes.has("channels_last") && attributes.flag("channels_last");
  s.dilation = attributes.has("dilation") ? attributes.int_of("dilation") : 1;
  if (s.channels_last ? x.size() < 3 : x.size() != 3) {
    operator_error(
        fmt::format("an input of shape {} is not {}", to_string(x),
                    s.channels_last ? "(batch, length, channels...)" : "(batch, channels, length)"));
  }
  s.batch = x[0];
  s.channels = s.channels_last ? element_count(Shape(x.begin() + 2, x.end())) : x[1];
  s.length = x[s.channels_last ? 1 : 2];
  if (w.size() != 3 || w[0] != s.channels || w[1] != 1 || w[2] < 1) {
    operator_error(
        fmt::format("the weight must be ({}, 1, kernel), its shape is {}", s.channels, to_string(w)));
  }
  s.kernel = w[2];
  if (s.dilation < 1) operator_error(fmt::format("dilation = {} must be positive", s.dilation));
  return s;
}

void infer(InferContext& context) {
  require_float(context, 0);
  const ElementType type = same_type(context);
  for (const char* name : {"ndim", "state_window"}) {
    if (!context.attributes().has(name)) continue;
    const std::int64_t value = context.attributes().int_of(name);
    if (value != (std::string_view(name) == "ndim" ? 1 : 0)) {
      operator_error(fmt::format("{} = {} is not supported", name, value));
    }
  }
  const Sizes s = sizes_of(context);
  Shape state = context.shape(0);
  state[s.channels_last ? 1 : 2] = s.state();
  if (context.has_operand(kBias) && context.shape(kBias) != Shape{s.channels}) {
    operator_error(fmt::format("the bias must have {} elements", s.channels));
  }
  if (context.has_operand(kPast) && context.shape(kPast) != state) {
    operator_error(fmt::format("past_state must have the shape {}, not {}", to_string(state),
                               to_string(context.shape(kPast))));
  }
  const std::string& activation = context.attributes().string_of("activation");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    operator_error(fmt::format("the activation '{}' is not known", printable(activation)));
  }
  context.set_result(0, type, context.shape(0));
  context.set_result(1, type, state);
}

/// The last `count` elements of what the convolution read, `read`, with zeros where it is too short.
ValueId emit_state(RewriteContext& context, ValueId read, std::int64_t count) {
  const Shape shape = context.type(read).shape;
  if (shape[2] >= count) return emit_slice(context, read, 2, shape[2] - count, shape[2]);
  const Shape rest = {shape[0], shape[1], count - shape[2]};
  const ValueId zeros = context.constant(Tensor(TensorType{context.type(read).element, rest}));
  return emit_concat(context, {zeros, read}, 2);
}

/// As (batch, channels, length), and back.
ValueId channels_first(RewriteContext& context, ValueId value, const Sizes& s) {
  if (!s.channels_last) return value;
  const std::int64_t length = context.type(value).shape[1];
  return emit_transpose(context, emit_reshape(context, value, {s.batch, length, s.channels}), {0, 2, 1});
}
ValueId as_given(RewriteContext& context, ValueId value, const Sizes& s, const Shape& shape) {
  return s.channels_last ? emit_reshape(context, emit_transpose(context, value, {0, 2, 1}), shape) : value;
}

bool decompose(RewriteContext& context) {
  const Sizes s = sizes_of(context);
  ValueId read = channels_first(context, context.operand_id(0), s);
  // A state without elements is left out.
  const bool has_past = context.has_operand(kPast) && s.state() > 0;
  if (has_past) {
    read = emit_concat(context, {channels_first(context, context.operand_id(kPast), s), read}, 2);
  }
  Attributes attributes;
  attributes.set("group", s.channels);
  attributes.set("kernel_shape", std::vector<std::int64_t>{s.kernel});
  attributes.set("dilations", std::vector<std::int64_t>{s.dilation});
  attributes.set("pads", std::vector<std::int64_t>{has_past ? 0 : s.state(), 0});
  attributes.set("strides", std::vector<std::int64_t>{1});
  std::vector<ValueId> operands = {read, context.operand_id(kWeight)};
  if (context.has_operand(kBias)) operands.push_back(context.operand_id(kBias));
  ValueId y = context.emit("Conv", std::move(operands), attributes);
  if (context.attributes().string_of("activation") != "none") y = context.emit("Swish", {y});
  context.replace_result(0, as_given(context, y, s, context.result(0).shape));
  if (context.has_result(1)) {
    const ValueId state = emit_state(context, read, s.state());
    context.replace_result(1, as_given(context, state, s, context.result(1).shape));
  }
  return true;
}

Operator record(std::string_view domain, int version) {
  Operator o;
  o.name = "CausalConvWithState";
  o.domain = domain;
  o.versions = {version};
  o.operands = {2, 4};
  o.results = {1, 2};
  o.attributes = {{"activation", AttributeKind::kString, std::string("none")}};
  o.accuracy = Accuracy::kSum;
  o.summary = "depthwise convolution of the elements up to each one, with those of before as a state";
  o.infer = infer;
  o.decompose = decompose;
  return o;
}

}  // namespace

const Operator& operator_CausalConvWithState() {
  static const Operator op = record("", 27);
  return op;
}

const Operator& operator_MicrosoftCausalConvWithState() {
  static const Operator op = [] {
    Operator o = record("com.microsoft", 1);
    for (const auto& [name, value] :
         {std::pair{"channels_last", 0}, {"dilation", 1}, {"ndim", 1}, {"state_window", 0}}) {
      o.attributes.push_back({name, AttributeKind::kInt, std::int64_t{value}});
    }
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
