// Counted axes through nodes: by the loops that an operator lowers to, by the nodes that it decomposes into, and by
// what its kernel does with each axis.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ir/forms/form.h"
#include "ir/ops/counted.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Where the filled positions of a value lie, and how many they are: `times / parts` of the count.
struct FilledAxis {
  int axis = 0;
  std::int64_t times = 1, parts = 1;
  bool operator==(const FilledAxis&) const = default;
};
using FilledAxes = std::map<ValueId, FilledAxis>;

Dim product(const Shape& shape, std::size_t begin, std::size_t end) {
  Dim all = 1;
  for (std::size_t i = begin; i < end; ++i) all = all * shape[i];
  return all;
}

/// Elements keep their row-major order: the axis goes where as many elements lie before it, alone, with axes
/// behind it that it is joined with, or cut into rows.
std::optional<FilledAxis> through_reshape(const Shape& from, const Shape& to, FilledAxis filled) {
  const auto axis = static_cast<std::size_t>(filled.axis);
  if (from == to) return filled;
  const Dim before = product(from, 0, axis), size = from[axis];
  std::vector<std::size_t> places;  // as many elements lie before them
  for (std::size_t i = to.size(); i-- > 0;) {
    if (product(to, 0, i) == before) places.push_back(i);
  }
  for (const std::size_t i : places) {
    filled.axis = static_cast<int>(i);
    if (to[i] == size) return filled;
  }
  for (const std::size_t i : places) {
    if (!to[i].is_constant() || !size.is_constant()) continue;
    filled.axis = static_cast<int>(i);
    const std::int64_t here = to[i].constant(), there = size.constant();
    if (here > there && there > 0 && here % there == 0) {
      filled.times *= here / there;
      return filled;
    }
    if (here > 1 && there % here == 0) {
      filled.parts *= there / here;
      return filled;
    }
  }
  return std::nullopt;
}

/// The loop that walks the axis of an operand, position by position; nullopt: its loads do not.
std::optional<int> loop_of(const LoopForm& form, int operand, int axis) {
  std::optional<int> loop;
  for (const ScalarNode& node : form.dag.nodes()) {
    if (node.op != ScalarOp::kLoad || node.operand != operand) continue;
    const std::optional<int> walked = node.index[static_cast<std::size_t>(axis)].as_axis();
    if (!walked || *walked >= form.parallel || (loop && *loop != *walked)) return std::nullopt;
    loop = walked;
  }
  return loop;
}

class Follower {
 public:
  Follower(const Graph& graph, NodeId id, FilledAxes& filled)
      : graph_(graph), id_(id), node_(graph.node(id)), filled_(filled) {
    for (std::size_t i = 0; i < node_.operands.size(); ++i) {
      if (const auto at = filled.find(node_.operands[i]); at != filled.end())
        operands_.emplace(static_cast<int>(i), at->second);
    }
  }

  /// Adds the results that are filled. False: some position is not one's own.
  bool follow() {
    if (operands_.empty()) return true;
    if (!node_.subgraphs.empty() || node_.op->traits.reads_types_only) return false;
    if (node_.op->traits.keeps_elements) return keep_elements();
    if (node_.op->decompose) {
      if (const std::optional<bool> inside = decomposed()) return *inside;
    }
    if (!node_.op->lower) return false;
    const Form form = node_.op->lower(LowerContext(graph_, id_));
    if (const auto* loops = std::get_if<LoopForm>(&form)) return by_loops(*loops);
    const Work* const work = work_of(form);
    return work && by_work(*work);
  }

 private:
  const Shape& shape(int operand) const {
    return graph_.value(node_.operands[static_cast<std::size_t>(operand)]).type.shape;
  }

  bool fill(std::size_t result, FilledAxis axis) {
    if (node_.results[result].valid()) filled_.emplace(node_.results[result], axis);
    return true;
  }

