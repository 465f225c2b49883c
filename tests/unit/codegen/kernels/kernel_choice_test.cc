// Which kernel family serves a problem, and why others do not.

#include <gmock/gmock.h>

#include "codegen/choice/family.h"
#include "codegen/kinds/dense_plan.h"
#include "tests/unit/codegen/kernels/one_problem.h"

namespace gcompile::testing {
namespace {

using ir::Attributes;
using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ::testing::HasSubstr;
using ::testing::Not;
using Ints = std::vector<std::int64_t>;

std::string refusal_of(const Ranking& ranking, std::string_view family) {
  for (const auto& [name, reason] : ranking.refused) {
    if (name == family) return reason;
  }
  return "not refused";
}

TEST(Choice, TakesTheFastestAndSaysWhyNotOthers) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 8, 4, 4}),
               w = awkward(ElementType::kFloat32, {8, 1, 3, 3});
  const ir::Graph depthwise = graph_of({.op = "Conv",
                                        .attributes = attributes({{"group", std::int64_t{8}}}),
                                        .operands = {&x, &w},
                                        .known = true});
  for (const Machine& machine : {Machine{}, machine_of_gpu({80}, Precision::kFp32, false)}) {
    const Ranking ranking = rank(problem_of_node(depthwise), machine);
    ASSERT_FALSE(ranking.taken.empty());
    EXPECT_EQ(ranking.taken.front().family->name, "conv.depthwise");
    EXPECT_EQ(ranking.taken.back().family->name, "conv.loops");
    EXPECT_THAT(refusal_of(ranking, "conv.depthwise_integer"), HasSubstr("float32"));
  }
}

TEST(Choice, WarpgroupsTakeManyRowsOnSm90aAlone) {
  const Tensor b = awkward(ElementType::kFloat32, {64, 32});
  const auto ranking = [&](std::int64_t rows, Precision precision, bool has_wgmma) {
    const Tensor a = awkward(ElementType::kFloat32, {rows, 64});
    ir::Graph graph;
    const ir::NodeId id = graph.add_node(
        ir::operator_named("MatMul"), {graph.add_input("a", a.type()), graph.add_constant(b)}, {}, 1, "node");
    ir::infer_node(graph, id);
    Machine machine = machine_of_gpu({90}, precision, false);
    machine.architecture.has_wgmma = has_wgmma;
    return rank(problem_of_node(graph), machine, find_family("product.wgmma"));
  };
  EXPECT_EQ(ranking(128, Precision::kFp16, true).taken.size(), 1u);
  EXPECT_EQ(ranking(33, Precision::kFp16, true).taken.size(), 1u);
  EXPECT_EQ(ranking(128, Precision::kTf32, true).taken.size(), 1u);
  EXPECT_THAT(refusal_of(ranking(32, Precision::kFp16, true), "product.wgmma"), HasSubstr("33 rows"));
  EXPECT_THAT(refusal_of(ranking(128, Precision::kFp32, true), "product.wgmma"), HasSubstr("fp32"));
  EXPECT_THAT(refusal_of(ranking(128, Precision::kFp16, false), "product.wgmma"), HasSubstr("--arch"));
}

TEST(Choice, PackedWeightsAreDecodedOnTheCpu) {
  const Tensor a = awkward(ElementType::kFloat32, {1, 64}), b = awkward(ElementType::kInt8, {64, 32}),
               scales = awkward(ElementType::kFloat32, {2, 32}),
               odd = awkward(ElementType::kFloat32, {22, 32});
  const auto ranking = [](const OneNode& spec, Target target) {
    ir::Graph graph;
    std::vector<ir::ValueId> operands = {graph.add_input("a", spec.operands[0]->type())};
    for (std::size_t i = 1; i < spec.operands.size(); ++i)
      operands.push_back(graph.add_constant(*spec.operands[i]));
    const ir::NodeId id = graph.add_node(ir::operator_named(spec.op), operands, spec.attributes, 1, "node");
    ir::infer_node(graph, id);
    return rank(problem_of_node(graph), default_machine(target));
  };
  const Ranking taken = ranking(blocks(a, b, scales, nullptr, 32), Target::kCpp);
  EXPECT_EQ(taken.taken.at(0).family->name, "product.decode");
  EXPECT_THAT(refusal_of(taken, "product.tile"), HasSubstr("scales of their own"));
  EXPECT_THAT(refusal_of(ranking(blocks(a, b, odd, nullptr, 3), Target::kCpp), "product.decode"),
              HasSubstr("multiple of 4"));
  EXPECT_THAT(refusal_of(ranking(blocks(a, b, scales, nullptr, 32), Target::kCuda), "product.decode"),
              HasSubstr("floats"));
}

