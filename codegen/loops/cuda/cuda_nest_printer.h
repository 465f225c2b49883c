#pragma once
// Prints the body of one loop nest that is walked by the grid of a CUDA kernel.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/loops/c_types.h"
#include "codegen/loops/cuda/cuda_loop_plan.h"
#include "codegen/loops/nest_printer.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

/// One nest, walked by the grid. The index of the worker is in scope by its name.
class CudaNestPrinter final : public NestPrinter {
 public:
  using Worker = CudaLoopPlan::Worker;

  /// `narrow`: counters and sizes are 32-bit.
  CudaNestPrinter(LoopNest nest, const std::vector<KernelTensor>& operands, const KernelTensor* result,
                  const CudaLoopPlan& plan, bool narrow, CodeText& code, SizeParameters& sizes)
      : NestPrinter(std::move(nest), operands, result, code, sizes), plan_(plan), narrow_(narrow) {}

  std::string counter_type() const override { return narrow_ ? "int" : "std::int64_t"; }
  /// What the index of a worker is called: "i1" where it is the place along that axis, else "worker".
  std::string worker_name() const {
    if (plan_.worker == Worker::kTile || plan_.packs > 1 || nest_.parallel.size() != 1) return "worker";
    const Digit digit = parallel_digits().front();
    return digit.lanes == 1 && digit.count == digit.total ? axis_name(digit.axis) : "worker";
  }

  void print(int root) {
    const int region_root = stored_root(nest_.form->dag, root);
    if (plan_.worker == Worker::kTile) {
      print_tile(region_root);
      return;
    }
    if (plan_.packs > 1) {
      print_packs(region_root);
      return;
    }
    bind_parallel_axes();
    const std::vector<int> all = roots(region_root);
    if (plan_.worker == Worker::kThread && plan_.lanes > 1) {
      code_.line(fmt::format("constexpr Lanes<{}> lane{{}};", plan_.lanes));
      enter_lanes(nest_.vector_axis);
    }
    if (walks_rows()) {
      code_.line(fmt::format("constexpr Row<{}, {}> row{{}};", extent_of(nest_, nest_.reduced), plan_.lanes));
      keep_weights();
    }
    for (std::size_t i = 0; i < checks_.size(); ++i) {
      const ir::BoundsCheck& check = checks_[i];
      const std::string index = fmt::format("index{}", i);
      expressions_.declare(code_, {check.scalar}, bound_);
      code_.line(fmt::format("const std::int64_t {} = {};", index, expressions_.text(check.scalar, false)));
      expressions_.bind(check.scalar, index, false);
      const std::string low = sizes_(check.range.low), high = sizes_(check.range.high);
      code_.open(fmt::format("if ({0} < {1} || {0} >= {2}) {{", index, low, high));
      code_.line("*trap = 1;");
      code_.line("return;");
      code_.close();
    }
    expressions_.declare(code_, all, bound_);
    point(region_root);
  }

  /// The kernel of some stages of rows that blocks share; of none: the one that walks the rows at last.
  void print_shared(int root, std::pair<int, int> stages) {
    const int region_root = stored_root(nest_.form->dag, root);
    const auto [first, end] = stages;
    const bool finishes = first == end || (is_last(end) && !nest_.form->final_over_reduced);
    bind_parallel_axes();
    declare_row();
    std::vector<int> own;
    for (int k = first; k < end; ++k) own.push_back(stage(k).root);
    if (finishes) own.push_back(region_root);
    std::uint64_t needed = 0;
    for (const int root_of : own) needed |= dependence_[static_cast<std::size_t>(root_of)];
    for (int k = 0; k < first; ++k) {
      if ((needed & bit(32 + k)) != 0)
        code_.line(
            fmt::format("const {0} {2} = row.kept<{0}>({1});", accumulator_type(k), k, accumulator(k)));
      bound_ |= bit(32 + k);
    }
    expressions_.declare(code_, own, bound_);
    if (first == end) {
      open_vector_loop(nest_.vector_axis);
      store(region_root);
      close_vector_loop();
      return;
    }
    for (int k = first; k < end; ++k) reduce_part(k);
    for (int k = first; k < end; ++k) code_.line(fmt::format("row.leave(group, {0}, part{0});", k));
    code_.line("if (!row.arrives_last(counters)) return;");
    for (int k = first; k < end; ++k) {
      const bool arg = is_positional(stage(k));
      code_.line(
          fmt::format("const {0} {3} = join_{2}(group, row, {1}, part{1});", accumulator_type(k), k,
                      arg ? fmt::format("arg<{}>", arg_reduction(stage(k))) : function_of(stage(k).combine),
                      accumulator(k)));
      bound_ |= bit(32 + k);
    }
    if (finishes) {
      expressions_.declare(code_, {region_root}, bound_);
      store_reduced(region_root);
      return;
    }
    for (int k = first; k < end; ++k) code_.line(fmt::format("row.keep(group, {}, {});", k, accumulator(k)));
  }

