// Loops that a kernel runs reach what their form names: every point once, at the same addresses, however axes
// are split, merged and put in order.

#include "codegen/loops/loop_nest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/loops/cuda/cuda_loop_plan.h"
#include "tests/unit/codegen/memory/memory_instances.h"
#include "tests/unit/ir/index_value.h"

namespace gcompile {
namespace {

using ir::ElementType;
using ir::Index;
using ir::Shape;
using memory_instances::Dice;
using testing::address_at;
using testing::for_each_point;
using testing::value_at;

struct Kernel {
  ir::LoopForm form;
  std::vector<KernelTensor> operands;
  KernelTensor result;
};

/// Sizes whose product is `count`, some of them 1.
Shape random_shape(Dice& dice, std::int64_t count) {
  Shape shape;
  while (count > 1) {
    std::int64_t size = dice.roll(1, count);
    while (count % size != 0) --size;
    shape.push_back(size);
    count /= size;
  }
  if (shape.empty()) shape.push_back(1);
  return shape;
}

std::vector<int> random_order(Dice& dice, std::size_t rank) {
  std::vector<int> order;
  for (std::size_t i = 0; i < rank; ++i) {
    order.insert(order.begin() + dice.roll(0, static_cast<std::int64_t>(i)), static_cast<int>(i));
  }
  return order;
}

KernelTensor random_tensor(Dice& dice, const Shape& shape) {
  KernelTensor tensor;
  tensor.strides = ir::strides_in_order(shape, random_order(dice, shape.size()));
  tensor.alignment = std::int64_t{4} << dice.roll(0, 4);
  return tensor;
}

/// A load of another shape with as many elements; of a part of it, or in reverse.
int random_view(Dice& dice, Kernel& kernel, std::int64_t count) {
  ir::LoopForm& form = kernel.form;
  Shape shape = random_shape(dice, count);
  std::vector<Index> index =
      ir::delinearise(ir::linearise(form.identity(), form.extents), shape, form.ranges());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (dice.roll(0, 3) == 0) index[i] = Index(shape[i] - 1) - index[i];
    const std::int64_t before = std::max<std::int64_t>(0, dice.roll(-3, 2)), behind = dice.roll(0, 1);
    index[i] = index[i] + Index(before);
    shape[i] += before + behind;
  }
  kernel.operands.push_back(random_tensor(dice, shape));
  return form.dag.load(static_cast<int>(kernel.operands.size()) - 1, ElementType::kFloat32, std::move(index));
}

/// A load that is the same along some axes.
int random_broadcast(Dice& dice, Kernel& kernel) {
  ir::LoopForm& form = kernel.form;
  Shape shape = form.extents;
  std::vector<Index> index = form.identity();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (dice.roll(0, 1) == 0) shape[i] = 1, index[i] = 0;
  }
  kernel.operands.push_back(random_tensor(dice, shape));
  return form.dag.load(static_cast<int>(kernel.operands.size()) - 1, ElementType::kFloat32, std::move(index));
}

/// A map whose result is cut in two along an axis, or a sum along the last axes.
Kernel random_kernel(Dice& dice) {
  const std::int64_t counts[] = {1, 8, 12, 24, 36, 60, 64};
  const std::int64_t count = counts[dice.roll(0, 6)];
  Kernel kernel;
  ir::LoopForm& form = kernel.form;
  form = ir::LoopForm::over(random_shape(dice, count));
  int root = random_view(dice, kernel, count);
  for (std::int64_t more = dice.roll(0, 2); more > 0; --more) {
    const int load = dice.roll(0, 1) == 0 ? random_view(dice, kernel, count) : random_broadcast(dice, kernel);
    root = form.dag.apply(ir::ScalarOp::kAdd, {root, load});
  }
  const auto rank = static_cast<std::int64_t>(form.extents.size());
  if (rank > 1 && dice.roll(0, 2) == 0) {
    form.parallel = static_cast<int>(dice.roll(1, rank - 1));
    form.stages.push_back({ir::Combine::kSum, root});
    form.store.resize(static_cast<std::size_t>(form.parallel));
    root = form.dag.accumulator(0, ElementType::kFloat32);
  }
  ir::Region low, high;
  low.root = high.root = root;
  for (int axis = 0; axis < form.final_axes(); ++axis)
    low.box.push_back({0, form.extents[static_cast<std::size_t>(axis)]});
  high.box = low.box;
  const auto cut_axis = static_cast<std::size_t>(dice.roll(0, form.final_axes() - 1));
  const std::int64_t cut = dice.roll(0, form.extents[cut_axis]);
  low.box[cut_axis].high = high.box[cut_axis].low = cut;
  for (const ir::Region& region : {low, high}) {
    if (!region.is_empty()) form.regions.push_back(region);
  }
  kernel.result = random_tensor(dice, Shape(form.extents.begin(), form.extents.begin() + form.final_axes()));
  return kernel;
}

/// Where one point stores, and what it loads.
using Visit = std::vector<std::int64_t>;

std::vector<Visit> visits_of_form(const Kernel& kernel, const ir::Region& region) {
  const ir::LoopForm& form = kernel.form;
  std::vector<ir::Range> ranges = form.ranges();
  std::copy(region.box.begin(), region.box.end(), ranges.begin());
  std::vector<Visit> visits;
  for_each_point(ranges, [&](std::span<const std::int64_t> at) {
    Visit visit = {address_at(form.store, kernel.result.strides, at)};
    for (const ir::ScalarNode& node : form.dag.nodes()) {
      if (node.op != ir::ScalarOp::kLoad) continue;
      const KernelTensor& operand = kernel.operands[static_cast<std::size_t>(node.operand)];
      visit.push_back(address_at(node.index, operand.strides, at));
    }
    visits.push_back(std::move(visit));
  });
  return visits;
}

