#include "codegen/loops/loop_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/nest_printer.h"
#include "codegen/loops/region_form.h"
#include "codegen/loops/turned_tiles.h"
#include "codegen/loops/walk_price.h"

namespace gcompile {

namespace {

/// What a nest takes, in additions of one element.
struct Work {
  double own = 0;     // of the expressions at every point: operators, loads, and the store
  double handed = 0;  // until one core has what another wrote and reads
};

Work work_of(const LoopNest& nest) {
  constexpr double kHandOver = 54;  // of two elements: codegen/calls/hand_over.h
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
  return {points * work, results * kHandOver};
}

/// Who walks a part of the outermost axis.
enum class Items { kNone, kOfThreads, kOfCaller };

/// Loops over packs.
class CpuNestPrinter final : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  /// In one thread, of the whole or of what the caller names; or for threads: the items of parallel_for are the
  /// outermost axis, or blocks of the vector axis where it is that.
  void print(int region_root, Items items) {
    if (compare_positions(region_root)) headers_.insert("gcrt/cpu/positions.h");
    if (const std::optional<TurnedTiles> tiles = turned_tiles(nest_))
      return print_tiles(*tiles, region_root, items);
    const bool threaded = items == Items::kOfThreads;
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
    open_loops(loops, all, items);
    if (parallel_vector && has_columns()) {
      print_columns(region_root);
    } else if (parallel_vector) {
      open_vector_loop(nest_.vector_axis);
      if (inside.empty()) expressions_.declare(code_, all, bound_);
      if (inside.size() == 1 && takes_turns(inside[0])) {
        store_in_turn(inside[0], region_root);
      } else {
        for (const int loop : inside) open_loop(loop, all);
        point(region_root);
        for (std::size_t i = 0; i < inside.size(); ++i) code_.close();
      }
      close_vector_loop();
    } else {
      point(region_root);
    }
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    if (threaded) code_.close("});");
  }

  const std::set<std::string>& headers() const { return headers_; }

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
    const std::string low = sizes_(range.low), last = sizes_(range.high - 1);
    const int inner = loops.empty() ? -1 : loops.back();
    for (const int loop : loops) {
      // What the inner loop finds decides behind it, so that it has no branch.
      if (loop == inner) code_.line("std::int64_t outside = 0;");
      open_loop(loop, {scalar});
    }
    code_.line(fmt::format("const std::int64_t index = {};", expressions_.text(scalar, false)));
    const std::string from_low = low == "0" ? "index" : fmt::format("sub(index, std::int64_t{{{}}})", low);
    const std::string outside = fmt::format("{} | sub(std::int64_t{{{}}}, index)", from_low, last);
    if (inner < 0) {
      code_.line(fmt::format("if (({}) < 0) return false;", outside));
      return;
    }
    code_.line(fmt::format("outside |= {};", outside));
    code_.close();
    code_.line("if (outside < 0) return false;");
    loops.pop_back();
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
    return loop != nest_.rows && nest_.form->is_map() && ir::always_less_equal(axis(loop).extent(), kShort) &&
           ir::always_less(0, step(loop)) && ir::always_less(step(loop), step(nest_.vector_axis));
  }

  /// Whether the results along a short axis, and nothing else, fill what the vector axis steps over.
  bool takes_turns(int loop) const {
    const ir::Dim extent = axis(loop).extent();
    return nest_.store.coefficient_of(loop) == 1 && nest_.store.coefficient_of(nest_.vector_axis) == extent &&
           extent.is_constant() && compute_type(result_->element) == result_->element;
  }

