#include "codegen/loops/nest_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/diagnostics.h"
#include "codegen/loops/c_types.h"
#include "ir/forms/expression_words.h"

namespace gcompile {

using ir::Combine;
using ir::ElementType;
using ir::Index;
using ir::IndexAtom;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

std::string identity_of(Combine combine, ElementType type) {
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

/// Whether the text of the index is more than a name, a call or what has brackets.
bool is_sum(const Index& index) {
  return index.terms().size() > 1 || index.constant() != 0 ||
         (index.terms().size() == 1 && index.terms()[0].coefficient != 1);
}

}  // namespace

NestPrinter::NestPrinter(LoopNest nest, const std::vector<KernelTensor>& operands, const KernelTensor* result,
                         CodeText& code, SizeParameters& sizes)
    : nest_(std::move(nest)),
      operands_(operands),
      result_(result),
      code_(code),
      sizes_(sizes),
      dependence_(nest_.dependence()),
      expressions_(nest_.form->dag, dependence_, [this](int id, bool vector) { return leaf(id, vector); }) {
  expressions_.know({number_facts(nest_.form->dag, operands_), false});
  expressions_.address_by(nest_.address);
  std::set<int> named;
  for (std::size_t id = 0; id < nest_.form->dag.nodes().size(); ++id) {
    const ScalarNode& node = nest_.form->dag.nodes()[id];
    if (node.op == ScalarOp::kConstant && sizes.is_named(node.constant)) named.insert(static_cast<int>(id));
  }
  expressions_.print_as_leaves(std::move(named));
}

const char* NestPrinter::function_of(Combine combine) {
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

std::string NestPrinter::axis_name(int i) { return fmt::format("i{}", i); }

std::vector<int> NestPrinter::roots(int region_root) const {
  std::vector<int> out = {region_root};
  for (const ir::Stage& stage : nest_.form->stages) out.push_back(stage.root);
  return out;
}

void NestPrinter::enter_lanes(int loop) {
  bound_ |= bit(loop);
  vector_axis_ = loop;
  vector_mask_ = bit(loop);
  expressions_.set_vector_mask(vector_mask_);
}

void NestPrinter::leave_lanes() {
  vector_axis_ = -1;
  vector_mask_ = 0;
  expressions_.set_vector_mask(0);
}

void NestPrinter::open_loop(int loop, const std::vector<int>& roots) {
  open_loop(loop, "0", sizes_(axis(loop).extent()), roots);
}

void NestPrinter::open_item_loop(int loop, const std::vector<int>& roots) {
  open_loop(loop, "begin", "end", roots);
}

void NestPrinter::open_loop(int loop, const std::string& begin, const std::string& end,
                            const std::vector<int>& roots) {
  code_.open(
      fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", counter_type(), axis_name(loop), begin, end));
  bound_ |= bit(loop);
  expressions_.declare(code_, roots, bound_);
}

std::string NestPrinter::body_head(int loop, bool named, bool has_lane) const {
  return fmt::format(", [&](auto{}, {}) GCRT_LAMBDA_INLINE {{", has_lane ? " lane" : "",
                     body_parameter(loop, named));
}

void NestPrinter::open_vector_loop(int loop) {
  code_.open(vectorize_call(loop) + body_head(loop, true));
  enter_body(loop);
}

bool NestPrinter::compare_positions(int region_root) {
  const int along = nest_.vector_axis;
  if (along < 0) return false;
  const ir::Dag& dag = nest_.form->dag;
  std::set<int> positions;
  for (const int id : nest_.nodes) {
    const Index& at = nest_.address[static_cast<std::size_t>(id)];
    if (dag[id].op == ScalarOp::kIota && at.is_affine() && at.coefficient_of(along) == 1)
      positions.insert(id);
  }
  const std::function<void(const Index&)> drop_loaded = [&](const Index& index) {
    for (const Index::Term& term : index.terms()) {
      if (term.atom.kind == IndexAtom::Kind::kLoaded) positions.erase(term.atom.axis);
      if (term.atom.inner) drop_loaded(*term.atom.inner);
    }
  };
  for (const int root : roots(region_root)) positions.erase(root);
  drop_loaded(nest_.store);
  for (const int id : nest_.nodes) {
    if (positions.empty()) return false;
    drop_loaded(nest_.address[static_cast<std::size_t>(id)]);
    const ir::Arguments& arguments = dag[id].arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool is_beside_shared =
          arguments.size() == 2 &&
          (dependence_[static_cast<std::size_t>(arguments[1 - i])] & bit(along)) == 0;
      if (!is_beside_shared || !is_comparison(dag[id].op)) positions.erase(arguments[i]);
    }
  }
  if (positions.empty()) return false;
  expressions_.compare_positions(std::move(positions), bit(along));
  return true;
}

bool NestPrinter::has_wide_elements(int loop) const {
  return std::any_of(nest_.nodes.begin(), nest_.nodes.end(), [&](int id) {
    return (dependence_[id] & bit(loop)) != 0 && bits_of(nest_.form->dag.type(id)) == 64 &&
           !expressions_.is_position_along(id, bit(loop));
  });
}

void NestPrinter::leave_body(int loop) {
  bound_ &= ~bit(loop);
  leave_lanes();
}

void NestPrinter::close_vector_loop() {
  leave_body(vector_axis_);
  code_.close("});");
}

void NestPrinter::point(int region_root) {
  if (nest_.form->is_map()) {
    if (vector_axis_ < 0 && nest_.vector_axis >= 0) GC_CHECK(axis(nest_.vector_axis).reduced);
    store(region_root);
    return;
  }
  for (std::size_t k = 0; k < nest_.form->stages.size(); ++k) {
    begin_stage(k);
    reduce(static_cast<int>(k), region_root);
  }
  if (!nest_.form->final_over_reduced) {
    store_reduced(region_root);
    return;
  }
  const auto scope = expressions_.scope();
  const std::uint64_t bound = bound_;
  std::vector<int> loops = nest_.reduced;
  const bool vector = nest_.vector_axis >= 0 && axis(nest_.vector_axis).reduced;
  if (vector) loops.pop_back();
  if (walks_rows()) loops.clear();
  for (const int loop : loops) open_loop(loop, {region_root});
  if (vector) open_vector_loop(nest_.vector_axis);
  store(region_root);
  if (vector) close_vector_loop();
  for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  bound_ = bound;
  expressions_.restore(scope);
}

void NestPrinter::reduce(int k, int region_root) {
  const ir::Stage& stage = nest_.form->stages[k];
  std::vector<int> later = {region_root};
  for (std::size_t j = static_cast<std::size_t>(k); j < nest_.form->stages.size(); ++j) {
    later.push_back(nest_.form->stages[j].root);
  }
  const ElementType type = nest_.form->dag.type(stage.root);
  const auto scope = expressions_.scope();
  const std::uint64_t bound = bound_;
  std::vector<int> loops = nest_.reduced;
  const std::string name = accumulator(k);
  if (stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin) {
    arg_reduce(stage, name, loops);
  } else if (vector_axis_ < 0 && !loops.empty() && nest_.vector_axis >= 0) {
    reduce_lanes(stage, name, std::move(loops));
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
  settle(k);
  expressions_.declare(code_, later, bound_);
}

void NestPrinter::settle(int k) {
  bound_ |= bit(32 + k);
  if (vector_axis_ < 0) return;
  vector_mask_ |= bit(32 + k);
  expressions_.set_vector_mask(vector_mask_);
}

/// Lanes run along the reduced axis; partial results are folded at its end.
void NestPrinter::reduce_lanes(const ir::Stage& stage, const std::string& name, std::vector<int> loops) {
  loops.pop_back();
  if (walks_rows()) loops.clear();
  const ElementType type = nest_.form->dag.type(stage.root);
  const char* function = function_of(stage.combine);
  if (!loops.empty()) {
    code_.line(fmt::format("{} {} = {};", kernel_type(type), name, identity_of(stage.combine, type)));
  }
  for (const int loop : loops) open_loop(loop, {stage.root});
  const int inner = nest_.vector_axis;
  const std::string call = reduce_call(function, type, inner, !loops.empty());
  if (const std::string values = values_of(stage.root); !values.empty()) {
    code_.line(fmt::format("const {} {} = {}, {});", kernel_type(type), name, call, values));
    return;
  }
  const std::string head = call + body_head(inner, varies(stage.root, inner));
  code_.open(loops.empty() ? fmt::format("const {} {} = {}", kernel_type(type), name, head)
                           : fmt::format("{0} = {1}({0}, {2}", name, function, head));
  enter_body(inner);
  expressions_.declare(code_, {stage.root}, bound_);
  code_.line(fmt::format("return {};", expressions_.text(stage.root, true)));
  leave_body(inner);
  code_.close(loops.empty() ? "});" : "}));");
  for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  if (!loops.empty()) finish_parts(function, name);
}

std::string NestPrinter::accumulator(int k) const {
  const std::vector<std::string> words = ir::stage_words(*nest_.form);
  const auto before = words.begin() + k;
  const auto alike = std::count(words.begin(), before, *before);
  return alike == 0 ? *before : fmt::format("{}_{}", *before, alike + 1);
}

bool NestPrinter::varies(int root, int loop) const {
  std::uint64_t axes = bit(loop);
  if (walks_rows()) {
    for (const int reduced : nest_.reduced) axes |= bit(reduced);
  }
  return (dependence_[root] & axes) != 0;
}

std::string NestPrinter::arg_reduction(const ir::Stage& stage) const {
  return fmt::format("{}, {}, {}", kernel_type(nest_.form->dag.type(stage.root)),
                     stage.combine == Combine::kArgMax, stage.select_last);
}

void NestPrinter::arg_reduce(const ir::Stage& stage, const std::string& name, const std::vector<int>& loops) {
  // Scalars only: the winner's position is what counts. A parallel vector axis runs lane by lane.
  GC_CHECK(vector_axis_ < 0);
  if (const std::string call = loops.size() == 1 ? arg_reduce_call(stage, loops[0]) : ""; !call.empty()) {
    code_.open(fmt::format("const std::int64_t {} = {}{}", name, call,
                           body_head(loops[0], varies(stage.root, loops[0]))));
    enter_body(loops[0]);
    expressions_.declare(code_, {stage.root}, bound_);
    code_.line(fmt::format("return {};", expressions_.text(stage.root, true)));
    leave_body(loops[0]);
    code_.close("});");
    return;
  }
  code_.line(fmt::format("ArgReduction<{}> {}_best;", arg_reduction(stage), name));
  for (const int loop : loops) open_loop(loop, {stage.root});
  code_.line(fmt::format("{}_best.offer({});", name, expressions_.text(stage.root, false)));
  for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
  code_.line(fmt::format("const std::int64_t {0} = {0}_best.position();", name));
}

void NestPrinter::store(int root) {
  const bool vector = vector_axis_ >= 0;
  expressions_.declare(code_, {root}, bound_);
  const std::string value = expressions_.text(root, vector);
  const std::string pointer = position(result_->pointer, nest_.store);
  mentions_.result = true;
  const bool half = compute_type(result_->element) != result_->element;
  if (!vector) {
    code_.line(half ? fmt::format("store_from_float(Lanes<1>{{}}, {}, {});", pointer, value)
                    : fmt::format("store(Lanes<1>{{}}, {}, {});", pointer, value));
    return;
  }
  const ir::Dim stride = nest_.store.coefficient_of(vector_axis_);
  GC_CHECK(stride != 0);
  if (half) {
    code_.line(stride == 1 ? fmt::format("store_from_float(lane, {}, {});", pointer, value)
                           : fmt::format("store_from_float_strided(lane, {}, {}, {});", pointer,
                                         sizes_(stride), value));
  } else {
    code_.line(stride == 1 ? fmt::format("store(lane, {}, {});", pointer, value)
                           : fmt::format("store_strided(lane, {}, {}, {});", pointer, sizes_(stride), value));
  }
}

std::string NestPrinter::position(const std::string& pointer, const Index& index) const {
  if (index.is_constant() && index.constant() == 0) return pointer;
  return fmt::format("{} + {}", pointer, scalar_index(index));
}

bool NestPrinter::may_be_negative(const Index& index) const {
  const std::vector<ir::Range> ranges = nest_.ranges();
  return !ir::always_less_equal(0, ir::range_of(index, ranges).low);
}

std::string NestPrinter::atom_text(const IndexAtom& atom, bool vector) const {
  if (atom.kind == IndexAtom::Kind::kAxis) {
    return vector && atom.axis == vector_axis_ ? fmt::format("iota(lane, {})", mentioned(atom.axis))
                                               : mentioned(atom.axis);
  }
  if (atom.kind == IndexAtom::Kind::kLoaded) {
    return expressions_.text(atom.axis, vector && expressions_.is_vector(atom.axis));
  }
  std::string inner = index_text(*atom.inner, vector);
  const bool modulo = atom.kind == IndexAtom::Kind::kMod;
  if (may_be_negative(*atom.inner)) {
    return fmt::format("{}({}, {})", modulo ? "floor_modulo" : "floor_divide", inner, sizes_(atom.divisor));
  }
  if (is_sum(*atom.inner)) inner = "(" + inner + ")";
  return fmt::format("({} {} {})", inner, modulo ? "%" : "/", sizes_(atom.divisor));
}

std::string NestPrinter::index_text(const Index& index, bool vector) const {
  std::string out;
  for (const Index::Term& t : index.terms()) {
    const std::string atom = atom_text(t.atom, vector);
    const bool is_negative = ir::always_less(t.coefficient, 0);
    const ir::Dim magnitude = is_negative ? -t.coefficient : t.coefficient;
    if (out.empty()) {
      if (is_negative) out += "-";
    } else {
      out += is_negative ? " - " : " + ";
    }
    out += magnitude == 1 ? atom : fmt::format("{} * {}", sizes_(magnitude), atom);
  }
  const ir::Dim constant = index.constant();
  if (out.empty()) return sizes_(constant);
  if (constant != 0) {
    const bool is_negative = ir::always_less(constant, 0);
    out += fmt::format(" {} {}", is_negative ? '-' : '+', sizes_(is_negative ? -constant : constant));
  }
  return out;
}

bool NestPrinter::index_varies_only_affinely(const Index& index) const {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == IndexAtom::Kind::kLoaded && expressions_.is_vector(t.atom.axis)) return false;
    if (t.atom.inner &&
        (t.atom.inner->mentions(vector_axis_) || !index_varies_only_affinely(*t.atom.inner))) {
      return false;
    }
  }
  return true;
}

std::string NestPrinter::leaf(int id, bool vector) const {
  const ScalarNode& node = nest_.form->dag[id];
  const Index& index = nest_.address[id];
  if (node.op == ScalarOp::kConstant) return sizes_(node.constant);
  if (node.op == ScalarOp::kAccumulator) {
    return accumulator(node.operand);
  }
  if (node.op == ScalarOp::kIota) {
    if (!vector) return fmt::format("std::int64_t{{{}}}", scalar_index(index));
    if (index_varies_only_affinely(index) && index.coefficient_of(vector_axis_) == 1) {
      return fmt::format("{}(lane, {})", expressions_.is_position(id) ? "positions" : "iota",
                         scalar_index(index));
    }
    return "(" + index_text(index, true) + ")";
  }
  const KernelTensor& operand = operands_[node.operand];
  mentions_.operands.insert(node.operand);
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
  const ir::Dim stride = index.coefficient_of(vector_axis_);
  const std::string pointer = position(operand.pointer, index);
  return stride == 1 ? fmt::format("{}(lane, {})", function, pointer)
                     : fmt::format("{}_strided(lane, {}, {})", function, pointer, sizes_(stride));
}

}  // namespace gcompile
