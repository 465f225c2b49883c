#include "codegen/schedule/storage_assigner.h"

#include <algorithm>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/schedule/lowered_step.h"

namespace gcompile {

using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::same_layout;
using ir::ScalarNode;
using ir::ScalarOp;
using ir::Shape;
using ir::strides_in_order;
using ir::ValueId;
using ir::view_strides;

const LoopForm* StorageAssigner::loops(NodeId id) const { return std::get_if<LoopForm>(&forms_.at(id)); }

bool StorageAssigner::is_alias_candidate(NodeId id) const {
  const ScalarNode* load = loops(id) ? ir::pure_load(*loops(id)) : nullptr;
  return load && !graph_.constant(graph_.node(id).operands[load->operand]);
}

ValueId StorageAssigner::viewed(NodeId id) const {
  return graph_.node(id).operands[static_cast<std::size_t>(ir::pure_load(*loops(id))->operand)];
}

namespace {

/// Library kernels and recurrences write dense row-major results; loops and contractions write any strides.
bool writes_any_strides(const ir::Form& form) {
  return std::holds_alternative<LoopForm>(form) || std::holds_alternative<ir::ContractForm>(form);
}

}  // namespace

bool StorageAssigner::placeable(ValueId id, const ir::Shape& strides) const {
  const ir::Value& value = graph_.value(id);
  if (!value.producer.valid() || value.constant || graph_.is_output(id) || fixed_.count(id)) return false;
  const ir::Form& form = forms_.at(value.producer);
  if (!writes_any_strides(form)) {
    return !std::holds_alternative<ir::IfForm>(form) && graph_.node(value.producer).results.size() == 1 &&
           same_layout(value.type.shape, strides, ir::row_major_strides(value.type.shape));
  }
  if (!std::holds_alternative<ir::ContractForm>(form)) return true;
  // The innermost axis of a contraction's result must stay dense: its epilogue stores packs along it.
  const Shape own = strides_in_order(value.type.shape, value.order);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == 1 && value.type.shape[i] != 1 && strides[i] != 1) return false;
  }
  return true;
}

namespace {

/// Whether every axis of a view moves along one axis of its operand. A view that repeats its operand along one
/// axis and leaves parts of it out along another has as many elements, and no place for those that it leaves out.
bool reads_each_element_once(const LoopForm& form, const ScalarNode& load) {
  std::vector<int> moved(form.extents.size(), 0);
  for (const Index& index : load.index) {
    for (const Index::Term& term : index.terms()) ++moved[term.atom.axis];
  }
  for (std::size_t axis = 0; axis < moved.size(); ++axis) {
    if (form.extents[axis] != 1 && moved[axis] != 1) return false;
  }
  return true;
}

}  // namespace

/// Where the operand of a view must be written for the view to lie at `home`, if it can be written there.
std::optional<Storage> StorageAssigner::home_behind_view(NodeId id, const Storage& home) const {
  // Inverts result = view(operand): every operand axis is a sum of result axes, whose strides must agree.
  const LoopForm& form = *loops(id);
  const ScalarNode& root = form.dag[form.regions[0].root];
  const ValueId operand = viewed(id);
  const Shape& shape = graph_.value(operand).type.shape;
  if (ir::element_count(shape) != ir::element_count(form.extents)) return std::nullopt;
  ir::Shape strides(shape.size(), 0);
  const bool split =
      std::any_of(root.index.begin(), root.index.end(), [](const Index& i) { return !i.is_affine(); });
  if (split) {
    // A reshape that merges operand axes: possible when the operand, dense in its own order,
    // looks like the home.
    strides = strides_in_order(shape, graph_.value(operand).order);
    const auto view = view_strides(form, strides);
    if (!view || view->offset != 0 || !same_layout(form.extents, view->strides, home.strides))
      return std::nullopt;
  } else {
    if (!reads_each_element_once(form, root)) return std::nullopt;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::optional<ir::Dim> stride;
      if (root.index[axis].constant() != 0) return std::nullopt;
      for (const Index::Term& t : root.index[axis].terms()) {
        if (form.extents[t.atom.axis] == 1) continue;
        const ir::Dim of_axis = home.strides[t.atom.axis];
        if (!ir::always_less(0, t.coefficient)) return std::nullopt;
        const std::optional<ir::Dim> own = exact_quotient(of_axis, t.coefficient);
        if (!own || (stride && *stride != *own)) return std::nullopt;
        stride = own;
      }
      strides[axis] = stride.value_or(ir::Dim(1));
    }
  }
  if (!placeable(operand, strides)) return std::nullopt;
  return Storage{home.buffer, home.offset, std::move(strides)};
}

