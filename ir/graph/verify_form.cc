// Laws of forms. Index ranges are first bounded by interval arithmetic; where the bound is not tight, the
// points are enumerated.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/diagnostics.h"
#include "ir/forms/form.h"
#include "ir/graph/operator.h"
#include "ir/graph/verify.h"
#include "ir/tensors/magnitude.h"

namespace gcompile::ir {
namespace {

/// Points enumerated at most to prove that one index stays in range.
constexpr std::int64_t kMaxPoints = 1 << 22;

bool is_empty(const std::vector<Range>& box) {
  return std::any_of(box.begin(), box.end(), [](const Range& r) { return r.high <= r.low; });
}

/// Whether `index` stays in [0, extent) over the box; loaded parts take their stated ranges.
bool stays_inside(const Index& index, std::int64_t extent, std::vector<Range> box) {
  const Range bound = range_of(index, box);
  if (bound.low >= 0 && bound.high <= extent) return true;
  if (index.has_loaded() || index.is_affine()) return false;  // the bound of an affine index is exact
  std::int64_t points = 1;
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    if (!index.mentions(static_cast<int>(axis))) continue;
    axes.push_back(axis);
    points *= box[axis].high - box[axis].low;
    if (points > kMaxPoints) return false;
  }
  const std::vector<Range> whole = box;
  for (const std::size_t axis : axes) box[axis].high = box[axis].low + 1;
  for (std::int64_t point = 0; point < points; ++point) {
    const Range value = range_of(index, box);
    if (value.low < 0 || value.high > extent) return false;
    for (const std::size_t axis : axes) {
      ++box[axis].low;
      ++box[axis].high;
      if (box[axis].high <= whole[axis].high) break;
      box[axis] = {whole[axis].low, whole[axis].low + 1};
    }
  }
  return true;
}

class FormVerifier {
 public:
  FormVerifier(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {
    where_ = fmt::format("node {} '{}' ({})", id.index, printable(node_.name), node_.op->name);
  }

  std::vector<Violation> take() { return std::move(found_); }

  void check(const LoopForm& form) {
    if (form.parallel < 0 || form.parallel > static_cast<int>(form.extents.size())) {
      add("the number of parallel axes is out of range");
      return;
    }
    if (form.is_map() && form.parallel != static_cast<int>(form.extents.size())) {
      add("a map has reduced axes");
      return;
    }
    for (const Dim extent : form.extents) {
      if (always_less(extent, 0)) {
        add("an extent is negative");
        return;
      }
    }
    if (!check_dag(form.dag) || !has_numbers()) return;
    const int nodes = static_cast<int>(form.dag.nodes().size());
    for (std::size_t k = 0; k < form.stages.size(); ++k) {
      if (form.stages[k].root < 0 || form.stages[k].root >= nodes) {
        add(fmt::format("stage {} names no scalar", k));
        return;
      }
      check_expression(form, form.stages[k].root, form.ranges(), static_cast<int>(k),
                       fmt::format("stage {}", k));
    }
    for (const BoundsCheck& check : form.checks) {
      if (check.scalar < 0 || check.scalar >= nodes || form.dag.type(check.scalar) != ElementType::kInt64) {
        add("a bounds check names no int64 scalar");
      }
    }
    check_regions(form, nodes);
    check_store(form);
  }

  void check(const ContractForm& form) {
    if (form.base_operands < 1 || form.base_operands > static_cast<int>(node_.operands.size())) {
      add("a contraction names more operands than the node has");
      return;
    }
    if (!form.epilogue.is_map()) {
      add("an epilogue reduces");
      return;
    }
    contract_ = &form;
    check(form.epilogue);
  }

  void check(const LibraryForm& form) {
    if (form.in_place_operand < 0) return;
    const auto at = static_cast<std::size_t>(form.in_place_operand);
    if (at >= node_.operands.size() || !node_.operands[at].valid()) {
      add("the operand to overwrite does not exist");
    } else if (!node_.results.empty() && node_.results[0].valid() &&
               graph_.value(node_.operands[at]).type != graph_.value(node_.results[0]).type) {
      add("the operand to overwrite has not the type of the result");
    }
  }

  void check(const IfForm&) {
    if (node_.subgraphs.size() != 2) add("an If has not two branches");
  }

 private:
  void add(std::string message) { found_.push_back({where_, std::move(message)}); }

  bool check_dag(const Dag& dag) {
    for (std::size_t id = 0; id < dag.nodes().size(); ++id) {
      for (const int argument : dag.nodes()[id].arguments) {
        if (argument >= 0 && argument < static_cast<int>(id)) continue;
        add(fmt::format("scalar {} does not follow its arguments", id));
        return false;
      }
    }
    return true;
  }

  /// Everything that `root` reads, over a box of the axes it may use. `accumulators`: how many it may use.
  void check_expression(const LoopForm& form, int root, const std::vector<Range>& box, int accumulators,
                        const std::string& what) {
    const int roots[] = {root};
    for (const int id : form.dag.reachable(roots)) {
      const ScalarNode& scalar = form.dag[id];
      if (scalar.op == ScalarOp::kAccumulator) {
        const ElementType expected =
            contract_ ? contract_->accumulator : accumulator_type(form, scalar.operand);
        if (scalar.operand < 0 || scalar.operand >= accumulators || scalar.type != expected) {
          add(fmt::format("{} uses accumulator {}, which it does not have", what, scalar.operand));
        }
      }
      for (const Index& index : scalar.index) {
        for (int axis = static_cast<int>(box.size()); axis < static_cast<int>(form.extents.size()); ++axis) {
          if (form.dag.index_depends_on_axis(index, axis)) {
            add(fmt::format("{} depends on axis {}, over which it does not run", what, axis));
          }
        }
      }
      if (scalar.op == ScalarOp::kLoad) check_load(scalar, box, what);
    }
  }

  /// Whether all sizes are numbers: of formulas, what is looked for here point by point is not proven.
  bool has_numbers() const {
    const auto is_number = [&](ValueId id) {
      return !id.valid() || are_constant(graph_.value(id).type.shape);
    };
    return std::all_of(node_.operands.begin(), node_.operands.end(), is_number) &&
           std::all_of(node_.results.begin(), node_.results.end(), is_number);
  }

  static ElementType accumulator_type(const LoopForm& form, int which) {
    if (which < 0 || which >= static_cast<int>(form.stages.size())) return ElementType::kFloat32;
    const Stage& stage = form.stages[static_cast<std::size_t>(which)];
    const bool arg = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
    return arg ? ElementType::kInt64 : form.dag.type(stage.root);
  }

  void check_load(const ScalarNode& load, const std::vector<Range>& box, const std::string& what) {
    const auto at = static_cast<std::size_t>(load.operand);
    if (load.operand < 0 || at >= node_.operands.size() || !node_.operands[at].valid()) {
      add(fmt::format("{} loads operand {}, which does not exist", what, load.operand));
      return;
    }
    const TensorType& type = graph_.value(node_.operands[at]).type;
    if (type.element != load.type || type.shape.size() != load.index.size()) {
      add(fmt::format("{} loads operand {} as {} of rank {}, but it is {}", what, load.operand,
                      name_of(load.type), load.index.size(), to_string(type)));
      return;
    }
    if (is_empty(box)) return;
    for (std::size_t axis = 0; axis < load.index.size(); ++axis) {
      if (!stays_inside(load.index[axis], type.shape[axis], box)) {
        add(fmt::format("{} reads operand {} at {} along axis {}, which is not proven to stay below {}", what,
                        load.operand, to_string(load.index[axis]), axis, type.shape[axis]));
      }
    }
  }

  void check_regions(const LoopForm& form, int nodes) {
    const auto axes = static_cast<std::size_t>(form.final_axes());
    const int accumulators = contract_ ? 1 : static_cast<int>(form.stages.size());
    std::int64_t total = 1, covered = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) total *= form.extents[axis];
    for (std::size_t k = 0; k < form.regions.size(); ++k) {
      const Region& region = form.regions[k];
      if (region.box.size() != axes || region.root < 0 || region.root >= nodes) {
        add(fmt::format("region {} does not fit the axes", k));
        return;
      }
      if (node_.results.empty() || !node_.results[0].valid() ||
          form.dag.type(region.root) != graph_.value(node_.results[0]).type.element) {
        add(fmt::format("region {} computes {}, not the type of the result", k,
                        name_of(form.dag.type(region.root))));
      }
      std::int64_t volume = 1;
      for (std::size_t axis = 0; axis < axes; ++axis) {
        const Range& r = region.box[axis];
        if (r.low < 0 || r.high < r.low || r.high > form.extents[axis]) {
          add(fmt::format("region {} leaves axis {}", k, axis));
          return;
        }
        volume *= r.high - r.low;
      }
      covered += volume;
      check_expression(form, region.root, region.box, accumulators, fmt::format("region {}", k));
    }
    if (find_overlap(form.regions)) return;
    if (covered != total) add(fmt::format("the regions cover {} of {} points", covered, total));
  }

