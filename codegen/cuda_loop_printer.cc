#include "codegen/cuda_loop_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/c_types.h"
#include "codegen/kernel_call.h"
#include "codegen/nest_printer.h"
#include "ir/diagnostics.h"

namespace gcompile {

using ir::ElementType;
using ir::Index;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

/// Bytes that one thread moves by one instruction.
constexpr std::int64_t kAccessBytes = 16;
/// Rows up to this length are reduced by one warp: shuffles alone, no barrier.
constexpr std::int64_t kWarpRow = 1024;
constexpr int kWarpThreads = 32;
constexpr int kBlockThreads = 256;
/// A grid of fewer threads leaves most of a large GPU idle: then a reduction is shared by a whole group.
constexpr std::int64_t kFewThreads = 4096;
constexpr std::int64_t kLongReduction = 64;

enum class Worker { kThread, kWarp, kBlock };

/// How one nest is spread over the grid.
struct Plan {
  Worker worker = Worker::kThread;  // who computes one point of the parallel axes (or one pack of points)
  std::int64_t lanes = 1;
  std::int64_t workers = 1;
};

std::int64_t bytes_of_element(ElementType type) { return bits_of(type) / 8; }

std::int64_t extent_of(const LoopNest& nest, const std::vector<int>& axes) {
  std::int64_t product = 1;
  for (const int a : axes) product *= nest.axes[static_cast<std::size_t>(a)].extent();
  return product;
}

/// Whether packs of `lanes` elements along the axis are aligned at every point: the stride is one, and
/// everything else moves by whole packs.
bool is_aligned(const Index& address, int axis, std::int64_t lanes, std::int64_t alignment,
                std::int64_t element_bytes) {
  if (alignment % (lanes * element_bytes) != 0 || address.constant() % lanes != 0) return false;
  return std::all_of(address.terms().begin(), address.terms().end(), [&](const Index::Term& t) {
    const bool own = t.atom.kind == ir::IndexAtom::Kind::kAxis && t.atom.axis == axis;
    return own ? t.coefficient == 1 : t.coefficient % lanes == 0;
  });
}

/// Elements that one thread handles at a time along the axis: as many as one aligned access of every stream
/// holds.
std::int64_t lanes_along(const LoopNest& nest, int axis, const std::vector<KernelTensor>& operands,
                         const KernelTensor& result) {
  struct Stream {
    const Index* address;
    const KernelTensor* tensor;
  };
  std::vector<Stream> streams;
  const std::vector<std::uint64_t> dependence = nest.dependence();
  const auto is_gathered = [&](const Index& address) {
    return std::any_of(address.terms().begin(), address.terms().end(), [&](const Index::Term& t) {
      const bool loaded = t.atom.kind == ir::IndexAtom::Kind::kLoaded;
      return loaded ? (dependence[static_cast<std::size_t>(t.atom.axis)] >> axis & 1) != 0
                    : t.atom.inner && t.atom.inner->mentions(axis);
    });
  };
  for (const int id : nest.nodes) {
    const ScalarNode& node = nest.form->dag[id];
    if (node.op != ScalarOp::kLoad) continue;
    const Index& address = nest.address[static_cast<std::size_t>(id)];
    if (!is_gathered(address) && address.coefficient_of(axis) == 1)
      streams.push_back({&address, &operands[static_cast<std::size_t>(node.operand)]});
  }
  const bool stores = !nest.axes[static_cast<std::size_t>(axis)].reduced || nest.form->final_over_reduced;
  if (stores && nest.store.coefficient_of(axis) == 1) streams.push_back({&nest.store, &result});
  if (streams.empty()) return 1;
  std::int64_t widest = 1;
  for (const Stream& s : streams) widest = std::max(widest, bytes_of_element(s.tensor->element));
  std::int64_t lanes = kAccessBytes / widest;
  const auto fits = [&] {
    return nest.axes[static_cast<std::size_t>(axis)].extent() % lanes == 0 &&
           std::all_of(streams.begin(), streams.end(), [&](const Stream& s) {
             return is_aligned(*s.address, axis, lanes, s.tensor->alignment,
                               bytes_of_element(s.tensor->element));
           });
  };
  while (lanes > 1 && !fits()) lanes /= 2;
  return lanes;
}

/// Chooses who works on what; may change the nest's vector axis.
Plan plan_of(LoopNest& nest, const std::vector<KernelTensor>& operands, const KernelTensor& result) {
  Plan plan;
  const bool arg = std::any_of(nest.form->stages.begin(), nest.form->stages.end(), [](const ir::Stage& s) {
    return s.combine == ir::Combine::kArgMax || s.combine == ir::Combine::kArgMin;
  });
  const std::int64_t points = extent_of(nest, nest.parallel), depth = extent_of(nest, nest.reduced);
  const bool reduces = !nest.form->is_map() && !nest.reduced.empty();
  bool shared =
      reduces && nest.vector_axis >= 0 && nest.axes[static_cast<std::size_t>(nest.vector_axis)].reduced;
  shared = !arg && (shared || (reduces && points < kFewThreads && depth >= kLongReduction));
  if (shared) {
    if (nest.vector_axis < 0 || !nest.axes[static_cast<std::size_t>(nest.vector_axis)].reduced) {
      // The longest reduced axis is shared among the group's threads.
      const auto longest = std::max_element(nest.reduced.begin(), nest.reduced.end(), [&](int a, int b) {
        return nest.axes[static_cast<std::size_t>(a)].extent() <
               nest.axes[static_cast<std::size_t>(b)].extent();
      });
      nest.vector_axis = *longest;
      std::rotate(longest, longest + 1, nest.reduced.end());
    }
    const std::int64_t row = nest.axes[static_cast<std::size_t>(nest.vector_axis)].extent();
    plan.worker = row <= kWarpRow ? Worker::kWarp : Worker::kBlock;
    plan.lanes = lanes_along(nest, nest.vector_axis, operands, result);
    plan.workers = points;
    return plan;
  }
  const bool parallel =
      nest.vector_axis >= 0 && !nest.axes[static_cast<std::size_t>(nest.vector_axis)].reduced;
  if (parallel && !arg) plan.lanes = lanes_along(nest, nest.vector_axis, operands, result);
  if (plan.lanes == 1) nest.vector_axis = -1;
  plan.workers = points / plan.lanes;
  return plan;
}

/// One nest, walked by the grid. The index of the worker is in scope as `worker`.
class CudaNestPrinter final : public NestPrinter {
 public:
  CudaNestPrinter(LoopNest nest, const std::vector<KernelTensor>& operands, const KernelTensor* result,
                  const Plan& plan, CodeText& code)
      : NestPrinter(std::move(nest), operands, result, code), plan_(plan), narrow_(fits_32_bits()) {}