/// The home of an input, or of a view of one.
std::optional<Storage> StorageAssigner::home_of_view(ValueId id) const {
  const ir::Value& value = graph_.value(id);
  if (graph_.is_input(id)) return result_.storage.at(id);
  if (!value.producer.valid() || !is_alias_candidate(value.producer)) return std::nullopt;
  const auto operand = home_of_view(viewed(value.producer));
  return operand ? alias(*loops(value.producer), *operand, value) : std::nullopt;
}

bool StorageAssigner::lies_in_state(const Storage& home) const {
  return buffers_[home.buffer].space == Space::kState;
}

/// Whether what would be written to `home` is there already: rows of a state that grows.
bool StorageAssigner::lies_at(ValueId id, const Storage& home) const {
  if (!lies_in_state(home)) return false;
  const auto own = home_of_view(id);
  return own && own->buffer == home.buffer && own->offset == home.offset &&
         same_layout(graph_.value(id).type.shape, own->strides, home.strides);
}

void StorageAssigner::place_view_operand(NodeId id, const Storage& home) {
  if (lies_at(graph_.node(id).results[0], home)) {
    result_.elided.insert(id);
    return;
  }
  auto behind = home_behind_view(id, home);
  if (!behind) return;
  const ValueId operand = viewed(id);
  result_.storage[operand] = *std::move(behind);
  fixed_.insert(operand);
  result_.elided.insert(id);
}

namespace {

/// Whether every axis is a part of the same axis, in steps of one.
bool cuts(const std::vector<Index>& index) {
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (!(index[axis] - Index::axis(static_cast<int>(axis))).is_constant()) return false;
  }
  return true;
}

}  // namespace

/// Whether a part of Concat stays the view that it is of something that cannot be written at `home`.
bool StorageAssigner::stays_a_view(ValueId id, Storage home) const {
  if (!copy_views_) return false;
  // Through views of views, down to what one of them is of.
  while (true) {
    const ir::Value& value = graph_.value(id);
    if (!value.producer.valid() || !is_alias_candidate(value.producer)) return false;
    const LoopForm& form = *loops(value.producer);
    const std::vector<Index>& index = form.dag[form.regions[0].root].index;
    // Others are views of some layouts only.
    const bool is_view =
        value.order.empty()
            ? std::all_of(index.begin(), index.end(), [](const Index& i) { return i.is_affine(); })
            : cuts(index) && graph_.value(viewed(value.producer)).order == value.order;
    if (!is_view) return false;
    auto behind = home_behind_view(value.producer, home);
    if (!behind) return true;
    home = *std::move(behind);
    id = viewed(value.producer);
  }
}

/// What lies where the result does, as after an assignment to a slice of it, is not copied to itself.
void StorageAssigner::keep_in_place(NodeId id) {
  const LoopForm* form = loops(id);
  if (!form || !form->is_map() || form->regions.size() < 2) return;
  const ir::Node& node = graph_.node(id);
  const Storage& home = result_.storage.at(node.results[0]);
  for (std::size_t r = 0; r < form->regions.size(); ++r) {
    const ScalarNode& root = form->dag[form->regions[r].root];
    if (root.op != ScalarOp::kLoad) continue;
    const ValueId operand = node.operands[root.operand];
    const Shape& shape = graph_.value(operand).type.shape;
    const auto at = result_.storage.find(operand);
    if (at == result_.storage.end() || !ir::copies_in_place(*form, form->regions[r], shape)) continue;
    const bool is_there = at->second.buffer == home.buffer && at->second.offset == home.offset &&
                          same_layout(shape, at->second.strides, home.strides);
    if (is_there) result_.elided_regions[id].insert(r);
  }
}

