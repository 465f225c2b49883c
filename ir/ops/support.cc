#include "ir/ops/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/graph/size_evaluator.h"
#include "ir/ops/reshaped.h"

namespace gcompile::ir {

namespace {

/// Neither is known to be one, and they are written differently: from now on they are equal, which a run checks. A
/// size that is one at some runs only would make another shape there; such runs are refused.
void require_same(Dim x, Dim y, const Shape& a, const Shape& b) {
  if (!assume_equal(x, y)) {
    operator_error(fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)));
  }
}

/// The only symbol that a formula mentions.
std::optional<int> only_symbol(Dim formula, const Sizes& sizes) {
  std::optional<int> found;
  for (int symbol = 0; symbol < static_cast<int>(sizes.symbols().size()); ++symbol) {
    if (!formula.mentions(symbol)) continue;
    if (found) return std::nullopt;
    found = symbol;
  }
  return found;
}

/// "--dim rows=2..8": the longest stretch of a symbol's values at which the formula is one, or is not; empty:
/// there is none, or they are too many to be looked at.
std::string option_where(bool is_one, Dim formula, int number, const Sizes& sizes) {
  constexpr std::int64_t kMostValues = 1 << 20;
  const SizeSymbol& symbol = sizes.symbols()[static_cast<std::size_t>(number)];
  if (symbol.bounds.high - symbol.bounds.low > kMostValues) return "";
  Bounds best{0, -1}, here{0, -1};
  for (std::int64_t value = symbol.bounds.low; value <= symbol.bounds.high; ++value) {
    const bool fits = (formula.at([&](int) { return value; }) == 1) == is_one;
    here = !fits ? Bounds{0, -1} : here.high < here.low ? Bounds{value, value} : Bounds{here.low, value};
    if (here.high - here.low > best.high - best.low) best = here;
  }
  if (best.high < best.low) return "";
  const std::int64_t unit = symbol.unit;
  std::string text = fmt::format("--dim {}={}", printable(symbol.name), best.low * unit);
  if (best.low < best.high) text += fmt::format("..{}", best.high * unit);
  if (best.low < best.high && unit > 1) text += fmt::format(":{}", unit);
  return text;
}

}  // namespace

bool is_one(Dim size, const std::string& trouble) {
  const Truth truth = are_equal(size, 1);
  if (truth != Truth::kUnknown) return truth == Truth::kYes;
  const Sizes& sizes = *SizesScope::in_force();
  const Dim formula = sizes.resolved(size);
  const std::optional<int> symbol = only_symbol(formula, sizes);
  const std::string never = symbol ? option_where(false, formula, *symbol, sizes) : "";
  const std::string always = symbol ? option_where(true, formula, *symbol, sizes) : "";
  operator_error(trouble,
                 never.empty() || always.empty()
                     ? fmt::format("give bounds within which {} is never 1, or always", to_string(size))
                     : fmt::format("{}, where it never is, or {}", never, always));
}

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim y = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) require_same(x, y, a, b);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

