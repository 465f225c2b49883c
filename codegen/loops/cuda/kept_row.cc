#include "codegen/loops/cuda/kept_row.h"

#include <algorithm>
#include <functional>
#include <set>

namespace gcompile {

using ir::Index;
using ir::IndexAtom;
using ir::ScalarNode;
using ir::ScalarOp;

std::vector<int> sources_of(const ScalarNode& node) {
  std::vector<int> out(node.arguments.begin(), node.arguments.end());
  const std::function<void(const Index&)> add_loaded = [&](const Index& index) {
    for (const Index::Term& t : index.terms()) {
      if (t.atom.kind == IndexAtom::Kind::kLoaded) out.push_back(t.atom.axis);
      if (t.atom.inner) add_loaded(*t.atom.inner);
    }
  };
  for (const Index& index : node.index) add_loaded(index);
  return out;
}

namespace {

class RowKeeper {
 public:
  RowKeeper(const LoopNest& nest, int region_root) : nest_(nest), dependence_(nest.dependence()) {
    for (const int a : nest.reduced) row_ |= std::uint64_t{1} << a;
    for (const ir::Stage& stage : nest.form->stages) roots_.push_back(stage.root);
    if (nest.form->final_over_reduced) roots_.push_back(region_root);
    reads_.resize(nest.form->dag.nodes().size(), false);
    for (const int id : nest.nodes) {
      const ScalarNode& node = nest.form->dag[id];
      const std::vector<int> sources = sources_of(node);
      reads_[id] = (node.op == ScalarOp::kLoad && varies(id)) ||
                   std::any_of(sources.begin(), sources.end(),
                               [&](int source) { return reads_[static_cast<std::size_t>(source)]; });
    }
  }

  KeptRow run() {
    choose();
    while (drop_unwanted()) {
    }
    KeptRow row;
    row.nodes.resize(nest_.form->stages.size());
    for (std::size_t phase = 0; phase < row.nodes.size(); ++phase) {
      row.nodes[phase].assign(kept_[phase].begin(), kept_[phase].end());
    }
    for (std::size_t phase = 0; phase + 1 < roots_.size(); ++phase)
      row.words = std::max(row.words, words_after(phase));
    return row;
  }

 private:
  bool varies(int id) const { return (dependence_[id] & row_) != 0; }

  /// Nodes that vary along the row and that `phase` computes, or takes from what phases before `known` keep.
  /// Nothing is looked for behind the latter, nor behind nodes that `stops` holds.
  std::set<int> wanted(
      std::size_t phase, std::size_t known,
      const std::function<bool(int)>& stops = [](int) { return false; }) const {
    std::set<int> out;
    std::vector<int> open = {roots_[phase]};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (!varies(id) || !out.insert(id).second || is_kept(id, known) || stops(id)) continue;
      for (const int source : sources_of(nest_.form->dag[id])) open.push_back(source);
    }
    return out;
  }

  bool is_kept(int id, std::size_t before) const {
    return std::any_of(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(before),
                       [&](const std::set<int>& nodes) { return nodes.count(id) != 0; });
  }

  /// Whether a phase after `phase` takes the node from the row.
  bool is_wanted_after(int id, std::size_t phase) const {
    for (std::size_t later = phase + 1; later < roots_.size(); ++later) {
      if (wanted(later, later).count(id)) return true;
    }
    return false;
  }

  /// In each phase the outermost nodes that a later one also computes: not x, where exp(x) is wanted.
  void choose() {
    kept_.assign(roots_.size(), {});
    for (std::size_t phase = 0; phase + 1 < roots_.size(); ++phase) {
      const auto is_shared = [&](int id) {
        return reads_[id] && !is_kept(id, phase) && is_wanted_after(id, phase);
      };
      std::set<int> found;
      for (const int id : wanted(phase, phase, is_shared)) {
        if (is_shared(id)) found.insert(id);
      }
      kept_[phase] = std::move(found);
    }
  }

  /// Drops a node that later phases only wanted in order to compute another that is kept as well.
  bool drop_unwanted() {
    for (std::size_t phase = 0; phase < kept_.size(); ++phase) {
      for (const int id : kept_[phase]) {
        if (is_wanted_after(id, phase)) continue;
        kept_[phase].erase(id);
        return true;
      }
    }
    return false;
  }

  int words_after(std::size_t phase) const {
    int words = 0;
    for (std::size_t from = 0; from <= phase; ++from) {
      for (const int id : kept_[from]) {
        if (is_wanted_after(id, phase)) words += bits_of(nest_.form->dag.type(id)) == 64 ? 2 : 1;
      }
    }
    return words;
  }

  const LoopNest& nest_;
  std::vector<std::uint64_t> dependence_;
  std::uint64_t row_ = 0;
  std::vector<int> roots_;
  std::vector<bool> reads_;  // per node: whether it needs memory that varies along the row
  std::vector<std::set<int>> kept_;
};

}  // namespace

std::vector<int> weights_of_rows(const LoopNest& nest, const std::vector<KernelTensor>& operands) {
  const std::vector<std::uint64_t> dependence = nest.dependence();
  std::uint64_t row = 0;
  for (const int a : nest.reduced) row |= std::uint64_t{1} << a;
  std::vector<int> loads;
  for (const int id : nest.nodes) {
    const ScalarNode& node = nest.form->dag[id];
    if (node.op != ScalarOp::kLoad || !operands[static_cast<std::size_t>(node.operand)].is_weight) continue;
    const std::uint64_t axes = dependence[static_cast<std::size_t>(id)];
    if (axes != 0 && (axes & ~row) == 0 && sources_of(node).empty() && bits_of(node.type) <= 32)
      loads.push_back(id);
  }
  return loads;
}

KeptRow keep_row(const LoopNest& nest, int region_root) { return RowKeeper(nest, region_root).run(); }

}  // namespace gcompile