  bool fill_all(FilledAxis axis) {
    for (std::size_t i = 0; i < node_.results.size(); ++i) fill(i, axis);
    return true;
  }

  bool keep_elements() {
    if (operands_.size() != 1 || operands_.begin()->first != 0) return false;
    const Shape& to = graph_.value(node_.results[0]).type.shape;
    const std::optional<FilledAxis> axis = through_reshape(shape(0), to, operands_.begin()->second);
    return axis && fill(0, *axis);
  }

  /// nullopt: it does not decompose.
  std::optional<bool> decomposed() {
    Graph alone;
    std::vector<ValueId> ids;
    FilledAxes inside;
    for (std::size_t i = 0; i < node_.operands.size(); ++i) {
      ids.emplace_back();
      if (!node_.operands[i].valid()) continue;
      const Tensor* const known = graph_.constant(node_.operands[i]);
      ids.back() =
          known ? alone.add_constant(*known) : alone.add_input({}, graph_.value(node_.operands[i]).type);
      if (const auto at = operands_.find(static_cast<int>(i)); at != operands_.end())
        inside.emplace(ids.back(), at->second);
    }
    const NodeId copy =
        alone.add_node(*node_.op, ids, node_.attributes, static_cast<int>(node_.results.size()));
    for (std::size_t i = 0; i < node_.results.size(); ++i) {
      const ValueId result = alone.node(copy).results[i];
      const ValueId like = node_.results[i].valid() ? node_.results[i] : node_.results[0];
      alone.value(result).type = graph_.value(like).type;
      alone.add_output(result, {});
    }
    RewriteContext context(alone, copy, 0);
    if (!node_.op->decompose(context)) return std::nullopt;
    alone.erase_node(copy);
    for (const NodeId each : alone.topological_order()) {
      if (!Follower(alone, each, inside).follow()) return false;
    }
    for (std::size_t i = 0; i < node_.results.size(); ++i) {
      if (const auto at = inside.find(alone.outputs()[i]); at != inside.end()) fill(i, at->second);
    }
    return true;
  }

  bool by_loops(const LoopForm& form) {
    std::optional<int> loop;
    for (const auto& [operand, axis] : operands_) {
      const std::optional<int> own = loop_of(form, operand, axis.axis);
      if (!own || (loop && *loop != *own) || !same_part(axis)) return false;
      loop = own;
    }
    for (const ScalarNode& node : form.dag.nodes()) {
      // Another tensor may have as many positions as there is room for, but not as many as the count says.
      const bool is_other = node.op == ScalarOp::kLoad && operands_.count(node.operand) == 0;
      const auto walks = [&](const Index& index) { return index.mentions(*loop); };
      if (is_other && std::any_of(node.index.begin(), node.index.end(), walks)) return false;
    }
    for (std::size_t i = 0; i < form.store.size(); ++i) {
      FilledAxis axis = operands_.begin()->second;
      axis.axis = static_cast<int>(i);
      if (form.store[i].as_axis() == loop) return fill(0, axis);
    }
    return false;
  }

  bool same_part(const FilledAxis& axis) const {
    const FilledAxis& first = operands_.begin()->second;
    return axis.times == first.times && axis.parts == first.parts;
  }

  bool by_work(const Work& work) {
    if (const auto* top = std::get_if<TopKWork>(&work)) return along_other(top->axis);
    if (const auto* scan = std::get_if<ScanWork>(&work)) return along_other(scan->reverse ? scan->axis : -1);
    const bool by_image = std::holds_alternative<ConvWork>(work) || std::holds_alternative<PoolWork>(work) ||
                          std::holds_alternative<ConvTransposeWork>(work);
    if (by_image) {
      const auto& [operand, axis] = *operands_.begin();
      return operands_.size() == 1 && operand == 0 && axis.axis == 0 && fill_all(axis);
    }
    return std::holds_alternative<ProductWork>(work) && by_product();
  }