int normalise_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) operator_error(fmt::format("axis {} is outside rank {}", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normalise_axes(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<int> out;
  for (const std::int64_t axis : axes) out.push_back(normalise_axis(axis, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) operator_error("an axis is named twice");
  return out;
}

int load_broadcast(Dag& dag, const NodeView& node, int i, const Shape& result) {
  const TensorType& type = node.operand(i);
  const std::size_t lead = result.size() - type.shape.size();
  std::vector<Index> index;
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    index.push_back(type.shape[axis] == 1 ? Index(0) : Index::axis(static_cast<int>(axis + lead)));
  }
  return dag.load(i, type.element, std::move(index));
}

int load_compute(Dag& dag, const NodeView& node, int i, const Shape& result) {
  return dag.cast(load_broadcast(dag, node, i, result), compute_type(node.element(i)));
}

LoopForm elementwise(const NodeView& node, const std::function<int(Dag&, const std::vector<int>&)>& body) {
  const TensorType& result = node.result(0);
  LoopForm form = LoopForm::over(result.shape);
  std::vector<int> arguments;
  for (int i = 0; i < node.operand_count(); ++i) {
    arguments.push_back(node.has_operand(i) ? load_compute(form.dag, node, i, result.shape) : -1);
  }
  form.set_root(form.dag.cast(body(form.dag, arguments), result.element));
  return form;
}

Shape broadcast_of_operands(const NodeView& node) {
  Shape shape;
  for (int i = 0; i < node.operand_count(); ++i) {
    if (node.has_operand(i)) shape = broadcast(shape, node.shape(i));
  }
  return shape;
}

void infer_elementwise(InferContext& context, ElementType result) {
  for (int i = 0; i < context.operand_count(); ++i) {
    if (context.has_operand(i)) require_computable(context, i);
  }
  context.set_result(0, result, broadcast_of_operands(context));
}

ElementType same_type(const NodeView& node, int first) {
  const ElementType type = node.element(first);
  for (int i = first + 1; i < node.operand_count(); ++i) {
    if (node.has_operand(i) && node.element(i) != type) {
      operator_error(fmt::format("inputs {} and {} have different types, {} and {}", first, i, name_of(type),
                                 name_of(node.element(i))));
    }
  }
  return type;
}

void require_float(const NodeView& node, int i) {
  require_computable(node, i);
  if (!is_float(node.element(i))) {
    operator_error(fmt::format("input {} must be floating point, not {}", i, name_of(node.element(i))));
  }
}

void require_one_of(const Attributes& attributes, std::string_view name,
                    std::initializer_list<std::string_view> known) {
  const std::string& value = attributes.string_of(name);
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  operator_error(fmt::format("attribute '{}' is '{}', which is not known", name, printable(value)));
}

namespace {

// onnx.proto, enum TensorProto.DataType.
constexpr std::pair<int, ElementType> kOnnxNumbers[] = {
    {1, ElementType::kFloat32},
    {2, ElementType::kUInt8},
    {3, ElementType::kInt8},
    {4, ElementType::kUInt16},
    {5, ElementType::kInt16},
    {6, ElementType::kInt32},
    {7, ElementType::kInt64},
    {9, ElementType::kBool},
    {10, ElementType::kFloat16},
    {11, ElementType::kFloat64},
    {12, ElementType::kUInt32},
    {13, ElementType::kUInt64},
    {16, ElementType::kBFloat16},
    {17, ElementType::kFloat8E4M3FN},
    {18, ElementType::kFloat8E4M3FNUZ},
    {19, ElementType::kFloat8E5M2},
    {20, ElementType::kFloat8E5M2FNUZ},
    {21, ElementType::kUInt4},
    {22, ElementType::kInt4},
    {23, ElementType::kFloat4E2M1},
    {24, ElementType::kFloat8E8M0},
    {25, ElementType::kUInt2},
    {26, ElementType::kInt2},
};

}  // namespace

std::optional<ElementType> element_type_of_onnx(std::int64_t number) {
  for (const auto& [code, type] : kOnnxNumbers) {
    if (code == number) return type;
  }
  return std::nullopt;
}

std::int64_t onnx_number_of(ElementType type) {
  for (const auto& [code, candidate] : kOnnxNumbers) {
    if (candidate == type) return code;
  }
  internal_error(__FILE__, __LINE__, "every element type has a number");
}

ValueId emit_cast(RewriteContext& context, ValueId value, ElementType type) {
  if (context.type(value).element == type) return value;
  Attributes attributes;
  attributes.set("to", onnx_number_of(type));
  return context.emit("Cast", {value}, std::move(attributes));
}

ValueId emit_reshape(RewriteContext& context, ValueId value, const Shape& shape) {
  if (context.type(value).shape == shape) return value;
  Attributes attributes;
  attributes.set("allowzero", std::int64_t{1});  // dims of 0 mean 0
  return context.emit("Reshape", {value, context.constant_ints(shape)}, std::move(attributes));
}

ElementType type_of(const Attributes& attributes, std::string_view name) {
  const std::int64_t number = attributes.int_of(name);
  const std::optional<ElementType> type = element_type_of_onnx(number);
  if (!type)
    operator_error(fmt::format("attribute '{}' names element type {}, which is not supported", name, number));
  return *type;
}

ElementType computable_type_of(const Attributes& attributes, std::string_view name) {
  const ElementType type = type_of(attributes, name);
  if (!is_computable(type)) {
    operator_error(fmt::format("attribute '{}' names {}, in which nothing computes", name, name_of(type)));
  }
  return type;
}

std::optional<Scalar> constant_scalar(const NodeView& node, int i) {
  const Tensor* tensor = node.constant(i);
  if (!tensor || tensor->count() != 1) return std::nullopt;
  return tensor->at(0);
}

int load_scalar(Dag& dag, const NodeView& node, int i) {
  if (const std::optional<Scalar> value = constant_scalar(node, i)) return dag.constant(*value);
  if (node.knows_sizes(i))
    return dag.cast(dag.size(known_integers(node.graph(), node.node().operands[i])->at(0)), node.element(i));
  return dag.load(i, node.element(i), std::vector<Index>(node.shape(i).size(), Index(0)));
}

void require_scalar(const NodeView& node, int i, std::string_view what) {
  if (node.shape(i).size() > 1 || element_count(node.shape(i)) != 1) {
    operator_error(fmt::format("{} must be a scalar, its shape is {}", what, to_string(node.shape(i))));
  }
}

int wrap_index(Dag& dag, int id, Dim extent) {
  const int index = dag.cast(id, ElementType::kInt64);
  const int zero = dag.constant(ElementType::kInt64, 0);
  const int from_end = dag.apply(ScalarOp::kAdd, {index, dag.size(extent)});
  return dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {index, zero}), from_end, index});
}

