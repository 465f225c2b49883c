// scatter.dense: a copy of the data, then every update in order; CUDA: in an order that gives the same
// result. Data that lies where the result is written is not copied, and may have room between its rows.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/library_support.h"
#include "gcrt/cuda/scatter_plan.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  const auto& work = std::get<ir::ScatterWork>(problem.work);
  return work.combine == ir::ScatterCombine::kReplace ? std::nullopt : refuse_half(problem);
}

/// Whether updates by tuples go to the data where it is, with gaps that they step over.
bool has_room(const ir::Problem& problem) {
  const ir::ProblemOperand& data = problem.operands[0];
  if (!std::get<ir::ScatterWork>(problem.work).by_tuples) return false;
  if (data.strides != problem.results[0].strides || data.strides == ir::row_major_strides(data.shape))
    return false;
  const auto depth = static_cast<std::int64_t>(problem.shape(1).back());
  const ir::Shape slice(data.shape.begin() + depth, data.shape.end());
  return std::equal(data.strides.begin() + depth, data.strides.end(), ir::row_major_strides(slice).begin());
}

NeededOrder needs(const ir::Problem& problem, std::size_t i) {
  return i == 0 && has_room(problem) ? std::nullopt : needs_row_major(problem, i);
}

bool takes_formulas(const ir::Problem& problem) { return std::get<ir::ScatterWork>(problem.work).by_tuples; }

const char* combine_of(const ir::ScatterWork& work) {
  switch (work.combine) {
    case ir::ScatterCombine::kAdd:
      return "ScatterAdd";
    case ir::ScatterCombine::kMul:
      return "ScatterMul";
    case ir::ScatterCombine::kMax:
      return "ScatterMax";
    case ir::ScatterCombine::kMin:
      return "ScatterMin";
    case ir::ScatterCombine::kReplace:
      return "ScatterReplace";
  }
  GC_CHECK(false);
}

std::string int64_array(const std::string& name, const ir::Shape& values, SizeParameters& sizes) {
  std::vector<std::string> numbers;
  for (const ir::Dim value : values) numbers.push_back(sizes(value));
  // An array of no elements is not C++; its length is never read.
  if (numbers.empty()) numbers = {"0"};
  return fmt::format("{} std::int64_t {}[] = {{{}}};", are_constant(values) ? "constexpr" : "const", name,
                     fmt::join(numbers, ", "));
}

/// Places that updates go to, those between rows with room included, and how many updates there are.
struct Counts {
  ir::Dim targets, updates, slice = 1;
  std::int64_t depth;
  explicit Counts(const ir::Problem& problem) {
    const ir::Shape& data = problem.shape(0);
    const ir::Shape& indices = problem.shape(1);
    depth = 0;
    if (std::get<ir::ScatterWork>(problem.work).by_tuples) {
      depth = indices.back();
      slice = ir::element_count(ir::Shape(data.begin() + depth, data.end()));
      targets = has_room(problem) ? data[0] * (problem.operands[0].strides[0] / slice)
                                  : ir::element_count(ir::Shape(data.begin(), data.begin() + depth));
      updates = ir::element_count(ir::Shape(indices.begin(), indices.end() - 1));
    } else {
      targets = ir::element_count(data);
      updates = ir::element_count(indices);
    }
  }
};

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::ScatterWork>(problem.work);
  const ir::Shape& data = problem.shape(0);
  const ir::Shape& strides = problem.results[0].strides;
  const Counts counts(problem);
  const bool on_device = writer.on_device();
  KernelCall& out = writer.call();
  SizeParameters& sizes = out.sizes;
  out.headers = {on_device ? "gcrt/cuda/scatter.h" : "gcrt/cpu/library.h"};
  out.checked = !on_device;
  if (on_device) writer.device().traps = true;
  writer.operand(0, "data");
  writer.operand(1, "indices");
  writer.operand(2, "updates");
  writer.result(0, "y");
  if (on_device) {
    const bool replaces = work.combine == ir::ScatterCombine::kReplace;
    const std::int64_t targets = ir::highest(counts.targets), updates = ir::highest(counts.updates);
    const std::int64_t words = gcrt::scatter_scratch_words(replaces, targets, updates);
    DeviceCall& device = writer.device();
    device.launches = std::max(device.launches, gcrt::scatter_launches(replaces, targets, updates));
    writer.scratch(std::max<std::int64_t>(1, words) * 4, "scratch", "std::uint32_t");
  }
  const std::string begin = on_device ? "" : "return ", end = on_device ? "y, scratch" : "y";
  CodeText code(1);
  if (work.by_tuples) {
    const auto depth = static_cast<std::ptrdiff_t>(counts.depth);
    // Data with room between its rows is where the result is, and never copied.
    const std::string count = has_room(problem) ? "0" : sizes(ir::element_count(data));
    code.line(int64_array("extents", ir::Shape(data.begin(), data.begin() + depth), sizes));
    const bool has_strides = !on_device || has_room(problem);
    if (has_strides)
      code.line(int64_array("strides", ir::Shape(strides.begin(), strides.begin() + depth), sizes));
    const std::string tuples = on_device ? sizes.as_int(counts.updates) : sizes(counts.updates);
    code.line(fmt::format(
        "{}scatter_nd<{}>({}/*count, tuples, depth, slice*/ {}, {}, {}, {}, extents, {}data, indices, "
        "updates, {});",
        begin, combine_of(work), writer.queue_argument(), count, tuples, counts.depth, sizes(counts.slice),
        has_strides ? "strides, " : "", end));
  } else {
    code.line(int64_array("extents", data, sizes));
    code.line(int64_array("strides", strides, sizes));
    code.line(int64_array("box", problem.shape(1), sizes));
    code.line(fmt::format(
        "{}scatter_elements<{}>({}/*count, rank, axis*/ {}, {}, {}, extents, strides, box, data, indices, "
        "updates, {});",
        begin, combine_of(work), writer.queue_argument(), ir::element_count(data), data.size(), work.axis,
        end));
  }
  out.body = code.text();
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine&) {
  const Counts counts(problem);
  if (counts.targets >= INT32_MAX || counts.updates >= INT32_MAX) return "2^31 places or updates";
  return std::nullopt;
}

bool cuda_takes_formulas(const ir::Problem& problem) {
  if (!takes_formulas(problem)) return false;
  const Counts counts(problem);
  return ir::highest(counts.targets) < INT32_MAX && ir::highest(counts.updates) < INT32_MAX;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const Counts counts(problem);
  std::vector<PlannedCost> out = cuda_streaming_plan(problem, machine);
  const bool replaces = std::get<ir::ScatterWork>(problem.work).combine == ir::ScatterCombine::kReplace;
  out[0].cost.launches = gcrt::scatter_launches(replaces, counts.targets, counts.updates);
  return out;
}

}  // namespace

const KernelFamily& family_scatter_dense() {
  static const KernelFamily family = {
      "scatter.dense",
      ir::Kind::kScatter,
      refuses,
      {{{.takes_formulas = takes_formulas, .needs = needs, .plans = streaming_plan, .call = call},
        {.refuses = cuda_refuses,
         .takes_formulas = cuda_takes_formulas,
         .needs = needs,
         .plans = cuda_plans,
         .call = call}}}};
  return family;
}

}  // namespace gcompile
