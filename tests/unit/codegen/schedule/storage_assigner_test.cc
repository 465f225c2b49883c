// Homes of values: random graphs of views, joins and arithmetic run on the memory that they are given, and
// every kernel finds its operands there, whichever elements it begins with.

#include "codegen/schedule/storage_assigner.h"

#include <fmt/ranges.h>

#include "ir/forms/form.h"
#include "tests/unit/codegen/loops/random_views.h"
#include "tests/unit/ir/index_value.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using ir::NodeId;
using ir::ValueId;
using memory_instances::Dice;

struct Placed {
  ir::Graph graph;
  NodeForms forms;
  std::vector<NodeId> order;
  std::vector<StorageBuffer> buffers;
  StorageAssigner::Result homes;
};

Placed placed(ir::Graph graph, bool place_parts, bool copy_views) {
  Placed out;
  out.graph = std::move(graph);
  const auto port = [&](ValueId id, Space space) {
    const ir::TensorType& type = out.graph.value(id).type;
    StorageBuffer buffer;
    buffer.space = space;
    buffer.bytes = ir::highest(type.bytes());
    out.buffers.push_back(buffer);
    return Storage{static_cast<int>(out.buffers.size()) - 1, 0, ir::row_major_strides(type.shape)};
  };
  std::vector<Storage> inputs, outputs;
  for (const ValueId id : out.graph.inputs()) inputs.push_back(port(id, Space::kInput));
  for (const ValueId id : out.graph.outputs()) outputs.push_back(port(id, Space::kOutput));
  out.order = out.graph.topological_order();
  std::map<NodeId, std::int64_t> time;
  for (const NodeId id : out.order) {
    out.forms.emplace(id, ir::form_of(out.graph, id));
    time.emplace(id, static_cast<std::int64_t>(time.size()));
  }
  out.homes = StorageAssigner(out.graph, out.forms, out.buffers, place_parts, copy_views)
                  .run(out.order, inputs, outputs, time);
  return out;
}

/// Memory of floats, in which kernels read and write what the evaluator says.
class Execution {
 public:
  Execution(const Placed& program, bool backwards) : program_(program), backwards_(backwards) {
    for (const StorageBuffer& buffer : program.buffers)
      memory_.emplace_back(static_cast<std::size_t>(buffer.bytes / 4), std::nan(""));
    const std::vector<ir::Tensor> inputs = random_inputs(program.graph, false);
    expected_ = ir::evaluate_all(program.graph, inputs);
    for (const ValueId id : program.graph.inputs()) put(id);
    for (const NodeId id : program.order) {
      if (!program.homes.elided.count(id)) run(id);
    }
    for (const ValueId id : program.graph.outputs()) expect(id, "the end");
  }
  /// What was not where it should be; empty: nothing.
  const std::string& complaints() const { return complaints_; }

 private:
  double& cell(ValueId id, std::span<const std::int64_t> at) {
    const Storage& home = program_.homes.storage.at(id);
    std::int64_t address = home.offset;
    for (std::size_t i = 0; i < at.size(); ++i) address += at[i] * home.strides[i];
    return memory_.at(static_cast<std::size_t>(home.buffer)).at(static_cast<std::size_t>(address));
  }
  double expected(ValueId id, std::span<const std::int64_t> at) const {
    const ir::Tensor& tensor = *expected_[id.index];
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place = place * tensor.shape()[i] + at[i];
    return tensor.real_at(place);
  }
  void expect(ValueId id, std::span<const std::int64_t> at, const std::string& reader) {
    if (cell(id, at) == expected(id, at) || !complaints_.empty()) return;
    complaints_ = fmt::format("{} finds {} for {} at [{}] of {}", reader, cell(id, at), expected(id, at),
                              fmt::join(at, ", "), program_.graph.value(id).name);
  }
  void expect(ValueId id, const std::string& reader) {
    if (program_.graph.constant(id)) return;
    for_each_point(ir::full_ranges(program_.graph.value(id).type.shape),
                   [&](std::span<const std::int64_t> at) { expect(id, at, reader); });
  }
  void put(ValueId id) {
    for_each_point(ir::full_ranges(program_.graph.value(id).type.shape),
                   [&](std::span<const std::int64_t> at) { cell(id, at) = expected(id, at); });
  }

  void run(NodeId id) {
    const ir::Node& node = program_.graph.node(id);
    const std::string name(node.op->name);
    for (const ValueId operand : node.operands) {
      if (operand.valid()) expect(operand, name);
    }
    const ir::Form& form = program_.forms.at(id);
    const auto* contraction = std::get_if<ir::ContractForm>(&form);
    const ir::LoopForm* loops = contraction ? &contraction->epilogue : std::get_if<ir::LoopForm>(&form);
    if (!loops || !loops->is_map()) {
      for (const ValueId result : node.results) {
        if (!result.valid()) continue;
        if (!loops) expect_dense(result, name);
        put(result);
      }
      return;
    }
    const auto there = program_.homes.elided_regions.find(id);
    for (std::size_t r = 0; r < loops->regions.size(); ++r) {
      if (there == program_.homes.elided_regions.end() || !there->second.count(r))
        run_region(node, *loops, loops->regions[r]);
    }
    if (contraction) expect_innermost(node.results[0], name);
    expect(node.results[0], name);
  }

