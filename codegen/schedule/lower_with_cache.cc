// Attention over a cache, and the two Concats that append the new rows to it, as one call: the kernel reads
// both parts where they lie and writes what the joined cache does not have yet.

#include <algorithm>
#include <array>

#include "codegen/order/cache_order.h"
#include "codegen/schedule/schedule.h"

namespace gcompile {

using ir::LoopForm;
using ir::NodeId;
using ir::Shape;
using ir::ValueId;

namespace {

/// The two parts of a Concat, the one in front first; nullopt: its regions are no such parts.
struct Parts {
  std::size_t axis;
  std::array<std::size_t, 2> regions;
};
std::optional<Parts> parts_of(const LoopForm& form) {
  const ir::Region &a = form.regions[0], &b = form.regions[1];
  std::optional<Parts> out;
  for (std::size_t axis = 0; axis < form.extents.size(); ++axis) {
    const ir::Range whole{0, form.extents[axis]};
    if (a.box[axis] == whole && b.box[axis] == whole) continue;
    if (out) return std::nullopt;
    const bool is_first = a.box[axis].low == 0;
    const ir::Range &front = (is_first ? a : b).box[axis], &back = (is_first ? b : a).box[axis];
    if (front.low != 0 || front.high != back.low || back.high != whole.high) return std::nullopt;
    out = is_first ? Parts{axis, {0, 1}} : Parts{axis, {1, 0}};
  }
  return out;
}

/// With the strides of `storage` along other axes, 0 for those that are not among its own.
Storage along(const Storage& storage, const std::vector<int>& axes) {
  Storage out = storage;
  out.strides.clear();
  for (const int axis : axes) {
    out.strides.push_back(axis < 0 ? ir::Dim(0) : storage.strides[axis]);
  }
  return out;
}

/// The axis of `made` that each axis of `seen` is, -1 for those of one place; nullopt: these are not all.
std::optional<std::vector<int>> axes_of_view(const Shape& seen_shape, const Storage& seen,
                                             const Shape& made_shape, const Storage& made) {
  std::vector<int> axes;
  std::vector<bool> taken(made_shape.size());
  for (std::size_t i = 0; i < seen_shape.size(); ++i) {
    axes.push_back(-1);
    for (std::size_t k = 0; k < made_shape.size() && axes.back() < 0 && seen_shape[i] != 1; ++k) {
      if (taken[k] || made_shape[k] != seen_shape[i] || made.strides[k] != seen.strides[i]) continue;
      taken[k] = true;
      axes.back() = static_cast<int>(k);
    }
    if (axes.back() < 0 && seen_shape[i] != 1) return std::nullopt;
  }
  for (std::size_t k = 0; k < made_shape.size(); ++k) {
    if (!taken[k] && made_shape[k] != 1) return std::nullopt;
  }
  return axes;
}

/// Where a part of a Concat lies, along the axes of the result.
std::optional<Storage> home_of_part(const ScheduleScope& scope, NodeId id, std::size_t r) {
  const auto& form = std::get<LoopForm>(scope.forms.at(id));
  const ir::Node& node = scope.graph.node(id);
  const ir::Region& region = form.regions[r];
  Storage out = scope.homes.storage.at(node.results[0]);
  const auto elided = scope.homes.elided_regions.find(id);
  if (elided == scope.homes.elided_regions.end() || !elided->second.count(r)) {
    const ir::ScalarNode& root = form.dag[region.root];
    const Storage& home = scope.homes.storage.at(node.operands[root.operand]);
    const ir::Index address = ir::address_of(root.index, home.strides);
    if (!address.is_affine()) return std::nullopt;
    out = {home.buffer, home.offset + address.constant(), {}};
    for (std::size_t axis = 0; axis < form.extents.size(); ++axis) {
      out.strides.push_back(address.coefficient_of(static_cast<int>(axis)));
    }
  }
  for (std::size_t axis = 0; axis < form.extents.size(); ++axis) {
    out.offset += region.box[axis].low * out.strides[axis];
  }
  return out;
}

/// Operand `i` of `reader`, a matrix of rows, as what the Concat `id` joins.
std::optional<JoinedOperand> joined_operand(const ScheduleScope& scope, NodeId id, NodeId reader,
                                            std::size_t i) {
  const ir::Graph& graph = scope.graph;
  if (!joins_two_parts(graph, scope.forms, id)) return std::nullopt;
  const ValueId result = graph.node(id).results[0], operand = graph.node(reader).operands[i];
  const ir::TensorType &made_type = graph.value(result).type, &seen_type = graph.value(operand).type;
  const Storage &made = scope.homes.storage.at(result), &seen = scope.homes.storage.at(operand);
  if (made.buffer != seen.buffer || made.offset != seen.offset || made_type.element != seen_type.element) {
    return std::nullopt;
  }
  const auto parts = parts_of(std::get<LoopForm>(scope.forms.at(id)));
  const auto axes = axes_of_view(seen_type.shape, seen, made_type.shape, made);
  const std::size_t rank = seen_type.shape.size();
  if (!parts || !axes || rank < 2 || (*axes)[rank - 2] != static_cast<int>(parts->axis)) return std::nullopt;
  const auto [front, back] = parts->regions;
  const auto past = home_of_part(scope, id, front), fresh = home_of_part(scope, id, back);
  if (!past || !fresh) return std::nullopt;
  JoinedOperand out{along(*past, *axes), along(*fresh, *axes), seen, {}, {}, {}};
  for (const Storage* each : {&out.past, &out.fresh, &out.joined}) {
    if (each->strides[rank - 1] != 1) return std::nullopt;
  }
  const auto& form = std::get<LoopForm>(scope.forms.at(id));
  const auto elided = scope.homes.elided_regions.find(id);
  const auto is_there = [&](std::size_t region) {
    return elided != scope.homes.elided_regions.end() && elided->second.count(region) > 0;
  };
  out.past_rows = form.regions[front].box[parts->axis].high;
  out.first_written = is_there(front) ? out.past_rows : ir::Dim(0);
  out.end_written = is_there(back) ? out.past_rows : seen_type.shape[rank - 2];
  return out;
}

}  // namespace

std::size_t Scheduler::lower_with_cache(ScheduleScope& scope, std::span<const NodeId> order) {
  if (!chooser_.on_device() || order.size() < 3 || !is_attention(scope.forms.at(order[2]))) return 0;
  const NodeId reader = order[2];
  for (const auto& [of_keys, of_values] : {std::pair(order[0], order[1]), std::pair(order[1], order[0])}) {
    const auto keys = joined_operand(scope, of_keys, reader, 1);
    const auto values = keys ? joined_operand(scope, of_values, reader, 2) : std::nullopt;
    if (!values || keys->past_rows != values->past_rows) continue;
    const ir::Form& form = scope.forms.at(reader);
    const std::map<ValueId, Storage> copies = copy_operands(scope, reader, form);
    const HomeOf home = [&](ValueId value) -> const Storage& {
      const auto copy = copies.find(value);
      return copy != copies.end() ? copy->second : scope.homes.storage.at(value);
    };
    const JoinedOperands joined = {{1, *keys}, {2, *values}};
    KernelCall call = chooser_.call_for({scope.graph, reader, form, home, false, nullptr, &joined}, weights_);
    if (call.family.empty()) return 0;
    std::vector<ir::Origin> origins;
    std::string comment;
    for (const NodeId id : order.first(3)) {
      const std::vector<ir::Origin> own = origins_of(scope.graph.node(id));
      origins.insert(origins.end(), own.begin(), own.end());
      comment += (comment.empty() ? "" : ", ") + comment_of(scope.graph.node(id));
    }
    steps_.emit(scope, std::move(call), std::move(origins), std::move(comment),
                layout_text(scope.graph.value(scope.graph.node(reader).results[0]).type,
                            home(scope.graph.node(reader).results[0]).strides));
    return 3;
  }
  return 0;
}

}  // namespace gcompile
