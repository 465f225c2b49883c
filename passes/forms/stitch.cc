#include "passes/forms/stitch.h"

#include <algorithm>
#include <set>

#include "ir/sizes/sizes.h"
#include "passes/forms/form_reads.h"

namespace gcompile::passes {

using ir::Index;
using ir::LoopForm;
using ir::Range;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

bool covers_everything(const LoopForm& form) {
  if (form.regions.size() != 1 || !form.checks.empty()) return false;
  const std::vector<Range>& box = form.regions[0].box;
  for (std::size_t i = 0; i < box.size(); ++i) {
    if (!(box[i] == Range{0, form.extents[i]})) return false;
  }
  return true;
}

/// The order of positions is part of what such a stage finds.
bool finds_positions(const LoopForm& form) {
  return std::any_of(form.stages.begin(), form.stages.end(), [](const ir::Stage& stage) {
    return stage.combine == ir::Combine::kArgMax || stage.combine == ir::Combine::kArgMin;
  });
}

/// Which axis of a reader stands for each axis of a reduction, and which of the reader's axes are in a row.
class SharedRows {
 public:
  SharedRows(const LoopForm& reader, const LoopForm& reduction)
      : reader_(reader),
        reduction_(reduction),
        axes_(reduction.extents.size(), kSingle),
        is_parallel_(reader.extents.size(), false) {}

  /// Whether both walk the same rows, as all loads of the operand have it.
  bool match(int operand) {
    bool found = false;
    for (const int id : reader_.dag.reachable(roots_of(reader_))) {
      const ScalarNode& load = reader_.dag[id];
      if (load.op != ScalarOp::kLoad || load.operand != operand) continue;
      const auto axes = axes_of(load);
      if (!axes || (found && *axes != axes_)) return false;
      axes_ = *axes;
      found = true;
    }
    return found && match_parallel() && match_rows() && sides_agree();
  }

  /// The reader's axes, the parallel ones first.
  std::vector<int> order() const {
    std::vector<int> out;
    for (const bool parallel : {true, false}) {
      for (std::size_t a = 0; a < is_parallel_.size(); ++a) {
        if (is_first(a) == parallel) out.push_back(static_cast<int>(a));
      }
    }
    return out;
  }
  int parallel() const {
    int count = 0;
    for (std::size_t a = 0; a < is_parallel_.size(); ++a) count += is_first(a);
    return count;
  }

  /// Axes of the reduction as indices over axes of which the reader's axis a has place[a].
  std::vector<Index> of_reduction(const std::vector<int>& place) const {
    std::vector<Index> out;
    for (const int axis : axes_) out.push_back(axis == kSingle ? Index(0) : Index::axis(place[axis]));
    return out;
  }

 private:
  static constexpr int kSingle = -1;  // an axis of one element

  /// From where the load reads what the reduction stores.
  std::optional<std::vector<int>> axes_of(const ScalarNode& load) const {
    std::vector<int> axes(reduction_.extents.size(), kSingle);
    for (std::size_t i = 0; i < reduction_.store.size(); ++i) {
      const Index& store = reduction_.store[i];
      const std::optional<int> stored = store.as_axis();
      if (!stored && !store.is_constant()) return std::nullopt;
      if (!stored || reduction_.extents[*stored] == 1) continue;
      const std::optional<int> read = load.index[i].as_axis();
      if (!read || axes[*stored] != kSingle) return std::nullopt;
      axes[*stored] = *read;
    }
    return axes;
  }

  bool match_parallel() {
    for (int axis = 0; axis < reduction_.parallel; ++axis) {
      if (reduction_.extents[axis] == 1) continue;
      const int at = axes_[axis];
      if (at == kSingle || is_parallel_[at] || reader_.extents[at] != reduction_.extents[axis]) return false;
      is_parallel_[at] = true;
    }
    return true;
  }

  /// A sum over all points of a row is the same in whatever order of its axes: where the reduction keeps none
  /// of them, they meet in their order.
  bool match_rows() {
    std::vector<int> own, walked;
    std::set<int> taken;
    for (std::size_t a = 0; a < is_parallel_.size(); ++a) {
      if (!is_parallel_[a] && reader_.extents[a] != 1) own.push_back(static_cast<int>(a));
    }
    for (std::size_t axis = reduction_.parallel; axis < reduction_.extents.size(); ++axis) {
      if (reduction_.extents[axis] != 1) walked.push_back(static_cast<int>(axis));
    }
    if (own.empty() || own.size() != walked.size()) return false;
    for (std::size_t i = 0; i < walked.size(); ++i) {
      int& at = axes_[walked[i]];
      if (at == kSingle) at = own[i];
      const bool is_own = std::find(own.begin(), own.end(), at) != own.end();
      if (!is_own || reader_.extents[at] != reduction_.extents[walked[i]]) return false;
      taken.insert(at);
    }
    return taken.size() == own.size();
  }

  /// The axes of a reader with stages are divided already.
  bool sides_agree() const {
    if (reader_.is_map()) return true;
    for (std::size_t a = 0; a < is_parallel_.size(); ++a) {
      const bool parallel = static_cast<int>(a) < reader_.parallel;
      if (reader_.extents[a] != 1 && is_parallel_[a] != parallel) return false;
    }
    return true;
  }