TEST(Choice, RoundedRowsAreMultipliedInIntegers) {
  const Tensor a = awkward(ElementType::kFloat32, {3, 64}), b = awkward(ElementType::kInt8, {64, 32}),
               scales = awkward(ElementType::kFloat32, {2, 32}),
               fine = awkward(ElementType::kFloat32, {16, 32});
  const auto ranking = [&](const Tensor& s, std::int64_t block, ir::RowRounding rounding) {
    ir::Graph graph;
    const OneNode spec = blocks(a, b, s, nullptr, block, rounding);
    const std::vector<ir::ValueId> operands = {graph.add_input("a", a.type()), graph.add_constant(b),
                                               graph.add_constant(s)};
    const ir::NodeId id = graph.add_node(ir::operator_named(spec.op), operands, spec.attributes, 1, "node");
    ir::infer_node(graph, id);
    return rank(problem_of_node(graph), default_machine(Target::kCpp));
  };
  const Ranking rounded = ranking(scales, 32, ir::RowRounding::kDone);
  ASSERT_EQ(rounded.taken.size(), 1u);
  EXPECT_EQ(rounded.taken[0].family->name, "product.decode_integer");
  EXPECT_EQ(rounded.taken[0].planned.cost.scratch, 3 * (64 + 2 * 4 * 2));
  for (const char* floats : {"product.decode", "product.loops"})
    EXPECT_THAT(refusal_of(rounded, floats), HasSubstr("rounded to int8"));
  const Ranking allowed = ranking(scales, 32, ir::RowRounding::kAllowed);
  EXPECT_EQ(allowed.taken.at(0).family->name, "product.decode");
  EXPECT_THAT(refusal_of(allowed, "product.decode_integer"), HasSubstr("not to be rounded"));
  EXPECT_THAT(refusal_of(ranking(fine, 4, ir::RowRounding::kDone), "product.decode_integer"),
              HasSubstr("multiple of 8"));
}

TEST(Choice, GivesComputedWeightsAndDoublesToPlainLoops) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 2, 4, 4}),
               w = awkward(ElementType::kFloat32, {2, 2, 3, 3});
  const Ranking ranking = rank(problem_of_node(graph_of({.op = "Conv", .operands = {&x, &w}})), Machine{});
  ASSERT_EQ(ranking.taken.size(), 1u);
  EXPECT_EQ(ranking.taken[0].family->name, "conv.loops");
  EXPECT_THAT(refusal_of(ranking, "conv.direct"), HasSubstr("only the run knows"));
}

ir::Problem window_problem(Shape x_shape, Shape w_shape, Attributes how = {}) {
  const Tensor x = awkward(ElementType::kFloat32, std::move(x_shape)),
               w = awkward(ElementType::kFloat32, std::move(w_shape));
  ir::Problem problem = problem_of_node(
      graph_of({.op = "Conv", .attributes = std::move(how), .operands = {&x, &w}, .known = true}));
  problem.reassociates = true;
  return problem;
}

