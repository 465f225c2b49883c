#include "codegen/loop_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/c_types.h"
#include "ir/diagnostics.h"

namespace gcompile {

using ir::Combine;
using ir::ElementType;
using ir::Index;
using ir::IndexAtom;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }

/// Prints one nest: loops, reductions and stores.
class NestPrinter {
 public:
  NestPrinter(LoopNest nest, const std::vector<KernelTensor>& operands, const KernelTensor* result,
              CodeText& code)
      : nest_(std::move(nest)),
        operands_(operands),
        result_(result),
        code_(code),
        dependence_(nest_.dependence()),
        expressions_(nest_.form->dag, dependence_, [this](int id, bool vector) { return leaf(id, vector); }) {
  }

  void print(int region_root) {
    const bool parallel_vector = nest_.vector_axis >= 0 && !axis(nest_.vector_axis).reduced;
    std::vector<int> roots = {region_root};
    for (const ir::Stage& stage : nest_.form->stages) roots.push_back(stage.root);
    std::vector<int> loops = nest_.parallel;
    if (parallel_vector) loops.pop_back();  // the vector axis is last
    expressions_.declare(code_, roots, bound_);
    for (const int loop : loops) open_loop(loop, roots);
    if (parallel_vector) {
      open_vector_loop(nest_.vector_axis);
      expressions_.declare(code_, roots, bound_);
      point(region_root);
      close_vector_loop();
    } else {
      point(region_root);
    }
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  }

  void print_check(int scalar, ir::Range range) {
    const std::vector<int> roots = {scalar};
    std::vector<int> loops;
    for (const std::vector<int>* axes : {&nest_.parallel, &nest_.reduced}) {
      for (const int a : *axes) {
        if (dependence_[static_cast<std::size_t>(scalar)] & bit(a)) loops.push_back(a);
      }
    }
    for (const int loop : loops) open_loop(loop, roots);
    code_.line(fmt::format("const std::int64_t index = {};", expressions_.text(scalar, false)));
    code_.line(fmt::format("if (index < {} || index >= {}) return false;", range.low, range.high));
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  }

 private:
  const NestAxis& axis(int i) const { return nest_.axes[static_cast<std::size_t>(i)]; }
  std::string axis_name(int i) const { return fmt::format("i{}", i); }

  void open_loop(int loop, const std::vector<int>& roots) {
    code_.open(fmt::format("for (std::ptrdiff_t {0} = 0; {0} < {1}; ++{0}) {{", axis_name(loop),
                           axis(loop).extent()));
    bound_ |= bit(loop);
    expressions_.declare(code_, roots, bound_);
  }

  void open_vector_loop(int loop) {
    code_.open(fmt::format("vectorize{}({}, [&](auto lane, std::ptrdiff_t {}) GCRT_LAMBDA_INLINE {{",
                           has_wide_elements(loop) ? "<kLanes / 2>" : "", axis(loop).extent(),
                           axis_name(loop)));
    bound_ |= bit(loop);
    vector_axis_ = loop;
    vector_mask_ = bit(loop);
    expressions_.set_vector_mask(vector_mask_);
  }

  /// Packs of 8-byte elements fill a machine vector with half as many lanes.
  bool has_wide_elements(int loop) const {
    return std::any_of(nest_.nodes.begin(), nest_.nodes.end(), [&](int id) {
      return (dependence_[static_cast<std::size_t>(id)] & bit(loop)) != 0 &&
             bits_of(nest_.form->dag.type(id)) == 64;
    });
  }

  void close_vector_loop() {
    bound_ &= ~bit(vector_axis_);
    vector_axis_ = -1;
    vector_mask_ = 0;
    expressions_.set_vector_mask(0);
    code_.close("});");
  }

