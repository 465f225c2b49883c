// Which maps are walked in tiles, and which reductions fold their packs.
#include "codegen/loops/turned_tiles.h"

#include <gtest/gtest.h>

#include <memory>

#include "codegen/loops/walk_price.h"

namespace gcompile {
namespace {

using ir::Index;

constexpr ir::ElementType kFloat = ir::ElementType::kFloat32;

KernelTensor with_strides(ir::Shape strides) { return {"x", kFloat, std::move(strides)}; }

/// result[i, j] of the sum of operands that are read at [i, j] by strides of their own.
LoopNest sum_of(ir::Shape extents, const std::vector<ir::Shape>& strides) {
  static std::vector<std::unique_ptr<ir::LoopForm>> forms;
  forms.push_back(std::make_unique<ir::LoopForm>(ir::LoopForm::over(extents)));
  ir::LoopForm& form = *forms.back();
  std::vector<KernelTensor> operands;
  int sum = -1;
  for (std::size_t k = 0; k < strides.size(); ++k) {
    operands.push_back(with_strides(strides[k]));
    const int load = form.dag.load(static_cast<int>(k), kFloat, form.identity());
    sum = sum < 0 ? load : form.dag.apply(ir::ScalarOp::kAdd, {sum, load});
  }
  form.regions.push_back({{}, sum});
  return build_nest(form, form.regions[0], operands, with_strides({extents[1], 1}));
}

TEST(TurnedTiles, ReadAlongOneAxisWhatIsWrittenAlongTheOther) {
  const LoopNest nest = sum_of({40, 60}, {{1, 40}});
  const std::optional<TurnedTiles> tiles = turned_tiles(nest);
  ASSERT_TRUE(tiles);
  EXPECT_EQ(tiles->along, 0);
  EXPECT_EQ(nest.vector_axis, 1);
  EXPECT_EQ(tiles->loads.size(), 1u);
}

TEST(TurnedTiles, TakeOnlyTheLoadsThatAreTurned) {
  const std::optional<TurnedTiles> tiles = turned_tiles(sum_of({40, 60}, {{60, 1}, {1, 40}, {1, 0}}));
  ASSERT_TRUE(tiles);
  EXPECT_EQ(tiles->loads.size(), 1u);
}

TEST(TurnedTiles, AreStoredWholeHoweverManyLoadsTurn) {
  LoopNest nest = sum_of({40, 60}, {{1, 40}, {1, 40}, {1, 41}, {60, 1}});
  EXPECT_EQ(nest.vector_axis, 0);
  store_packs_where_loads_turn(nest);
  EXPECT_EQ(nest.vector_axis, 1);
  EXPECT_EQ(turned_tiles(nest)->loads.size(), 3u);
  LoopNest gathered = sum_of({40, 60}, {{1, 40}, {1, 40}, {1, 41}, {80, 2}});
  store_packs_where_loads_turn(gathered);
  EXPECT_EQ(gathered.vector_axis, 0);
}

TEST(TurnedTiles, AreNoneWhereAnAxisIsShortOrPacksAreReadAlongIt) {
  EXPECT_FALSE(turned_tiles(sum_of({40, 60}, {{60, 1}})));
  EXPECT_FALSE(turned_tiles(sum_of({40, 60}, {{1, 0}, {60, 1}})));
  EXPECT_FALSE(turned_tiles(sum_of({3, 60}, {{1, 3}})));
  EXPECT_FALSE(turned_tiles(sum_of({40, 60}, {{2, 80}})));
}

/// The sum over axis 1 of a matrix of `rows` by `terms`.
LoopNest reduction(ir::Dim rows, ir::Dim terms, ir::Shape strides) {
  static std::vector<std::unique_ptr<ir::LoopForm>> forms;
  forms.push_back(std::make_unique<ir::LoopForm>());
  ir::LoopForm& form = *forms.back();
  form.extents = {rows, terms};
  form.parallel = 1;
  form.store = {Index::axis(0)};
  const int load = form.dag.load(0, kFloat, {Index::axis(0), Index::axis(1)});
  form.stages.push_back({ir::Combine::kSum, load});
  form.regions.push_back({{}, form.dag.accumulator(0, kFloat)});
  LoopNest nest = build_nest(form, form.regions[0], {with_strides(std::move(strides))}, with_strides({1}));
  fold_packs_where_cheaper(nest);
  return nest;
}

TEST(WalkPrice, FoldsLongRowsAndLeavesColumns) {
  EXPECT_EQ(reduction(1024, 2048, {2048, 1}).vector_axis, 1);
  EXPECT_EQ(reduction(1024, 64, {64, 1}).vector_axis, 1);
  EXPECT_EQ(reduction(1024, 2048, {1, 1024}).vector_axis, 0);
}

TEST(WalkPrice, GathersRowsThatAreShorterThanAFold) { EXPECT_EQ(reduction(1024, 5, {5, 1}).vector_axis, 0); }

}  // namespace
}  // namespace gcompile
