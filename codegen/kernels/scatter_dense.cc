// scatter.dense: a copy of the data, then every update in order; CUDA: in an order that gives the same
// result.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/library_support.h"
#include "gcrt/cuda/scatter_plan.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  const auto& work = std::get<ir::ScatterWork>(problem.work);
  return work.combine == ir::ScatterCombine::kReplace ? std::nullopt : refuse_half(problem);
}

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

std::string int64_array(const std::string& name, const ir::Shape& values) {
  // An array of no elements is not C++; its length is never read.
  return fmt::format("constexpr std::int64_t {}[] = {{{}}};", name,
                     values.empty() ? "0" : fmt::format("{}", fmt::join(values, ", ")));
}

/// Places that updates go to, and how many updates there are.
struct Counts {
  std::int64_t targets, updates, depth;
  explicit Counts(const ir::Problem& problem) {
    const ir::Shape& data = problem.shape(0);
    const ir::Shape& indices = problem.shape(1);
    depth = 0;
    if (std::get<ir::ScatterWork>(problem.work).by_tuples) {
      depth = indices.back();
      targets = ir::element_count(ir::Shape(data.begin(), data.begin() + depth));
      updates = ir::element_count(ir::Shape(indices.begin(), indices.end() - 1));
    } else {
      targets = ir::element_count(data);
      updates = ir::element_count(indices);
    }
  }
};

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ScatterWork>(problem.work);
  const ir::Shape& data = problem.shape(0);
  const ir::Shape strides = ir::row_major_strides(data);
  const Counts counts(problem);
  const bool on_device = writer.on_device();
  KernelCall& out = writer.call();
  out.headers = {on_device ? "gcrt/cuda/scatter.h" : "gcrt/cpu/library.h"};
  out.checked = !on_device;
  out.traps = on_device;
  writer.operand(0, "data");
  writer.operand(1, "indices");
  writer.operand(2, "updates");
  writer.result(0, "y");
  if (on_device) {
    const std::int64_t words = gcrt::scatter_scratch_words(work.combine == ir::ScatterCombine::kReplace,
                                                           counts.targets, counts.updates);
    writer.scratch(std::max<std::int64_t>(1, words) * 4, "scratch", "std::uint32_t");
  }
  const std::string begin = on_device ? "" : "return ", end = on_device ? "y, scratch" : "y";
  CodeText code(1);
  if (work.by_tuples) {
    const auto depth = static_cast<std::ptrdiff_t>(counts.depth);
    code.line(int64_array("extents", ir::Shape(data.begin(), data.begin() + depth)));
    if (!on_device) code.line(int64_array("strides", ir::Shape(strides.begin(), strides.begin() + depth)));
    code.line(fmt::format(
        "{}scatter_nd<{}>({}/*count, tuples, depth, slice*/ {}, {}, {}, {}, extents, {}data, indices, "
        "updates, {});",
        begin, combine_of(work), writer.queue_argument(), ir::element_count(data), counts.updates,
        counts.depth, ir::element_count(ir::Shape(data.begin() + depth, data.end())),
        on_device ? "" : "strides, ", end));
  } else {
    code.line(int64_array("extents", data));
    code.line(int64_array("strides", strides));
    code.line(int64_array("box", problem.shape(1)));
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
      {{{.needs = needs_row_major, .plans = streaming_plan, .call = call},
        {.refuses = cuda_refuses, .needs = needs_row_major, .plans = cuda_plans, .call = call}}}};
  return family;
}

}  // namespace gcompile
