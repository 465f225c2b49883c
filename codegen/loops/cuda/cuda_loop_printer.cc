#include "codegen/loops/cuda/cuda_loop_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/loops/cuda/cuda_kernel_writer.h"
#include "codegen/loops/cuda/cuda_nest_printer.h"
#include "codegen/loops/region_form.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

using ir::ElementType;
using ir::Index;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

using Worker = CudaLoopPlan::Worker;

/// What formulas stand for in an index are parameters of their own, beside what becomes of them.
bool names_small_sizes(const Index& index, const std::vector<ir::Range>& ranges) {
  bool is_open = !index.constant().is_constant();
  bool fits = is_small(index.constant()) || !is_open;
  for (const Index::Term& t : index.terms()) {
    for (const ir::Dim size : {t.coefficient, t.atom.divisor}) {
      if (size.is_constant()) continue;
      is_open = true;
      fits = fits && is_small(size);
    }
    if (t.atom.inner) fits = fits && names_small_sizes(*t.atom.inner, ranges);
  }
  if (!is_open || !fits) return fits;
  const ir::Range range = ir::range_of(index, ranges);
  return is_small(range.low) && is_small(range.high);
}

/// Counters and addresses are 32-bit when every value they take is, at all sizes.
bool fits_32_bits(const LoopNest& nest) {
  const std::vector<ir::Range> ranges = nest.ranges();
  const auto fits = [&](const Index& index) {
    const ir::Range range = ir::range_of(index, ranges);
    return is_small(range.low) && is_small(range.high) && names_small_sizes(index, ranges);
  };
  return is_small(extent_of(nest, nest.parallel)) && is_small(extent_of(nest, nest.reduced)) &&
         fits(nest.store) && std::all_of(nest.nodes.begin(), nest.nodes.end(), [&](int id) {
           return fits(nest.address[static_cast<std::size_t>(id)]);
         });
}

std::set<std::string> parameters_in(const Mentions& mentions, const std::vector<KernelTensor>& operands,
                                    const KernelTensor& result) {
  std::set<std::string> names;
  for (const int operand : mentions.operands)
    names.insert(operands[static_cast<std::size_t>(operand)].pointer);
  if (mentions.result) names.insert(result.pointer);
  return names;
}

/// A kernel for every group of stages, and one for what walks the rows at last.
void print_shared_rows(std::vector<PrintedNest>& parts, const LoopNest& nest, int root,
                       const std::vector<KernelTensor>& operands, const KernelTensor& result,
                       const CudaLoopPlan& plan, bool narrow, SizeParameters& sizes) {
  for (const auto& stages : plan.shared.kernels) {
    PrintedNest& part = parts.emplace_back();
    part.plan = plan;
    CodeText code(1);
    CudaNestPrinter printer(nest, operands, &result, part.plan, narrow, code, sizes);
    printer.print_shared(root, stages);
    part.worker = printer.worker_name();
    part.counter = printer.counter_type();
    part.body = code.plain();
    part.parameters = parameters_in(printer.mentions(), operands, result);
    part.parameters.insert(CudaKernelWriter::kWorkspace);
    if (stages.first < stages.second) part.parameters.insert(CudaKernelWriter::kCounters);
    if (plan.shared.is_open()) part.parameters.insert(CudaKernelWriter::kParts);
    part.sizes = sizes.take_mentioned();
    part.parameters.merge(sizes.take_mentioned_numbers());
  }
}

/// What the model of time has to know beside the bytes of operands and results.
void note_walks(CudaLoops& loops, const CudaLoopPlan& plan, const LoopNest& nest, int root) {
  if (nest.form->is_map()) return;
  const RowWalks walks = row_walks(nest, root, !plan.kept.is_empty(), true);
  loops.rounds += rounds_of(nest, plan, walks.walks);
  loops.bytes_again += walks.again;
  if (plan.shared.is_empty()) return;
  loops.workspace_bytes = std::max(loops.workspace_bytes, plan.shared.workspace_bytes());
  loops.counters = std::max(loops.counters, plan.shared.counters());
  loops.joins +=
      static_cast<int>(std::count_if(plan.shared.kernels.begin(), plan.shared.kernels.end(),
                                     [](const auto& stages) { return stages.first < stages.second; }));
}

}  // namespace

