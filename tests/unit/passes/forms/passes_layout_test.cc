// The choice between kernels of different layouts, weighed with what has to be turned before and behind them.

#include <numeric>

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

/// Kernels of channels-last images for all convolutions, and slower or faster ones of planes for few channels.
struct Prices final : ir::KernelPrices {
  std::int64_t planes = 0, per_byte = 0;

  ir::Price price(const ir::Problem&) const override { return {}; }
  std::int64_t moved(std::int64_t bytes) const override { return bytes * per_byte; }
  std::vector<ir::LayoutOffer> offers(const ir::Problem& problem) const override {
    const ir::AxisOrder last = ir::channels_last(4);
    std::vector<ir::LayoutOffer> offers = {{{last}, last, 1000}};
    if (ir::highest(problem.shape(0)[1]) <= 4) {
      ir::AxisOrder rows(4);
      std::iota(rows.begin(), rows.end(), 0);
      offers.insert(offers.begin() + (planes < 1000 ? 0 : 1), {{rows}, rows, planes});
    }
    return offers;
  }
};

/// The conversions that the graph has behind the pass, and whether the value lies in rows.
struct Laid {
  int conversions = 0;
  bool is_in_rows = false;
};

Laid laid(const std::string& text, const std::string& value, std::int64_t planes, std::int64_t per_byte) {
  Prices prices;
  prices.planes = planes;
  prices.per_byte = per_byte;
  ir::Graph graph = parse(text);
  prepare(graph);
  run_pass(graph, "forms");
  const ir::Graph before = graph;
  passes::Options options;
  options.prices = &prices;
  run_pass(graph, "layout", options);
  expect_same(before, graph, 0);
  Laid out;
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name == "Identity") ++out.conversions;
  }
  for (const ir::ValueId id : graph.values()) {
    if (graph.value(id).name != value || !graph.value(id).producer.valid()) continue;
    if (graph.node(graph.value(id).producer).op->name == "Identity") continue;
    const std::vector<int>& order = graph.value(id).order;
    out.is_in_rows = std::is_sorted(order.begin(), order.end());
  }
  return out;
}

const std::string kOne =
    "g (float[1,2,4,4] x, float[8,2,1,1] w_a, float[2,8,1,1] w_b) => (float[1,8,4,4] y) {"
    " a = Conv(x, w_a)\n y = Relu(a) }";

TEST(Layout, OfTheCallerWhereTheKernelIsFaster) {
  const Laid is = laid(kOne, "a", 900, 0);
  EXPECT_TRUE(is.is_in_rows);
  EXPECT_EQ(is.conversions, 0);
}

TEST(Layout, OfTheCallerWhereTurningCostsMore) {
  EXPECT_TRUE(laid(kOne, "a", 1100, 10).is_in_rows);
  EXPECT_FALSE(laid(kOne, "a", 1100, 0).is_in_rows);
}

/// Between the caller's rows and what another kernel reads channels last.
const std::string kTwo =
    "g (float[1,2,4,4] x, float[8,2,1,1] w_a, float[2,8,1,1] w_b) => (float[1,2,4,4] y) {"
    " a = Conv(x, w_a)\n r = Relu(a)\n b = Conv(r, w_b)\n y = Relu(b) }";

TEST(Layout, OfTheReaderWhereTheResultIsLarger) {
  EXPECT_FALSE(laid(kTwo, "a", 900, 10).is_in_rows);
  EXPECT_TRUE(laid(kTwo, "a", 100, 1).is_in_rows);  // so much faster that turning its result is worth it
}

/// Two kernels in a row that would each wait for the other one.
TEST(Layout, OfNeighboursThatChooseAlike) {
  const std::string text =
      "g (float[1,2,4,4] x, float[2,2,1,1] w_a, float[2,2,1,1] w_b) => (float[1,2,4,4] y) {"
      " a = Conv(x, w_a)\n b = Conv(a, w_b)\n y = Relu(b) }";
  const Laid is = laid(text, "a", 900, 10);
  EXPECT_TRUE(is.is_in_rows);
  EXPECT_EQ(is.conversions, 0);
}

/// Read in reverse, an axis has a negative stride and lies no nearer than before.
TEST(Layout, OfAReversedAxisAsOfTheAxis) {
  for (const int axis : {0, 1, 2}) {
    std::string text =
        "g (float[7,3,4] x) => (float[7,3,4] y)"
        " <int64[1] last = {-1}, int64[1] first = {-9223372036854775807}, int64[1] axis = {?}> {"
        " s = Slice(x, last, first, axis, last)\n y = Relu(s) }";
    text.replace(text.find('?'), 1, std::to_string(axis));
    EXPECT_TRUE(laid(text, "s", 0, 0).is_in_rows) << axis;
  }
}

}  // namespace
}  // namespace gcompile::testing
