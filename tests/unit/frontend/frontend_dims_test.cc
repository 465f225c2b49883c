#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/sizes/dims.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend::ImportOptions;
using frontend_test::import_text;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using ::testing::HasSubstr;
using ::testing::Not;

std::string add_model(const std::string& a, const std::string& b) {
  return model_text(fmt::format("({} a, {} b) => (float y)", a, b), "y = Add(a, b)");
}

std::vector<std::optional<std::int64_t>> sizes_of(const frontend::ShapeBinding& binding) {
  std::vector<std::optional<std::int64_t>> sizes;
  for (const frontend::DeclaredDim& dim : binding.dims) sizes.push_back(dim.size);
  return sizes;
}

TEST(FrontendDims, ParsesTheFlags) {
  EXPECT_EQ(frontend::parse_dim_list("N=4").sizes, std::vector<std::int64_t>{4});
  EXPECT_EQ(frontend::parse_dim_list("past=0").sizes, std::vector<std::int64_t>{0});
  EXPECT_EQ(frontend::parse_dim_list("N=8,1,4").sizes, (std::vector<std::int64_t>{1, 4, 8}));
  for (const char* text : {"x:1x3x?x224", "x=1,3,?,224", "x:[1,3,?,224]", "x:1,3,?x224"}) {
    const frontend::ShapeBinding binding = frontend::parse_shape_binding(text);
    EXPECT_EQ(binding.input, "x");
    EXPECT_EQ(sizes_of(binding), (std::vector<std::optional<std::int64_t>>{1, 3, std::nullopt, 224}));
  }
  EXPECT_EQ(frontend::parse_shape_binding("input:0:2x3").input, "input:0");
  EXPECT_EQ(frontend::parse_shape_binding("2x3").input, "");
  EXPECT_TRUE(frontend::parse_shape_binding("x:[]").dims.empty());
  for (const char* text : {"x:Nx3xHxW", "x:N,3,H,W"}) {
    const frontend::ShapeBinding binding = frontend::parse_shape_binding(text);
    EXPECT_EQ(sizes_of(binding),
              (std::vector<std::optional<std::int64_t>>{std::nullopt, 3, std::nullopt, std::nullopt}));
    EXPECT_EQ(binding.dims[0].name, "N");
    EXPECT_EQ(binding.dims[3].name, "W");
  }
  EXPECT_EQ(frontend::parse_shape_binding("x:1,max_length").dims[1].name, "max_length");
  EXPECT_EQ(frontend::parse_set_binding("a=1,2,3").values, (std::vector<std::string>{"1", "2", "3"}));
}

TEST(FrontendDims, RefusesMalformedFlagsAsUsageErrors) {
  const auto code_of = [](auto parse, const char* text) {
    try {
      parse(text);
    } catch (const CompileError& error) {
      return error.exit_code();
    }
    return ExitCode::kOk;
  };
  for (const char* text :
       {"N", "=4", "N=", "N=-1", "N=4x", "N=1,", "N=1,,2", "N=1,4,1", "N=99999999999999999999"}) {
    EXPECT_EQ(code_of(frontend::parse_dim_list, text), ExitCode::kUsage) << text;
  }
  for (const char* text : {"", ":1x2", "x:1xx2", "x:1x-2", "x:1a"}) {
    EXPECT_EQ(code_of(frontend::parse_shape_binding, text), ExitCode::kUsage) << text;
  }
  for (const char* text : {"", "sr", "sr=", "=1"}) {
    EXPECT_EQ(code_of(frontend::parse_set_binding, text), ExitCode::kUsage) << text;
  }
}