  /// Boxes in the order of the axis along which they begin at the most places: of the many parts of a Concat
  /// only neighbours need a look.
  bool find_overlap(const std::vector<Region>& regions) {
    if (regions.size() < 2) return false;
    std::size_t sweep = 0, most = 0;
    for (std::size_t axis = 0; axis < regions[0].box.size(); ++axis) {
      std::set<std::int64_t> lows;
      for (const Region& region : regions) lows.insert(region.box[axis].low);
      if (lows.size() > most) sweep = axis, most = lows.size();
    }
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < regions.size(); ++k) {
      if (!regions[k].is_empty()) order.push_back(k);
    }
    if (most == 0) return false;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return regions[a].box[sweep].low < regions[b].box[sweep].low;
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Region& region = regions[order[i]];
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        const Region& next = regions[order[j]];
        if (next.box[sweep].low >= region.box[sweep].high) break;
        if (!overlap(region.box, next.box)) continue;
        add(fmt::format("regions {} and {} overlap", std::min(order[i], order[j]),
                        std::max(order[i], order[j])));
        return true;
      }
    }
    return false;
  }

  static bool overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
    for (std::size_t axis = 0; axis < a.size(); ++axis) {
      if (std::max(a[axis].low, b[axis].low) >= std::min(a[axis].high, b[axis].high)) return false;
    }
    return !is_empty(a) && !is_empty(b);
  }

  /// The store maps the points one to one onto the elements of the result: as many points as elements, each
  /// coordinate in range, and the row-major positions form a mixed-radix number system of the axes.
  void check_store(const LoopForm& form) {
    if (node_.results.empty() || !node_.results[0].valid()) {
      add("a form stores into no result");
      return;
    }
    const Shape& shape = graph_.value(node_.results[0]).type.shape;
    if (form.store.size() != shape.size()) {
      add(fmt::format("the store has {} indices for the result {}", form.store.size(), to_string(shape)));
      return;
    }
    std::vector<Range> box = form.ranges();
    box.resize(static_cast<std::size_t>(form.final_axes()));
    Dim points = 1;
    for (const Range& r : box) points *= r.high;
    if (points != element_count(shape)) {
      add(fmt::format("the store writes {} elements of the result {}", points, to_string(shape)));
      return;
    }
    if (points == 0) return;
    const Index position = linearise(form.store, shape);
    for (std::size_t axis = 0; axis < form.store.size(); ++axis) {
      if (!form.store[axis].is_affine() || !stays_inside(form.store[axis], shape[axis], box)) {
        add(fmt::format("the store leaves axis {} of the result: {}", axis, to_string(form.store[axis])));
        return;
      }
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> digits;  // |coefficient|, extent
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      if (box[axis].high == 1) continue;
      digits.emplace_back(magnitude(position.coefficient_of(static_cast<int>(axis))), box[axis].high);
    }
    std::sort(digits.begin(), digits.end());
    std::int64_t reach = 0;
    for (const auto& [coefficient, extent] : digits) {
      if (coefficient <= reach) {
        add("the store writes an element twice");
        return;
      }
      reach += coefficient * (extent - 1);
    }
  }

  const Graph& graph_;
  const Node& node_;
  const ContractForm* contract_ = nullptr;
  std::string where_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> verify_form(const Graph& graph, NodeId node, const Form& form) {
  FormVerifier verifier(graph, node);
  std::visit([&](const auto& kind) { verifier.check(kind); }, form);
  return verifier.take();
}

}  // namespace gcompile::ir
