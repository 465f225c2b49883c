#include "codegen/schedule/strip_lowering.h"

#include <algorithm>

#include "codegen/kinds/image_windows.h"
#include "codegen/loops/loop_nest.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

namespace {

constexpr std::size_t kMostKernels = 64;  // of a chain

/// The window of a convolution or a pool of images; nullptr: something else.
const ir::Window* image_window(const ir::Form& form) {
  const ir::Work* work = ir::work_of(form);
  const auto* conv = work ? std::get_if<ir::ConvWork>(work) : nullptr;
  const auto* pool = work ? std::get_if<ir::PoolWork>(work) : nullptr;
  const ir::Window* window = conv ? &conv->window : pool ? &pool->window : nullptr;
  return window && window->spatial() == 2 ? window : nullptr;
}

/// A map of one image, whose rows can be made one by one; nullptr: something else.
const ir::LoopForm* map_of_image(const ScheduleScope& scope, NodeId id) {
  const auto* map = std::get_if<ir::LoopForm>(&scope.forms.at(id));
  if (!map || !map->is_map() || map->regions.size() != 1 || !map->checks.empty()) return nullptr;
  if (map->extents.size() != 4 || map->extents[0] != 1 || map->extents[kRowsOfImage] == 1) return nullptr;
  return map->has_identity_store() && !scope.homes.elided_regions.count(id) ? map : nullptr;
}

/// Whether each row of a map is made of the same row of a value, wherever that is read.
bool reads_own_rows(const ir::LoopForm& map, const ir::Node& node, ValueId value) {
  const int root[] = {map.regions[0].root};
  for (const int n : map.dag.reachable(root)) {
    const ir::ScalarNode& load = map.dag[n];
    if (load.op != ir::ScalarOp::kLoad || node.operands[static_cast<std::size_t>(load.operand)] != value)
      continue;
    if (load.index.size() != map.extents.size() || load.index[kRowsOfImage].as_axis() != kRowsOfImage)
      return false;
  }
  return true;
}

/// Whether the last result takes the place of nothing that is still read: of no operand of the kernels before
/// the last; or of what the first one reads, row for row,
/// while no rows above those that it makes are needed again.
bool spares_operands(const ScheduleScope& scope, std::span<const NodeId> order,
                     std::span<const StripKernel> chain, const StripPlan& plan) {
  const auto home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const Storage& last = home(scope.graph.node(order.back()).results[0]);
  const bool in_step = plan.parts == 1 && chain.front().span == 1 &&
                       std::all_of(chain.begin(), chain.end(), [](const StripKernel& kernel) {
                         return kernel.stride == 1 && kernel.pad < kernel.span;
                       });
  for (const NodeId id : order.first(order.size() - 1)) {
    const std::vector<ValueId>& operands = scope.graph.node(id).operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].valid() || scope.graph.constant(operands[i])) continue;
      const Storage& read = home(operands[i]);
      if (read.buffer != last.buffer) continue;
      const bool is_image = id == order.front() && i == 0;
      if (!in_step || !is_image || read.offset != last.offset || read.strides != last.strides) return false;
    }
  }
  return true;
}

}  // namespace

/// nullopt: neither a map nor a convolution or pool of one image whose kernel makes single rows, or not as
/// its operands lie.
std::optional<StripKernel> StripLowering::strip_kernel(const ScheduleScope& scope, NodeId id) {
  const ir::Form& form = scope.forms.at(id);
  const ir::Node& node = scope.graph.node(id);
  if (map_of_image(scope, id)) {
    const ir::TensorType& type = scope.graph.value(node.results[0]).type;
    StripKernel kernel;
    kernel.rows = type.shape[2];
    kernel.row_bytes = type.shape[1] * type.shape[3] * bits_of(type.element) / 8;
    return kernel;
  }
  const ir::Window* window = image_window(form);
  if (!window) return std::nullopt;
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const KernelTask task = {scope.graph, id, form, home};
  const ir::Problem problem = chooser_.problem_of(task);
  const Ranking& ranking = chooser_.ranking_of(task, problem);
  if (ranking.taken.empty()) return std::nullopt;
  const Recipe& recipe = ranking.taken.front().family->recipe(chooser_.machine().target);
  const ir::Shape& result = scope.graph.value(node.results[0]).type.shape;
  if (!recipe.makes_rows || result[0] != 1 || (recipe.needs && recipe.needs(problem, 0))) return std::nullopt;
  const ImageShape shape = image_of(problem, *window, 1);
  if (shape.out_h != result[2]) return std::nullopt;  // rows are columns: see image_shape()
  StripKernel kernel;
  kernel.rows = shape.out_h;
  kernel.span = window->span(0);
  kernel.stride = shape.stride_h;
  kernel.pad = shape.pad_top;
  kernel.row_bytes = scope.homes.storage.at(node.results[0]).strides[2] *
                     bits_of(scope.graph.value(node.results[0]).type.element) / 8;
  if (problem.operands.size() > 1) {
    kernel.weight_bytes = scope.graph.value(node.operands[1]).type.bytes();
  }
  return kernel;
}