/// Whether a map of several regions assigns to parts of a value that is made before it: in_place decides then.
bool StorageAssigner::may_assign_in_place(NodeId id) const {
  const LoopForm& form = *loops(id);
  const ir::Node& node = graph_.node(id);
  return std::any_of(form.regions.begin(), form.regions.end(), [&](const ir::Region& region) {
    const ScalarNode& root = form.dag[region.root];
    if (root.op != ScalarOp::kLoad) return false;
    const ValueId operand = node.operands[root.operand];
    const ir::Value& value = graph_.value(operand);
    return value.producer.valid() && !value.constant && ir::copies_in_place(form, region, value.type.shape);
  });
}

void StorageAssigner::place_parts(NodeId id, const Storage& home) {
  const LoopForm& form = *loops(id);
  if (!form.is_map() || form.regions.size() < 2 || !form.has_identity_store()) return;
  const ir::Node& node = graph_.node(id);
  for (std::size_t r = 0; r < form.regions.size(); ++r) {
    const ir::Region& region = form.regions[r];
    const ScalarNode& root = form.dag[region.root];
    if (root.op != ScalarOp::kLoad) continue;
    const ValueId operand = node.operands[root.operand];
    const Shape& shape = graph_.value(operand).type.shape;
    Storage part{home.buffer, home.offset, Shape(shape.size(), 0)};
    bool shifted = shape.size() == form.extents.size();
    for (std::size_t axis = 0; shifted && axis < shape.size(); ++axis) {
      // Operand axis = result axis - low, over the whole operand.
      const ir::Range box = region.box[axis];
      const int own = static_cast<int>(axis);
      const Index& index = root.index[axis];
      const bool whole = box.high - box.low == shape[axis];
      const bool moves =
          index == Index::axis(own) - Index(box.low) || (shape[axis] == 1 && index == Index(0));
      shifted = whole && moves;
      part.offset += box.low * home.strides[axis];
      part.strides[axis] = home.strides[axis];
    }
    if (!shifted) continue;
    if (lies_at(operand, part)) {
      result_.elided_regions[id].insert(r);
      continue;
    }
    if (!placeable(operand, part.strides) || stays_a_view(operand, part)) continue;
    // An operand that the kernel also reads elsewhere may be overwritten too late or too early: keep it out.
    const auto& uses = graph_.value(operand).uses;
    if (std::count_if(uses.begin(), uses.end(), [&](const ir::Use& u) { return u.node == id; }) != 1)
      continue;
    result_.storage[operand] = std::move(part);
    fixed_.insert(operand);
    result_.elided_regions[id].insert(r);
  }
  if (result_.elided_regions.count(id) && result_.elided_regions[id].size() == form.regions.size()) {
    result_.elided.insert(id);
  }
}

/// What a library kernel writes over where the state is has to be made there.
void StorageAssigner::place_overwritten(NodeId id) {
  const auto* library = std::get_if<ir::LibraryForm>(&forms_.at(id));
  if (!library || library->in_place_operand < 0) return;
  const ir::Node& node = graph_.node(id);
  const auto home = result_.storage.find(node.results[0]);
  if (home == result_.storage.end() || !lies_in_state(home->second)) return;
  const ValueId operand = node.operands[library->in_place_operand];
  if (graph_.is_input(operand)) return;
  result_.storage[operand] = Storage(home->second);
  fixed_.insert(operand);
}

void StorageAssigner::place_operands(NodeId id) {
  const ir::Node& node = graph_.node(id);
  if (!loops(id)) {
    place_overwritten(id);
    return;
  }
  const ValueId result = node.results[0];
  if (is_alias_candidate(id)) {
    if (fixed_.count(result)) place_view_operand(id, result_.storage.at(result));
    return;
  }
  if (place_parts_ && loops(id)->is_map() && loops(id)->regions.size() >= 2) {
    if (!result_.storage.count(result)) {
      if (may_assign_in_place(id)) return;
      result_.storage[result] = fresh(result);
    }
    place_parts(id, result_.storage.at(result));
  }
}

