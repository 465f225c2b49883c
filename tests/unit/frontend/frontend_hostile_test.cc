// Files made to break the reader: each must end in a clear error, quickly, and never in a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/files/file_bytes.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend_test::import_bytes;
using frontend_test::import_proto;
using frontend_test::import_text;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::proto_of;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModel = model_text("(float[2] a) => (float[2] y)", "p = Exp(a)\ny = Add(p, w)");

onnx::TensorProto tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                         const std::string& raw) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(type);
  for (const std::int64_t dim : dims) proto.add_dims(dim);
  proto.set_raw_data(raw);
  return proto;
}

Outcome import_with(const onnx::TensorProto& initializer) {
  onnx::ModelProto model = proto_of(kModel);
  *model.mutable_graph()->add_initializer() = initializer;
  return import_proto(model);
}

TEST(FrontendHostile, EveryTruncationIsAnErrorOfTheModel) {
  onnx::ModelProto model = proto_of(kModel);
  *model.mutable_graph()->add_initializer() = tensor("w", 1, {2}, std::string(8, '\1'));
  const std::string bytes = model.SerializeAsString();
  ASSERT_TRUE(import_bytes(bytes).model);
  int cut_off = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Outcome outcome = import_bytes(bytes.substr(0, size));
    // Cutting between two fields of the outermost message may leave a model without opset import or graph.
    EXPECT_EQ(outcome.code, ExitCode::kModel) << size;
    cut_off += outcome.errors.find("cut off") != std::string::npos;
  }
  EXPECT_GT(cut_off, static_cast<int>(bytes.size()) * 9 / 10);
  EXPECT_THAT(import_bytes(bytes.substr(0, bytes.size() / 2)).errors, HasSubstr("ModelProto: graph needs"));
}

TEST(FrontendHostile, EveryChangedByteIsReadOrRefused) {
  onnx::ModelProto model = proto_of(kModel);
  *model.mutable_graph()->add_initializer() = tensor("w", 1, {2}, std::string(8, '\1'));
  const std::string bytes = model.SerializeAsString();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string changed = bytes;
      changed[at] =
          static_cast<char>(static_cast<unsigned char>(changed[at]) ^ static_cast<unsigned>(change));
      const Outcome outcome = import_bytes(changed);
      EXPECT_TRUE(outcome.code == ExitCode::kOk || outcome.code == ExitCode::kModel)
          << at << " ^ " << change << ": " << outcome.errors;
    }
  }
}

TEST(FrontendHostile, OtherFilesAreNotModels) {
  EXPECT_THAT(import_bytes("").errors, HasSubstr("the file is empty"));
  EXPECT_THAT(import_bytes("\x08\x08").errors, HasSubstr("holds no graph"));
  EXPECT_THAT(import_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n").errors,
              HasSubstr("git lfs pull"));
  EXPECT_THAT(import_bytes("<html><body>404</body></html>").errors, HasSubstr("not an ONNX model"));
  EXPECT_THAT(import_text("agraph (").errors, HasSubstr("E0005"));
  EXPECT_THAT(import_text(kModel + " trailing").errors, HasSubstr("E0005"));
  EXPECT_THAT(import_text(model_text("(float[99999999999999999999] a) => (float y)", "y = Exp(a)")).errors,
              HasSubstr("E0005"));
  EXPECT_THAT(import_text("\"").errors, HasSubstr("a string in the text does not end"));
}

TEST(FrontendHostile, HugeDimsAreRefusedBeforeAllocation) {
  const std::int64_t large = std::int64_t{1} << 33;
  EXPECT_THAT(import_with(tensor("w", 1, {large, large}, "")).errors,
              HasSubstr("more elements than the limit"));
  EXPECT_THAT(import_with(tensor("w", 1, {std::int64_t{1} << 62, 0}, "")).errors,
              HasSubstr("more elements than"));
  EXPECT_THAT(import_with(tensor("w", 1, {std::int64_t{1} << 30}, "")).errors,
              HasSubstr("raw_data has 0 bytes"));
  EXPECT_THAT(import_with(tensor("w", 1, {-2}, "")).errors, HasSubstr("negative dimension"));
  EXPECT_THAT(import_with(tensor("w", 1, std::vector<std::int64_t>(1000, 1), "0000")).errors,
              HasSubstr("1000 dimensions, more than the limit"));
}

TEST(FrontendHostile, TensorDataMustFitTheType) {
  EXPECT_THAT(import_with(tensor("w", 1, {2}, "1234567")).errors,
              HasSubstr("raw_data has 7 bytes, float32[2] needs 8"));
  EXPECT_THAT(import_with(tensor("w", 8, {2}, "")).errors, HasSubstr("its dims do not fit"));
  EXPECT_THAT(import_with(tensor("w", 23, {3}, "0")).errors,
              HasSubstr("raw_data has 1 bytes, float4e2m1[3] needs 2"));
  EXPECT_THAT(import_with(tensor("w", 99, {2}, "0")).errors, HasSubstr("element type 99"));
  onnx::TensorProto typed = tensor("w", 1, {2}, "");
  typed.clear_raw_data();
  typed.add_float_data(1);
  EXPECT_THAT(import_with(typed).errors, HasSubstr("float_data has 1 entries, float32[2] needs 2"));
}