std::vector<Visit> visits_of_nest(const Kernel& kernel, const LoopNest& nest) {
  std::vector<int> loops = nest.parallel;
  loops.insert(loops.end(), nest.reduced.begin(), nest.reduced.end());
  std::vector<ir::Range> ranges;
  for (const int axis : loops) ranges.push_back({0, nest.axes[static_cast<std::size_t>(axis)].extent()});
  std::vector<Visit> visits;
  std::vector<std::int64_t> axes(nest.axes.size(), 0);
  for_each_point(ranges, [&](std::span<const std::int64_t> at) {
    for (std::size_t i = 0; i < loops.size(); ++i) axes[static_cast<std::size_t>(loops[i])] = at[i];
    Visit visit = {value_at(nest.store, axes)};
    for (std::size_t id = 0; id < kernel.form.dag.nodes().size(); ++id) {
      if (kernel.form.dag.nodes()[id].op == ir::ScalarOp::kLoad)
        visit.push_back(value_at(nest.address[id], axes));
    }
    visits.push_back(std::move(visit));
  });
  return visits;
}

TEST(LoopNestTest, VisitsEveryPointOfItsFormOnce) {
  Dice dice(5);
  for (int round = 0; round < 2000; ++round) {
    const Kernel kernel = random_kernel(dice);
    for (const ir::Region& region : kernel.form.regions) {
      const LoopNest nest = build_nest(kernel.form, region, kernel.operands, kernel.result);
      std::vector<Visit> expected = visits_of_form(kernel, region), actual = visits_of_nest(kernel, nest);
      std::sort(expected.begin(), expected.end());
      std::sort(actual.begin(), actual.end());
      ASSERT_EQ(actual, expected) << "round " << round << "\n" << to_string(kernel.form);
    }
  }
}

/// Addresses of what a thread of a map reads or writes by packs:
/// those whose step along the vector axis is one.
std::vector<std::pair<Index, std::int64_t>> pack_streams(const Kernel& kernel, const LoopNest& nest) {
  std::vector<std::pair<Index, std::int64_t>> streams;
  const auto add = [&](const Index& address, const KernelTensor& tensor) {
    const auto divides = [&](const Index::Term& t) {
      return t.atom.inner && t.atom.inner->mentions(nest.vector_axis);
    };
    if (address.coefficient_of(nest.vector_axis) == 1 &&
        std::none_of(address.terms().begin(), address.terms().end(), divides)) {
      streams.emplace_back(address, tensor.alignment);
    }
  };
  for (const int id : nest.nodes) {
    const ir::ScalarNode& node = kernel.form.dag[id];
    if (node.op == ir::ScalarOp::kLoad)
      add(nest.address[static_cast<std::size_t>(id)],
          kernel.operands[static_cast<std::size_t>(node.operand)]);
  }
  add(nest.store, kernel.result);
  return streams;
}

TEST(LoopNestTest, PacksOfThreadsAreAlignedAtEveryPoint) {
  Dice dice(6);
  int packed = 0;
  for (int round = 0; round < 4000; ++round) {
    const Kernel kernel = random_kernel(dice);
    if (!kernel.form.is_map()) continue;
    for (const ir::Region& region : kernel.form.regions) {
      LoopNest nest = build_nest(kernel.form, region, kernel.operands, kernel.result);
      const CudaLoopPlan plan =
          plan_cuda_loops(nest, region.root, kernel.operands, kernel.result, gcrt::device_model(90));
      if (plan.worker != CudaLoopPlan::Worker::kThread || plan.lanes == 1) continue;
      ++packed;
      std::vector<ir::Range> ranges;
      for (const NestAxis& axis : nest.axes) ranges.push_back(axis.dead ? ir::Range{0, 1} : axis.range);
      for (const auto& [address, alignment] : pack_streams(kernel, nest)) {
        EXPECT_EQ(alignment % (4 * plan.lanes), 0);
        for_each_point(ranges, [&, &a = address](std::span<const std::int64_t> at) {
          if (at[static_cast<std::size_t>(nest.vector_axis)] % plan.lanes != 0) return;
          ASSERT_EQ(value_at(a, at) % plan.lanes, 0) << "round " << round << "\n" << to_string(kernel.form);
        });
      }
      const std::int64_t extent = nest.axes[static_cast<std::size_t>(nest.vector_axis)].extent();
      EXPECT_EQ(extent % plan.lanes, 0);
    }
  }
  EXPECT_GT(packed, 400);
}

/// x[i / 4, i mod 4] over all rows and over some: where the box ends within a row, the axis stays whole.
TEST(LoopNestTest, SplitsAxesAtWholeRowsOnly) {
  for (const auto& [low, high] : {std::pair{0, 24}, {4, 20}, {0, 22}, {2, 24}}) {
    Kernel kernel;
    kernel.form = ir::LoopForm::over({24});
    const Index i = Index::axis(0);
    const std::vector<ir::Range> ranges = kernel.form.ranges();
    const int load = kernel.form.dag.load(0, ElementType::kFloat32,
                                          {ir::floor_div(i, 4, ranges), ir::modulo(i, 4, ranges)});
    kernel.form.regions.push_back({{{low, high}}, load});
    kernel.operands.resize(1);
    kernel.operands[0].strides = {1, 6};
    kernel.result.strides = {1};
    const LoopNest nest = build_nest(kernel.form, kernel.form.regions[0], kernel.operands, kernel.result);
    const bool is_whole = low % 4 == 0 && high % 4 == 0;
    EXPECT_EQ(nest.parallel.size(), is_whole ? 2u : 1u) << low << " to " << high;
  }
}

}  // namespace
}  // namespace gcompile