TEST(FrontendDims, OpenDimensionsAreOneErrorThatShowsTheFlags) {
  const Outcome outcome = import_text(add_model("float[batch, ?, 3]", "float[batch, 2, 3]"));
  EXPECT_EQ(outcome.code, ExitCode::kModel);
  EXPECT_THAT(outcome.errors, HasSubstr("E0401"));
  EXPECT_THAT(outcome.errors, HasSubstr("3 dimensions of the inputs are open"));
  EXPECT_THAT(outcome.errors, HasSubstr("input 'a', axis 0: 'batch'"));
  EXPECT_THAT(outcome.errors, HasSubstr("input 'a', axis 1"));
  EXPECT_THAT(outcome.errors, HasSubstr("input 'b', axis 0: 'batch'"));
  EXPECT_THAT(outcome.errors, HasSubstr("--dim batch=1 --shape a:1x1x3"));
}

TEST(FrontendDims, ProposedSizesCanBeTakenAsTheyAre) {
  // A window of 5 without padding, then a reduction by 3: sizes of 1 fit nothing.
  const Outcome outcome = import_text(frontend_test::model_text(
      "(float[n, 2, ?, w] x) => (float y)",
      "m = MaxPool <kernel_shape = [5, 7]> (x)\ny = AveragePool <kernel_shape = [3, 1]> (m)"));
  EXPECT_THAT(outcome.errors, HasSubstr("--dim n=1 --dim w=8 --shape x:1x2x8x8"));
  // What no size mends is not searched for.
  EXPECT_THAT(
      import_text(frontend_test::model_text("(float[n, m] x) => (float y)", "y = Nonsense(x)")).errors,
      HasSubstr("--dim n=1 --dim m=1"));
  EXPECT_THAT(
      import_text(frontend_test::model_text("(float[?] x, float[?, 2] z) => (float y)", "y = Add(x, z)"))
          .errors,
      HasSubstr("--shape x:1 --shape z:1x2"));
}

TEST(FrontendDims, IdentifiersAreMergedQuestionMarksAreNot) {
  ImportOptions options;
  options.bindings.shapes = {frontend::parse_shape_binding("a:4x5")};
  EXPECT_EQ(output_types(import_text(add_model("float[n, 5]", "float[n, 1]"), options).graph()),
            "float32[4, 5]");
  // 'a' has both axes bound; the '?' of 'b' stays open.
  EXPECT_THAT(import_text(add_model("float[?, ?]", "float[?, 1]"), options).errors,
              HasSubstr("input 'b', axis 0"));
}

TEST(FrontendDims, BindsByNameShapeAndData) {
  ImportOptions by_name;
  by_name.bindings.dims = {{"n", 4}};
  EXPECT_EQ(output_types(import_text(add_model("float[n, 5]", "float[n, 5]"), by_name).graph()),
            "float32[4, 5]");
  ImportOptions by_data;
  by_data.bindings.data_shapes = {{"a", {2, 5}}};
  EXPECT_EQ(output_types(import_text(add_model("float[n, 5]", "float[1, 5]"), by_data).graph()),
            "float32[2, 5]");
}

TEST(FrontendDims, ContradictionsAreErrors) {
  ImportOptions options;
  options.bindings.dims = {{"n", 4}};
  options.bindings.shapes = {frontend::parse_shape_binding("a:3x5")};
  EXPECT_THAT(import_text(add_model("float[n, 5]", "float[1, 5]"), options).errors,
              HasSubstr("input 'a', axis 0: --shape says 3, but --dim n says 4"));
  options = {};
  options.bindings.shapes = {frontend::parse_shape_binding("a:3x6")};
  EXPECT_THAT(import_text(add_model("float[3, 5]", "float[1, 5]"), options).errors,
              HasSubstr("but the model says 5"));
  options.bindings.shapes = {frontend::parse_shape_binding("a:3")};
  EXPECT_THAT(import_text(add_model("float[3, 5]", "float[1, 5]"), options).errors,
              HasSubstr("has 2 dimensions"));
}

TEST(FrontendDims, NamesMayHaveDots) {
  EXPECT_TRUE(frontend::is_dim_identifier("p2o.DynamicDimension.0"));
  for (const char* name : {"", ".a", "a.", "a..b", "0.a", "a b", "?"}) {
    EXPECT_FALSE(frontend::is_dim_identifier(name)) << name;
  }
  EXPECT_EQ(frontend::parse_dim_bounds("DynamicDimension.0=1..4")->names,
            std::vector<std::string>{"DynamicDimension.0"});
}

