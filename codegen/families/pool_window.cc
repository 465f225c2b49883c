// pool.window: maximum or mean over windows, a vector of channels at a time.

#include <fmt/format.h>

#include "codegen/calls/cuda_time.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, false)) return image;
  const ir::ElementType element = problem.operands[0].element;
  if (compute_type(element) != element) return fmt::format("elements of {}", name_of(element));
  return std::nullopt;
}

const char* function_of(const ir::PoolWork& work) { return work.is_max ? "max_pool2d" : "average_pool2d"; }

/// What a mean takes beside shape and operand.
std::string options_of(const ir::PoolWork& work, const ImageShape& image) {
  if (work.is_max) return "";
  return fmt::format(", /*count_include_pad*/ {}, /*pad bottom, right*/ {}, {}", work.count_include_pad,
                     image.pad_bottom, image.pad_right);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::PoolWork>(problem.work);
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(
      ir::element_count(problem.results[0].shape) * work.window.taps(), problem.bytes(), 0.25);
  only.cost.code_key = function_of(work);
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::PoolWork>(problem.work);
  writer.call().headers = {"gcrt/cpu/image/pool.h"};
  writer.operand(0, "x");
  const ImageShape image = image_of(problem, work.window, 1);
  write_parallel(problem, image, writer, function_of(work), "x" + options_of(work, image));
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = streaming_picoseconds(problem, machine);
  return {only};
}

void cuda_call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::PoolWork>(problem.work);
  writer.call().headers = {"gcrt/cuda/image/pool.h"};
  writer.operand(0, "x");
  const ImageShape image = image_of(problem, work.window, 1);
  writer.call().body =
      shape_and_epilogue(problem, image, writer) +
      fmt::format("  {}(queue, shape, x{}, epilogue);\n", function_of(work), options_of(work, image));
}

}  // namespace

const KernelFamily& family_pool_window() {
  static const KernelFamily family = {
      "pool.window", ir::Kind::kPool, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.takes_formulas = takes_open_images,
           .plans = cuda_plans,
           .call = cuda_call,
           .device = {.overlaps = true}})};
  return family;
}

}  // namespace gcompile
