#include "codegen/schedule/growing_state.h"

#include <algorithm>

#include "ir/forms/form.h"
#include "ir/graph/operator.h"

namespace gcompile {
namespace {

using ir::Index;
using ir::Range;

/// The later of two starts, or the earlier of two ends; nullopt: the bounds in force do not tell.
std::optional<ir::Dim> later(ir::Dim a, ir::Dim b) {
  if (ir::always_less_equal(a, b)) return b;
  if (ir::always_less_equal(b, a)) return a;
  return std::nullopt;
}
std::optional<ir::Dim> earlier(ir::Dim a, ir::Dim b) {
  if (ir::always_less_equal(a, b)) return a;
  if (ir::always_less_equal(b, a)) return b;
  return std::nullopt;
}

bool is_empty(const std::vector<Range>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [](const Range& range) { return ir::always_less_equal(range.high, range.low); });
}

/// What a branch gives for a result of its If.
ir::ValueId branch_result(const ir::Graph& branch, const ir::Node& node, ir::ValueId result) {
  const auto at = std::find(node.results.begin(), node.results.end(), result);
  return branch.outputs()[static_cast<std::size_t>(at - node.results.begin())];
}

/// The value of a branch that stands for one around it; invalid: it captures none.
ir::ValueId captured(const ir::Graph& branch, const ir::Node& node, ir::ValueId outside) {
  const auto at = std::find(node.operands.begin() + 1, node.operands.end(), outside);
  return at == node.operands.end()
             ? ir::ValueId{}
             : branch.inputs()[static_cast<std::size_t>(at - node.operands.begin()) - 1];
}

class RowTracer {
 public:
  RowTracer(const ir::Graph& graph, ir::ValueId input) : graph_(graph), input_(input) {}

  /// Whether `value` at `index`, over axes that run over `ranges`, is the input at the axes themselves.
  /// `alone`: to be written over, so that nobody else may read it.
  bool is_input(ir::ValueId value, const std::vector<Index>& index, const std::vector<Range>& ranges,
                bool alone = false) const {
    if (is_empty(ranges)) return true;
    if (alone && graph_.value(value).uses.size() != 1) return false;
    if (value == input_) return is_identity(index, ranges);
    const ir::NodeId producer = graph_.value(value).producer;
    if (!producer.valid() || graph_.value(value).constant) return false;
    const ir::Node& node = graph_.node(producer);
    const ir::Form form = ir::form_of(graph_, producer);
    if (std::holds_alternative<ir::IfForm>(form))
      return is_input_of_branches(node, value, index, ranges, alone);
    if (node.results[0] != value) return false;
    if (const auto* library = std::get_if<ir::LibraryForm>(&form)) {
      if (library->in_place_operand < 0 || !is_identity(index, ranges)) return false;
      const ir::ValueId data = node.operands[library->in_place_operand];
      return is_input(data, index, ranges, true);
    }
    const auto* loops = std::get_if<ir::LoopForm>(&form);
    if (!loops || !loops->is_map() || !loops->has_identity_store()) return false;
    return std::all_of(loops->regions.begin(), loops->regions.end(), [&](const ir::Region& region) {
      std::vector<Range> own = ranges;
      switch (cut(own, index, region.box)) {
        case Overlap::kNone:
          return true;
        case Overlap::kUnknown:
          return false;
        case Overlap::kSome:
          break;
      }
      const ir::ScalarNode& root = loops->dag[region.root];
      if (root.op != ir::ScalarOp::kLoad) return is_empty(own);
      std::vector<Index> behind;
      for (const Index& each : root.index) {
        if (each.has_loaded()) return false;
        behind.push_back(ir::substitute(each, settled(index, own), own, [](int) { return -1; }));
      }
      return is_input(node.operands[root.operand], behind, own, alone);
    });
  }