TEST(Choice, WinogradTakesDense3x3Windows) {
  const Machine machine;
  const auto refusal = [&](const ir::Problem& problem) {
    const std::string two = refusal_of(rank(problem, machine), "conv.winograd2");
    EXPECT_EQ(two, refusal_of(rank(problem, machine), "conv.winograd4"));
    return two;
  };
  const Shape x = {1, 8, 12, 12};
  EXPECT_EQ(refusal(window_problem(x, {8, 8, 3, 3})), "not refused");
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 1})), HasSubstr("window"));
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 3}, attributes({{"strides", Ints{2, 1}}}))),
              HasSubstr("strides"));
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 3}, attributes({{"dilations", Ints{1, 2}}}))),
              HasSubstr("dilations"));
  EXPECT_THAT(refusal(window_problem(x, {8, 4, 3, 3}, attributes({{"group", std::int64_t{2}}}))),
              HasSubstr("groups"));
  EXPECT_THAT(refusal(window_problem({1, 8, 12}, {8, 8, 3})), HasSubstr("window"));
  ir::Problem decides = window_problem(x, {8, 8, 3, 3});
  decides.reassociates = false;
  EXPECT_THAT(refusal(decides), HasSubstr("last bit"));
  const ir::Problem taken = window_problem(x, {8, 8, 3, 3});
  EXPECT_THAT(refusal_of(rank(taken, machine_of_gpu({80}, Precision::kFp32, false)), "conv.winograd4"),
              HasSubstr("GPU"));
}

TEST(Choice, FewOutputChannelsAreDotProducts) {
  const auto first = [](const ir::Problem& problem) {
    return rank(problem, Machine{}).taken.at(0).family->name;
  };
  const Shape x = {1, 8, 40, 40};
  const auto refusal = [](const ir::Problem& problem) {
    return refusal_of(rank(problem, Machine{}), "conv.dot");
  };
  EXPECT_EQ(first(window_problem(x, {1, 8, 5, 5})), "conv.dot");
  EXPECT_EQ(first(window_problem(x, {4, 8, 5, 5})), "conv.dot");
  EXPECT_NE(first(window_problem(x, {16, 8, 5, 5})), "conv.dot");
  EXPECT_THAT(refusal(window_problem(x, {9, 8, 5, 5})), HasSubstr("channels"));
  EXPECT_THAT(refusal(window_problem({1, 3, 40, 40}, {1, 3, 3, 3})), HasSubstr("fewer than 16"));
  EXPECT_THAT(refusal(window_problem(x, {1, 8, 3, 3}, attributes({{"dilations", Ints{1, 2}}}))),
              HasSubstr("dilated"));
  // What does not lie pixel behind pixel is copied first.
  const ir::Problem planes = window_problem(x, {1, 8, 5, 5});
  EXPECT_EQ(find_family("conv.dot")->recipe(Target::kCpp).needs(planes, 0), ir::channels_last(4));
  ir::Problem pixels = planes;
  pixels.operands[0].strides = {12800, 1, 320, 8};
  EXPECT_EQ(find_family("conv.dot")->recipe(Target::kCpp).needs(pixels, 0), std::nullopt);
  pixels.operands[0].strides = {12800, 1, 8, 320};  // columns first
  EXPECT_EQ(find_family("conv.dot")->recipe(Target::kCpp).needs(pixels, 0), ir::channels_last(4));
}

/// ConvInteger of bytes; all weights are `weight`, their zero point is `zero`.
ir::Problem byte_window_problem(Shape w_shape, int weight, int zero, ElementType x_element) {
  const Shape x_shape = {1, w_shape[1], 40, 40};
  const Tensor x = awkward(x_element, x_shape);
  const auto filled = [](ElementType element, Shape shape, int value) {
    Tensor tensor(ir::TensorType{element, std::move(shape)});
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, ir::Scalar::of_integer(element, value));
    return tensor;
  };
  const Tensor w = filled(ElementType::kInt8, std::move(w_shape), weight), x_zero = filled(x_element, {}, 3),
               w_zero = filled(ElementType::kInt8, {}, zero);
  return problem_of_node(
      graph_of({.op = "ConvInteger", .operands = {&x, &w, &x_zero, &w_zero}, .known = true}));
}

