// Sequences and optionals. A sequence is a list of values under one name, and an optional its element or nothing, so
// that most of these operators make no node:
//   SequenceAt(SequenceInsert(SequenceConstruct(x, y), z), 1) -> y
// How many elements there are, and which positions are meant, is known when a model is imported; only a SequenceAt
// of elements of one type may have a position that a run gives.

#include <fmt/format.h>

#include "frontend/files/tensor_import.h"
#include "frontend/import/made_nodes.h"

namespace gcompile::frontend {

/// What one node does with sequences.
class Importer::Sequences : public MadeNodes {
 public:
  using MadeNodes::MadeNodes;

  void empty();
  void construct();
  void insert();
  void erase();
  void at();
  void length();
  void concat();
  void split();
  void optional();
  void has_element();
  void get_element();
  void identity() { bind_result(given(0)); }

 private:
  const Sequence& sequence(const Binding& binding) const;
  std::optional<std::int64_t> known_position(int i) const;
  std::size_t position(int i, std::size_t end, std::size_t fallback) const;
  void element_at_run(const Values& values);
  std::vector<std::int64_t> parts_of(ir::Dim size);
  void count_made(std::int64_t elements);
  std::string result_name() const { return scope_.prefix + node_.output(0); }
  void bind_result(Binding binding) {
    if (is_read(0)) MadeNodes::bind_result(0, std::move(binding));
  }
};

const Sequence& Importer::Sequences::sequence(const Binding& binding) const {
  if (binding.state == Binding::State::kSequence) return *binding.sequence;
  operator_error(fmt::format("input 0 must be a sequence, not {}", describe(binding, *scope_.graph)));
}

/// Throws before more elements are read or made by nodes than the budget of calls and trips allows.
void Importer::Sequences::count_made(std::int64_t elements) {
  constexpr int kNodesOfAnElement = 4;  // that a name, a step and a place in memory cost as much as
  const int left = importer_.options_.limits.nodes_of_calls - importer_.nodes_of_calls_;
  if (elements > left / kNodesOfAnElement) {
    throw MadeError{"E0004",
                    {fmt::format("a sequence of {} elements makes more nodes than the limit of {}", elements,
                                 importer_.options_.limits.nodes_of_calls),
                     "an operand 'split' of SplitToSequence makes fewer and larger elements"}};
  }
  importer_.nodes_of_calls_ += kNodesOfAnElement * static_cast<int>(elements);
}

void Importer::Sequences::empty() {
  const ir::Attributes attributes = attributes_without({});
  const std::int64_t code = attributes.int_of("dtype");
  const auto element =
      code >= 0 && code <= INT32_MAX ? element_type_of(static_cast<int>(code)) : std::nullopt;
  if (!element) operator_error(fmt::format("dtype {} is no element type that is supported", code));
  bind_result(Binding::of(Sequence{*element, {}}));
}

void Importer::Sequences::construct() {
  attributes_without({});
  Values values;
  for (int i = 0; i < node_.input_size(); ++i) values.push_back(operand(i));
  if (values.empty()) malformed("it has no inputs");
  const ir::ElementType element = type(values[0]).element;
  bind_result(Binding::of(sequence_of(std::move(values), element)));
}

/// One integer, if it is known.
std::optional<std::int64_t> Importer::Sequences::known_position(int i) const {
  const ir::ValueId value = operand(i);
  const ir::TensorType& given = type(value);
  const bool is_position =
      given.element == ir::ElementType::kInt64 || given.element == ir::ElementType::kInt32;
  if (!is_position || given.count() != 1)
    operator_error(fmt::format("the position must be one int64 or int32, not {}", ir::to_string(given)));
  const ir::Tensor* known = scope_.graph->constant(value);
  return known ? std::optional(known->int_at(0)) : std::nullopt;
}

/// From 0 on, below `end`; operand i counts from the end where it is negative.
std::size_t Importer::Sequences::position(int i, std::size_t end, std::size_t fallback) const {
  const auto size = static_cast<std::int64_t>(sequence(given(0)).values.size());
  std::int64_t at = static_cast<std::int64_t>(fallback);
  if (has_operand(i)) {
    const auto known = known_position(i);
    if (!known) {
      operator_error("the position must be known at compile time",
                     "--set NAME=VALUE makes it known where an input tells it");
    }
    at = *known;
  }
  if (at < -size || at >= static_cast<std::int64_t>(end)) {
    operator_error(
        fmt::format("the position {} is outside [{}, {}), of a sequence of {}", at, -size, end, size));
  }
  return static_cast<std::size_t>(at < 0 ? at + size : at);
}

void Importer::Sequences::insert() {
  attributes_without({});
  const Binding before = given(0);
  const Sequence& old = sequence(before);
  Values values = old.values;
  const ir::ValueId added = operand(1);
  const std::size_t at = position(2, values.size() + 1, values.size());
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), added);
  bind_result(Binding::of(sequence_of(std::move(values), old.element)));
}