  /// Axes of one element stay where they are, and those of a map go first.
  bool is_first(std::size_t a) const {
    if (reader_.extents[a] != 1) return is_parallel_[a];
    return reader_.is_map() || static_cast<int>(a) < reader_.parallel;
  }

  const LoopForm& reader_;
  const LoopForm& reduction_;
  std::vector<int> axes_;          // by axis of the reduction: the reader's
  std::vector<bool> is_parallel_;  // by axis of the reader
};

}  // namespace

std::optional<LoopForm> stitched(const LoopForm& reader, int k, const LoopForm& reduction, int shift) {
  if (!covers_everything(reader) || !covers_everything(reduction)) return std::nullopt;
  if (finds_positions(reader) || finds_positions(reduction)) return std::nullopt;
  SharedRows rows(reader, reduction);
  if (!rows.match(k)) return std::nullopt;
  LoopForm out;
  const std::vector<int> order = rows.order();
  std::vector<int> place(order.size());
  std::vector<Index> of_reader(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    out.extents.push_back(reader.extents[order[i]]);
    place[order[i]] = static_cast<int>(i);
    of_reader[order[i]] = Index::axis(static_cast<int>(i));
  }
  out.parallel = rows.parallel();
  out.final_over_reduced = reader.is_map() || reader.final_over_reduced;
  const std::vector<Index> of_reduction = rows.of_reduction(place);
  const std::vector<Range> ranges = out.ranges();
  const int stages = static_cast<int>(reduction.stages.size());
  const auto from_reduction = [&](int root) {
    return out.dag.import(reduction.dag, root, of_reduction, ranges, [&](const ScalarNode& leaf) {
      return leaf.op == ScalarOp::kAccumulator ? out.dag.accumulator(leaf.operand, leaf.type)
                                               : out.dag.load(leaf.operand + shift, leaf.type, leaf.index);
    });
  };
  const auto from_reader = [&](int root) {
    return out.dag.import(reader.dag, root, of_reader, ranges, [&](const ScalarNode& leaf) {
      if (leaf.op == ScalarOp::kAccumulator) return out.dag.accumulator(leaf.operand + stages, leaf.type);
      if (leaf.operand != k) return out.dag.load(leaf.operand, leaf.type, leaf.index);
      return out.dag.round(from_reduction(reduction.regions[0].root));
    });
  };
  for (const ir::Stage& stage : reduction.stages) {
    out.stages.push_back({stage.combine, from_reduction(stage.root), stage.select_last});
  }
  for (const ir::Stage& stage : reader.stages) {
    out.stages.push_back({stage.combine, from_reader(stage.root), stage.select_last});
  }
  for (const Index& index : reader.store) {
    out.store.push_back(ir::substitute(index, of_reader, ranges, [](int id) { return id; }));
  }
  out.set_root(from_reader(reader.regions[0].root));
  return out;
}

namespace {

/// Whether what a load reads of neighbouring rows lies nearer than what it reads of one row; nullopt when it
/// does not walk both.
std::optional<bool> reads_side_by_side(const LoopForm& form, const Index& address) {
  std::int64_t across = 0, along = 0;  // elements to the next one, in the next row and in the same
  for (std::size_t a = 0; a < form.extents.size(); ++a) {
    const std::int64_t step = std::abs(ir::typical(address.coefficient_of(static_cast<int>(a))));
    if (step == 0 || form.extents[a] == 1) continue;
    std::int64_t& smallest = static_cast<int>(a) < form.parallel ? across : along;
    if (smallest == 0 || step < smallest) smallest = step;
  }
  return across == 0 || along == 0 ? std::nullopt : std::optional(across < along);
}

}  // namespace

std::string_view unless_rows_are_near(const LoopForm& form, std::span<const ir::Shape> strides) {
  // About what one core or one block walks while another kernel begins: estimates, as are the rows.
  constexpr std::int64_t kNear = 16384;
  constexpr std::int64_t kManyRows = 16;
  // Rows side by side are walked in packs, each from one end to the other and back: a first-level cache holds
  // so many lines.
  constexpr std::int64_t kLines = 512;
  std::int64_t rows = 1, length = 1;
  for (std::size_t a = 0; a < form.extents.size(); ++a) {
    (static_cast<int>(a) < form.parallel ? rows : length) *= ir::typical(form.extents[a]);
  }
  if (rows < kManyRows && length > kNear) return "few rows are too long for one worker each";
  std::optional<bool> side_by_side;
  for (const int id : form.dag.reachable(roots_of(form))) {
    const ScalarNode& load = form.dag[id];
    if (load.op != ScalarOp::kLoad) continue;
    const auto own = reads_side_by_side(form, ir::address_of(load.index, strides[load.operand]));
    if (own && side_by_side && *own != *side_by_side)
      return "reads rows of one operand and columns of another";
    if (own) side_by_side = own;
  }
  if (length > kLines && side_by_side.value_or(false)) {
    return "its rows lie side by side in memory, and are long";
  }
  return "";
}

}  // namespace gcompile::passes