  /// Whether a thread can check its own indices, and leave where one is out of range: it works alone, and its
  /// lanes have one in common. An index that no address mentions, for its axis has one element or none, is not
  /// of the nest: a nest of its own walks it.
  bool can_check(const std::vector<ir::BoundsCheck>& checks) const {
    const auto is_common = [&](const ir::BoundsCheck& check) {
      const std::uint64_t axes = dependence_[static_cast<std::size_t>(check.scalar)];
      return std::find(nest_.nodes.begin(), nest_.nodes.end(), check.scalar) != nest_.nodes.end() &&
             (plan_.lanes == 1 || (axes >> nest_.vector_axis & 1) == 0);
    };
    return nest_.form->is_map() && plan_.worker == Worker::kThread && plan_.packs == 1 &&
           std::all_of(checks.begin(), checks.end(), is_common);
  }
  void check(std::vector<ir::BoundsCheck> checks) { checks_ = std::move(checks); }

  /// Bytes of shared memory of a tile.
  std::string shared_bytes() const {
    std::string sum;
    for (const int id : plan_.tile.staged) {
      sum += fmt::format("{}{}::bytes({})", sum.empty() ? "" : " + ", tile_type(), staged_bytes(nest_, id));
    }
    return sum;
  }

  void print_check(int scalar, ir::Range range) {
    bind_parallel_axes();
    expressions_.declare(code_, {scalar}, bound_);
    code_.line(fmt::format("const std::int64_t index = {};", expressions_.text(scalar, false)));
    const std::string low = sizes_(range.low), high = sizes_(range.high);
    code_.line(fmt::format("if (index < {} || index >= {}) *trap = 1;", low, high));
  }

 private:
  bool is_shared() const { return !plan_.shared.is_empty(); }
  const ir::Stage& stage(int k) const { return nest_.form->stages[static_cast<std::size_t>(k)]; }
  bool is_last(int end) const { return end == static_cast<int>(nest_.form->stages.size()); }
  static bool is_positional(const ir::Stage& stage) {
    return stage.combine == ir::Combine::kArgMax || stage.combine == ir::Combine::kArgMin;
  }
  std::string accumulator_type(int k) const {
    return is_positional(stage(k)) ? "std::int64_t" : kernel_type(nest_.form->dag.type(stage(k).root));
  }
  /// const RowPart<int, 1> row(/*elements*/ 6220800, /*parts*/ 264, /*of whole*/ 128, workspace);
  void declare_row() {
    const SharedRows& rows = plan_.shared;
    code_.line(
        fmt::format("const RowPart<{}, {}> row(/*elements*/ {}, /*parts*/ {}, /*of whole*/ {}, workspace);",
                    counter_type(), rows.stages(), sizes_(rows.count),
                    rows.is_open() ? "parts" : fmt::format("{}", rows.parts()), rows.grain));
  }
  /// const float part0 = reduce_add<float, 4>(group, row, [&](auto lane, int i1) { return ...; });
  void reduce_part(int k) {
    const auto scope = expressions_.scope();
    const std::uint64_t bound = bound_;
    const ir::Stage& own = stage(k);
    const int inner = nest_.vector_axis;
    const std::string type = kernel_type(nest_.form->dag.type(own.root));
    const std::string call = is_positional(own) ? fmt::format("arg_reduce<{}>(group, row", arg_reduction(own))
                                                : reduce_call(function_of(own.combine),
                                                              nest_.form->dag.type(own.root), inner, false);
    code_.open(fmt::format("const {} part{} = {}{}", is_positional(own) ? "auto" : type, k, call,
                           body_head(inner, varies(own.root, inner))));
    enter_body(inner);
    expressions_.declare(code_, {own.root}, bound_);
    code_.line(fmt::format("return {};", expressions_.text(own.root, true)));
    leave_body(inner);
    code_.close("});");
    bound_ = bound;
    expressions_.restore(scope);
  }