TEST(Choice, WinogradOfBytesTakesSumsThatItIsExactIn) {
  const Machine machine;
  const auto refusal = [&](int channels, int weight, int zero, ElementType x, const char* family) {
    return refusal_of(rank(byte_window_problem({4, channels, 3, 3}, weight, zero, x), machine), family);
  };
  const auto u8 = ElementType::kUInt8, s8 = ElementType::kInt8;
  const char *two = "conv.winograd2_integer", *four = "conv.winograd4_integer";
  EXPECT_EQ(refusal(114, 127, 0, u8, four), "not refused");
  EXPECT_THAT(refusal(116, 127, 0, u8, four), HasSubstr("sums"));
  EXPECT_EQ(refusal(116, 127, 0, s8, four), "not refused");
  EXPECT_EQ(refusal(116, -127, 0, u8, two), "not refused");
  EXPECT_THAT(refusal(1842, 127, 0, u8, two), HasSubstr("sums"));
  EXPECT_THAT(refusal(100, 100, -50, u8, four), HasSubstr("beyond int8"));
  EXPECT_THAT(refusal(116, 97, -30, u8, four), HasSubstr("sums"));
  EXPECT_THAT(refusal(3, 1, 0, u8, two), HasSubstr("odd"));
  EXPECT_THAT(refusal(4, 1, 0, u8, "conv.winograd4"), HasSubstr("elements"));
  EXPECT_EQ(rank(byte_window_problem({64, 64, 3, 3}, 100, 0, u8), machine).taken.at(0).family->name, four);
  // Four products in one instruction, but only one of int16.
  EXPECT_EQ(rank(byte_window_problem({64, 64, 3, 3}, 100, 0, u8), machine_of_cpu("cortex-a76"))
                .taken.at(0)
                .family->name,
            "conv.integer");
}

TEST(Choice, IntegersOf16BitsAreOfTheCpu) {
  Machine gpu;
  gpu.target = Target::kCuda;
  for (const auto element : {ElementType::kInt16, ElementType::kUInt16}) {
    const ir::Problem problem = byte_window_problem({64, 64, 3, 3}, 100, 0, element);
    EXPECT_EQ(rank(problem, {}).taken.at(0).family->name, std::string("conv.integer"));
    EXPECT_THAT(refusal_of(rank(problem, {}), "conv.winograd4_integer"), HasSubstr("elements"));
    EXPECT_THAT(refusal_of(rank(problem, gpu), "conv.integer"), HasSubstr("elements"));
  }
  // Weights of 16 bits, less a zero point.
  ir::Problem wide = byte_window_problem({64, 64, 3, 3}, 100, 0, ElementType::kInt16);
  wide.operands[1].element = ElementType::kUInt16;
  wide.operands[1].constant->high = 60000;
  EXPECT_THAT(refusal_of(rank(wide, {}), "conv.integer"), HasSubstr("beyond int16"));
  wide.operands[3].constant->low = wide.operands[3].constant->high = 32768;
  EXPECT_EQ(refusal_of(rank(wide, {}), "conv.integer"), "not refused");
}

TEST(Choice, AFamilyServesAllLevelsOfAProject) {
  const ir::Problem problem = byte_window_problem({64, 64, 3, 3}, 100, 0, ElementType::kUInt8);
  const Machine both;
  ASSERT_EQ(both.rivals.size(), 1u);
  Machine usual = both, rival = both;
  usual.rivals.clear();
  rival.rivals.clear();
  rival.level = both.rivals[0];
  const auto price = [&](const Machine& machine, std::string_view family) {
    for (const Candidate& c : rank(problem, machine).taken) {
      if (c.family->name == family) return c.planned.cost.picoseconds;
    }
    return std::int64_t{0};
  };
  for (const char* family : {"conv.integer", "conv.winograd2_integer", "conv.winograd4_integer"}) {
    EXPECT_LT(price(rival, family), price(usual, family)) << family;
    EXPECT_EQ(price(both, family), (price(usual, family) + price(rival, family)) / 2) << family;
  }
  EXPECT_TRUE(machine_of_cpu("cascadelake").rivals.empty());
  EXPECT_EQ(machine_of_cpu("cascadelake").level.byte_rate, rival.level.byte_rate);
}

