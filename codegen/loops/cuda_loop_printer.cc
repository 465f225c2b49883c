#include "codegen/loops/cuda_loop_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/loops/cuda_nest_printer.h"
#include "ir/diagnostics.h"

namespace gcompile {

namespace {

using Worker = CudaLoopPlan::Worker;

constexpr int kWarpThreads = 32;

/// Threads of a block of a kernel in which every thread works alone: small grids are spread over more blocks.
int block_threads(std::int64_t workers) { return workers >= 65536 ? 256 : workers >= 8192 ? 128 : 64; }

/// Parameters by name.
using Names = std::set<std::string>;

struct Printed {
  CudaLoopPlan plan;
  std::string counter;  // type of `worker`
  std::string body;
  std::string shared;  // of tiles: bytes
  Names parameters;    // that the body names
};

Names parameters_in(const Mentions& mentions, const std::vector<KernelTensor>& operands,
                    const KernelTensor& result) {
  Names names;
  for (const int operand : mentions.operands)
    names.insert(operands[static_cast<std::size_t>(operand)].pointer);
  if (mentions.result) names.insert(result.pointer);
  return names;
}

constexpr const char* kTrap = "trap";

class KernelWriter {
 public:
  KernelWriter(std::vector<CudaParameter> parameters, bool checked)
      : parameters_(std::move(parameters)), checked_(checked) {
    if (checked_) parameters_.push_back({"int* trap", kTrap, "queue.trap"});
  }

  /// Parts in which every thread works alone share one launch: each takes whole blocks of it.
  void add_threads(const std::vector<Printed>& parts, const std::string& suffix, bool guarded) {
    std::int64_t total = 0;
    Names names;
    for (const Printed& part : parts) {
      total += part.plan.workers;
      names.insert(part.parameters.begin(), part.parameters.end());
    }
    const int threads = block_threads(total);
    CodeText code(1);
    if (guarded && checked_) code.line("if (*trap != 0) return;");
    const bool narrow =
        total < INT32_MAX / 2 &&
        std::all_of(parts.begin(), parts.end(), [](const Printed& part) { return part.counter == "int"; });
    const std::string type = narrow ? "int" : "std::int64_t";
    std::int64_t first = 0;
    for (const Printed& part : parts) {
      const std::int64_t count = part.plan.workers;
      if (parts.size() == 1) {
        code.line(fmt::format("const {0} worker = global_thread<{0}>();", type));
        if (count % threads != 0) code.line(fmt::format("if (worker >= {}) return;", count));
        code.append(part.body);
      } else {
        if (first == 0) code.line(fmt::format("const {0} thread = global_thread<{0}>();", type));
        code.open(first == 0 ? fmt::format("if (thread < {}) {{", count)
                             : fmt::format("if (thread >= {} && thread < {}) {{", first, first + count));
        const std::string place = first == 0 ? "thread" : fmt::format("thread - {}", first);
        code.line(part.counter == type
                      ? fmt::format("const {} worker = {};", type, place)
                      : fmt::format("const {0} worker = static_cast<{0}>({1});", part.counter, place));
        code.append(part.body, 1);
        code.close();
      }
      first += (count + threads - 1) / threads * threads;
    }
    if (guarded && checked_) names.insert(kTrap);
    add(suffix, code.plain(), std::move(names), first / threads, threads, "0");
  }

  /// Every block works on one tile or row, or its warps on one row each.
  void add_groups(const Printed& part, const std::string& suffix, bool guarded) {
    const CudaLoopPlan& plan = part.plan;
    const bool warp = plan.worker == Worker::kWarp;
    const int threads = warp ? block_threads(plan.workers * kWarpThreads) : plan.threads;
    const int rows = threads / plan.threads;
    CodeText code(1);
    if (guarded && checked_) code.line("if (*trap != 0) return;");
    std::string shared = "0";
    if (plan.worker != Worker::kTile) code.line(fmt::format("auto group = make_group<{}>();", plan.threads));
    if (warp) {
      code.line(fmt::format("const {0} worker = global_thread<{0}>() / {1};", part.counter, kWarpThreads));
      if (plan.workers % rows != 0) code.line(fmt::format("if (worker >= {}) return;", plan.workers));
    } else {
      code.line(fmt::format("const {0} worker = static_cast<{0}>(blockIdx.x);", part.counter));
      shared = part.shared.empty() ? fmt::format("Group<{}>::kScratchBytes", plan.threads) : part.shared;
    }
    code.append(part.body);
    Names names = part.parameters;
    if (guarded && checked_) names.insert(kTrap);
    add(suffix, code.plain(), std::move(names), (plan.workers + rows - 1) / rows, threads, shared);
  }

  CudaLoops finish() { return {std::move(device_), std::move(launches_), count_, {"gcrt/cuda/loops.h"}, ""}; }

 private:
  /// A kernel takes only the parameters that its body names. It is called as the host function, with
  /// "_kernel" and the suffix.
  void add(const std::string& suffix, const std::string& body, const Names& names, std::int64_t blocks,
           int threads, const std::string& shared) {
    std::string declarations, arguments;
    for (const CudaParameter& p : parameters_) {
      if (names.count(p.name) == 0) continue;
      declarations += (declarations.empty() ? "" : ", ") + p.declaration;
      arguments += ", " + p.argument;
    }
    const Text name = Text(Symbol::kKernel) + "_kernel" + suffix;
    device_ += fmt::format("GCRT_GLOBAL({}) void ", threads) + name +
               fmt::format("({}) {{\n  await_previous_grid();\n{}}}\n", declarations, body);
    launches_ += fmt::format("  launch_overlapping(queue, {}, {}, {}, ", blocks, threads, shared) + name +
                 fmt::format("{});\n", arguments);
    ++count_;
  }