  /// Packs are stored along the innermost axis of a contraction's result, and library kernels know dense
  /// results only.
  void expect_innermost(ValueId id, const std::string& kernel) {
    const ir::Value& value = program_.graph.value(id);
    const ir::Shape dense = ir::strides_in_order(value.type.shape, value.order);
    const Storage& home = program_.homes.storage.at(id);
    for (std::size_t i = 0; i < dense.size(); ++i) {
      if (dense[i] != 1 || value.type.shape[i] == 1 || home.strides[i] == 1 || !complaints_.empty()) continue;
      complaints_ = fmt::format("{} writes {} with a step of {}", kernel, value.name, home.strides[i]);
    }
  }
  void expect_dense(ValueId id, const std::string& kernel) {
    const ir::Shape& shape = program_.graph.value(id).type.shape;
    if (ir::same_layout(shape, program_.homes.storage.at(id).strides, ir::row_major_strides(shape))) return;
    complaints_ = fmt::format("{} writes {} in another layout", kernel, program_.graph.value(id).name);
  }

  /// Element by element: what a map writes, it may have read before, but must not read afterwards.
  void run_region(const ir::Node& node, const ir::LoopForm& loops, const ir::Region& region) {
    std::vector<Sizes> points;
    for_each_point(region.box,
                   [&](std::span<const std::int64_t> at) { points.emplace_back(at.begin(), at.end()); });
    if (backwards_) std::reverse(points.begin(), points.end());
    const int roots[] = {region.root};
    const std::vector<int> scalars = loops.dag.reachable(roots);
    const auto position = [](std::span<const ir::Index> index, const Sizes& at) {
      Sizes out;
      for (const ir::Index& i : index) out.push_back(value_at(i, at));
      return out;
    };
    for (const Sizes& at : points) {
      for (const int scalar : scalars) {
        const ir::ScalarNode& load = loops.dag[scalar];
        if (load.op != ir::ScalarOp::kLoad) continue;
        const ValueId operand = node.operands[static_cast<std::size_t>(load.operand)];
        if (!program_.graph.constant(operand))
          expect(operand, position(load.index, at), std::string(node.op->name));
      }
      const Sizes to = position(loops.store, at);
      cell(node.results[0], to) = expected(node.results[0], to);
    }
  }

  const Placed& program_;
  bool backwards_;
  std::vector<std::vector<double>> memory_;
  std::vector<std::optional<ir::Tensor>> expected_;
  std::string complaints_;
};

/// Kernels whose result lies where an operand does.
int overwriting(const Placed& program) {
  int count = 0;
  for (const NodeId id : program.order) {
    const ir::Node& node = program.graph.node(id);
    const Storage& home = program.homes.storage.at(node.results[0]);
    if (program.homes.elided.count(id) || program.homes.elided_regions.count(id)) continue;
    count += std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      const auto at = program.homes.storage.find(operand);
      return operand.valid() && at != program.homes.storage.end() && at->second.buffer == home.buffer;
    });
  }
  return count;
}

TEST(StorageAssignerTest, EveryKernelFindsItsOperands) {
  Dice dice(11);
  std::size_t views = 0, parts = 0;
  int overwritten = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string text = RandomModel(dice).text();
    ir::Graph graph = parse(text);
    if (round % 2 == 0) {
      passes::optimise(graph, {});
    } else {
      prepare(graph);
    }
    const Placed program = placed(std::move(graph), dice.roll(0, 3) != 0, dice.roll(0, 1) == 0);
    for (const bool backwards : {false, true}) {
      const Execution execution(program, backwards);
      ASSERT_EQ(execution.complaints(), "") << "round " << round << "\n"
                                            << text << "\n"
                                            << ir::print(program.graph);
    }
    views += program.homes.elided.size();
    parts += program.homes.elided_regions.size();
    overwritten += overwriting(program);
  }
  EXPECT_GT(views, 4000u);
  EXPECT_GT(parts, 400u);
  EXPECT_GT(overwritten, 500);
}

/// A view of as many elements as its operand has, some of them several times: what it leaves out has no place
/// where the view lies.
TEST(StorageAssignerTest, AViewThatRepeatsAndLeavesOutIsNoHome) {
  const std::string models[] = {
      R"(g (float[1,4,5,4] x) => (float[4,5,2,2] y) <float[4] scales = {1, 1, 0.5, 2}> {
           t = Transpose<perm = [1, 2, 3, 0]>(x)
           y = Resize<coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor">(t, , scales)
         })",
      R"(g (float[4,4,7,5] x) => (float[4,2,2,7,5] y) <int64[2,2] places = {0, 0, -4, -4}> {
           s = Exp(x)
           y = Gather<axis = 1>(s, places)
         })",
      R"(g (float[6,2] x) => (float[3,2,2] y)
         <int64[1] zero = {0}, int64[1] end = {6}, int64[1] two = {2}, int64[1] one = {1}, int64[3] shape = {3, 2, 2}> {
           s = Exp(x)
           half = Slice(s, zero, end, zero, two)
           apart = Unsqueeze(half, one)
           y = Expand(apart, shape)
         })"};
  for (const std::string& text : models) {
    for (const bool optimises : {false, true}) {
      ir::Graph graph = parse(text);
      if (optimises) {
        passes::optimise(graph, {});
      } else {
        prepare(graph);
      }
      const Placed program = placed(std::move(graph), true, true);
      const Execution execution(program, false);
      EXPECT_EQ(execution.complaints(), "") << text << "\n" << ir::print(program.graph);
    }
  }
}

}  // namespace
}  // namespace gcompile::testing