CudaLoops print_cuda_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                           const KernelTensor& result, const std::vector<CudaParameter>& parameters,
                           const gcrt::DeviceModel& device, SizeParameters& sizes) {
  sizes.take_mentioned();
  sizes.take_mentioned_numbers();
  std::deque<ir::LoopForm> alone;               // forms of regions, to which their nests point
  std::vector<std::pair<LoopNest, int>> nests;  // with their roots
  for (const ir::Region& region : form.regions) {
    poll_interrupt();
    if (region.is_empty()) continue;
    if (form.regions.size() > 1) alone.push_back(form_of_region(form, region));
    const ir::LoopForm& from = alone.empty() ? form : alone.back();
    const ir::Region& printed = alone.empty() ? region : from.regions[0];
    nests.emplace_back(build_nest(from, printed, operands, result), printed.root);
  }
  // Sizes that parts of one kernel share are of one type.
  ir::Dim workers = 0;
  for (const auto& [nest, root] : nests) workers += extent_of(nest, nest.parallel);
  const bool are_narrow = is_small(workers) && std::all_of(nests.begin(), nests.end(), [](const auto& each) {
                            return fits_32_bits(each.first);
                          });
  std::vector<PrintedNest> parts;
  bool checks_itself = false;
  std::string choice;
  CudaLoops found;
  for (auto& [nest, root] : nests) {
    poll_interrupt();
    CudaLoopPlan plan = plan_cuda_loops(nest, root, operands, result, device);
    share_rows(plan, nest, root, device);
    note_walks(found, plan, nest, root);
    if (choice.empty()) choice = plan.summary();
    if (!plan.shared.is_empty()) {
      print_shared_rows(parts, nest, root, operands, result, plan, are_narrow, sizes);
      continue;
    }
    PrintedNest& part = parts.emplace_back();
    if (!form.checks.empty()) plan.kept.ahead.clear();  // the trap word is read first
    part.plan = std::move(plan);
    CodeText code(1);
    const bool narrow = are_narrow || (!ir::SizesScope::in_force() && fits_32_bits(nest));
    CudaNestPrinter printer(std::move(nest), operands, &result, part.plan, narrow, code, sizes);
    if (form.regions.size() == 1 && printer.can_check(form.checks)) {
      printer.check(form.checks);
      checks_itself = !form.checks.empty();
    }
    printer.print(root);
    part.worker = printer.worker_name();
    part.counter = printer.counter_type();
    part.body = code.plain();
    part.parameters = parameters_in(printer.mentions(), operands, result);
    if (checks_itself) part.parameters.insert(CudaKernelWriter::kTrap);
    part.sizes = sizes.take_mentioned();
    part.parameters.merge(sizes.take_mentioned_numbers());
    part.shared = printer.shared_bytes();
  }
  CudaKernelWriter writer(parameters, !form.checks.empty(), sizes);
  int checks = 0;
  for (const ir::BoundsCheck& check : form.checks) {
    if (checks_itself) break;
    poll_interrupt();
    const ir::LoopForm probe = form_of_check(form, check);
    const int scalar = probe.regions[0].root;
    KernelTensor none;
    none.strides.assign(form.store.size(), 0);
    LoopNest nest = build_nest(probe, probe.regions[0], operands, none);
    nest.vector_axis = -1;
    // Only the axes that the index depends on are walked.
    const std::uint64_t mask = nest.dependence()[static_cast<std::size_t>(scalar)];
    nest.parallel.erase(std::remove_if(nest.parallel.begin(), nest.parallel.end(),
                                       [&](int a) { return (mask >> a & 1) == 0; }),
                        nest.parallel.end());
    PrintedNest part;
    part.plan.workers = extent_of(nest, nest.parallel);
    CodeText code(1);
    const bool narrow = fits_32_bits(nest);
    CudaNestPrinter printer(std::move(nest), operands, nullptr, part.plan, narrow, code, sizes);
    printer.print_check(scalar, check.range);
    part.worker = printer.worker_name();
    part.counter = printer.counter_type();
    part.body = code.plain();
    part.parameters = parameters_in(printer.mentions(), operands, none);
    part.parameters.insert(CudaKernelWriter::kTrap);
    part.sizes = sizes.take_mentioned();
    part.parameters.merge(sizes.take_mentioned_numbers());
    writer.add_threads({part}, fmt::format("_check{}", checks++ ? std::to_string(checks) : ""), false);
  }
  std::vector<PrintedNest> by_threads;
  int groups = 0;
  bool rows = false, tiles = false, packs = false, shared = false;
  const bool is_guarded = !checks_itself;
  for (PrintedNest& part : parts) {
    if (!part.plan.kept.is_empty()) rows = true;
    if (part.plan.worker == Worker::kTile) tiles = true;
    if (part.plan.packs > 1) packs = true;
    if (!part.plan.shared.is_empty()) shared = true;
    if (part.plan.worker == Worker::kThread) {
      by_threads.push_back(std::move(part));
    } else {
      writer.add_groups(part, groups++ ? std::to_string(groups) : "", is_guarded);
    }
  }
  if (!by_threads.empty()) writer.add_threads(by_threads, groups ? "_rest" : "", is_guarded);
  CudaLoops loops = writer.finish();
  loops.choice = std::move(choice);
  loops.workspace_bytes = found.workspace_bytes;
  loops.counters = found.counters;
  loops.joins = found.joins;
  loops.rounds = found.rounds;
  loops.bytes_again = found.bytes_again;
  if (rows) loops.headers.push_back("gcrt/cuda/row.h");
  if (tiles) loops.headers.push_back("gcrt/cuda/transpose.h");
  if (packs) loops.headers.push_back("gcrt/cuda/map.h");
  if (shared) loops.headers.push_back("gcrt/cuda/row_parts.h");
  return loops;
}

std::optional<CudaRows> print_cuda_rows(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                                        const KernelTensor& result, const gcrt::DeviceModel& device,
                                        int threads) {
  if (form.is_map() || form.regions.size() != 1 || !form.checks.empty()) return std::nullopt;
  SizeParameters sizes;
  LoopNest nest = build_nest(form, form.regions[0], operands, result);
  if (!are_constant(form.extents)) return std::nullopt;
  const auto plan = plan_rows_of_block(nest, form.regions[0].root, operands, result, device, threads);
  if (!plan) return std::nullopt;
  CodeText code(2);
  code.line(fmt::format("auto group = make_group<{}>(scratch);", threads));
  const bool narrow = fits_32_bits(nest);
  CudaNestPrinter printer(std::move(nest), operands, &result, *plan, narrow, code, sizes);
  const std::string counter = printer.counter_type(), worker = printer.worker_name();
  if (plan->workers > 1) {
    code.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", counter, worker, plan->workers));
  } else {
    code.line(fmt::format("constexpr {} {} = 0;", counter, worker));
  }
  printer.print(form.regions[0].root);
  if (plan->workers > 1) code.close();
  if (!sizes.sizes().empty()) return std::nullopt;  // the functor has no members for them
  CudaRows rows;
  rows.body = code.plain();
  if (!plan->kept.is_empty()) rows.headers.push_back("gcrt/cuda/row.h");
  return rows;
}

}  // namespace gcompile