void Importer::Sequences::erase() {
  attributes_without({});
  const Binding before = given(0);
  const Sequence& old = sequence(before);
  Values values = old.values;
  if (values.empty()) operator_error("the sequence has no element to erase");
  const std::size_t at = position(1, values.size(), values.size() - 1);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
  bind_result(Binding::of(sequence_of(std::move(values), old.element)));
}

void Importer::Sequences::at() {
  attributes_without({});
  const Binding from = given(0);
  const Values& values = sequence(from).values;
  if (!has_operand(1)) malformed("input 1 is omitted");
  if (!known_position(1) && !values.empty()) {
    element_at_run(values);
  } else {
    bind_result(Binding::of(values[position(1, values.size(), 0)]));
  }
}

/// A run tells the position, and gets a status where it is outside.
void Importer::Sequences::element_at_run(const Values& values) {
  for (const ir::ValueId value : values) {
    if (type(value) == type(values[0])) continue;
    operator_error(fmt::format("the position must be known at compile time, for elements are {} and {}",
                               ir::to_string(type(values[0])), ir::to_string(type(value))),
                   "--set NAME=VALUE makes it known where an input tells it");
  }
  count_made(static_cast<std::int64_t>(values.size()));
  ir::ValueId at = operand(1);
  if (const int rank = type(at).rank(); rank > 0) {
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
    const ir::ValueId all = add_constant(axes, result_name() + "/axes");
    at = emit("Squeeze", {at, all}, {}, result_name() + "/position");
  }
  const ir::ValueId all = stack(values, 0, false, result_name() + "/all");
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{0});
  const ir::ValueId found = emit("Gather", {all, at}, std::move(attributes), result_name());
  bind_result(Binding::of(found));
}

void Importer::Sequences::length() {
  attributes_without({});
  const Binding of = given(0);
  const auto count = static_cast<std::int64_t>(sequence(of).values.size());
  const ir::Scalar scalar = ir::Scalar::of_integer(ir::ElementType::kInt64, count);
  if (is_read(0)) bind_result(Binding::of(add_constant(scalar, result_name())));
}

void Importer::Sequences::concat() {
  const ir::Attributes attributes = attributes_without({});
  const Binding from = given(0);
  const Values& values = sequence(from).values;
  if (values.empty()) operator_error("the sequence is empty, so that the result has no type");
  if (!is_read(0)) return;
  count_made(static_cast<std::int64_t>(values.size()));
  const std::int64_t axis = attributes.int_of("axis");
  const ir::TensorType& first = type(values[0]);
  if (attributes.flag("new_axis")) {
    for (const ir::ValueId value : values) {
      if (type(value).rank() == first.rank()) continue;
      operator_error(fmt::format("elements must have the same rank, and are {} and {}", ir::to_string(first),
                                 ir::to_string(type(value))));
    }
    bind_result(Binding::of(stack(values, axis, false, result_name())));
    return;
  }
  ir::Attributes along;
  along.set("axis", std::int64_t{axis_within(axis, first.rank())});
  bind_result(Binding::of(emit("Concat", values, std::move(along), result_name())));
}