TEST(Choice, BytesInTilesWhereTheyFillRegisters) {
  const auto plan_of = [](const Shape& a, const Shape& b, const Machine& machine) {
    const Tensor left = awkward(ElementType::kUInt8, a), right = awkward(ElementType::kInt8, b);
    const ir::Problem problem = problem_of_node(
        graph_of({.op = "MatMulInteger", .attributes = {}, .operands = {&left, &right}, .known = true}));
    const Candidate taken = rank(problem, machine).taken.at(0);
    EXPECT_EQ(taken.family->name, "product.integer");
    return to_string(taken.family->recipe(Target::kCpp), taken.planned.plan);
  };
  EXPECT_THAT(plan_of({16, 32}, {32, 5}, Machine{}), HasSubstr(", in tiles 1"));
  EXPECT_THAT(plan_of({15, 32}, {32, 5}, Machine{}), Not(HasSubstr("tiles")));
  EXPECT_THAT(plan_of({16, 31}, {31, 5}, Machine{}), Not(HasSubstr("tiles")));
  EXPECT_THAT(plan_of({16, 32}, {32, 5}, machine_of_cpu("sapphirerapids")), HasSubstr(", in tiles 1"));
  for (const char* cpu : {"icelake-server", "x86-64-v4", "cortex-a76"})
    EXPECT_THAT(plan_of({16, 32}, {32, 5}, machine_of_cpu(cpu)), Not(HasSubstr("tiles"))) << cpu;
}

TEST(Choice, TheTileUnitHasAPrice) {
  const ir::Problem problem = byte_window_problem({64, 64, 3, 3}, 100, 0, ElementType::kUInt8);
  const auto price = [&](const char* cpu) {
    const Candidate best = rank(problem, machine_of_cpu(cpu)).taken.at(0);
    return std::pair(best.family->name, best.planned.cost.picoseconds);
  };
  EXPECT_EQ(price("sapphirerapids").first, "conv.integer");
  EXPECT_NE(price("icelake-server").first, "conv.integer");
  EXPECT_LT(price("sapphirerapids").second, price("icelake-server").second);
}

ir::Problem float_product(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  const Tensor a = awkward(ElementType::kFloat32, {rows, depth}),
               b = awkward(ElementType::kFloat32, {depth, columns});
  return problem_of_node(graph_of({.op = "MatMul", .attributes = {}, .operands = {&a, &b}, .known = true}));
}

TEST(Choice, FloatsByBfloat16WhereSplittingPays) {
  const auto products = [](std::int64_t rows, std::int64_t depth, std::int64_t columns, Precision precision,
                           Machine machine = {}) {
    machine.precision = precision;
    return bfloat16_products(dense_work(Product(float_product(rows, depth, columns)), 4), machine);
  };
  EXPECT_EQ(products(128, 64, 64, Precision::kFp32), 0);
  EXPECT_EQ(products(128, 64, 64, Precision::kBf16), 1);
  EXPECT_EQ(products(128, 64, 64, Precision::kBf16x3), 3);
  EXPECT_EQ(products(128, 64, 64, Precision::kBf16x6), 6);
  // Few rows or columns use a value too seldom to split it, and one product is less than three.
  EXPECT_EQ(products(32, 64, 64, Precision::kBf16x3), 0);
  EXPECT_EQ(products(128, 64, 16, Precision::kBf16x3), 0);
  EXPECT_EQ(products(128, 64, 16, Precision::kBf16x6), 0);
  EXPECT_EQ(products(32, 64, 64, Precision::kBf16), 1);
  EXPECT_EQ(products(8, 64, 64, Precision::kBf16), 0);
  EXPECT_EQ(products(128, 31, 64, Precision::kBf16), 0);
  EXPECT_EQ(products(128, 64, 64, Precision::kBf16, machine_of_cpu("sapphirerapids")), 1);
  for (const char* cpu : {"icelake-server", "x86-64-v4", "cortex-a76"})
    EXPECT_EQ(products(128, 64, 64, Precision::kBf16, machine_of_cpu(cpu)), 0) << cpu;
}

