#include "ir/ops/settle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/graph/checks.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

struct Row {
  std::string_view name;
  void (*settle)(SettleContext&);
};

constexpr std::array kRows = {
    Row{"AffineGrid", settle_grid},
    Row{"BlackmanWindow", settle_window},
    Row{"CenterCropPad", settle_crop},
    Row{"Col2Im", settle_col2im},
    Row{"Compress", settle_compress},
    Row{"ConstantOfShape", settle_constant_of_shape},
    Row{"CumProd", settle_cumulative},
    Row{"CumSum", settle_cumulative},
    Row{"DFT", settle_dft},
    Row{"Expand", settle_expand},
    Row{"HammingWindow", settle_window},
    Row{"HannWindow", settle_window},
    Row{"MaxUnpool", settle_unpool},
    Row{"OneHot", settle_one_hot},
    Row{"Pad", settle_pad},
    Row{"Range", settle_range},
    Row{"ReduceL1", settle_reduce},
    Row{"ReduceL2", settle_reduce},
    Row{"ReduceLogSum", settle_reduce},
    Row{"ReduceLogSumExp", settle_reduce},
    Row{"ReduceMax", settle_reduce},
    Row{"ReduceMean", settle_reduce},
    Row{"ReduceMin", settle_reduce},
    Row{"ReduceProd", settle_reduce},
    Row{"ReduceSum", settle_reduce},
    Row{"ReduceSumSquare", settle_reduce},
    Row{"Reshape", settle_reshape},
    Row{"Resize", settle_resize},
    Row{"STFT", settle_stft},
    Row{"Slice", settle_slice},
    Row{"Split", settle_split},
    Row{"Squeeze", settle_squeeze},
    Row{"Tile", settle_tile},
    Row{"TopK", settle_top_k},
    Row{"Unsqueeze", settle_unsqueeze},
};

/// Operands of more elements say no sizes.
constexpr std::int64_t kMostElements = 64;
/// Nodes that one node may become.
constexpr std::size_t kMostChoices = 8;

Tensor list_as(const Numbers& numbers, const TensorType& type) {
  return cast_to(Tensor::of_ints(numbers, {static_cast<std::int64_t>(numbers.size())}), type);
}

}  // namespace

bool keeps_shape(const Operator& op) {
  const int count = op.operands.min;
  if (count < 1 || count > 2 || op.operands.max != count || op.results.max != 1 || !op.infer) return false;
  Graph probe;
  const Shape shape = {3, 5, 7};
  std::vector<ValueId> operands;
  for (int i = 0; i < count; ++i) operands.push_back(probe.add_input("", {ElementType::kFloat32, shape}));
  const NodeId id = probe.add_node(op, operands, {}, 1);
  try {
    const auto is_type = [](const AttributeSpec& spec) { return spec.required && spec.name == "to"; };
    if (std::any_of(op.attributes.begin(), op.attributes.end(), is_type))
      probe.node(id).attributes.set("to", onnx_number_of(ElementType::kFloat32));
    // The node is normalised as one of a model is.
    RewriteContext context(probe, id, op.versions.empty() ? 1 : op.versions.back());
    if (op.normalise) op.normalise(context);
    complete_attributes(*probe.node(id).op, probe.node(id).attributes);
    infer_node(probe, id);
  } catch (const OperatorError&) {
    return false;
  }
  return probe.value(probe.node(id).results[0]).type.shape == shape;
}

Settled settle(Graph& graph, NodeId id, const DeclaredShapes& declared) {
  const Node& node = graph.node(id);
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) {
    return each.name == node.op->name && node.op->domain.empty();
  });
  if (row == kRows.end()) return {};
  // A node that lacks an operand is refused where types are inferred.
  const auto least = static_cast<std::size_t>(node.op->operands.min);
  if (node.operands.size() < least) return {};
  for (std::size_t i = 0; i < least; ++i) {
    if (!node.operands[i].valid()) return {};
  }
  complete_attributes(*node.op, graph.node(id).attributes);
  SettleContext context(graph, id, declared);
  row->settle(context);
  return context.settled();
}

bool SettleContext::is_open(int i) const {
  if (!has_operand(i) || constant(i) || knows_sizes(i)) return false;
  const TensorType& type = operand(i);
  return type.rank() <= 1 && are_constant(type.shape) && type.count() <= kMostElements &&
         type.element != ElementType::kBool && is_computable(type.element);
}

