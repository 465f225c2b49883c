// What a graph leaves of the sizes asked for is told, with the node that needs less.

#include "frontend/sizes/narrowed_sizes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend_test::import_text;
using frontend_test::model_text;
using ::testing::HasSubstr;
using ::testing::Not;

frontend::DimBounds bounded(std::vector<std::string> names, std::int64_t low, std::int64_t high,
                            std::int64_t multiple = 1) {
  return {std::move(names), {low, high}, multiple, high};
}

std::string warnings(const std::string& signature, const std::string& body,
                     std::vector<frontend::DimBounds> bounds) {
  frontend::ImportOptions options;
  options.bindings.bounds = std::move(bounds);
  const auto outcome = import_text(model_text(signature, body), options);
  EXPECT_TRUE(outcome.model) << outcome.errors;
  return outcome.warnings;
}

TEST(NarrowedSizes, ABakedLengthLeavesOne) {
  const std::string text =
      warnings("(float[s, 4] x, float[9, 4] e) => (y)", "y = Add(x, e)", {bounded({"s"}, 2, 32)});
  EXPECT_THAT(text, HasSubstr("W0408"));
  EXPECT_THAT(text, HasSubstr("1 of the 31 combinations of sizes: node 'y' (Add) needs s = 9"));
  EXPECT_THAT(text, HasSubstr("give --dim that one size"));
}

TEST(NarrowedSizes, EveryNodeIsNamedAndCombinationsAreCounted) {
  const std::string text = warnings("(float[a, 4] x, float[b, 4] y, float[c, 3] z, float[7, 3] e) => (p, q)",
                                    "p = Add(x, y)\nq = Mul(z, e)",
                                    {bounded({"a"}, 2, 9), bounded({"b"}, 5, 12), bounded({"c"}, 2, 8)});
  EXPECT_THAT(text, HasSubstr("5 of the 448 combinations"));
  EXPECT_THAT(text, HasSubstr("(Add) needs a = b"));
  EXPECT_THAT(text, HasSubstr("(Mul) needs c = 7"));
}

TEST(NarrowedSizes, MultiplesAndSumsCountAsAskedFor) {
  EXPECT_THAT(
      warnings("(float[s, 4] x, float[32, 4] e) => (y)", "y = Add(x, e)", {bounded({"s"}, 16, 64, 16)}),
      HasSubstr("1 of the 4 combinations"));
  EXPECT_THAT(warnings("(float[a, 4] x, float[b, 4] y) => (z)", "z = Add(x, y)",
                       {bounded({"a"}, 2, 4), bounded({"b"}, 2, 4), bounded({"a", "b"}, 4, 6)}),
              HasSubstr("2 of the 6 combinations"));
}

TEST(NarrowedSizes, NothingIsToldWhereAllIsLeft) {
  EXPECT_EQ(warnings("(float[s, 4] x, float[s, 4] e) => (y)", "y = Add(x, e)", {bounded({"s"}, 2, 32)}), "");
  EXPECT_EQ(warnings("(float[s, 4] x) => (y)", "y = Relu(x)", {bounded({"s"}, 1, 1'000'000)}), "");
}

TEST(NarrowedSizes, ManyCombinationsAreNotCounted) {
  EXPECT_THAT(warnings("(float[a, 4] x, float[b, 4] y) => (z)", "z = Add(x, y)",
                       {bounded({"a"}, 2, 1'000'000), bounded({"b"}, 2, 1'000'000)}),
              HasSubstr("fewer of the 999998000001 combinations"));
}

TEST(DefaultInputs, AreToldToBeConstants) {
  const auto of_version = [](int version) {
    return import_text(fmt::format("<ir_version: {}, opset_import: [\"\" : 17]>\n"
                                   "agraph (float[2] x, float[2] scale) => (y) <float[2] scale = {{1, 2}}>\n"
                                   "{{ y = Mul(x, scale) }}",
                                   version))
        .warnings;
  };
  EXPECT_THAT(of_version(8), HasSubstr("W0508"));
  EXPECT_THAT(of_version(8), HasSubstr("an input with a default became a constant: 'scale'"));
  EXPECT_EQ(of_version(3), "");
  EXPECT_THAT(import_text(model_text("(float[2] x) => (y)", "y = Relu(x)")).warnings,
              Not(HasSubstr("W0508")));
}

TEST(DefaultInputs, AreNotToldWhereAnExporterListsAllOfItsWeights) {
  const auto with = [](int listed, int all) {
    std::string inputs = "float[2] x", constants, nodes, last = "x";
    for (int i = 0; i < all; ++i) {
      if (i < listed) inputs += fmt::format(", float[2] w{}", i);
      constants += fmt::format("{}float[2] w{} = {{1, 2}}", i > 0 ? ", " : "", i);
      nodes += fmt::format("y{} = Mul({}, w{})\n", i, last, i);
      last = fmt::format("y{}", i);
    }
    return import_text(
               fmt::format("<ir_version: 8, opset_import: [\"\" : 17]>\nagraph ({}) => ({}) <{}>\n{{ {} }}",
                           inputs, last, constants, nodes))
        .warnings;
  };
  EXPECT_EQ(with(8, 8), "");
  EXPECT_THAT(with(7, 8), HasSubstr("7 inputs with a default became constants"));
}

}  // namespace
}  // namespace gcompile