  /// All parallel axes are bound: reductions, then the final expression.
  void point(int region_root) {
    if (nest_.form->is_map()) {
      if (vector_axis_ < 0 && nest_.vector_axis >= 0) GC_CHECK(axis(nest_.vector_axis).reduced);
      store(region_root);
      return;
    }
    for (std::size_t k = 0; k < nest_.form->stages.size(); ++k) reduce(static_cast<int>(k), region_root);
    if (!nest_.form->final_over_reduced) {
      store(region_root);
      return;
    }
    const auto scope = expressions_.scope();
    const std::uint64_t bound = bound_;
    std::vector<int> loops = nest_.reduced;
    const bool vector = nest_.vector_axis >= 0 && axis(nest_.vector_axis).reduced;
    if (vector) loops.pop_back();
    for (const int loop : loops) open_loop(loop, {region_root});
    if (vector) open_vector_loop(nest_.vector_axis);
    store(region_root);
    if (vector) close_vector_loop();
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    bound_ = bound;
    expressions_.restore(scope);
  }

  static std::string identity_of(Combine combine, ElementType type) {
    const std::string of_type = fmt::format("<{}>", kernel_type(type));
    switch (combine) {
      case Combine::kSum:
        return literal(ir::cast(ir::Scalar::of_real(ElementType::kFloat64, 0), type));
      case Combine::kProduct:
        return literal(ir::cast(ir::Scalar::of_real(ElementType::kFloat64, 1), type));
      case Combine::kMax:
        return is_float(type) ? "-kInfinity" + of_type : "kLowest" + of_type;
      default:
        return is_float(type) ? "kInfinity" + of_type : "kLargest" + of_type;
    }
  }

  static const char* function_of(Combine combine) {
    switch (combine) {
      case Combine::kSum:
        return "add";
      case Combine::kProduct:
        return "mul";
      case Combine::kMax:
        return "max";
      default:
        return "min";
    }
  }

  void reduce(int k, int region_root) {
    const ir::Stage& stage = nest_.form->stages[static_cast<std::size_t>(k)];
    std::vector<int> later = {region_root};
    for (std::size_t j = static_cast<std::size_t>(k); j < nest_.form->stages.size(); ++j) {
      later.push_back(nest_.form->stages[j].root);
    }
    const ElementType type = nest_.form->dag.type(stage.root);
    const auto scope = expressions_.scope();
    const std::uint64_t bound = bound_;
    std::vector<int> loops = nest_.reduced;
    const std::string name = fmt::format("acc{}", k);
    if (stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin) {
      arg_reduce(stage, name, loops);
    } else if (vector_axis_ < 0 && !loops.empty() && nest_.vector_axis >= 0) {
      // Lanes run along the reduced axis; partial results are folded at its end.
      loops.pop_back();
      const char* function = function_of(stage.combine);
      if (!loops.empty()) {
        code_.line(fmt::format("{} {} = {};", kernel_type(type), name, identity_of(stage.combine, type)));
      }
      for (const int loop : loops) open_loop(loop, {stage.root});
      const int inner = nest_.vector_axis;
      const std::string call =
          fmt::format("reduce_{}<{}>({}, [&](auto lane, std::ptrdiff_t {}) GCRT_LAMBDA_INLINE {{", function,
                      kernel_type(type), axis(inner).extent(), axis_name(inner));
      code_.open(loops.empty() ? fmt::format("const {} {} = {}", kernel_type(type), name, call)
                               : fmt::format("{0} = {1}({0}, {2}", name, function, call));
      bound_ |= bit(inner);
      vector_axis_ = inner;
      vector_mask_ = bit(inner);
      expressions_.set_vector_mask(vector_mask_);
      expressions_.declare(code_, {stage.root}, bound_);
      code_.line(fmt::format("return {};", expressions_.text(stage.root, true)));
      vector_axis_ = -1;
      vector_mask_ = 0;
      expressions_.set_vector_mask(0);
      code_.close(loops.empty() ? "});" : "}));");
      for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    } else {
      const bool vector = vector_axis_ >= 0;
      const std::string init = identity_of(stage.combine, type);
      code_.line(fmt::format("auto {} = {};", name, vector ? fmt::format("splat(lane, {})", init) : init));
      for (const int loop : loops) open_loop(loop, {stage.root});
      code_.line(fmt::format("{0} = {1}({0}, {2});", name, function_of(stage.combine),
                             expressions_.text(stage.root, vector)));
      for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    }
    bound_ = bound;
    expressions_.restore(scope);
    // From here on Accumulator(k) is a variable; it varies per lane when the parallel axis is the vector
    // axis.
    bound_ |= bit(32 + k);
    accumulator_vector_ = vector_axis_ >= 0;
    if (accumulator_vector_) {
      vector_mask_ |= bit(32 + k);
      expressions_.set_vector_mask(vector_mask_);
    }
    expressions_.declare(code_, later, bound_);
  }