std::optional<Numbers> SettleContext::sizes(int i) const {
  if (!are_constant(shape(i))) return std::nullopt;
  return numbers_of(shape(i));
}

const Numbers* SettleContext::declared(int i) const {
  if (!has_result(i)) return nullptr;
  const auto at = declared_.find(graph().value(node().results[static_cast<std::size_t>(i)]).name);
  return at == declared_.end() ? nullptr : &at->second;
}

bool SettleContext::check_all(const Examples& given, ValueId holds) {
  Demanded demanded;
  for (const auto& [i, example] : given)
    demanded.examples.emplace_back(node().operands[static_cast<std::size_t>(i)],
                                   cast_to(example, operand(i)));
  for (int r = 0; r < result_count(); ++r) {
    if (const Numbers* shape = declared(r)) {
      demanded.shapes +=
          fmt::format("{}'{}' has the shape [{}]", demanded.shapes.empty() ? "" : ", ",
                      printable(graph().value(node().results[static_cast<std::size_t>(r)]).name),
                      fmt::join(*shape, ", "));
    }
  }
  demanded.holds = holds;
  demanded.origins = node().origins;
  const std::optional<Settled> settled = demand(mutable_graph(), demanded);
  if (settled) settled_.insert(settled_.end(), settled->begin(), settled->end());
  return settled.has_value();
}

bool SettleContext::assume(int i, const Numbers& value, ValueId holds) {
  if (!check(i, list_as(value, operand(i)), holds)) return false;
  make_known(i, value);
  return true;
}

void SettleContext::make_known(int i, const Numbers& value) {
  set_operand(i, constant(list_as(value, operand(i)), node().operands[static_cast<std::size_t>(i)]));
}

namespace {

/// A graph of the node alone, whose operands are inputs but for those that are known.
struct Alone {
  Graph graph;
  NodeId node;
};

Alone copy_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Alone alone;
  alone.graph.name = node.name;
  std::vector<ValueId> operands;
  for (const ValueId operand : node.operands) {
    operands.emplace_back();
    if (!operand.valid()) continue;
    const Value& value = graph.value(operand);
    operands.back() = value.constant ? alone.graph.add_constant(*value.constant, value.name)
                                     : alone.graph.add_input(value.name, value.type);
  }
  alone.node = alone.graph.add_node(*node.op, operands, node.attributes, 0, node.name);
  for (const ValueId result : node.results) {
    if (result.valid()) {
      alone.graph.add_result(alone.node, graph.value(result).name);
    } else {
      alone.graph.node(alone.node).results.emplace_back();
    }
  }
  alone.graph.node(alone.node).origins = node.origins;
  return alone;
}

void add_outputs(Alone& alone) {
  infer_node(alone.graph, alone.node);
  for (const ValueId result : alone.graph.node(alone.node).results) {
    if (result.valid()) alone.graph.add_output(result, alone.graph.value(result).name);
  }
}

/// The node becomes an If of nodes in which operand i is one of the values from `first` on.
void make_choice(RewriteContext& context, int i, const std::vector<Numbers>& values, std::size_t first,
                 const SettleContext::Holds& holds) {
  Graph& graph = context.mutable_graph();
  const NodeId id = context.id();
  const TensorType type = context.operand(i);
  const auto known = [&](const Numbers& value) { return list_as(value, type); };
  if (first + 1 == values.size()) {
    context.set_operand(i, context.constant(known(values[first])));
    return;
  }
  const ValueId condition = holds(context, context.operand_id(i), values[first]);
  Alone taken = copy_of(graph, id), other = copy_of(graph, id);
  const ValueId fixed = taken.graph.add_constant(known(values[first]));
  taken.graph.set_operand(taken.node, i, fixed);
  add_outputs(taken);
  RewriteContext inside(other.graph, other.node, 0);
  make_choice(inside, i, values, first + 1, holds);
  add_outputs(other);
  std::vector<ValueId> operands = {condition};
  for (const ValueId operand : graph.node(id).operands) {
    if (operand.valid() && !graph.value(operand).constant) operands.push_back(operand);
  }
  context.replace_with("If", operands);
  Node& node = graph.node(id);
  // All that are wanted: the others have no names.
  node.results.erase(std::remove_if(node.results.begin(), node.results.end(),
                                    [](ValueId result) { return !result.valid(); }),
                     node.results.end());
  node.subgraphs.push_back(std::move(taken.graph));
  node.subgraphs.push_back(std::move(other.graph));
}

}  // namespace