/// Whether what a kernel hands to the next lies dense, for itself, and nobody else reads it.
bool StripLowering::hands_over(const ScheduleScope& scope, NodeId from, NodeId to) const {
  const ValueId id = scope.graph.node(from).results[0];
  const ir::Value& value = scope.graph.value(id);
  const Storage& home = scope.homes.storage.at(id);
  const ir::Shape& shape = value.type.shape;
  const ir::LoopForm* map = map_of_image(scope, to);
  const bool is_read_by_rows = map ? reads_own_rows(*map, scope.graph.node(to), id)
                                   : value.uses.size() == 1 && value.uses[0].slot == 0;
  return is_read_by_rows &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const ir::Use& use) { return use.node == to; }) &&
         buffers_[home.buffer].space == Space::kArena && home.offset == 0 &&
         ir::same_layout(shape, home.strides, ir::strides_in_order(shape, ir::channels_last(shape.size()))) &&
         scope.values_in_buffer.at(home.buffer) == 1;
}

/// Cuts the chain that `order` begins with; none has its first node for itself.
void StripLowering::cut_chain(ScheduleScope& scope, std::span<const NodeId> order) {
  const auto is_image = [&](NodeId id) {
    return image_window(scope.forms.at(id)) || map_of_image(scope, id);
  };
  const auto in_arena = [&](ValueId value) {
    const int buffer = scope.homes.storage.at(value).buffer;
    return buffers_[buffer].space == Space::kArena ? buffer : -1;
  };
  std::vector<StripKernel> chain;
  const auto goes_on = [&] {
    const std::size_t i = chain.size();
    if (i == 0) return is_image(order[0]);
    return i < std::min(order.size(), kMostKernels) && is_image(order[i]) &&
           hands_over(scope, order[i - 1], order[i]);
  };
  while (goes_on()) {
    auto kernel = strip_kernel(scope, order[chain.size()]);
    if (!kernel) break;
    const ir::Node& node = scope.graph.node(order[chain.size()]);
    for (const ValueId operand : node.operands) {
      if (!operand.valid() || scope.graph.constant(operand)) continue;
      const int buffer = in_arena(operand);
      if (buffer < 0 || (!chain.empty() && buffer == chain.back().result)) continue;
      kernel->reads[buffer] = buffers_[buffer].bytes;
    }
    kernel->result = in_arena(node.results[0]);
    chain.push_back(std::move(*kernel));
  }
  std::size_t first = 0;
  for (StripGroup& group : cut_into_groups(
           chain, chooser_.machine(), [&](std::size_t from, std::size_t length, const StripPlan&plan) {
             return spares_operands(scope, order.subspan(from, length),
                                    std::span(chain).subspan(from, length), plan);
           })) {
    const std::size_t length = group.length;
    scope.strips.emplace(order[first], std::move(group));
    first += length;
  }
  if (chain.empty()) scope.strips.emplace(order[0], StripGroup{});
}

KernelCall StripLowering::call_by_rows(const ScheduleScope& scope, NodeId id) {
  const ir::Form& form = scope.forms.at(id);
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const ir::LoopForm* map = map_of_image(scope, id);
  if (!map) return chooser_.call_for({scope.graph, id, form, home, /*by_rows=*/true}, weights_);
  CallWriter writer(scope.graph, id, form, home, weights_, chooser_.machine());
  writer.read_numbers(chooser_.options().trained);
  writer.call().family = "map";
  writer.by_rows();
  writer.loops(*map);
  return std::move(writer.call());
}

std::size_t StripLowering::lower(ScheduleScope& scope, std::span<const NodeId> order) {
  if (chooser_.on_device()) return 0;
  if (!scope.strips.count(order[0])) cut_chain(scope, order);
  const StripGroup& group = scope.strips.at(order[0]);
  if (!group.plan) return 0;
  const ir::Graph& graph = scope.graph;
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const std::span<const NodeId> nodes = order.first(group.length);
  std::map<int, int> images;  // by the buffer that would have held the whole
  for (const NodeId id : nodes.first(nodes.size() - 1)) {
    images.emplace(home(graph.node(id).results[0]).buffer, static_cast<int>(images.size()));
  }
  LoweredStep step;
  step.kind = LoweredStep::Kind::kStrips;
  step.strips = *group.plan;
  step.strip_buffers =
      steps_.scratch(group.plan->parts * group.plan->part_bytes(),
                     name_in_code(buffers_[home(graph.node(nodes.back()).results[0]).buffer]) + " strips");
  steps_.touch(step.strip_buffers);
  for (const NodeId id : nodes) {
    const ir::Node& node = graph.node(id);
    KernelCall call = call_by_rows(scope, id);
    for (CallArgument& argument : call.arguments) {
      const auto image = images.find(argument.storage.buffer);
      if (argument.kind != CallArgument::Kind::kStorage || image == images.end()) continue;
      argument.kind = CallArgument::Kind::kStrip;
      argument.strip = image->second;
    }
    step.strip_steps.push_back(
        steps_.made_step(std::move(call), origins_of(node), comment_of(node),
                         layout_text(graph.value(node.results[0]).type, home(node.results[0]).strides)));
  }
  scope.steps.push_back(std::move(step));
  steps_.pass();
  return group.length;
}

}  // namespace gcompile