  std::vector<CudaParameter> parameters_;
  bool checked_;
  Text device_, launches_;
  int count_ = 0;
};

}  // namespace

CudaLoops print_cuda_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                           const KernelTensor& result, const std::vector<CudaParameter>& parameters,
                           const gcrt::DeviceModel& device) {
  SizeParameters sizes;  // of no loops yet: the plan refuses formulas
  std::vector<Printed> parts;
  bool checks_itself = false;
  std::string choice;
  for (const ir::Region& region : form.regions) {
    if (region.is_empty()) continue;
    LoopNest nest = build_nest(form, region, operands, result);
    Printed& part = parts.emplace_back();
    part.plan = plan_cuda_loops(nest, region.root, operands, result, device);
    CodeText code(1);
    CudaNestPrinter printer(std::move(nest), operands, &result, part.plan, code, sizes);
    if (form.regions.size() == 1 && printer.can_check(form.checks)) {
      printer.check(form.checks);
      checks_itself = !form.checks.empty();
    }
    printer.print(region.root);
    part.counter = printer.counter_type();
    part.body = code.plain();
    part.parameters = parameters_in(printer.mentions(), operands, result);
    if (checks_itself) part.parameters.insert(kTrap);
    part.shared = printer.shared_bytes();
    if (choice.empty()) choice = part.plan.summary();
  }
  KernelWriter writer(parameters, !form.checks.empty());
  int checks = 0;
  for (const ir::BoundsCheck& check : form.checks) {
    if (checks_itself) break;
    ir::LoopForm probe = form;
    probe.stages.clear();
    probe.parallel = static_cast<int>(form.extents.size());
    probe.set_root(check.scalar);
    KernelTensor none;
    none.strides.assign(form.store.size(), 0);
    LoopNest nest = build_nest(probe, probe.regions[0], operands, none);
    nest.vector_axis = -1;
    // Only the axes that the index depends on are walked.
    const std::uint64_t mask = nest.dependence()[static_cast<std::size_t>(check.scalar)];
    nest.parallel.erase(std::remove_if(nest.parallel.begin(), nest.parallel.end(),
                                       [&](int a) { return (mask >> a & 1) == 0; }),
                        nest.parallel.end());
    Printed part;
    part.plan.workers = extent_of(nest, nest.parallel);
    CodeText code(1);
    CudaNestPrinter printer(std::move(nest), operands, nullptr, part.plan, code, sizes);
    printer.print_check(check.scalar, check.range);
    part.counter = printer.counter_type();
    part.body = code.plain();
    part.parameters = parameters_in(printer.mentions(), operands, none);
    part.parameters.insert(kTrap);
    writer.add_threads({part}, fmt::format("_check{}", checks++ ? std::to_string(checks) : ""), false);
  }
  std::vector<Printed> alone;
  int groups = 0;
  bool rows = false, tiles = false, packs = false;
  const bool is_guarded = !checks_itself;
  for (Printed& part : parts) {
    if (!part.plan.kept.is_empty()) rows = true;
    if (part.plan.worker == Worker::kTile) tiles = true;
    if (part.plan.packs > 1) packs = true;
    if (part.plan.worker == Worker::kThread) {
      alone.push_back(std::move(part));
    } else {
      writer.add_groups(part, groups++ ? std::to_string(groups) : "", is_guarded);
    }
  }
  if (!alone.empty()) writer.add_threads(alone, groups ? "_rest" : "", is_guarded);
  CudaLoops loops = writer.finish();
  loops.choice = std::move(choice);
  if (rows) loops.headers.push_back("gcrt/cuda/row.h");
  if (tiles) loops.headers.push_back("gcrt/cuda/transpose.h");
  if (packs) loops.headers.push_back("gcrt/cuda/map.h");
  return loops;
}

std::optional<CudaRows> print_cuda_rows(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                                        const KernelTensor& result, const gcrt::DeviceModel& device,
                                        int threads) {
  if (form.is_map() || form.regions.size() != 1 || !form.checks.empty()) return std::nullopt;
  SizeParameters sizes;
  LoopNest nest = build_nest(form, form.regions[0], operands, result);
  const auto plan = plan_rows_of_block(nest, form.regions[0].root, operands, result, device, threads);
  if (!plan) return std::nullopt;
  CodeText code(2);
  code.line(fmt::format("auto group = make_group<{}>(scratch);", threads));
  CudaNestPrinter printer(std::move(nest), operands, &result, *plan, code, sizes);
  const std::string counter = printer.counter_type();
  if (plan->workers > 1) {
    code.open(fmt::format("for ({0} worker = 0; worker < {1}; ++worker) {{", counter, plan->workers));
  } else {
    code.line(fmt::format("constexpr {} worker = 0;", counter));
  }
  printer.print(form.regions[0].root);
  if (plan->workers > 1) code.close();
  CudaRows rows;
  rows.body = code.plain();
  if (!plan->kept.is_empty()) rows.headers.push_back("gcrt/cuda/row.h");
  return rows;
}

}  // namespace gcompile