  bool walks_rows() const override { return is_shared() || !plan_.kept.is_empty(); }
  std::string vectorize_call(int loop) const override {
    if (is_shared()) return fmt::format("vectorize<{}>(group, row", plan_.lanes);
    return walks_rows() ? "vectorize(group, row"
                        : fmt::format("vectorize<{}>(group, {}", plan_.lanes, sizes_(axis(loop).extent()));
  }
  std::string reduce_call(const char* function, ir::ElementType type, int loop, bool is_part) const override {
    if (is_shared())
      return fmt::format("reduce_{}<{}, {}>(group, row", function, kernel_type(type), plan_.lanes);
    if (walks_rows()) return fmt::format("reduce_{}<{}>(group, row", function, kernel_type(type));
    return fmt::format("reduce_{}{}<{}, {}>(group, {}", function, is_part ? "_part" : "", kernel_type(type),
                       plan_.lanes, sizes_(axis(loop).extent()));
  }
  std::string arg_reduce_call(const ir::Stage& stage, int loop) const override {
    if (plan_.worker == Worker::kThread) return {};
    return fmt::format("arg_reduce<{}>(group, {}", arg_reduction(stage), sizes_(axis(loop).extent()));
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

  /// A place in a row is its position over all reduced axes, as an int: axes of which there are several, or
  /// whose addresses need 64 bits, are variables of their own.
  bool is_place_an_axis() const { return nest_.reduced.size() == 1 && (narrow_ || is_shared()); }
  std::string place() const { return is_place_an_axis() ? axis_name(nest_.reduced[0]) : "place"; }
  std::string body_parameter(int loop, bool named) const override {
    if (!walks_rows()) return NestPrinter::body_parameter(loop, named);
    if (is_shared()) return named ? counter_type() + " " + place() : counter_type();
    return named ? "auto " + place() : "auto";
  }
  void enter_body(int loop) override {
    enter_lanes(loop);
    begin_body();
    if (walks_rows()) {
      for (const int a : nest_.reduced) bound_ |= bit(a);
    }
  }
  void leave_body(int loop) override {
    NestPrinter::leave_body(loop);
    if (!walks_rows() || is_place_an_axis()) return;
    declare_mentioned(digits(nest_.reduced, place(), extent_of(nest_, nest_.reduced), -1));
  }

  /// const auto kept0 = keep(group, row, [&](auto lane, auto i1) { return load(lane, x + i1); });
  void begin_stage(std::size_t k) override {
    if (plan_.kept.is_empty()) return;
    for (const int id : plan_.kept.nodes[k]) keep(id, fmt::format("kept{}", kept_++));
  }
  void keep(int id, const std::string& name) {
    const auto scope = expressions_.scope();
    const std::uint64_t bound = bound_;
    const int inner = nest_.vector_axis;
    // What all lanes have is loaded without them.
    const bool has_lane = (dependence_[static_cast<std::size_t>(id)] & bit(inner)) != 0;
    code_.open(fmt::format("const auto {} = keep(group, row{}", name, body_head(inner, true, has_lane)));
    enter_body(inner);
    const bool vector = expressions_.is_vector(id);
    expressions_.declare(code_, {id}, bound_);
    code_.line(fmt::format("return {};", expressions_.text(id, vector)));
    close_vector_loop();
    bound_ = bound;
    expressions_.restore(scope);
    expressions_.bind(id, fmt::format("{}(lane, {})", name, place()), vector, name);
  }
  /// Weights are on their way while the kernel ahead still works: nothing that it writes is read before.
  void keep_weights() {
    for (const int id : plan_.kept.ahead) {
      const std::size_t operand = static_cast<std::size_t>(nest_.form->dag[id].operand);
      keep(id, fmt::format("kept_{}", operands_[operand].pointer));
    }
    if (plan_.awaits_itself()) code_.line("await_previous_grid();");
  }
  std::string values_of(int root) const override {
    const auto at = expressions_.scope().find(root);
    if (!walks_rows() || at == expressions_.scope().end() || !at->second.vector) return {};
    return at->second.holder;
  }

  /// map_packs<4, 1024, 4000>(worker, [&](int pack) { return exp(load(lane, x + 4 * pack)); },
  ///                                  [&](int pack, auto value) { store(lane, y + 4 * pack, value); });
  void print_packs(int region_root) {
    const bool vector = plan_.lanes > 1;
    const ir::Dim total = extent_of(nest_, nest_.parallel) / plan_.lanes;
    const std::vector<Digit> axes = digits(nest_.parallel, "pack", total, nest_.vector_axis);
    for (const int a : nest_.parallel) bound_ |= bit(a);
    if (vector) {
      code_.line(fmt::format("constexpr Lanes<{}> lane{{}};", plan_.lanes));
      enter_lanes(nest_.vector_axis);
    }
    const auto scope = expressions_.scope();
    const bool is_fixed = total.is_constant();
    const std::string threads = sizes_(plan_.workers), count = sizes_(total);
    code_.open(fmt::format("map_packs<{}{}>({}worker, [&]({} pack) GCRT_LAMBDA_INLINE {{", plan_.packs,
                           is_fixed ? fmt::format(", {}, {}", threads, count) : "",
                           is_fixed ? "" : fmt::format("{}, {}, ", threads, count), counter_type()));
    begin_body();
    expressions_.declare(code_, {region_root}, bound_);
    code_.line(fmt::format("return {};", expressions_.text(region_root, vector)));
    declare_mentioned(axes);
    expressions_.restore(scope);
    expressions_.bind(region_root, "value", vector);
    code_.reopen(fmt::format("}}, [&]({} pack, auto value) GCRT_LAMBDA_INLINE {{", counter_type()));
    begin_body();
    store(region_root);
    declare_mentioned(axes);
    code_.close("});");
    expressions_.restore(scope);
    leave_lanes();
  }

  /// A tile of the reads' axis by the writes', staged in shared memory in one order and visited in the other.
  void print_tile(int region_root) {
    const TilePlan& tile = plan_.tile;
    const int i = tile.read_axis, j = tile.write_axis;
    const ir::Dim across = ir::ceil_div(axis(i).extent(), tile.read_side),
                  down = ir::ceil_div(axis(j).extent(), tile.write_side);
    std::vector<int> others;
    std::copy_if(nest_.parallel.begin(), nest_.parallel.end(), std::back_inserter(others),
                 [&](int a) { return a != i && a != j; });
    const auto first = [&](ir::Dim below, ir::Dim count, int side) {
      if (count == 1) return std::string("0");
      std::string text = below == 1 ? "worker" : fmt::format("worker / {}", sizes_(below));
      if (below * count != plan_.workers) text += fmt::format(" % {}", sizes_(count));
      return fmt::format("{} * {}", text, side);
    };
    code_.line(fmt::format("// Read along {}, written along {}.", axis_name(i), axis_name(j)));
    const std::string first_i = first(1, across, tile.read_side), extent_i = sizes_(axis(i).extent());
    const std::string first_j = first(across, down, tile.write_side), extent_j = sizes_(axis(j).extent());
    code_.line(
        fmt::format("const {} tile{{{}, {}, {}, {}}};", tile_type(), first_i, extent_i, first_j, extent_j));
    declare_axes(digits(others, "worker", plan_.workers, -1, across * down));
    expressions_.declare(code_, {region_root}, bound_);
    std::string offset = "0";
    for (std::size_t k = 0; k < tile.staged.size(); ++k) {
      const int id = tile.staged[k];
      open_tile_body(
          fmt::format("const auto tile{} = tile.stage<{}, {}>({}, ", k,
                      kernel_type(ir::compute_type(nest_.form->dag.type(id))), tile.read_lanes, offset),
          i);
      expressions_.declare(code_, {id}, bound_);
      code_.line(fmt::format("return {};", expressions_.text(id, true)));
      close_tile_body();
      const std::string bytes = fmt::format("tile.bytes({})", staged_bytes(nest_, id));
      offset = k == 0 ? bytes : offset + " + " + bytes;
    }
    code_.line("barrier();");
    open_tile_body(fmt::format("tile.visit<{}>(", plan_.lanes), j);
    for (std::size_t k = 0; k < tile.staged.size(); ++k) {
      expressions_.bind(tile.staged[k], fmt::format("tile{}(lane, {}, {})", k, axis_name(i), axis_name(j)),
                        true);
    }
    store(region_root);
    close_tile_body();
  }
  std::string tile_type() const {
    return fmt::format("SharedTile<{}, {}{}>", plan_.tile.read_side, plan_.tile.write_side,
                       narrow_ ? "" : ", std::int64_t");
  }
  void open_tile_body(const std::string& call, int lanes_axis) {
    outer_scope_ = expressions_.scope();
    code_.open(fmt::format("{2}[&](auto lane, {3} {0}, {3} {1}) GCRT_LAMBDA_INLINE {{",
                           axis_name(plan_.tile.read_axis), axis_name(plan_.tile.write_axis), call,
                           counter_type()));
    bound_ |= bit(plan_.tile.read_axis) | bit(plan_.tile.write_axis);
    enter_lanes(lanes_axis);
  }
  void close_tile_body() {
    leave_lanes();
    bound_ &= ~(bit(plan_.tile.read_axis) | bit(plan_.tile.write_axis));
    expressions_.restore(outer_scope_);
    code_.close("});");
  }

  /// i0 = worker / 64, i1 = worker % 64 * 4: the last axis varies fastest, so that neighbouring threads touch
  /// neighbouring memory.
  void bind_parallel_axes() {
    if (worker_name() != "worker") {
      bound_ |= bit(nest_.parallel.front());
      return;
    }
    declare_axes(parallel_digits());
    if (nest_.parallel.empty()) code_.line("static_cast<void>(worker);");
  }

  /// An axis as a digit of a number: what counts below it, and how far it counts itself.
  struct Digit {
    int axis;
    std::string number;
    ir::Dim below, count, total;
    std::int64_t lanes;
  };
  /// Axes as digits of `number`, the last first, which counts to `total`; digits below `below` are something
  /// else's. The axis `packed` counts in packs.
  std::vector<Digit> digits(const std::vector<int>& axes, const std::string& number, ir::Dim total,
                            int packed, ir::Dim below = 1) const {
    std::vector<Digit> out;
    for (auto at = axes.rbegin(); at != axes.rend(); ++at) {
      const std::int64_t lanes = *at == packed ? plan_.lanes : 1;
      out.push_back({*at, number, below, axis(*at).extent() / lanes, total, lanes});
      below *= out.back().count;
    }
    return out;
  }
  std::vector<Digit> parallel_digits() const {
    const int packed = plan_.worker == Worker::kThread ? nest_.vector_axis : -1;
    return digits(nest_.parallel, "worker", plan_.workers, packed);
  }
  /// "const int i0 = worker / 64;"
  std::string line_of(const Digit& digit) const {
    std::string text =
        digit.below == 1 ? digit.number : fmt::format("{} / {}", digit.number, sizes_(digit.below));
    if (digit.below * digit.count != digit.total) text += fmt::format(" % {}", sizes_(digit.count));
    if (digit.lanes > 1) text += fmt::format(" * {}", digit.lanes);
    return fmt::format("const {} {} = {};", counter_type(), axis_name(digit.axis), text);
  }
  void begin_body() {
    body_ = code_.mark();
    mentions_.axes = 0;
  }
  /// At the top of the body, those that it names.
  void declare_mentioned(const std::vector<Digit>& digits) {
    for (const Digit& digit : digits) {
      if ((mentions_.axes & bit(digit.axis)) != 0) code_.line_at(body_, line_of(digit));
    }
  }
  void declare_axes(const std::vector<Digit>& digits) {
    for (const Digit& digit : digits) {
      code_.line(line_of(digit));
      bound_ |= bit(digit.axis);
    }
  }

  const CudaLoopPlan& plan_;
  std::vector<ir::BoundsCheck> checks_;
  bool narrow_;
  int kept_ = 0;
  std::size_t body_ = 0;  // where the body of a loop or lambda begins
  std::map<int, ExpressionPrinter::Binding> outer_scope_;
};

}  // namespace gcompile