  /// The value where the turn is known, which is what a choice by turns chooses.
  int chosen(int root) const {
    const ir::Dag& dag = nest_.form->dag;
    while (dag[root].op == ir::ScalarOp::kSelect) {
      const ir::ScalarNode& condition = dag[dag[root].arguments[0]];
      if (condition.op != ir::ScalarOp::kEqual) break;
      std::optional<std::int64_t> sides[2];
      for (std::size_t i = 0; i < 2; ++i) {
        const int side = condition.arguments[i];
        const ir::Index& place = nest_.address[static_cast<std::size_t>(side)];
        if (dag[side].op == ir::ScalarOp::kConstant) sides[i] = dag[side].constant.integer;
        if (dag[side].op == ir::ScalarOp::kIota && place.is_constant() && place.constant().is_constant())
          sides[i] = place.constant().constant();
      }
      if (!sides[0] || !sides[1]) break;
      root = dag[root].arguments[*sides[0] == *sides[1] ? 1 : 2];
    }
    return root;
  }

  /// One pack for each place along the short axis.
  void store_in_turn(int loop, int root) {
    headers_.insert("gcrt/cpu/interleaved.h");
    const std::vector<ir::Index> addresses = nest_.address;
    const std::vector<ir::Range> ranges = nest_.ranges();
    std::vector<ir::Index> axes;
    for (std::size_t i = 0; i < nest_.axes.size(); ++i) axes.push_back(ir::Index::axis(static_cast<int>(i)));
    bound_ |= bit(loop);
    std::string parts;
    for (std::int64_t k = 0; k < axis(loop).extent().constant(); ++k) {
      const auto scope = expressions_.scope();
      axes[static_cast<std::size_t>(loop)] = k;
      for (const int id : nest_.nodes) {
        nest_.address[static_cast<std::size_t>(id)] = ir::substitute(
            addresses[static_cast<std::size_t>(id)], axes, ranges, [](int scalar) { return scalar; });
      }
      const int value = chosen(root);
      expressions_.declare(code_, {value}, bound_);
      parts += ", " + expressions_.text(value, true);
      expressions_.restore(scope);
    }
    nest_.address = addresses;
    bound_ &= ~bit(loop);
    mentions_.result = true;
    code_.line(fmt::format("store_interleaved(lane, {}{});",
                           position(result_->pointer, nest_.store - ir::Index::axis(loop)), parts));
  }

  /// Whether the rows of a matrix are reduced to one row, which is long enough for packs side by side.
  bool has_columns() const {
    constexpr std::int64_t kLeastColumns = 32;
    const std::vector<ir::Stage>& stages = nest_.form->stages;
    return stages.size() == 1 && nest_.reduced.size() == 1 && !nest_.form->final_over_reduced &&
           (dependence_[static_cast<std::size_t>(stages[0].root)] & bit(nest_.vector_axis)) != 0 &&
           ir::typical(axis(nest_.vector_axis).extent()) >= kLeastColumns;
  }

  void print_columns(int region_root) {
    headers_.insert("gcrt/cpu/columns.h");
    const int columns = nest_.vector_axis, rows = nest_.reduced[0];
    const ir::Stage& stage = nest_.form->stages[0];
    const std::string count = sizes_(axis(columns).extent());
    const std::string part =
        in_blocks_ ? fmt::format("vector_part(begin, end, {})", count) : fmt::format("{{0, {}}}", count);
    const auto head = [&](const std::string& more) {
      return fmt::format("[&](auto lane, std::ptrdiff_t {}, {}) GCRT_LAMBDA_INLINE {{", axis_name(columns),
                         more);
    };
    code_.open(fmt::format(
        "{}_columns<{}{}>({}, {}, {}", function_of(stage.combine),
        kernel_type(nest_.form->dag.type(stage.root)), has_wide_elements(columns) ? ", kLanes / 2" : "", part,
        sizes_(axis(rows).extent()), head(body_parameter(rows, varies(stage.root, rows)))));
    const auto scope = expressions_.scope();
    const std::uint64_t bound = bound_;
    bound_ |= bit(rows);
    enter_lanes(columns);
    expressions_.declare(code_, {stage.root}, bound_);
    code_.line(fmt::format("return {};", expressions_.text(stage.root, true)));
    leave_lanes();
    bound_ = bound;
    expressions_.restore(scope);
    code_.reopen("}, " + head("auto " + accumulator(0)));
    enter_lanes(columns);
    settle(0);
    store(region_root);
    leave_body(columns);
    code_.close("});");
  }