  std::string counter_type() const override { return narrow_ ? "int" : "std::int64_t"; }

  void print(int region_root) {
    bind_parallel_axes();
    const std::vector<int> all = roots(region_root);
    if (plan_.worker == Worker::kThread && plan_.lanes > 1) {
      code_.line(fmt::format("constexpr Lanes<{}> lane{{}};", plan_.lanes));
      enter_lanes(nest_.vector_axis);
    }
    expressions_.declare(code_, all, bound_);
    point(region_root);
  }

  void print_check(int scalar, ir::Range range) {
    bind_parallel_axes();
    code_.line(fmt::format("const std::int64_t index = {};", expressions_.text(scalar, false)));
    code_.line(fmt::format("if (index < {} || index >= {}) *trap = 1;", range.low, range.high));
  }

 private:
  /// Counters and addresses are 32-bit when every value they take is.
  bool fits_32_bits() const {
    constexpr std::int64_t kLimit = INT32_MAX / 2;
    const std::vector<ir::Range> ranges = nest_.ranges();
    const auto fits = [&](const Index& index) {
      const ir::Range range = ir::range_of(index, ranges);
      return range.low > -kLimit && range.high < kLimit;
    };
    return extent_of(nest_, nest_.parallel) < kLimit && extent_of(nest_, nest_.reduced) < kLimit &&
           fits(nest_.store) && std::all_of(nest_.nodes.begin(), nest_.nodes.end(), [&](int id) {
             return fits(nest_.address[static_cast<std::size_t>(id)]);
           });
  }

  std::string vectorize_call(int) const override { return fmt::format("vectorize<{}>(group, ", plan_.lanes); }
  std::string reduce_call(const char* function, ElementType type, int, bool is_part) const override {
    return fmt::format("reduce_{}{}<{}, {}>(group, ", function, is_part ? "_part" : "", kernel_type(type),
                       plan_.lanes);
  }
  void finish_parts(const char* function, const std::string& name) override {
    code_.line(fmt::format("{0} = combine_{1}(group, {0});", name, function));
  }
  void store_reduced(int region_root) override {
    if (plan_.worker == Worker::kThread) {
      store(region_root);
      return;
    }
    code_.open("if (group.rank() == 0) {");
    store(region_root);
    code_.close();
  }

  /// i0 = worker / 64, i1 = worker % 64 * 4: the last axis varies fastest, so that neighbouring threads touch
  /// neighbouring memory.
  void bind_parallel_axes() {
    std::int64_t below = 1;
    const std::int64_t total = plan_.workers;
    for (auto at = nest_.parallel.rbegin(); at != nest_.parallel.rend(); ++at) {
      const bool packed = plan_.worker == Worker::kThread && *at == nest_.vector_axis;
      const std::int64_t count = axis(*at).extent() / (packed ? plan_.lanes : 1);
      std::string text = below == 1 ? "worker" : fmt::format("worker / {}", below);
      if (below * count < total) text += fmt::format(" % {}", count);
      if (packed && plan_.lanes > 1) text += fmt::format(" * {}", plan_.lanes);
      code_.line(fmt::format("const {} {} = {};", counter_type(), axis_name(*at), text));
      bound_ |= bit(*at);
      below *= count;
    }
    if (nest_.parallel.empty()) code_.line("static_cast<void>(worker);");
  }

