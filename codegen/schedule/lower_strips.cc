// Chains of kernels that run in strips of image rows.
#include <algorithm>

#include "codegen/kernels/image_weights.h"
#include "codegen/schedule/scope.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

namespace {

constexpr std::size_t kMostKernels = 8;

/// nullptr: not a convolution of images.
const ir::ConvWork* image_work(const ir::Form& form) {
  const auto* contract = std::get_if<ir::ContractForm>(&form);
  const auto* work = contract ? std::get_if<ir::ConvWork>(&contract->work) : nullptr;
  return work && work->window.spatial() == 2 ? work : nullptr;
}

}  // namespace

/// nullopt: not a convolution of one image whose kernel makes single rows, or not as its operands lie.
std::optional<StripKernel> Scheduler::strip_kernel(const Scope& scope, NodeId id) {
  const ir::Form& form = scope.forms.at(id);
  const ir::ConvWork* work = image_work(form);
  const ir::Node& node = scope.graph.node(id);
  if (!work) return std::nullopt;
  const auto problem = ir::problem_of(
      scope.graph, id, form, [&](ValueId value) { return scope.homes.storage.at(value).strides; }, false);
  const Ranking ranking = rank(*problem, machine(), forced_family(node, form));
  if (ranking.taken.empty()) return std::nullopt;
  const Recipe& recipe = ranking.taken.front().family->recipe(machine().target);
  const ir::Shape& result = scope.graph.value(node.results[0]).type.shape;
  if (!recipe.makes_rows || result[0] != 1 || (recipe.needs && recipe.needs(*problem, 0)))
    return std::nullopt;
  const ImageShape shape = image_of(*problem, work->window, work->groups);
  if (shape.out_h != result[2]) return std::nullopt;  // rows are columns: see image_shape()
  StripKernel kernel;
  kernel.rows = shape.out_h;
  kernel.span = work->window.span(0);
  kernel.stride = shape.stride_h;
  kernel.pad = shape.pad_top;
  kernel.row_bytes = scope.homes.storage.at(node.results[0]).strides[2] *
                     bits_of(scope.graph.value(node.results[0]).type.element) / 8;
  kernel.weight_bytes = scope.graph.value(node.operands[1]).type.bytes();
  return kernel;
}

/// Whether the last result takes the place of nothing that is still read: of no operand of the kernels before
/// the last; or of what the first one reads, row for row, while no rows above those that it makes are needed
/// again.
bool Scheduler::spares_operands(const Scope& scope, std::span<const NodeId> order,
                                std::span<const StripKernel> chain, const StripPlan& plan) const {
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

std::size_t Scheduler::lower_in_strips(Scope& scope, std::span<const NodeId> order) {
  const ir::Graph& graph = scope.graph;
  const auto result_of = [&](NodeId id) { return graph.node(id).results[0]; };
  // What a kernel hands to the next nobody else reads, and it lies dense, for itself.
  const auto hands_over = [&](NodeId from, NodeId to) {
    const ValueId value = result_of(from);
    const std::vector<ir::Use>& uses = graph.value(value).uses;
    const Storage& home = scope.homes.storage.at(value);
    const ir::Shape& shape = graph.value(value).type.shape;
    return uses.size() == 1 && uses[0].node == to && uses[0].slot == 0 &&
           buffers_[static_cast<std::size_t>(home.buffer)].space == Space::kArena && home.offset == 0 &&
           ir::same_layout(shape, home.strides,
                           ir::strides_in_order(shape, ir::channels_last(shape.size()))) &&
           scope.values_in_buffer.at(home.buffer) == 1;
  };
  const auto follows = [&](std::size_t i) {
    return i < order.size() && image_work(scope.forms.at(order[i])) && hands_over(order[i - 1], order[i]);
  };
  if (on_device() || !image_work(scope.forms.at(order[0])) || !follows(1)) return 0;
  std::vector<StripKernel> kernels;
  for (std::size_t i = 0; i < kMostKernels && (i == 0 || follows(i)); ++i) {
    const auto kernel = strip_kernel(scope, order[i]);
    if (!kernel) break;
    kernels.push_back(*kernel);
  }
  const auto value = [&](const std::optional<StripPlan>& plan) {
    return !plan ? 0 : machine().smallest_scratch ? plan->saved_bytes() : plan->saved_picoseconds;
  };
  std::optional<StripPlan> best;
  std::size_t length = 0;
  for (std::size_t end = 2; end <= kernels.size(); ++end) {
    const std::span<const StripKernel> chain = std::span(kernels).first(end);
    const auto plan = plan_strips(chain, machine());
    if (!plan || !spares_operands(scope, order.first(end), chain, *plan)) continue;
    // The first kernel has its place only where it adds to what the others save.
    const auto others = end > 2 ? plan_strips(chain.subspan(1), machine()) : std::nullopt;
    if (value(plan) <= std::max(value(best), value(others))) continue;
    best = plan;
    length = end;
  }
  if (!best) return 0;
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  LoweredStep step;
  step.kind = LoweredStep::Kind::kStrips;
  step.strips = *best;
  step.strip_buffers = scratch(best->parts * best->part_bytes(), "strips");
  touch(step.strip_buffers);
  for (std::size_t i = 0; i < length; ++i) {
    const ir::Node& node = graph.node(order[i]);
    KernelCall call = chosen_call(graph, order[i], scope.forms.at(order[i]), home, true);
    for (CallArgument& argument : call.arguments) {
      if (argument.kind != CallArgument::Kind::kStorage) continue;
      for (std::size_t image = 0; image + 1 < length; ++image) {
        if (argument.storage.buffer != home(result_of(order[image])).buffer) continue;
        argument.kind = CallArgument::Kind::kStrip;
        argument.strip = static_cast<int>(image);
      }
    }
    step.strip_steps.push_back(made_step(std::move(call), origins_of(node), comment_of(node),
                                         to_string(graph.value(node.results[0]).type)));
  }
  scope.steps.push_back(std::move(step));
  ++now_;
  return length;
}

}  // namespace gcompile
