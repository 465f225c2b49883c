#include "passes/forms/form_reads.h"

#include <algorithm>
#include <climits>

namespace gcompile::passes {

using ir::Index;
using ir::LoopForm;
using ir::Range;
using ir::ScalarNode;
using ir::ScalarOp;

std::vector<int> roots_of(const LoopForm& form) {
  std::vector<int> roots;
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  for (const ir::Region& region : form.regions) roots.push_back(region.root);
  return roots;
}

int work_of(const LoopForm& form) {
  int work = 0;
  for (const int id : form.dag.reachable(roots_of(form))) work += row_of(form.dag[id].op).cost;
  return work;
}

bool is_identity_load(const LoopForm& form, const ScalarNode& load) {
  if (load.index.size() != form.extents.size()) return false;
  for (std::size_t i = 0; i < load.index.size(); ++i) {
    const bool single = form.extents[i] == 1 && load.index[i] == Index(0);
    if (!single && load.index[i].as_axis() != static_cast<int>(i)) return false;
  }
  return true;
}

bool is_broadcast_load(const ScalarNode& load) {
  return std::all_of(load.index.begin(), load.index.end(),
                     [](const Index& i) { return i.is_constant() || i.as_axis().has_value(); });
}

bool is_pure_movement(const LoopForm& form) {
  return form.is_map() &&
         std::all_of(form.regions.begin(), form.regions.end(),
                     [&](const ir::Region& region) { return form.dag[region.root].op == ScalarOp::kLoad; });
}

/// One walk per root, so that nodes of many operands are looked at once.
std::vector<OperandReads> reads_of(const LoopForm& form, std::size_t count) {
  std::vector<OperandReads> reads(count);
  const auto walk = [&](int root, double points) {
    const int one[] = {root};
    for (const int id : form.dag.reachable(one)) {
      const ScalarNode& load = form.dag[id];
      if (load.op != ScalarOp::kLoad) continue;
      OperandReads& read = reads[load.operand];
      read.elements += points;
      read.at_own_index = read.at_own_index && is_identity_load(form, load);
      for (const Index& index : load.index) read.indirect |= index.has_loaded();
    }
  };
  const auto points = static_cast<double>(ir::highest(ir::element_count(form.extents)));
  for (const ir::Stage& stage : form.stages) walk(stage.root, points);
  for (const ir::Region& region : form.regions) {
    double of_box = 1;
    for (const Range& range : region.box) of_box *= static_cast<double>(ir::highest(range.high - range.low));
    walk(region.root, of_box);
  }
  return reads;
}

JoiningReader::JoiningReader(const LoopForm& form) {
  for (const int id : form.dag.reachable(roots_of(form))) {
    ++size_;
    const ScalarNode& node = form.dag[id];
    if (node.op == ScalarOp::kIota && first_iota_ < 0) first_iota_ = id;
    if (node.op != ScalarOp::kLoad) continue;
    if (!is_identity_load(form, node)) displaced_.try_emplace(node.operand, id);
    const bool new_operand = computed_.empty() || computed_.back().first != node.operand;
    if (!is_broadcast_load(node) && new_operand) computed_.emplace_back(node.operand, id);
  }
}

std::string_view JoiningReader::obstacle(int k, bool contract) const {
  constexpr int kNone = INT_MAX;
  const auto own = displaced_.find(k);
  const int first_own = own == displaced_.end() ? kNone : own->second;
  int first_other = kNone;
  int first_iota = kNone;
  if (contract) {
    for (std::size_t i = 0; i < computed_.size() && first_other == kNone; ++i) {
      if (computed_[i].first != k) first_other = computed_[i].second;
    }
    if (first_iota_ >= 0) first_iota = first_iota_;
  }
  const int first = std::min({first_own, first_other, first_iota});
  if (first == kNone) return "";
  return first == first_iota ? "iota" : first == first_own ? "its producer" : "an operand";
}

}  // namespace gcompile::passes