  /// Each line along `axis` by itself.
  bool along_other(int axis) {
    const auto& [operand, filled] = *operands_.begin();
    return operands_.size() == 1 && operand == 0 && filled.axis != axis && fill_all(filled);
  }

  /// Rows of the left side, columns of the right one, or matrices of both.
  bool by_product() {
    const auto is_turned = [&](const char* name) {
      return node_.attributes.has(name) && node_.attributes.int_of(name) != 0;
    };
    if (is_turned("transA") || is_turned("transB") || node_.results.size() != 1) return false;
    const auto rank = static_cast<int>(graph_.value(node_.results[0]).type.rank());
    std::optional<FilledAxis> made;
    for (const auto& [operand, axis] : operands_) {
      const auto own = static_cast<int>(shape(operand).size());
      if (operand > 1 || own < 2) return false;
      const int contracted = operand == 0 ? own - 1 : own - 2;
      if (axis.axis == contracted) return false;
      FilledAxis here = axis;
      here.axis = axis.axis + rank - own;
      if (made && !(*made == here)) return false;
      made = here;
    }
    for (int operand = 0; operand < 2; ++operand) {
      if (operands_.count(operand) > 0) continue;
      const auto own = static_cast<int>(shape(operand).size());
      const int at = made->axis - (rank - own);
      const bool is_matrix_axis = made->axis >= rank - 2;
      if (!is_matrix_axis && at >= 0 && shape(operand)[static_cast<std::size_t>(at)] != 1) return false;
    }
    return fill(0, *made);
  }

  const Graph& graph_;
  const NodeId id_;
  const Node& node_;
  FilledAxes& filled_;
  std::map<int, FilledAxis> operands_;
};

/// The axes of the results by those of the operands, where there is room for one element alone: loops do not walk
/// such an axis. A node of the same kind with room for more shows where it goes.
bool follow_single(const Graph& graph, NodeId id, FilledAxes& filled) {
  constexpr std::int64_t kMore = 3;
  const Node& node = graph.node(id);
  Graph larger;
  FilledAxes there;
  std::vector<ValueId> operands;
  for (const ValueId operand : node.operands) {
    operands.emplace_back();
    if (!operand.valid()) continue;
    const auto at = filled.find(operand);
    if (const Tensor* const known = graph.constant(operand); known && at == filled.end()) {
      operands.back() = larger.add_constant(*known);
      continue;
    }
    TensorType type = graph.value(operand).type;
    if (at != filled.end()) type.shape[static_cast<std::size_t>(at->second.axis)] = kMore;
    operands.back() = larger.add_input({}, type);
    if (at != filled.end()) there.emplace(operands.back(), at->second);
  }
  const NodeId copy =
      larger.add_node(*node.op, operands, node.attributes, static_cast<int>(node.results.size()));
  try {
    infer_node(larger, copy);
    if (!Follower(larger, copy, there).follow()) return false;
  } catch (const OperatorError&) {
    return false;
  }
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const auto at = there.find(larger.node(copy).results[i]);
    if (at != there.end() && node.results[i].valid()) filled.emplace(node.results[i], at->second);
  }
  return true;
}

bool follow(const Graph& graph, NodeId id, FilledAxes& filled) {
  bool is_single = false;
  for (const ValueId operand : graph.node(id).operands) {
    const auto at = filled.find(operand);
    if (at == filled.end()) continue;
    const Dim size = graph.value(operand).type.shape[static_cast<std::size_t>(at->second.axis)];
    is_single = is_single || size == 1;
  }
  if (is_single && !graph.node(id).op->traits.keeps_elements) return follow_single(graph, id, filled);
  return Follower(graph, id, filled).follow();
}

/// Whether a run may check elements of the operand before it uses them: those that it has not filled would end it.
bool are_checked(const Graph& graph, NodeId id, int operand) {
  const Node& node = graph.node(id);
  const bool is_index = !is_float(graph.value(node.operands[static_cast<std::size_t>(operand)]).type.element);
  if (!is_index) return false;
  if (node.op->decompose) return operand > 0;
  if (!node.op->lower) return false;
  const Form form = node.op->lower(LowerContext(graph, id));
  const auto* const loops = std::get_if<LoopForm>(&form);
  return loops && !loops->checks.empty();
}

}  // namespace