std::optional<Storage> StorageAssigner::alias(const LoopForm& form, const Storage& operand,
                                              const ir::Value& result) const {
  const auto view = view_strides(form, operand.strides);
  if (!view) return std::nullopt;
  // Layout assignment wants this axis dense; a view that is not would only move the copy to every reader.
  if (!result.order.empty()) {
    const auto inner = static_cast<std::size_t>(result.order.back());
    if (result.type.shape[inner] != 1 && view->strides[inner] != 1) return std::nullopt;
  }
  return Storage{operand.buffer, operand.offset + view->offset, view->strides};
}

Storage StorageAssigner::fresh(ValueId id) {
  const ir::Value& value = graph_.value(id);
  StorageBuffer buffer;
  buffer.bytes = ir::highest(value.type.bytes());
  buffer.name = value.name;
  buffer.maker = maker_of(graph_, id);
  buffer.type = value.type;
  buffer.strides = strides_in_order(value.type.shape, value.order);
  buffers_.push_back(buffer);
  return {static_cast<int>(buffers_.size()) - 1, 0, std::move(buffer.strides)};
}

void StorageAssigner::settle(ValueId id, Storage home) {
  std::int64_t& last = last_use_of_buffer_.try_emplace(home.buffer, -1).first->second;
  last = std::max(last, last_use_.at(id));
  result_.storage[id] = std::move(home);
}

namespace {

/// Whether the load of an operand of the result's shape is of the element that is being written.
bool reads_own_element(const LoopForm& form, const ScalarNode& load, const Shape& shape) {
  for (std::size_t axis = 0; axis < load.index.size(); ++axis) {
    const bool own = axis < form.store.size() && load.index[axis] == form.store[axis];
    if (!own && !(axis < shape.size() && shape[axis] == 1 && load.index[axis] == Index(0))) return false;
  }
  return true;
}

/// Whether all that is read of a row, by whatever stages, is read before the row is written.
bool writes_rows_last(const LoopForm& form) {
  return form.final_over_reduced && std::all_of(form.store.begin(), form.store.end(), [](const Index& i) {
           return i.as_axis().has_value() || i.is_constant();
         });
}

}  // namespace

std::optional<Storage> StorageAssigner::in_place(NodeId id, std::int64_t now) const {
  const ir::Node& node = graph_.node(id);
  const ir::Form& form = forms_.at(id);
  const ir::Value& result = graph_.value(node.results[0]);
  if (const auto* library = std::get_if<ir::LibraryForm>(&form)) {
    if (library->in_place_operand < 0) return std::nullopt;
    const ValueId operand = node.operands[library->in_place_operand];
    const auto at = result_.storage.find(operand);
    if (at == result_.storage.end() || graph_.constant(operand)) return std::nullopt;
    const StorageBuffer& buffer = buffers_[at->second.buffer];
    if (buffer.space != Space::kArena || last_use_.at(operand) > now ||
        buffer.bytes != ir::highest(result.type.bytes())) {
      return std::nullopt;
    }
    if (!same_layout(result.type.shape, at->second.strides, ir::row_major_strides(result.type.shape))) {
      return std::nullopt;
    }
    return last_use_of_buffer_.at(at->second.buffer) > now ? std::nullopt : std::optional(at->second);
  }
  const LoopForm* map = nullptr;
  int first_side_operand = 0;
  if (const auto* contract = std::get_if<ir::ContractForm>(&form)) {
    map = &contract->epilogue;
    first_side_operand = contract->base_operands;
  } else {
    map = loops(id);
  }
  if (!map || !(map->is_map() ? map->has_identity_store() : writes_rows_last(*map))) return std::nullopt;
  const Shape wanted = strides_in_order(result.type.shape, result.order);
  // Every access of that memory must be at the element being written, and through this operand alone.
  std::map<int, int> readers;  // operands by buffer
  for (const ValueId operand : node.operands) {
    const auto at = operand.valid() ? result_.storage.find(operand) : result_.storage.end();
    if (at != result_.storage.end()) ++readers[at->second.buffer];
  }
  std::vector<bool> elsewhere(node.operands.size());
  for (const ScalarNode& load : map->dag.nodes()) {
    if (load.op != ScalarOp::kLoad) continue;
    if (!reads_own_element(*map, load, result.type.shape)) elsewhere[load.operand] = true;
  }
  for (std::size_t k = static_cast<std::size_t>(first_side_operand); k < node.operands.size(); ++k) {
    const ValueId operand = node.operands[k];
    if (!operand.valid() || graph_.constant(operand) || elsewhere[k]) continue;
    const auto at = result_.storage.find(operand);
    if (at == result_.storage.end() || last_use_.at(operand) > now) continue;
    const StorageBuffer& buffer = buffers_[at->second.buffer];
    if (buffer.space != Space::kArena || buffer.bytes != ir::highest(result.type.bytes()) ||
        at->second.offset != 0)
      continue;
    if (bits_of(graph_.value(operand).type.element) != bits_of(result.type.element)) continue;
    if (graph_.value(operand).type.shape != result.type.shape) continue;
    if (!same_layout(result.type.shape, at->second.strides, wanted)) continue;
    if (readers.at(at->second.buffer) > 1 || last_use_of_buffer_.at(at->second.buffer) > now) continue;
    return at->second;
  }
  return std::nullopt;
}

