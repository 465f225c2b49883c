// Known indices as formulas, and what scatters to boxes of them become.

#include "ir/ops/known_indices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/forms/form.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Shape;
using ir::Tensor;
using Ints = std::vector<std::int64_t>;

Tensor ints(const Ints& values, const Shape& shape) { return Tensor::of_ints(values, shape); }

TEST(AffineIndices, TellSlicesWindowsAndConstants) {
  const auto windows = ir::affine_indices(ints({1, 3, 5, 2, 4, 6}, {2, 3}), {2, 3}, 0, 7);
  ASSERT_TRUE(windows);
  EXPECT_EQ(windows->first, 1);
  EXPECT_EQ(windows->steps, (Shape{1, 2}));
  const auto back = ir::affine_indices(ints({-1, -2, 0}, {3}), {3}, 0, 3);
  ASSERT_TRUE(back) << "2, 1, 0 when wrapped";
  EXPECT_EQ(back->steps, (Shape{-1}));
}

TEST(AffineIndices, AreNoneOutsideTheAxisOrOffTheFormula) {
  EXPECT_FALSE(ir::affine_indices(ints({0, 1, 2}, {3}), {3}, 0, 2));
  EXPECT_FALSE(ir::affine_indices(ints({0, 1, 3}, {3}), {3}, 0, 4));
  EXPECT_FALSE(ir::affine_indices(ints({0, 1, 1, 3}, {2, 2}), {2, 2}, 0, 4));
  EXPECT_FALSE(ir::affine_indices(ints({}, {0}), {0}, 0, 4));
}

/// A box of data as indices in tuples, perhaps with axes backwards or in another order among the updates.
struct Box {
  Tensor data, indices, updates;
};

class RandomBoxes {
 public:
  explicit RandomBoxes(unsigned seed) : random_(seed) {}

  Box make() {
    const int rank = up_to(1, 4), depth = up_to(1, rank);
    Shape data, walked;
    std::vector<int> first, step;
    for (int axis = 0; axis < rank; ++axis) data.push_back(up_to(1, 4));
    for (int axis = 0; axis < depth; ++axis) {
      const int size = static_cast<int>(ir::highest(data[static_cast<std::size_t>(axis)]));
      const int count = up_to(1, size), low = up_to(0, size - count);
      const bool is_reversed = up_to(0, 3) == 0;
      walked.push_back(count);
      first.push_back(is_reversed ? low + count - 1 : low);
      step.push_back(is_reversed ? -1 : 1);
    }
    std::vector<std::size_t> order(static_cast<std::size_t>(depth));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    Shape positions;
    for (const std::size_t axis : order) positions.push_back(walked[axis]);
    Ints values;
    Ints at(positions.size(), 0);
    for (std::int64_t i = 0; i < ir::element_count(positions); ++i) {
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(depth); ++axis) {
        const auto own =
            static_cast<std::size_t>(std::find(order.begin(), order.end(), axis) - order.begin());
        const std::int64_t index = first[axis] + at[own] * step[axis];
        values.push_back(up_to(0, 5) == 0 ? index - ir::highest(data[axis]) : index);
      }
      for (std::size_t k = at.size(); k-- > 0 && ++at[k] == positions[k];) at[k] = 0;
    }
    Shape tuples = positions, updates = positions;
    tuples.push_back(depth);
    updates.insert(updates.end(), data.begin() + depth, data.end());
    return {floats(data), ints(values, tuples), floats(updates)};
  }

 private:
  int up_to(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Tensor floats(const Shape& shape) {
    Tensor out(ir::TensorType{ir::ElementType::kFloat32, shape});
    for (std::int64_t i = 0; i < out.count(); ++i)
      out.set(i, ir::Scalar::of_real(ir::ElementType::kFloat32, up_to(-50, 50)));
    return out;
  }
  std::mt19937 random_;
};

std::vector<double> by_loops(const OneNode& spec) {
  const ir::Graph graph = graph_of(spec);
  const ir::Form form = ir::form_of(graph, graph.nodes()[0]);
  const auto* loops = std::get_if<ir::LoopForm>(&form);
  return loops ? reals(ir::evaluate(*loops, spec.operands, spec.operands[0]->type())) : std::vector<double>{};
}

std::vector<double> by_definition(const OneNode& spec) {
  const ir::Graph graph = graph_of(spec);
  return reals(ir::evaluate_node(graph, graph.nodes()[0], spec.operands)[0]);
}

TEST(ScatterND, OfKnownBoxesIsLoops) {
  RandomBoxes boxes(7);
  for (int i = 0; i < 300; ++i) {
    const Box box = boxes.make();
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      OneNode spec{.op = "ScatterND", .operands = {&box.data, &box.indices, &box.updates}, .known = true};
      spec.attributes.set("reduction", std::string(reduction));
      ASSERT_EQ(by_loops(spec), by_definition(spec))
          << i << reduction << to_string(box.data.shape()) << to_string(box.indices.shape());
    }
  }
}

TEST(ScatterND, OfOtherIndicesStaysAScatter) {
  const Tensor data = ints({0, 1, 2, 3, 4, 5}, {6}), two = ints({7, 8}, {2});
  for (const Ints& indices : {Ints{0, 2}, Ints{1, 1}, Ints{4, 6}}) {
    const Tensor tuples = ints(indices, {2, 1});
    const OneNode spec{.op = "ScatterND", .operands = {&data, &tuples, &two}, .known = true};
    EXPECT_TRUE(by_loops(spec).empty()) << indices[1];
  }
}

TEST(ScatterElements, OfKnownRowsIsLoops) {
  const Tensor data = ints({0, 1, 2, 3, 4, 5, 6, 7, 8}, {3, 3});
  const Tensor updates = ints({10, 11, 12, 13}, {2, 2});
  const Tensor rows = ints({2, 2, 1, 1}, {2, 2}), diagonals = ints({0, 1, 1, 2}, {2, 2});
  OneNode spec{.op = "ScatterElements", .operands = {&data, &rows, &updates}, .known = true};
  EXPECT_EQ(by_loops(spec), (std::vector<double>{0, 1, 2, 12, 13, 5, 10, 11, 8}));
  EXPECT_EQ(by_loops(spec), by_definition(spec));
  spec.operands[1] = &diagonals;
  EXPECT_TRUE(by_loops(spec).empty());
}

}  // namespace
}  // namespace gcompile::testing