ValueId emit_positions(RewriteContext& context, const Shape& shape) {
  constexpr std::int64_t kMostConstants = 256;
  const Dim size = element_count(shape);
  if (!size.is_constant() || size.constant() <= kMostConstants) return emit_counting(context, 0, shape);
  Attributes attributes;
  attributes.set("size", size.constant());
  return emit_reshape(context, context.emit("Counting", {}, attributes), shape);
}

ValueId filled_or(RewriteContext& context, ValueId value, const CountedAxis& counted, ValueId other) {
  const TensorType& type = context.type(value);
  Shape along(static_cast<std::size_t>(type.rank()), 1);
  along[static_cast<std::size_t>(counted.axis)] = type.shape[static_cast<std::size_t>(counted.axis)];
  const ValueId positions = emit_positions(context, along);
  return context.emit("Where", {context.emit("Less", {positions, counted.count}), value, other});
}

namespace {

/// Numbers from here on stand for counts and formulas while a list of sizes is moved.
constexpr std::int64_t kFirstTag = 0x5a5a5a00, kMostTags = 256;

bool holds_tags(const Tensor& tensor) {
  const std::vector<std::int64_t> numbers = tensor.ints();
  return std::any_of(numbers.begin(), numbers.end(),
                     [](std::int64_t each) { return each >= kFirstTag && each < kFirstTag + kMostTags; });
}

bool is_list_of_sizes(const TensorType& type) {
  return (type.element == ElementType::kInt64 || type.element == ElementType::kInt32) && type.rank() <= 1 &&
         are_constant(type.shape);
}

/// A list of sizes of which only the place where it comes from is counted: the columns of counted rows.
void note_numbers(Value& value, const CountedSizes& numbers) {
  Shape sizes;
  for (const CountedSize& each : numbers) sizes.push_back(each.size);
  if (!are_constant(sizes)) {
    value.sizes = std::move(sizes);
    return;
  }
  Tensor known(value.type);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    known.set(static_cast<std::int64_t>(i), Scalar::of_integer(known.element(), sizes[i].constant()));
  value.constant = std::move(known);
}

/// The elements of a node's result where it moves elements of its operands, counts among them; else nothing.
CountedSizes moved_sizes(Graph& graph, NodeId id, const CountedFacts& facts) {
  constexpr std::string_view kMovers[] = {"Concat", "Gather", "Slice"};
  const Node& node = graph.node(id);
  const bool moves = std::find(std::begin(kMovers), std::end(kMovers), node.op->name) != std::end(kMovers) &&
                     node.op->domain.empty();
  if (!moves && !node.op->traits.keeps_elements) return {};
  if (!is_list_of_sizes(graph.value(node.results[0]).type)) return {};
  CountedSizes tagged;
  std::vector<Tensor> values;
  bool has_counts = false;
  for (const ValueId operand : node.operands) {
    if (!operand.valid()) return {};
    const auto at = facts.sizes.find(operand);
    if (at == facts.sizes.end()) {
      const Tensor* const known = graph.constant(operand);
      if (!known || is_float(known->element()) || holds_tags(*known)) return {};
      values.push_back(*known);
      continue;
    }
    has_counts = true;
    if (tagged.size() + at->second.size() > kMostTags) return {};
    Tensor& tags = values.emplace_back(graph.value(operand).type);
    for (std::size_t i = 0; i < at->second.size(); ++i) {
      tags.set(static_cast<std::int64_t>(i),
               Scalar::of_integer(tags.element(), kFirstTag + static_cast<std::int64_t>(tagged.size())));
      tagged.push_back(at->second[i]);
    }
  }
  if (!has_counts) return {};
  std::vector<const Tensor*> operands;
  for (const Tensor& value : values) operands.push_back(&value);
  CountedSizes out;
  const Tensor result = evaluate_node(graph, id, operands).at(0);
  bool counts_left = false;
  for (std::int64_t i = 0; i < result.count(); ++i) {
    const std::int64_t element = result.int_at(i);
    const auto tag = static_cast<std::size_t>(element - kFirstTag);
    out.push_back(element >= kFirstTag && tag < tagged.size() ? tagged[tag] : CountedSize{element});
    counts_left = counts_left || out.back().count.valid();
  }
  if (counts_left) return out;
  note_numbers(graph.value(node.results[0]), out);
  return {};
}

/// The least of counts and numbers, which is one as well.
CountedSizes least_size(RewriteContext& context, const CountedFacts& facts) {
  const bool is_list = context.node().op->name == "ReduceMin";
  if ((!is_list && context.node().op->name != "Min") || !context.node().op->domain.empty()) return {};
  const TensorType& type = context.result(0);
  if (!is_list_of_sizes(type) || type.count() != 1) return {};
  CountedSizes all;
  for (int i = 0; i < (is_list ? 1 : context.operand_count()); ++i) {
    const auto at = facts.sizes.find(context.operand_id(i));
    if (at != facts.sizes.end()) {
      all.insert(all.end(), at->second.begin(), at->second.end());
    } else if (const Tensor* const known = context.constant(i)) {
      for (const std::int64_t each : known->ints()) all.push_back({each});
    } else {
      return {};
    }
  }
  CountedSize least;
  for (const CountedSize& each : all) {
    least.size = &each == &all.front() ? each.size : min(least.size, each.size);
    if (each.count.valid()) least.count = each.count;
  }
  if (!least.count.valid()) return {};
  const ValueId result = context.node().results[0];
  least.count = emit_reshape(context, emit_cast(context, result, ElementType::kInt64), {});
  return {least};
}

}  // namespace