StorageAssigner::Result StorageAssigner::run(const std::vector<NodeId>& order,
                                             const std::vector<Storage>& inputs,
                                             const std::vector<Storage>& outputs,
                                             const std::map<NodeId, std::int64_t>& time) {
  for (std::size_t i = 0; i < inputs.size(); ++i) result_.storage[graph_.inputs()[i]] = inputs[i];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = graph_.outputs()[i];
    // A value that is an output twice, an input or a constant is copied at the end instead.
    if (!outputs[i].valid() || !graph_.value(id).producer.valid() || graph_.value(id).constant ||
        result_.storage.count(id)) {
      continue;
    }
    result_.storage[id] = outputs[i];
    fixed_.insert(id);
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) place_operands(*at);

  // Last reads, through aliases: what a view of a value reads, the value must survive.
  for (const ValueId id : graph_.values()) {
    std::int64_t last = -1;
    for (const ir::Use& use : graph_.value(id).uses) {
      last = std::max(last, use.node.valid() ? time.at(use.node) : INT64_MAX);
    }
    last_use_[id] = graph_.is_input(id) ? INT64_MAX : last;
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (!is_alias_candidate(*at) || fixed_.count(graph_.node(*at).results[0])) continue;
    const ir::Node& node = graph_.node(*at);
    const int k = loops(*at)->dag[loops(*at)->regions[0].root].operand;
    std::int64_t& last = last_use_[node.operands[k]];
    last = std::max(last, last_use_[node.results[0]]);
  }

  for (const auto& [id, home] : result_.storage) {
    std::int64_t& last = last_use_of_buffer_.try_emplace(home.buffer, -1).first->second;
    last = std::max(last, last_use_.at(id));
  }

  for (const NodeId id : order) {
    poll_interrupt();
    const ir::Node& node = graph_.node(id);
    for (const ValueId result : node.results) {
      if (!result.valid() || result_.storage.count(result)) continue;
      std::optional<Storage> home;
      if (is_alias_candidate(id)) {
        const LoopForm& form = *loops(id);
        const ValueId operand = node.operands[form.dag[form.regions[0].root].operand];
        home = alias(form, result_.storage.at(operand), graph_.value(result));
        if (home) result_.elided.insert(id);
      } else if (result == node.results[0]) {
        home = in_place(id, time.at(id));
      }
      settle(result, home ? *std::move(home) : fresh(result));
    }
    keep_in_place(id);
  }
  return std::move(result_);
}

}  // namespace gcompile