  void arg_reduce(const ir::Stage& stage, const std::string& name, const std::vector<int>& loops) {
    // Scalars only: the winner's position is what counts. A parallel vector axis runs lane by lane.
    GC_CHECK(vector_axis_ < 0);
    const ElementType type = nest_.form->dag.type(stage.root);
    code_.line(fmt::format("ArgReduction<{}, {}, {}> {}_best;", kernel_type(type),
                           stage.combine == Combine::kArgMax ? "true" : "false",
                           stage.select_last ? "true" : "false", name));
    for (const int loop : loops) open_loop(loop, {stage.root});
    code_.line(fmt::format("{}_best.offer({});", name, expressions_.text(stage.root, false)));
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    code_.line(fmt::format("const std::int64_t {0} = {0}_best.position();", name));
  }

  void store(int root) {
    const bool vector = vector_axis_ >= 0;
    expressions_.declare(code_, {root}, bound_);
    const std::string value = expressions_.text(root, vector);
    const std::string pointer = position(result_->pointer, nest_.store);
    const bool half = compute_type(result_->element) != result_->element;
    if (!vector) {
      code_.line(half ? fmt::format("store_from_float(Lanes<1>{{}}, {}, {});", pointer, value)
                      : fmt::format("store(Lanes<1>{{}}, {}, {});", pointer, value));
      return;
    }
    const std::int64_t stride = nest_.store.coefficient_of(vector_axis_);
    GC_CHECK(stride != 0);
    if (half) {
      code_.line(stride == 1
                     ? fmt::format("store_from_float(lane, {}, {});", pointer, value)
                     : fmt::format("store_from_float_strided(lane, {}, {}, {});", pointer, stride, value));
    } else {
      code_.line(stride == 1 ? fmt::format("store(lane, {}, {});", pointer, value)
                             : fmt::format("store_strided(lane, {}, {}, {});", pointer, stride, value));
    }
  }

  /// "x0 + 4 * i1 + 8".
  std::string position(const std::string& pointer, const Index& index) const {
    if (index.is_constant() && index.constant() == 0) return pointer;
    return fmt::format("{} + {}", pointer, scalar_index(index));
  }

  bool may_be_negative(const Index& index) const {
    const std::vector<ir::Range> ranges = nest_.ranges();
    return ir::range_of(index, ranges).low < 0;
  }

  /// Index as an integer expression; inside a vector loop the vector axis stands for the first lane.
  std::string scalar_index(const Index& index) const { return index_text(index, false); }

  std::string index_text(const Index& index, bool vector) const {
    std::string out;
    for (const Index::Term& t : index.terms()) {
      std::string atom;
      switch (t.atom.kind) {
        case IndexAtom::Kind::kAxis:
          atom = vector && t.atom.axis == vector_axis_ ? fmt::format("iota(lane, {})", axis_name(t.atom.axis))
                                                       : axis_name(t.atom.axis);
          break;
        case IndexAtom::Kind::kLoaded: {
          const bool per_lane = vector && expressions_.is_vector(t.atom.axis);
          atom = expressions_.text(t.atom.axis, per_lane);
          if (atom.find(' ') != std::string::npos) atom = "(" + atom + ")";
          break;
        }
        case IndexAtom::Kind::kFloorDiv:
        case IndexAtom::Kind::kMod: {
          std::string inner = index_text(*t.atom.inner, vector);
          const bool modulo = t.atom.kind == IndexAtom::Kind::kMod;
          if (may_be_negative(*t.atom.inner)) {
            atom = fmt::format("{}({}, {})", modulo ? "floor_modulo" : "floor_divide", inner, t.atom.divisor);
          } else {
            if (inner.find(' ') != std::string::npos) inner = "(" + inner + ")";
            atom = fmt::format("({} {} {})", inner, modulo ? "%" : "/", t.atom.divisor);
          }
        }
      }
      const std::int64_t magnitude = std::abs(t.coefficient);
      if (out.empty()) {
        if (t.coefficient < 0) out += "-";
      } else {
        out += t.coefficient < 0 ? " - " : " + ";
      }
      out += magnitude == 1 ? atom : fmt::format("{} * {}", magnitude, atom);
    }
    if (out.empty()) return fmt::format("{}", index.constant());
    if (index.constant() != 0) {
      out += fmt::format(" {} {}", index.constant() < 0 ? '-' : '+', std::abs(index.constant()));
    }
    return out;
  }