TEST(Choice, ProductsOfBfloat16HaveAPrice) {
  const ir::Problem problem = float_product(512, 512, 512);
  const auto price = [&](const char* cpu, Precision precision) {
    Machine machine = machine_of_cpu(cpu);
    machine.precision = precision;
    const Candidate best = rank(problem, machine).taken.at(0);
    EXPECT_EQ(best.family->name, "product.tile");
    return best.planned.cost.picoseconds;
  };
  EXPECT_LT(price("sapphirerapids", Precision::kBf16), price("sapphirerapids", Precision::kBf16x3));
  EXPECT_LT(price("sapphirerapids", Precision::kBf16x3), price("sapphirerapids", Precision::kFp32));
  EXPECT_GT(price("sapphirerapids", Precision::kBf16x6), price("sapphirerapids", Precision::kFp32));
  EXPECT_EQ(price("icelake-server", Precision::kBf16), price("icelake-server", Precision::kFp32));
  EXPECT_EQ(price("native", Precision::kBf16), price("native", Precision::kFp32));  // usual is no tile unit
}

TEST(Choice, TransposedConvolutionsOfBytesAreForTheCpu) {
  const Tensor x = awkward(ElementType::kUInt8, {1, 8, 40, 40}),
               w = awkward(ElementType::kInt8, {8, 60, 2, 2});
  const OneNode node{.op = "ConvTransposeInteger",
                     .attributes = attributes({{"strides", Ints{2, 2}},
                                               {"dilations", Ints{1, 1}},
                                               {"pads", Ints{0, 0, 0, 0}},
                                               {"kernel_shape", Ints{2, 2}}}),
                     .operands = {&x, &w},
                     .domain = "gcompile",
                     .known = true};
  const ir::Problem problem = problem_of_node(graph_of(node));
  EXPECT_EQ(rank(problem, Machine{}).taken.at(0).family->name, "conv_transpose.integer");
  EXPECT_THAT(refusal_of(rank(problem, Machine{}), "conv_transpose.direct"), HasSubstr("uint8"));
  // A word of four bytes for each channel of its own group.
  ir::Problem grouped = problem;
  std::get<ir::ConvTransposeWork>(grouped.work).groups = 8;
  const Machine one_level = machine_of_cpu("x86-64-v3");
  EXPECT_GT(rank(grouped, one_level).taken.at(0).planned.cost.picoseconds,
            3 * rank(problem, one_level).taken.at(0).planned.cost.picoseconds);
  EXPECT_THAT(refusal_of(rank(problem, default_machine(Target::kCuda)), "conv_transpose.integer"),
              HasSubstr("floats"));
}

TEST(Choice, ProductsOfComputedBytesArePreparedOnTheCpu) {
  const Tensor a = awkward(ElementType::kUInt8, {2, 40, 64}), b = awkward(ElementType::kInt8, {2, 64, 48}),
               zero = awkward(ElementType::kUInt8, {});
  const ir::Problem computed =
      problem_of_node(graph_of({.op = "MatMulInteger", .operands = {&a, &b, &zero}}));
  const Candidate taken = rank(computed, Machine{}).taken.at(0);
  EXPECT_EQ(taken.family->name, "product.integer");
  EXPECT_EQ(taken.planned.cost.scratch, 4 * (48 + 40) * 32);  // both sides of one entry as int16
  EXPECT_THAT(refusal_of(rank(computed, default_machine(Target::kCuda)), "product.integer"),
              HasSubstr("no constant matrix"));
  // Not slower than floats on any machine: there passes would keep those.
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a", "cortex-a76"}) {
    ir::Problem floats = computed;
    floats.operands.resize(2);
    for (ir::ProblemOperand& operand : floats.operands) operand.element = ElementType::kFloat32;
    const Machine machine = machine_of_cpu(cpu);
    EXPECT_LE(rank(computed, machine).taken.at(0).planned.cost.picoseconds,
              rank(floats, machine).taken.at(0).planned.cost.picoseconds)
        << cpu;
  }
  ir::Problem several = computed;
  several.operands.push_back({true, ElementType::kInt8, {48}, {1}, {}});
  EXPECT_THAT(refusal_of(rank(several, Machine{}), "product.integer"), HasSubstr("several zero points"));
}