/// Lengths along an axis of this size, one for each element.
std::vector<std::int64_t> Importer::Sequences::parts_of(ir::Dim size) {
  const ir::Tensor* known = nullptr;
  if (has_operand(1)) {
    const ir::ValueId value = operand(1);
    const ir::TensorType& given = type(value);
    const bool is_length =
        given.element == ir::ElementType::kInt64 || given.element == ir::ElementType::kInt32;
    if (!is_length || given.rank() > 1)
      operator_error(fmt::format("split must be one or more int64 or int32, not {}", ir::to_string(given)));
    known = scope_.graph->constant(value);
    if (!known) {
      operator_error("split must be known at compile time, for it tells how many elements there are",
                     "--set NAME=VALUE makes it known where an input tells it");
    }
    if (given.rank() == 1) {
      count_made(given.count());
      return known->ints();
    }
  }
  if (!size.is_constant()) {
    operator_error(fmt::format("the axis must be known at compile time, it is {}", ir::to_string(size)),
                   "--dim makes it a number; a vector 'split' tells the lengths of the elements");
  }
  const std::int64_t length = known ? known->int_at(0) : 1;
  if (length < 1) operator_error(fmt::format("split is {}, where elements have at least length 1", length));
  const std::int64_t whole = size;
  const std::int64_t count = whole / length + (whole % length != 0 ? 1 : 0);
  count_made(count);
  std::vector<std::int64_t> parts(static_cast<std::size_t>(count), length);
  if (whole % length != 0) parts.back() = whole % length;
  return parts;
}

void Importer::Sequences::split() {
  const ir::Attributes attributes = attributes_without({});
  const ir::ValueId whole = operand(0);
  const ir::TensorType given = type(whole);
  const int axis = axis_within(attributes.int_of("axis"), given.rank());
  const ir::Dim size = given.shape[static_cast<std::size_t>(axis)];
  const std::vector<std::int64_t> parts = parts_of(size);
  if (!is_read(0)) return;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); ++i) names.push_back(fmt::format("{}/{}", result_name(), i));
  Values values;
  if (!attributes.flag("keepdims") && !has_operand(1)) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      values.push_back(slice(whole, axis, static_cast<std::int64_t>(i), names[i]));
  } else if (!parts.empty()) {
    ir::Attributes along;
    along.set("axis", std::int64_t{axis});
    const ir::ValueId lengths = add_constant(parts, result_name() + "/split");
    values = emit("Split", {whole, lengths}, std::move(along), result_name(), names);
  } else if (size != 0) {
    operator_error(fmt::format("split has no lengths for an axis of {}", ir::to_string(size)));
  }
  bind_result(Binding::of(sequence_of(std::move(values), given.element)));
}

/// The type without an element has no use: who reads it gets nothing.
void Importer::Sequences::optional() {
  attributes_without({"type"});
  bind_result(given(0));
}

void Importer::Sequences::has_element() {
  attributes_without({});
  const bool has = given(0).state != Binding::State::kOmitted;
  const ir::Scalar scalar = ir::Scalar::of_integer(ir::ElementType::kBool, has ? 1 : 0);
  if (is_read(0)) bind_result(Binding::of(add_constant(scalar, result_name())));
}

void Importer::Sequences::get_element() {
  attributes_without({});
  const Binding element = given(0);
  if (element.state == Binding::State::kOmitted) operator_error("the optional has no element");
  bind_result(element);
}

bool Importer::import_sequence(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  using Member = void (Sequences::*)();
  static const std::map<std::string_view, Member> kMembers = {
      {"ConcatFromSequence", &Sequences::concat},
      {"Optional", &Sequences::optional},
      {"OptionalGetElement", &Sequences::get_element},
      {"OptionalHasElement", &Sequences::has_element},
      {"Identity", &Sequences::identity},
      {"SequenceAt", &Sequences::at},
      {"SequenceConstruct", &Sequences::construct},
      {"SequenceEmpty", &Sequences::empty},
      {"SequenceErase", &Sequences::erase},
      {"SequenceInsert", &Sequences::insert},
      {"SequenceLength", &Sequences::length},
      {"SplitToSequence", &Sequences::split},
  };
  const auto found = op.domain.empty() ? kMembers.find(op.name) : kMembers.end();
  if (found == kMembers.end()) return false;
  const Binding* first = node.input_size() > 0 ? scope.find(node.input(0)) : nullptr;
  const bool is_tensor = first && first->state == Binding::State::kValue;
  if (is_tensor && found->second == &Sequences::identity) return false;
  import_made(node, scope, [&] {
    if (node.output_size() != 1) malformed(fmt::format("{} has one output", op.name));
    Sequences sequences(*this, node, op, scope);
    (sequences.*found->second)();
  });
  return true;
}

}  // namespace gcompile::frontend