  bool index_varies_only_affinely(const Index& index) const {
    for (const Index::Term& t : index.terms()) {
      if (t.atom.kind == IndexAtom::Kind::kLoaded && expressions_.is_vector(t.atom.axis)) return false;
      if (t.atom.inner &&
          (t.atom.inner->mentions(vector_axis_) || !index_varies_only_affinely(*t.atom.inner))) {
        return false;
      }
    }
    return true;
  }

  std::string leaf(int id, bool vector) const {
    const ScalarNode& node = nest_.form->dag[id];
    const Index& index = nest_.address[static_cast<std::size_t>(id)];
    if (node.op == ScalarOp::kAccumulator) {
      return fmt::format("acc{}", node.operand);
    }
    if (node.op == ScalarOp::kIota) {
      if (!vector) return fmt::format("std::int64_t{{{}}}", scalar_index(index));
      if (index_varies_only_affinely(index) && index.coefficient_of(vector_axis_) == 1) {
        return fmt::format("iota(lane, {})", scalar_index(index));
      }
      return "(" + index_text(index, true) + ")";
    }
    const KernelTensor& operand = operands_[static_cast<std::size_t>(node.operand)];
    const bool half = compute_type(node.type) != node.type;
    const std::string function = half ? "load_as_float" : "load";
    if (!vector) {
      return half ? fmt::format("load_as_float(Lanes<1>{{}}, {})", position(operand.pointer, index))
                  : fmt::format("{}[{}]", operand.pointer, scalar_index(index));
    }
    if (!index_varies_only_affinely(index)) {
      return fmt::format("{}(lane, {}, {})", half ? "gather_as_float" : "gather", operand.pointer,
                         index_text(index, true));
    }
    const std::int64_t stride = index.coefficient_of(vector_axis_);
    const std::string pointer = position(operand.pointer, index);
    return stride == 1 ? fmt::format("{}(lane, {})", function, pointer)
                       : fmt::format("{}_strided(lane, {}, {})", function, pointer, stride);
  }

  LoopNest nest_;
  const std::vector<KernelTensor>& operands_;
  const KernelTensor* result_;
  CodeText& code_;
  std::vector<std::uint64_t> dependence_;
  ExpressionPrinter expressions_;
  std::uint64_t bound_ = 0;
  std::uint64_t vector_mask_ = 0;
  int vector_axis_ = -1;
  bool accumulator_vector_ = false;
};

bool is_empty(const ir::Region& region) {
  return std::any_of(region.box.begin(), region.box.end(),
                     [](const ir::Range& r) { return r.high <= r.low; });
}

}  // namespace

std::string print_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                        const KernelTensor& result, int depth) {
  CodeText code(depth);
  std::size_t live = 0;
  for (const ir::Region& region : form.regions) live += !is_empty(region);
  for (const ir::Region& region : form.regions) {
    if (is_empty(region)) continue;
    if (live > 1) code.open("{");
    NestPrinter(build_nest(form, region, operands, result), operands, &result, code).print(region.root);
    if (live > 1) code.close();
  }
  return code.text();
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
    NestPrinter(build_nest(probe, probe.regions[0], operands, none), operands, nullptr, code)
        .print_check(check.scalar, check.range);
    code.close();
  }
  code.line("return true;");
  return code.text();
}

}  // namespace gcompile
