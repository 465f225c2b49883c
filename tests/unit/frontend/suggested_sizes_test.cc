// Sizes that the error about open dimensions proposes have been tried, all of them.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend_test::import_text;
using frontend_test::model_text;
using ::testing::HasSubstr;
using ::testing::Not;

std::string errors(const std::string& signature, const std::string& body) {
  return import_text(model_text(signature, body)).errors;
}

TEST(SuggestedSizes, AnyThatFit) {
  EXPECT_THAT(
      errors("(float[n, 4] x) => (float y)", "y = Relu(x)"),
      HasSubstr(
          "for example --dim n=1; with several, as --dim n=1,2,4, or bounds, as --dim n=1..4, the caller"));
}

TEST(SuggestedSizes, OfAModelOfPairs) {
  const std::string text =
      errors("(float[n, 4] x) => (float y)", "s = Constant <value_ints = [-1, 8]> ()\ny = Reshape(x, s)");
  EXPECT_THAT(
      text,
      HasSubstr("for example --dim n=2; with several, as --dim n=2,4,8, or bounds, as --dim n=2..8:2,"));
}

TEST(SuggestedSizes, OfAModelThatFixesOne) {
  const std::string text =
      errors("(float[n, 4] x, float[m] z) => (float y, float w)",
             "e = ConstantOfShape <value = float[1] {1.0}> (s)\ns = Constant <value_ints = [48, 4]> ()\n"
             "y = Add(x, e)\nw = Relu(z)");
  EXPECT_THAT(text, Not(HasSubstr("n=1..4")));
  EXPECT_THAT(text, Not(HasSubstr("n=1,2,4")));
}

/// What is not supported is not at any size: what is proposed has been tried on the rest.
TEST(SuggestedSizes, BesideWhatIsNotSupported) {
  const std::string text =
      errors("(float[n, 4] x) => (float y, float z)",
             "s = Constant <value_ints = [-1, 8]> ()\ny = Reshape(x, s)\nz = Unheard(x)");
  EXPECT_THAT(text, HasSubstr("operator Unheard"));
  EXPECT_THAT(
      text,
      HasSubstr("for example --dim n=2; with several, as --dim n=2,4,8, or bounds, as --dim n=2..8:2,"));
}

TEST(SuggestedSizes, WhereNoneFitsThatIsSaid) {
  EXPECT_THAT(
      errors("(float[n, 4] x) => (float y)", "s = Constant <value_ints = [-1, 4004]> ()\ny = Reshape(x, s)"),
      HasSubstr("give sizes, but none that were tried fit; not --dim n=1"));
}

/// The file has data of its own, which stays there until it is read.
TEST(SuggestedSizes, OfAFileWithLargeConstants) {
  onnx::ModelProto model = frontend_test::proto_of(
      model_text("(float[n, 4] x) => (float y)",
                 "a = MatMul(x, w)\ns = Constant <value_ints = [-1, 8192]> ()\ny = Reshape(a, s)"));
  onnx::TensorProto& w = *model.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(4);
  w.add_dims(4096);
  w.set_raw_data(std::string(4 * 4096 * 4, '\0'));
  std::string folder = ::testing::TempDir() + "/suggested_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/m.onnx";
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  const auto outcome =
      frontend_test::outcome_of([&](Diagnostics& d) { return frontend::import_model_file(path, {}, d); });
  std::filesystem::remove_all(folder);
  EXPECT_THAT(outcome.errors, HasSubstr("for example --dim n=2; with several, as --dim n=2,4,8"));
}

}  // namespace
}  // namespace gcompile
