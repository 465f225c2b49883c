// Channels of zeros in front of convolutions that then copy wider.

#include "codegen/choice/prices.h"
#include "ir/forms/form.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

MachinePrices prices_of(Precision precision) { return MachinePrices(machine_of_gpu({90}, precision, false)); }

ir::Graph optimised(const std::string& text, const ir::KernelPrices* prices,
                    passes::Tier tier = passes::Tier::kReassociate) {
  passes::Options options;
  options.prices = prices;
  options.tier = tier;
  return run_pipeline(parse(text), options, 0.2);  // sums of 147 products of up to 4, rounded to 11 bits
}

/// The channels of what the convolution of 7 x 7 reads.
std::int64_t channels(const ir::Graph& graph) {
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Work* work = ir::work_of(*graph.node(id).form);
    if (!work || !std::holds_alternative<ir::ConvWork>(*work)) continue;
    const ir::Shape& image = graph.value(graph.node(id).operands[0]).type.shape;
    const ir::Shape& weights = graph.value(graph.node(id).operands[1]).type.shape;
    if (weights[2] != 7) continue;
    EXPECT_EQ(image[1], weights[1]);
    return image[1];
  }
  return 0;
}

std::string stem(int image_channels, const std::string& front = "a = Identity(x)\n") {
  const std::string c = std::to_string(image_channels);
  return "g (float[1," + c + ",224,224] x, float[32," + c + ",7,7] w_a) => (float[1,32,112,112] y) {\n" +
         front + "b = Conv<strides = [2, 2], pads = [3, 3, 3, 3]>(a, w_a)\n y = Relu(b) }";
}

TEST(PadChannels, OfAnImageOfThree) {
  const MachinePrices prices = prices_of(Precision::kFp16);
  const ir::Graph graph = optimised(stem(3), &prices);
  EXPECT_EQ(channels(graph), 4);
  EXPECT_EQ(graph.nodes().size(), 3);  // what rearranges the image, the convolution, and the result's layout
}

TEST(PadChannels, InTheMapThatMakesTheImage) {
  const MachinePrices prices = prices_of(Precision::kBf16);
  const ir::Graph graph = optimised(stem(3, "t = Tanh(x)\n a = Mul(t, x)\n"), &prices);
  EXPECT_EQ(channels(graph), 4);
  EXPECT_EQ(graph.nodes().size(), 3);
}

std::string quantised_stem(const std::string& zero_point) {
  return "g (float[1,3,32,32] x, float scale) => (float[1,16,16,16] y) <int8[16,3,7,7] w = {" +
         [] {
           std::string numbers;
           for (int i = 0; i < 16 * 3 * 49; ++i)
             numbers += (i ? ", " : "") + std::to_string(i * 37 % 255 - 127);
           return numbers;
         }() +
         "}, uint8 z = {7}, int8 z_w = {" + zero_point +
         "}, float s = {0.02}> { q = QuantizeLinear(x, s, z)\n"
         "b = ConvInteger<strides = [2, 2], pads = [3, 3, 3, 3]>(q, w, z, z_w)\n "
         "c = Cast<to = 1>(b)\n y = Mul(c, scale) }";
}

// Exact, and so in all tiers; zeros are none where the weights have another zero point.
TEST(PadChannels, OfBytes) {
  const MachinePrices prices = prices_of(Precision::kFp32);
  EXPECT_EQ(channels(optimised(quantised_stem("0"), &prices, passes::Tier::kExact)), 4);
  EXPECT_EQ(channels(optimised(quantised_stem("1"), &prices)), 3);
}

TEST(PadChannels, OnlyWhereCopiesAreWider) {
  const MachinePrices prices = prices_of(Precision::kFp16);
  EXPECT_EQ(channels(optimised(stem(1), &prices)), 1);  // one piece of a tap as before
  EXPECT_EQ(channels(optimised(stem(4), &prices)), 4);
  EXPECT_EQ(channels(optimised(stem(8), &prices)), 8);
  const MachinePrices floats = prices_of(Precision::kFp32);  // whose products cost more than copies
  EXPECT_EQ(channels(optimised(stem(3), &floats)), 3);
  const MachinePrices cpu(machine_of_cpu("x86-64-v3"));
  EXPECT_EQ(channels(optimised(stem(3), &cpu)), 3);
  EXPECT_EQ(channels(optimised(stem(3), nullptr)), 3);
}

TEST(PadChannels, OnlyWhereAKernelWritesTheImageAnyway) {
  const MachinePrices prices = prices_of(Precision::kFp16);
  // The result of another convolution.
  EXPECT_EQ(channels(optimised("g (float[1,4,32,32] x, float[3,4,1,1] w_a, float[16,3,7,7] w_b) => "
                               "(float[1,16,26,26] y) { a = Conv(x, w_a)\n y = Conv(a, w_b) }",
                               &prices)),
            3);
  // A map of it, which is its epilogue.
  EXPECT_EQ(channels(optimised("g (float[1,4,32,32] x, float[3,4,1,1] w_a, float[16,3,7,7] w_b) => "
                               "(float[1,16,26,26] y) { a = Conv(x, w_a)\n b = Relu(a)\n y = Conv(b, w_b) }",
                               &prices)),
            3);
  // Several parts of an image.
  EXPECT_EQ(channels(optimised("g (float[1,1,32,32] x, float[1,2,32,32] z, float[16,3,7,7] w_a) => "
                               "(float[1,16,26,26] y) { a = Concat<axis = 1>(x, z)\n y = Conv(a, w_a) }",
                               &prices)),
            3);
  // Channels last already: a view.
  EXPECT_EQ(channels(optimised("g (float[1,32,32,3] x, float[16,3,7,7] w_a) => (float[1,16,26,26] y) "
                               "{ a = Transpose<perm = [0, 3, 1, 2]>(x)\n y = Conv(a, w_a) }",
                               &prices)),
            3);
}

// A map writes zeros in whatever order it is seen.
TEST(PadChannels, BehindAView) {
  const MachinePrices prices = prices_of(Precision::kFp16);
  const ir::Graph graph = optimised(
      "g (float[1,224,224,3] x, float[32,3,7,7] w_a) => (float[1,32,109,109] y) { t = Tanh(x)\n "
      "a = Transpose<perm = [0, 3, 1, 2]>(t)\n b = Conv<strides = [2, 2]>(a, w_a)\n y = Relu(b) }",
      &prices);
  EXPECT_EQ(channels(graph), 4);
  EXPECT_EQ(graph.nodes().size(), 4);  // the map, what shows its result, the convolution, the result's layout
}

TEST(PadChannels, OnlyWhereSumsMayBeFormedInAnotherOrder) {
  const MachinePrices prices = prices_of(Precision::kFp16);
  EXPECT_EQ(channels(optimised(stem(3), &prices, passes::Tier::kExact)), 3);
}

}  // namespace
}  // namespace gcompile::testing