TEST(FrontendHostile, AShortFileCannotAskForAHugeResult) {
  const Outcome bomb =
      import_text(model_text("(float[2] a) => (float y)",
                             "s = Constant <value_ints = [1048576, 1048576]> ()\ny = ConstantOfShape(s)"));
  EXPECT_THAT(bomb.errors, HasSubstr("more elements than the limit"));
  std::string doubling;
  for (int i = 0; i < 60; ++i) doubling += fmt::format("v{} = Concat <axis = 0> (v{}, v{})\n", i + 1, i, i);
  EXPECT_THAT(import_text(model_text("(float[2] v0) => (float v60)", doubling)).errors,
              HasSubstr("more elements than the limit"));
}

std::string nested_ifs(int depth) {
  std::string body = "r = Relu(a)";
  for (int i = 0; i < depth; ++i) {
    body = fmt::format(
        "r = If (c) <then_branch = t () => (float r) {{ {} }}, else_branch = e () => (float r) {{ r = Exp(a) "
        "}}>",
        body);
  }
  return model_text("(bool c, float[2] a) => (float r)", body);
}

TEST(FrontendHostile, NestingIsBounded) {
  EXPECT_TRUE(import_text(nested_ifs(20)).model);
  EXPECT_THAT(import_text(nested_ifs(100)).errors, HasSubstr("nested deeper than the limit"));
  // In bytes, deeper than protobuf itself would follow.
  onnx::GraphProto graph;
  graph.set_name("innermost");
  for (int i = 0; i < 100; ++i) {
    onnx::GraphProto outer;
    onnx::AttributeProto& attribute = *outer.add_node()->add_attribute();
    attribute.set_name("then_branch");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
  onnx::ModelProto model;
  model.mutable_graph()->Swap(&graph);
  EXPECT_THAT(import_proto(model).errors, HasSubstr("nested deeper than the limit"));
  EXPECT_TRUE(import_proto(proto_of(nested_ifs(28))).model);
}

TEST(FrontendHostile, NamesFromTheModelStayPrintable) {
  onnx::ModelProto model = proto_of(kModel);
  *model.mutable_graph()->add_initializer() = tensor("w", 1, {2}, std::string(8, '\1'));
  model.mutable_graph()->mutable_node(0)->set_op_type("Ex\np\x1b[31m");
  model.mutable_graph()->mutable_node(0)->set_name(std::string(100'000, 'n') + "\n");
  const Outcome outcome = import_proto(model);
  EXPECT_THAT(outcome.errors, HasSubstr("operator Ex\\x0ap\\x1b[31m"));
  EXPECT_LT(outcome.errors.size(), 2000u);
  EXPECT_THAT(outcome.errors, Not(HasSubstr("\x1b")));
}

TEST(FrontendHostile, FieldsThatMatterAndAreNotKnownAreRefusedByName) {
  onnx::ModelProto model = proto_of(kModel);
  *model.mutable_graph()->add_initializer() = tensor("w", 1, {2}, std::string(8, '\1'));
  const auto append = [&](onnx::NodeProto& node, int field, const std::string& value) {
    const std::string bytes = {static_cast<char>((field << 3) | 2), static_cast<char>(value.size())};
    ASSERT_TRUE(node.MergeFromString(bytes + value));
  };
  onnx::ModelProto harmless = model;
  append(*harmless.mutable_graph()->mutable_node(0), 9, "");  // metadata_props
  EXPECT_TRUE(import_proto(harmless).model);
  onnx::ModelProto overload = model;
  append(*overload.mutable_graph()->mutable_node(0), 8, "v2");
  EXPECT_THAT(import_proto(overload).errors, HasSubstr("NodeProto.overload, which is not supported"));
  onnx::ModelProto future = model;
  append(*future.mutable_graph()->mutable_node(0), 15, "x");
  EXPECT_THAT(import_proto(future).errors, HasSubstr("field 15 of NodeProto"));
}

TEST(FrontendHostile, NodesWithoutInputsOrOutputsAreErrorsNotCrashes) {
  for (const ir::Operator* op : ir::all_operators()) {
    if (op->domain == "gcompile") continue;
    onnx::ModelProto model = proto_of(model_text("(float[2] a) => (float[2] y)", "y = Relu(a)"));
    onnx::NodeProto& node = *model.mutable_graph()->add_node();
    node.set_op_type(std::string(op->name));
    node.set_domain(std::string(op->domain));
    EXPECT_NE(import_proto(model).code, ExitCode::kInternal) << op->name << " without inputs";
    for (int rank = 0; rank < 3; ++rank) {
      node.add_input("a");
      EXPECT_NE(import_proto(model).code, ExitCode::kInternal) << op->name << " of " << node.input_size();
    }
    node.add_output("z");
    EXPECT_NE(import_proto(model).code, ExitCode::kInternal) << op->name;
  }
}

TEST(FrontendHostile, FilesThatCannotBeReadAreInputErrors) {
  const auto code_of = [](const std::string& path, std::int64_t limit) {
    try {
      frontend::read_file(path, limit);
    } catch (const CompileError& error) {
      return error.exit_code();
    }
    return ExitCode::kOk;
  };
  EXPECT_EQ(code_of("/nonexistent/model.onnx", 100), ExitCode::kInputOutput);
  EXPECT_EQ(code_of("/", 100), ExitCode::kInputOutput);
  EXPECT_EQ(code_of("/dev/zero", 100), ExitCode::kInputOutput);
  EXPECT_EQ(code_of(std::string("/etc/passwd\0x", 13), 100), ExitCode::kInputOutput);
  EXPECT_EQ(code_of(GCOMPILE_SOURCE_DIR "/CMakeLists.txt", 10), ExitCode::kInputOutput);
}

}  // namespace
}  // namespace gcompile
