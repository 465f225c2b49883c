#include "codegen/loops/region_form.h"

#include <algorithm>

#include "base/diagnostics.h"
#include "ir/forms/rebuild.h"

namespace gcompile {
namespace {

using ir::Index;
using ir::IndexAtom;
using ir::ScalarNode;
using ir::ScalarOp;

/// Some nodes of a dag, made again in their order: what they say of each other stays as it is.
class PartOfDag {
 public:
  PartOfDag(const ir::Dag& from, const std::vector<int>& roots) : ids_(from.reachable(roots)) {
    for (std::size_t i = 0; i < ids_.size(); ++i) GC_CHECK(add(from[ids_[i]]) == static_cast<int>(i));
  }
  int moved(int id) const {
    return static_cast<int>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
  }
  ir::Dag take() { return std::move(part_); }

 private:
  int add(const ScalarNode& node) {
    switch (node.op) {
      case ScalarOp::kConstant:
        return part_.constant(node.constant);
      case ScalarOp::kLoad:
        return part_.load(node.operand, node.type, moved(node.index));
      case ScalarOp::kIota:
        return part_.iota(moved(node.index[0]));
      case ScalarOp::kAccumulator:
        return part_.accumulator(node.operand, node.type);
      case ScalarOp::kCast:
        return part_.cast(moved(node.arguments[0]), node.type);
      case ScalarOp::kBits:
        return part_.bits(moved(node.arguments[0]), node.type);
      case ScalarOp::kRound:
        return part_.round(moved(node.arguments[0]));
      default: {
        ir::Arguments arguments = node.arguments;
        for (int& argument : arguments) argument = moved(argument);
        return part_.apply(node.op, arguments);
      }
    }
  }

  std::vector<Index> moved(const std::vector<Index>& indices) const {
    std::vector<Index> out;
    out.reserve(indices.size());
    for (const Index& index : indices) out.push_back(moved(index));
    return out;
  }

  Index moved(const Index& index) const {
    if (!index.has_loaded()) return index;
    Index out(index.constant());
    for (const Index::Term& t : index.terms()) {
      IndexAtom atom = t.atom;
      if (atom.kind == IndexAtom::Kind::kLoaded) atom.axis = moved(atom.axis);
      if (atom.inner) atom.inner = std::make_shared<const Index>(moved(*atom.inner));
      out = out + Index::of(atom) * t.coefficient;
    }
    return out;
  }

  const std::vector<int> ids_;
  ir::Dag part_;
};

}  // namespace

ir::LoopForm form_of_region(const ir::LoopForm& form, const ir::Region& region) {
  std::vector<int> roots = {region.root};
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  PartOfDag part(form.dag, roots);
  ir::LoopForm out;
  out.extents = form.extents;
  out.parallel = form.parallel;
  out.stages = form.stages;
  for (ir::Stage& stage : out.stages) stage.root = part.moved(stage.root);
  out.final_over_reduced = form.final_over_reduced;
  out.regions = {{region.box, part.moved(region.root)}};
  out.store = form.store;
  out.dag = part.take();
  return out;
}

ir::LoopForm form_of_check(const ir::LoopForm& form, const ir::BoundsCheck& check) {
  PartOfDag part(form.dag, {check.scalar});
  ir::LoopForm out;
  out.extents = form.extents;
  out.parallel = static_cast<int>(form.extents.size());
  out.store = form.store;
  out.set_root(part.moved(check.scalar));
  out.dag = part.take();
  return out;
}

std::optional<ir::LoopForm> form_without_idle_lookups(const ir::LoopForm& form,
                                                      const std::function<ir::Shape(int)>& strides_of) {
  const auto& nodes = form.dag.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const ScalarNode& node) {
        return node.op == ScalarOp::kLoad && std::any_of(node.index.begin(), node.index.end(),
                                                         [](const Index& i) { return i.has_loaded(); });
      })) {
    return std::nullopt;
  }
  bool found = false;
  ir::LoopForm out = rebuild(form, [&](ir::Dag& dag, const ScalarNode& node) {
    if (node.op == ScalarOp::kAccumulator) return dag.accumulator(node.operand, node.type);
    std::vector<Index> index = node.index;
    const ir::Shape strides = strides_of(node.operand);
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (!index[i].has_loaded() || strides[i] != 0) continue;
      index[i] = 0;
      found = true;
    }
    return dag.load(node.operand, node.type, std::move(index));
  });
  return found ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace gcompile