TEST(Choice, LargerWeightsHaveToSaveTheirPrice) {
  const ir::Problem problem = window_problem({1, 64, 56, 56}, {64, 64, 3, 3});
  Machine machine;
  const Candidate fastest = rank(problem, machine).taken.at(0);
  EXPECT_EQ(fastest.family->name, "conv.winograd4");
  EXPECT_EQ(fastest.planned.cost.extra_weights, 64 * 64 * (36 - 9) * 4);
  EXPECT_GT(fastest.planned.cost.scratch, 0);
  machine.weight_price = 1e6;
  EXPECT_EQ(rank(problem, machine).taken.at(0).family->name, "conv.direct");
  // Few channels: the transforms cost more than they save.
  EXPECT_EQ(rank(window_problem({1, 3, 56, 56}, {64, 3, 3, 3}), Machine{}).taken.at(0).family->name,
            "conv.direct");
}

TEST(Choice, AForcedFamilyIsTheOnlyOneAsked) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 2, 4, 4}),
               w = awkward(ElementType::kFloat32, {2, 2, 3, 3});
  const ir::Graph graph = graph_of({.op = "Conv", .operands = {&x, &w}, .known = true});
  const Ranking ranking = rank(problem_of_node(graph), Machine{}, find_family("conv.loops"));
  ASSERT_EQ(ranking.taken.size(), 1u);
  EXPECT_TRUE(rank(problem_of_node(graph), Machine{}, find_family("conv.integer")).taken.empty());
}

TEST(Choice, AttentionHasHeadsUpTo256And512) {
  for (const Target target : {Target::kCpp, Target::kCuda}) {
    const std::int64_t most = target == Target::kCpp ? 256 : 512;
    for (const std::int64_t size : {most, most + 1}) {
      ir::Problem problem;
      ir::AttentionWork work;
      work.heads = work.key_heads = {2};
      work.rows = work.columns = 8;
      work.size = work.value_size = size;
      problem.work = work;
      const Shape shape = {2, 8, size};
      problem.operands.assign(3, {true, ElementType::kFloat32, shape, ir::row_major_strides(shape), {}});
      problem.results = {problem.operands[0]};
      EXPECT_EQ(rank(problem, default_machine(target)).taken.empty(), size > most) << size;
    }
  }
}

TEST(Choice, ASingleRowReadsKeysAndValuesWhereTheyLie) {
  const auto first = [](std::int64_t rows, const Shape& strides) {
    ir::Problem problem;
    ir::AttentionWork work;
    work.heads = work.key_heads = {2};
    work.rows = rows;
    work.columns = 30;
    work.size = work.value_size = 8;
    problem.work = work;
    const Shape q = {2, rows, 8}, k = {2, 30, 8};
    problem.operands = {{true, ElementType::kFloat32, q, ir::row_major_strides(q), {}},
                        {true, ElementType::kFloat32, k, strides, {}},
                        {true, ElementType::kFloat32, k, strides, {}}};
    problem.results = {problem.operands[0]};
    return rank(problem, Machine{}).taken.at(0).family->name;
  };
  EXPECT_EQ(first(1, {512, 8, 1}), "attention.row");
  EXPECT_EQ(first(2, {512, 8, 1}), "attention.flash");
  EXPECT_EQ(first(1, {512, 1, 64}), "attention.flash");
}