TEST(FrontendDims, AxesMayBeMultiplesOfNames) {
  // The parser of ONNX text takes no such names.
  for (const char* text : {"8*height", "height*8", "height * 8"}) {
    const auto parts = frontend::parse_dim_sum(text);
    ASSERT_TRUE(parts && parts->size() == 1) << text;
    EXPECT_EQ(parts->front().number, 8);
    EXPECT_EQ(parts->front().name, "height");
  }
  const auto sum = frontend::parse_dim_sum("2*past + rows + 1");
  ASSERT_TRUE(sum && sum->size() == 3);
  EXPECT_EQ((*sum)[0].number, 2);
  EXPECT_EQ((*sum)[2].number, 1);
  EXPECT_EQ((*sum)[2].name, "");
  for (const char* text : {"height", "8", "a*b", "2*3*a", "*a", "a*", "9999999999*a", "-2*a"}) {
    EXPECT_FALSE(frontend::parse_dim_sum(text)) << text;
  }
}

TEST(FrontendDims, UnknownNamesAreErrorsWithAHint) {
  ImportOptions options;
  options.bindings.dims = {{"bach", 4}};
  const std::string model = add_model("float[batch, 5]", "float[1, 5]");
  EXPECT_THAT(import_text(model, options).errors, HasSubstr("did you mean 'batch'?"));
  options = {};
  options.bindings.shapes = {frontend::parse_shape_binding("c:1x5")};
  EXPECT_THAT(import_text(model, options).errors, HasSubstr("the model has no input 'c'"));
  options = {};
  options.bindings.dims = {{"?", 4}};
  EXPECT_THAT(import_text(model, options).errors, HasSubstr("only dimensions whose name is an identifier"));
}

TEST(FrontendDims, DimensionsOfOneNameMayDifferInTheDataWithAWarning) {
  ImportOptions options;
  options.bindings.data_shapes = {{"a", {4, 1}}, {"b", {1, 3}}};
  const Outcome outcome = import_text(add_model("float[dim, 1]", "float[1, dim]"), options);
  EXPECT_EQ(output_types(outcome.graph()), "float32[4, 3]");
  EXPECT_THAT(outcome.warnings, HasSubstr("dimensions named 'dim' have different sizes: 3, 4"));
}

TEST(FrontendDims, SetMakesAConstantOfTheDeclaredType) {
  ImportOptions options;
  options.bindings.sets = {frontend::parse_set_binding("b=1,2.5")};
  const Outcome outcome = import_text(add_model("float[2]", "float[n]"), options);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  ASSERT_EQ(outcome.graph().inputs().size(), 1u);
  const auto sum =
      ir::evaluate_graph(outcome.graph(), {ir::Tensor::of_floats(std::vector<float>{1, 1}, {2})});
  EXPECT_EQ(sum[0].real_at(1), 3.5);

  options.bindings.sets = {frontend::parse_set_binding("b=1,2,3")};
  EXPECT_THAT(import_text(add_model("float[2]", "float[2]"), options).errors, HasSubstr("3 values given"));
  options.bindings.sets = {frontend::parse_set_binding("b=300")};
  const std::string bytes = model_text("(uint8[2] a, uint8[2] b) => (uint8[2] y)", "y = Add(a, b)");
  EXPECT_THAT(import_text(bytes, options).errors, HasSubstr("'300' is not a value of uint8"));
}

TEST(FrontendDims, SizesAreBounded) {
  ImportOptions options;
  options.bindings.dims = {{"n", std::int64_t{1} << 40}};
  EXPECT_THAT(import_text(add_model("float[n, n]", "float[1]"), options).errors,
              HasSubstr("larger than the limit"));
}

}  // namespace
}  // namespace gcompile
