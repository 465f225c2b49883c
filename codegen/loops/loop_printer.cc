#include "codegen/loops/loop_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/nest_printer.h"
#include "codegen/loops/region_form.h"

namespace gcompile {

namespace {

/// What the expressions take at every point of the nest: operators, loads, and the store; and until one core
/// has what another wrote and reads.
double work_of(const LoopNest& nest) {
  constexpr double kHandOver = 54;  // additions, of two elements: codegen/calls/hand_over.h
  double points = 1, results = 1;
  for (const std::vector<int>* axes : {&nest.parallel, &nest.reduced}) {
    for (const int a : *axes)
      points *= static_cast<double>(ir::typical(nest.axes[static_cast<std::size_t>(a)].extent()));
    if (axes == &nest.parallel) results = points;
  }
  int work = 1;
  for (const int n : nest.nodes) {
    const ir::ScalarOp op = nest.form->dag[n].op;
    work += op == ir::ScalarOp::kLoad ? 1 : row_of(op).cost;
  }
  return points * work + results * kHandOver;
}

/// Loops over packs.
class CpuNestPrinter final : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  /// In one thread, or `threaded`: the items of parallel_for are the outermost axis, or blocks of the vector
  /// axis where it is that.
  void print(int region_root, bool threaded) {
    const bool parallel_vector = nest_.vector_axis >= 0 && !axis(nest_.vector_axis).reduced;
    const std::vector<int> all = roots(region_root);
    std::vector<int> loops = nest_.parallel;
    std::vector<int> inside;
    if (parallel_vector) {
      loops.pop_back();  // the vector axis is last
      const auto end =
          std::stable_partition(loops.begin(), loops.end(), [&](int a) { return !is_inside(a); });
      inside.assign(end, loops.end());
      loops.erase(end, loops.end());
    }
    expressions_.declare(code_, all, bound_);
    if (threaded) open_items(loops.empty() ? nest_.vector_axis : loops.front(), loops.empty());
    for (const int loop : loops) {
      if (threaded && loop == loops.front()) {
        open_item_loop(loop, all);
      } else {
        open_loop(loop, all);
      }
    }
    if (parallel_vector) {
      open_vector_loop(nest_.vector_axis);
      if (inside.empty()) expressions_.declare(code_, all, bound_);
      for (const int loop : inside) open_loop(loop, all);
      point(region_root);
      for (std::size_t i = 0; i < inside.size(); ++i) code_.close();
      close_vector_loop();
    } else {
      point(region_root);
    }
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    if (threaded) code_.close("});");
  }

  /// Whether there is an axis to split.
  bool is_splittable() const {
    return !nest_.parallel.empty() && !ir::always_less_equal(axis(nest_.parallel.front()).extent(), 1);
  }

  void print_check(int scalar, ir::Range range) {
    std::vector<int> loops;
    for (const std::vector<int>* axes : {&nest_.parallel, &nest_.reduced}) {
      for (const int a : *axes) {
        if (dependence_[static_cast<std::size_t>(scalar)] & bit(a)) loops.push_back(a);
      }
    }
    for (const int loop : loops) open_loop(loop, {scalar});
    code_.line(fmt::format("const std::int64_t index = {};", expressions_.text(scalar, false)));
    const std::string low = sizes_(range.low), high = sizes_(range.high);
    code_.line(fmt::format("if (index < {} || index >= {}) return false;", low, high));
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  }

 private:
  /// Whether the results along a short axis lie between those of the vector axis, as the channels of a pixel:
  /// then each line of them is written by one thread, at once.
  bool is_inside(int loop) const {
    constexpr std::int64_t kShort = 8;
    const auto step = [&](int a) {
      return ir::max(nest_.store.coefficient_of(a), -nest_.store.coefficient_of(a));
    };
    return nest_.form->is_map() && ir::always_less_equal(axis(loop).extent(), kShort) &&
           ir::always_less(0, step(loop)) && ir::always_less(step(loop), step(nest_.vector_axis));
  }

  void open_items(int loop, bool in_blocks) {
    in_blocks_ = in_blocks;
    const std::string extent = sizes_(axis(loop).extent());
    code_.open(fmt::format("parallel_for(threads, {}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{",
                           in_blocks ? fmt::format("vector_blocks({})", extent) : extent));
  }

  /// Packs of 8-byte elements fill a machine vector with half as many lanes.
  std::string vectorize_call(int loop) const override {
    return fmt::format("vectorize{}{}({}{}", in_blocks_ ? "_blocks" : "",
                       has_wide_elements(loop) ? "<kLanes / 2>" : "", in_blocks_ ? "begin, end, " : "",
                       sizes_(axis(loop).extent()));
  }
  std::string reduce_call(const char* function, ir::ElementType type, int loop, bool) const override {
    return fmt::format("reduce_{}<{}>({}", function, kernel_type(type), sizes_(axis(loop).extent()));
  }

  bool in_blocks_ = false;  // the vector axis is the items
};

}  // namespace

PrintedLoops print_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                         const KernelTensor& result, int depth, double least_work, SizeParameters& sizes) {
  CodeText code(depth);
  PrintedLoops printed;
  std::size_t live = 0;
  for (const ir::Region& region : form.regions) live += !region.is_empty();
  for (const ir::Region& region : form.regions) {
    poll_interrupt();
    if (region.is_empty()) continue;
    if (live > 1) code.open("{");
    const std::optional<ir::LoopForm> alone =
        live > 1 ? std::optional(form_of_region(form, region)) : std::nullopt;
    const ir::Region& printed_region = alone ? alone->regions[0] : region;
    LoopNest nest = build_nest(alone ? *alone : form, printed_region, operands, result);
    const bool is_worth_it = work_of(nest) >= least_work;
    CpuNestPrinter printer(std::move(nest), operands, &result, code, sizes);
    const bool threaded = is_worth_it && printer.is_splittable();
    printer.print(printed_region.root, threaded);
    printed.threaded = printed.threaded || threaded;
    if (live > 1) code.close();
  }
  printed.text = code.plain();
  return printed;
}

std::string print_checks(const ir::LoopForm& form, const std::vector<KernelTensor>& operands, int depth,
                         SizeParameters& sizes) {
  CodeText code(depth);
  for (const ir::BoundsCheck& check : form.checks) {
    poll_interrupt();
    const ir::LoopForm probe = form_of_check(form, check);
    KernelTensor none;
    none.strides.assign(form.store.size(), 0);
    code.open("{");
    CpuNestPrinter(build_nest(probe, probe.regions[0], operands, none), operands, nullptr, code, sizes)
        .print_check(probe.regions[0].root, check.range);
    code.close();
  }
  return code.plain();
}

}  // namespace gcompile