bool SettleContext::fits(const Values& values) const {
  Alone alone = copy_of(graph(), id());
  for (const auto& [i, value] : values) {
    const ValueId known = alone.graph.add_constant(list_as(value, operand(i)));
    alone.graph.set_operand(alone.node, i, known);
  }
  try {
    infer_node(alone.graph, alone.node);
  } catch (const OperatorError&) {
    return false;
  } catch (const CompileError& error) {  // sizes beyond 63 bits
    if (error.exit_code() != ExitCode::kModel) throw;
    return false;
  }
  bool is_any = false;
  for (int i = 0; i < result_count(); ++i) {
    const Numbers* shape = declared(i);
    if (!shape) continue;
    is_any = true;
    const ValueId result = alone.graph.node(alone.node).results[static_cast<std::size_t>(i)];
    if (alone.graph.value(result).type.shape != shape_of(*shape)) return false;
  }
  return is_any;
}

bool SettleContext::choose(int i, const std::vector<Numbers>& values, const Holds& holds) {
  if (values.empty() || values.size() > kMostChoices) return false;
  const bool has_all = std::all_of(node().results.begin(), node().results.end(),
                                   [](ValueId result) { return result.valid(); });
  if (!has_all && values.size() > 1) return false;
  ValueId any;
  for (const Numbers& value : values) {
    const ValueId holds_here = holds(*this, operand_id(i), value);
    any = any.valid() ? either(*this, any, holds_here) : holds_here;
  }
  if (values.size() == 1) return assume(i, values[0], any);
  if (!check(i, list_as(values[0], operand(i)), any)) return false;
  make_choice(*this, i, values, 0, holds);
  return true;
}

ValueId as_list(RewriteContext& context, ValueId integers) {
  const ValueId wide = emit_cast(context, integers, ElementType::kInt64);
  return emit_reshape(context, wide, {context.type(wide).count()});
}

ValueId list_of(RewriteContext& context, const Numbers& numbers) { return context.constant_ints(numbers); }

ValueId all_of(RewriteContext& context, ValueId bools) {
  if (context.type(bools).count() == 1) return emit_reshape(context, bools, {});
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  return context.emit("ReduceMin", {bools}, attributes);
}

ValueId both(RewriteContext& context, ValueId a, ValueId b) { return context.emit("And", {a, b}); }

ValueId either(RewriteContext& context, ValueId a, ValueId b) { return context.emit("Or", {a, b}); }

ValueId are(RewriteContext& context, ValueId integers, const Numbers& numbers) {
  const ValueId given = as_list(context, integers);
  const ValueId wanted = list_of(context, numbers);
  return all_of(context, context.emit("Equal", {given, wanted}));
}

ValueId matches(RewriteContext& context, ValueId axes, std::int64_t rank) {
  ValueId named = as_list(context, axes);
  named = emit_reshape(context, named, {context.type(named).count(), 1});
  const ValueId zero = context.constant_scalar(ElementType::kInt64, 0);
  const ValueId behind = context.constant_scalar(ElementType::kInt64, static_cast<double>(rank));
  const ValueId is_negative = context.emit("Less", {named, zero});
  const ValueId wrapped = context.emit("Add", {named, behind});
  named = context.emit("Where", {is_negative, wrapped, named});
  const ValueId all = emit_counting(context, 0, {1, rank});
  return context.emit("Equal", {named, all});
}

ValueId are_axes(RewriteContext& context, ValueId axes, const Numbers& named, std::int64_t rank) {
  // As many as are named, and each of these among them: then there is no other, and none twice.
  const ValueId same = emit_cast(context, matches(context, axes, rank), ElementType::kInt64);
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const ValueId first = list_of(context, {0});
  const ValueId counts = context.emit("ReduceSum", {same, first}, attributes);
  Numbers wanted(static_cast<std::size_t>(rank), 0);
  for (const std::int64_t axis : named) wanted[static_cast<std::size_t>(axis)] = 1;
  return are(context, counts, wanted);
}

}  // namespace gcompile::ir