TEST(Choice, ASingleRowReadsAMatrixOfTheRunWhereItLies) {
  const auto first = [](std::int64_t rows, bool is_known, const Shape& strides) {
    const Tensor a = awkward(ElementType::kFloat32, {3, rows, 8}),
                 b = awkward(ElementType::kFloat32, {3, 8, 30});
    const ir::Graph graph = graph_of({.op = "MatMul", .operands = {&a, &b}, .known = is_known});
    ir::Problem problem = problem_of_node(graph);
    if (!strides.empty()) problem.operands[1].strides = strides;
    return rank(problem, Machine{}).taken.at(0).family->name;
  };
  EXPECT_EQ(first(1, false, {}), "product.gemv");
  EXPECT_EQ(first(1, false, {512, 1, 8}), "product.gemv");
  EXPECT_EQ(first(1, false, {512, 2, 60}), "product.tile");
  EXPECT_EQ(first(2, false, {}), "product.tile");
  EXPECT_EQ(first(1, true, {}), "product.tile");
}

TEST(Choice, CoresWithoutVectorsGetNoEmulatedOnes) {
  const Tensor x = awkward(ElementType::kUInt8, {1, 8, 5, 5}),
               dense = awkward(ElementType::kInt8, {4, 8, 3, 3}),
               each = awkward(ElementType::kInt8, {8, 1, 3, 3}), row = awkward(ElementType::kUInt8, {1, 1}),
               matrix = awkward(ElementType::kInt8, {1, 1});
  const auto problem = [](const char* op, const Tensor& a, const Tensor& b, std::int64_t groups) {
    const Attributes of_conv = attributes({{"group", groups}});
    return problem_of_node(graph_of(
        {.op = op, .attributes = groups > 0 ? of_conv : Attributes{}, .operands = {&a, &b}, .known = true}));
  };
  const std::pair<ir::Problem, const char*> cases[] = {
      {problem("ConvInteger", x, dense, 1), "conv.scalar_integer"},
      {problem("ConvInteger", x, each, 8), "conv.depthwise_scalar"},
      {problem("MatMulInteger", row, matrix, 0), "product.scalar_integer"}};
  for (const auto& [asked, family] : cases) {
    for (const char* cpu : {"cortex-m0plus", "cortex-m4", "rv32imc"}) {
      EXPECT_EQ(rank(asked, machine_of_cpu(cpu)).taken.at(0).family->name, family) << cpu;
    }
    for (const char* cpu : {"native", "x86-64-v2", "cortex-a53"}) {
      const Ranking ranking = rank(asked, machine_of_cpu(cpu));
      EXPECT_NE(ranking.taken.at(0).family->name, family) << cpu;
      EXPECT_EQ(refusal_of(ranking, family), "not refused") << cpu;
    }
    EXPECT_EQ(refusal_of(rank(asked, default_machine(Target::kCuda)), family), "a GPU");
  }
}

TEST(Choice, ForSizeGivesBackScratchWithinAFamily) {
  const Tensor x = awkward(ElementType::kFloat32, {40, 1, 8}), w = awkward(ElementType::kFloat32, {1, 64, 8}),
               r = awkward(ElementType::kFloat32, {1, 64, 16});
  const ir::Graph graph = graph_of({.op = "LSTM",
                                    .attributes = attributes({{"hidden_size", std::int64_t{16}}}),
                                    .operands = {&x, &w, &r},
                                    .known = true});
  Machine machine;
  const Cost fast = rank(problem_of_node(graph), machine).taken.at(0).planned.cost;
  machine.smallest_scratch = true;
  const Cost small = rank(problem_of_node(graph), machine).taken.at(0).planned.cost;
  EXPECT_LT(small.scratch, fast.scratch);
  EXPECT_GE(small.picoseconds, fast.picoseconds);
}

}  // namespace
}  // namespace gcompile::testing