CountedResults follow_counts(Graph& graph, NodeId id, const CountedFacts& facts) {
  FilledAxes filled;
  ValueId count;
  RewriteContext context(graph, id, 0);
  for (int i = 0; i < context.operand_count(); ++i) {
    const auto at = facts.axes.find(context.operand_id(i));
    if (at == facts.axes.end()) continue;
    if (count.valid() && count != at->second.count)
      operator_error(fmt::format("input {} has another number of elements than those before, by data", i),
                     "what is computed together is chosen together, by one node");
    count = at->second.count;
    filled[at->first] = {at->second.axis};
    if (!are_checked(graph, id, i)) continue;
    const ValueId zero = context.constant_scalar(context.element(i), 0);
    const ValueId masked = filled_or(context, at->first, at->second, zero);
    filled[masked] = {at->second.axis};
    context.set_operand(i, masked);
  }
  if (!follow(graph, id, filled)) {
    operator_error("computes with a number of elements that only data knows, across them or beside others",
                   "elements that data chooses can be moved, chosen from, and computed with one by one");
  }
  CountedResults results;
  for (const ValueId result : std::vector<ValueId>(graph.node(id).results)) {
    CountedResult& out = results.emplace_back();
    out.value = result;
    if (results.size() == 1) out.sizes = moved_sizes(graph, id, facts);
    if (results.size() == 1 && out.sizes.empty()) out.sizes = least_size(context, facts);
    const auto at = result.valid() ? filled.find(result) : filled.end();
    if (at == filled.end()) continue;
    ValueId own = count;
    const auto number = [&](std::int64_t value) {
      return context.constant_scalar(ElementType::kInt64, static_cast<double>(value));
    };
    if (at->second.times != 1) own = context.emit("Mul", {own, number(at->second.times)});
    if (at->second.parts != 1) own = context.emit("Div", {own, number(at->second.parts)});
    out.counted = CountedAxis{at->second.axis, own};
  }
  return results;
}

}  // namespace gcompile::ir