  Plan plan_;
  bool narrow_;
};

/// Threads of a block of a kernel in which every thread works alone: small grids are spread over more blocks.
int block_threads(std::int64_t workers) { return workers >= 65536 ? 256 : workers >= 8192 ? 128 : 64; }

struct Printed {
  Plan plan;
  std::string counter;  // type of `worker`
  std::string body;
};

/// Whether `word` occurs in the text by itself.
bool mentions_word(const std::string& text, const std::string& word) {
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

class KernelWriter {
 public:
  KernelWriter(std::vector<CudaParameter> parameters, bool checked)
      : parameters_(std::move(parameters)), checked_(checked) {
    if (checked_) parameters_.push_back({"int* trap", "trap", "queue.trap"});
  }

  /// Parts in which every thread works alone share one launch: each takes whole blocks of it.
  void add_threads(const std::vector<Printed>& parts, const std::string& name, bool guarded) {
    std::int64_t total = 0;
    for (const Printed& part : parts) total += part.plan.workers;
    const int threads = block_threads(total);
    CodeText code(1);
    if (guarded && checked_) code.line("if (*trap != 0) return;");
    const bool narrow =
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
        code.line(first == 0 ? fmt::format("const {} worker = thread;", type)
                             : fmt::format("const {} worker = thread - {};", type, first));
        code.append(part.body, 1);
        code.close();
      }
      first += (count + threads - 1) / threads * threads;
    }
    add(name, code.text(), first / threads, threads, "0");
  }

  void add_groups(const Printed& part, const std::string& name, bool guarded) {
    const bool warp = part.plan.worker == Worker::kWarp;
    const int rows = warp ? kBlockThreads / kWarpThreads : 1;
    CodeText code(1);
    if (guarded && checked_) code.line("if (*trap != 0) return;");
    if (warp) {
      code.line(fmt::format("auto group = make_group<{}>();", kWarpThreads));
      code.line(fmt::format("const {0} worker = global_thread<{0}>() / {1};", part.counter, kWarpThreads));
      if (part.plan.workers % rows != 0)
        code.line(fmt::format("if (worker >= {}) return;", part.plan.workers));
    } else {
      code.line(fmt::format("auto group = make_group<{}>();", kBlockThreads));
      code.line(fmt::format("const {0} worker = static_cast<{0}>(blockIdx.x);", part.counter));
    }
    code.append(part.body);
    add(name, code.text(), (part.plan.workers + rows - 1) / rows, kBlockThreads,
        warp ? "0" : fmt::format("Group<{}>::kScratchBytes", kBlockThreads));
  }

  CudaLoops finish() { return {std::move(device_), std::move(launches_), count_}; }

 private:
  /// A kernel takes only the parameters that its body names.
  void add(const std::string& name, const std::string& body, std::int64_t blocks, int threads,
           const std::string& shared) {
    std::string declarations, arguments;
    for (const CudaParameter& p : parameters_) {
      if (!mentions_word(body, p.name)) continue;
      declarations += (declarations.empty() ? "" : ", ") + p.declaration;
      arguments += ", " + p.argument;
    }
    device_ += fmt::format("GCRT_GLOBAL({}) void {}({}) {{\n{}}}\n", threads, name, declarations, body);
    launches_ +=
        fmt::format("  launch(queue, {}, {}, {}, {}{});\n", blocks, threads, shared, name, arguments);
    ++count_;
  }

  std::vector<CudaParameter> parameters_;
  bool checked_;
  std::string device_, launches_;
  int count_ = 0;
};

}  // namespace

CudaLoops print_cuda_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                           const KernelTensor& result, const std::vector<CudaParameter>& parameters) {
  const std::string base = std::string(KernelCall::kName) + "_kernel";
  KernelWriter writer(parameters, !form.checks.empty());
  int checks = 0;
  for (const ir::BoundsCheck& check : form.checks) {
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
    CudaNestPrinter printer(std::move(nest), operands, nullptr, part.plan, code);
    printer.print_check(check.scalar, check.range);
    part.counter = printer.counter_type();
    part.body = code.text();
    writer.add_threads({part}, fmt::format("{}_check{}", base, checks++ ? std::to_string(checks) : ""),
                       false);
  }
  std::vector<Printed> alone;
  int groups = 0;
  for (const ir::Region& region : form.regions) {
    if (region.is_empty()) continue;
    LoopNest nest = build_nest(form, region, operands, result);
    Printed part;
    part.plan = plan_of(nest, operands, result);
    CodeText code(1);
    CudaNestPrinter printer(std::move(nest), operands, &result, part.plan, code);
    printer.print(region.root);
    part.counter = printer.counter_type();
    part.body = code.text();
    if (part.plan.worker == Worker::kThread) {
      alone.push_back(std::move(part));
    } else {
      writer.add_groups(part, groups++ ? fmt::format("{}{}", base, groups) : base, true);
    }
  }
  if (!alone.empty()) writer.add_threads(alone, groups ? base + "_rest" : base, true);
  return writer.finish();
}

}  // namespace gcompile