  /// Loops over tiles of the vector axis and the one that loads are packs along; the others lie around them.
  void print_tiles(const TurnedTiles& tiles, int region_root, Items items) {
    const bool threaded = items == Items::kOfThreads;
    const int along = tiles.along, across = nest_.vector_axis;
    const std::vector<int> all = roots(region_root);
    std::vector<int> loops;
    for (const int loop : nest_.parallel) {
      if (loop != along && loop != across) loops.push_back(loop);
    }
    expressions_.declare(code_, all, bound_);
    const std::string counts[] = {sizes_(axis(along).extent()), sizes_(axis(across).extent())};
    std::string parts[] = {fmt::format("{{0, {}}}", counts[0]), fmt::format("{{0, {}}}", counts[1])};
    headers_.insert("gcrt/cpu/turned_tiles.h");
    if (threaded && loops.empty()) {
      const bool splits_across = ir::typical(axis(across).extent()) >= ir::typical(axis(along).extent());
      std::string& part = parts[splits_across];
      const std::string& count = counts[splits_across];
      code_.open(fmt::format(
          "parallel_for(threads, turned_blocks({}), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{",
          count));
      part = fmt::format("turned_part(begin, end, {})", count);
    } else if (threaded) {
      open_items(loops.front(), false);
    }
    open_loops(loops, all, items);
    const auto head = [&](const std::string& more) {
      return fmt::format("[&](auto lane, std::ptrdiff_t {}, std::ptrdiff_t {}{}) GCRT_LAMBDA_INLINE {{",
                         axis_name(along), axis_name(across), more);
    };
    const bool is_wide = has_wide_elements(across) || has_wide_elements(along);
    code_.open(
        fmt::format("turn_tiles{}({}, {}, {}", is_wide ? "<kLanes / 2>" : "", parts[0], parts[1], head("")));
    bound_ |= bit(across);
    enter_lanes(along);
    std::string loads;
    for (const int id : tiles.loads) loads += (loads.empty() ? "" : ", ") + expressions_.text(id, true);
    const bool is_one = tiles.loads.size() == 1;
    code_.line(is_one ? fmt::format("return {};", loads) : fmt::format("return packs({});", loads));
    leave_lanes();
    code_.reopen(fmt::format("}}, {}", head(is_one ? ", auto turned" : ", const auto& turned")));
    enter_lanes(across);
    std::string rest = "turned";
    for (const int id : tiles.loads) {
      expressions_.bind(id, id == tiles.loads.back() ? rest : rest + ".first", true);
      rest += ".rest";
    }
    store(region_root);
    leave_body(across);
    code_.close("});");
    for (std::size_t i = 0; i < loops.size(); ++i) code_.close();
    if (threaded) code_.close("});");
  }

  /// One inside the other, the first one over the items.
  void open_loops(const std::vector<int>& loops, const std::vector<int>& all, Items items) {
    for (const int loop : loops) {
      if (items != Items::kNone && loop == loops.front()) {
        open_item_loop(loop, all);
      } else {
        open_loop(loop, all);
      }
    }
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

  std::set<std::string> headers_;
  bool in_blocks_ = false;  // the vector axis is the items
};

}  // namespace

PrintedLoops print_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                         const KernelTensor& result, int depth, double least_work, SizeParameters& sizes,
                         int rows) {
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
    LoopNest nest = build_nest(alone ? *alone : form, printed_region, operands, result, rows);
    fold_packs_where_cheaper(nest);
    store_packs_where_loads_turn(nest);
    const Work work = work_of(nest);
    printed.work += work.own;
    const bool is_worth_it = rows < 0 && work.own + work.handed >= least_work;
    CpuNestPrinter printer(std::move(nest), operands, &result, code, sizes);
    const bool threaded = is_worth_it && printer.is_splittable();
    printer.print(printed_region.root, rows >= 0  ? Items::kOfCaller
                                       : threaded ? Items::kOfThreads
                                                  : Items::kNone);
    printed.headers.insert(printer.headers().begin(), printer.headers().end());
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