 private:
  /// In both branches, of which each runs where its result has the sizes of the If's.
  bool is_input_of_branches(const ir::Node& node, ir::ValueId value, const std::vector<Index>& index,
                            const std::vector<Range>& ranges, bool alone) const {
    const ir::Shape& shape = graph_.value(value).type.shape;
    return std::all_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const ir::Graph& branch) {
      if (!branch.trap.empty()) return true;
      const ir::ValueId out = branch_result(branch, node, value);
      std::vector<Range> own = ranges;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::optional<int> nothing = (shape[i] - branch.value(out).type.shape[i]).as_symbol();
        if (!nothing) continue;
        const auto without = [&](int symbol) {
          return symbol == *nothing ? ir::Dim(0) : ir::Dim::symbol(symbol);
        };
        for (Range& range : own) range = {range.low.replaced(without), range.high.replaced(without)};
      }
      if (is_empty(own)) return is_written_anywhere(branch, out);
      const ir::ValueId inside = captured(branch, node, input_);
      return RowTracer(branch, inside).is_input(out, index, own, alone);
    });
  }

  /// What library kernels write lies dense, which rows of a state do not.
  static bool is_written_anywhere(const ir::Graph& branch, ir::ValueId out) {
    const ir::Value& value = branch.value(out);
    if (!value.producer.valid() || value.constant) return true;  // copied
    const ir::Form form = ir::form_of(branch, value.producer);
    return std::holds_alternative<ir::LoopForm>(form) || std::holds_alternative<ir::ContractForm>(form);
  }

  /// With the number of every axis that has one place alone.
  static std::vector<Index> settled(const std::vector<Index>& index, const std::vector<Range>& ranges) {
    std::vector<Index> axes, out;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const bool is_one = ranges[i].high - ranges[i].low == 1;
      axes.push_back(is_one ? Index(ranges[i].low) : Index::axis(static_cast<int>(i)));
    }
    for (const Index& each : index) out.push_back(ir::substitute(each, axes, ranges, [](int) { return -1; }));
    return out;
  }

  enum class Overlap { kNone, kSome, kUnknown };

  /// Cuts `ranges` to where `index` lies in the box.
  static Overlap cut(std::vector<Range>& ranges, const std::vector<Index>& index,
                     const std::vector<Range>& box) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      const Range values = ir::range_of(index[i], ranges);
      if (ir::always_less_equal(values.high, box[i].low) || ir::always_less_equal(box[i].high, values.low))
        return Overlap::kNone;
      if (ir::always_less_equal(box[i].low, values.low) && ir::always_less_equal(values.high, box[i].high))
        continue;
      const std::optional<int> axis = (index[i] - Index(index[i].constant())).as_axis();
      if (!axis) return Overlap::kUnknown;
      Range& range = ranges[*axis];
      const auto low = later(range.low, box[i].low - index[i].constant());
      const auto high = earlier(range.high, box[i].high - index[i].constant());
      if (!low || !high) return Overlap::kUnknown;
      range = {*low, *high};
      if (is_empty(ranges)) return Overlap::kNone;
    }
    return Overlap::kSome;
  }

  /// Also where an axis has one place alone, whose number stands for it.
  static bool is_identity(const std::vector<Index>& index, const std::vector<Range>& ranges) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (index[i].as_axis() == static_cast<int>(i)) continue;
      const Index low(ranges[i].low);
      if (ranges[i].high - ranges[i].low != 1 || index[i] != low) return false;
    }
    return true;
  }

  const ir::Graph& graph_;
  const ir::ValueId input_;
};

}  // namespace

bool keeps_rows(const ir::Graph& graph, ir::ValueId result, ir::ValueId input, int axis) {
  const ir::Shape& shape = graph.value(result).type.shape;
  std::vector<Index> index;
  std::vector<Range> ranges = ir::full_ranges(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) index.push_back(Index::axis(static_cast<int>(i)));
  const auto at = static_cast<std::size_t>(axis);
  ranges[at].high = graph.value(input).type.shape[at];
  return RowTracer(graph, input).is_input(result, index, ranges);
}

bool changes_in_place(const ir::Graph& graph, ir::ValueId result, ir::ValueId input) {
  const ir::Value& value = graph.value(result);
  if (!value.producer.valid() || value.constant || graph.value(input).uses.size() != 1) return false;
  const ir::Form form = ir::form_of(graph, value.producer);
  if (std::holds_alternative<ir::IfForm>(form)) {
    const ir::Node& node = graph.node(value.producer);
    return std::all_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const ir::Graph& branch) {
      if (!branch.trap.empty()) return true;
      const ir::ValueId out = branch_result(branch, node, result);
      const ir::ValueId inside = captured(branch, node, input);
      // The view as it is, or made anew where nobody reads the old one.
      if (out == inside || !inside.valid() || branch.value(inside).uses.empty()) return true;
      return changes_in_place(branch, out, inside);
    });
  }
  if (!std::holds_alternative<ir::LoopForm>(form)) {
    return keeps_rows(graph, result, input, 0);
  }
  const auto& loops = std::get<ir::LoopForm>(form);
  const std::vector<ir::ValueId>& operands = graph.node(value.producer).operands;
  if (!loops.is_map() || !loops.has_identity_store()) return false;
  bool reads = false;
  for (const ir::ScalarNode& load : loops.dag.nodes()) {
    if (load.op != ir::ScalarOp::kLoad || operands[load.operand] != input) continue;
    reads = true;
    for (std::size_t i = 0; i < load.index.size(); ++i) {
      if (load.index[i].as_axis() != static_cast<int>(i)) return false;
    }
  }
  return reads;
}

}  // namespace gcompile