void normalise_legacy_broadcast(RewriteContext& context) {
  if (context.opset() >= 7) return;
  Attributes& attributes = context.mutable_attributes();
  const bool aligned = attributes.has("broadcast") && attributes.flag("broadcast") && attributes.has("axis");
  if (aligned) {
    const auto rank = static_cast<std::int64_t>(context.shape(0).size());
    const int axis = normalise_axis(attributes.int_of("axis"), static_cast<int>(rank));
    Shape shape = context.shape(1);
    while (static_cast<std::int64_t>(shape.size()) + axis < rank) shape.push_back(1);
    context.set_operand(1, emit_reshape(context, context.operand_id(1), shape));
  }
  attributes.erase("broadcast");
  attributes.erase("axis");
}

void normalise_flattened_axis(RewriteContext& context) {
  if (context.opset() >= 13) return;
  const Shape shape = context.shape(0);
  const int rank = static_cast<int>(shape.size());
  const std::int64_t given = context.attributes().has("axis") ? context.attributes().int_of("axis") : 1;
  if (given == rank - 1 || given == -1) {
    context.mutable_attributes().set("axis", std::int64_t{-1});
    return;
  }
  const int axis = given == rank ? rank : normalise_axis(given, rank);
  Shape matrix = {1, 1};
  for (int i = 0; i < rank; ++i) matrix[i < axis ? 0 : 1] *= shape[i];
  const ValueId flat = emit_reshape(context, context.operand_id(0), matrix);
  Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  const ValueId result = context.emit(std::string(context.node().op->name), {flat}, attributes);
  // The node itself becomes the reshape back: types are inferred when the importer visits it next.
  become_reshape(context, result, shape);
}

void require_computable(const NodeView& node, int i) {
  if (!is_computable(node.element(i))) {
    operator_error(
        fmt::format("input {} has type {}, in which nothing computes", i, name_of(node.element(i))));
  }
}

}  // namespace gcompile::ir
