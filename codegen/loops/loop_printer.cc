#include "codegen/loops/loop_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "codegen/loops/nest_printer.h"

namespace gcompile {

namespace {

/// Loops over packs, in one thread.
class CpuNestPrinter final : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  void print(int region_root) {
    const bool parallel_vector = nest_.vector_axis >= 0 && !axis(nest_.vector_axis).reduced;
    const std::vector<int> all = roots(region_root);
    std::vector<int> loops = nest_.parallel;
    if (parallel_vector) loops.pop_back();  // the vector axis is last
    expressions_.declare(code_, all, bound_);
    for (const int loop : loops) open_loop(loop, all);
    if (parallel_vector) {
      open_vector_loop(nest_.vector_axis);
      expressions_.declare(code_, all, bound_);
      point(region_root);
      close_vector_loop();
    } else {
      point(region_root);
    }
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
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
    code_.line(fmt::format("if (index < {} || index >= {}) return false;", range.low, range.high));
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  }

 private:
  /// Packs of 8-byte elements fill a machine vector with half as many lanes.
  std::string vectorize_call(int loop) const override {
    return fmt::format("vectorize{}({}", has_wide_elements(loop) ? "<kLanes / 2>" : "", axis(loop).extent());
  }
  std::string reduce_call(const char* function, ir::ElementType type, int loop, bool) const override {
    return fmt::format("reduce_{}<{}>({}", function, kernel_type(type), axis(loop).extent());
  }
};

}  // namespace

std::string print_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                        const KernelTensor& result, int depth) {
  CodeText code(depth);
  std::size_t live = 0;
  for (const ir::Region& region : form.regions) live += !region.is_empty();
  for (const ir::Region& region : form.regions) {
    if (region.is_empty()) continue;
    if (live > 1) code.open("{");
    CpuNestPrinter(build_nest(form, region, operands, result), operands, &result, code).print(region.root);
    if (live > 1) code.close();
  }
  return code.plain();
}

std::string print_checks(const ir::LoopForm& form, const std::vector<KernelTensor>& operands, int depth) {
  CodeText code(depth);
  for (const ir::BoundsCheck& check : form.checks) {
    ir::LoopForm probe = form;
    probe.stages.clear();
    probe.parallel = static_cast<int>(form.extents.size());
    probe.set_root(check.scalar);
    KernelTensor none;
    none.strides.assign(form.store.size(), 0);
    code.open("{");
    CpuNestPrinter(build_nest(probe, probe.regions[0], operands, none), operands, nullptr, code)
        .print_check(check.scalar, check.range);
    code.close();
  }
  return code.plain();
}

}  // namespace gcompile
