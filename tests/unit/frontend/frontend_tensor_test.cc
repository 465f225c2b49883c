// Tensors of every element type, external data, and test data files.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx-data_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "frontend/files/tensor_import.h"
#include "frontend/import/data_files.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;
using frontend_test::import_bytes;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::proto_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// A folder that removes itself.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "gcompile_frontend_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  std::string path(const std::string& name = {}) const { return name.empty() ? path_ : path_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

std::string message_of(const onnx::TensorProto& proto) {
  try {
    frontend::import_tensor(proto, {}, nullptr);
  } catch (const OperatorError& error) {
    return error.message;
  }
  return "";
}

TEST(FrontendTensor, TypedFieldsOfEveryTypeEqualRawData) {
  for (int i = 0; i < ir::kElementTypeCount; ++i) {
    const auto type = static_cast<ir::ElementType>(i);
    onnx::TensorProto typed;
    typed.set_data_type(frontend::onnx_type_of(type));
    typed.add_dims(3);
    std::string raw;
    // The bit pattern k + 1 of each element, in the field that onnx.proto names for the type.
    const std::int64_t entries = ir::bits_of(type) < 8 ? ir::bytes_of(type, 3) : 3;
    for (int k = 1; k <= entries; ++k) {
      switch (type) {
        case ir::ElementType::kFloat32:
          typed.add_float_data(static_cast<float>(k));
          break;
        case ir::ElementType::kFloat64:
          typed.add_double_data(k);
          break;
        case ir::ElementType::kInt64:
          typed.add_int64_data(-k);
          break;
        case ir::ElementType::kUInt32:
        case ir::ElementType::kUInt64:
          typed.add_uint64_data(static_cast<std::uint64_t>(k) << 31);
          break;
        case ir::ElementType::kInt8:
        case ir::ElementType::kInt16:
        case ir::ElementType::kInt32:
          typed.add_int32_data(-k);
          break;
        case ir::ElementType::kBool:
          typed.add_int32_data(k % 2);
          break;
        default:
          typed.add_int32_data(k);
          break;
      }
      if (type == ir::ElementType::kUInt32 && k > 1)
        typed.set_uint64_data(k - 1, static_cast<std::uint64_t>(k));
    }
    const ir::Tensor from_typed = frontend::import_tensor(typed, {}, nullptr);
    EXPECT_EQ(from_typed.element(), type);
    EXPECT_EQ(static_cast<std::int64_t>(from_typed.bytes().size()), ir::bytes_of(type, 3));
    onnx::TensorProto with_raw;
    ASSERT_TRUE(with_raw.ParseFromString(frontend::write_tensor({"t", from_typed})));
    EXPECT_TRUE(frontend::import_tensor(with_raw, {}, nullptr).identical(from_typed)) << ir::name_of(type);
  }
}

TEST(FrontendTensor, ValuesAreThoseOfTheFormat) {
  onnx::TensorProto half;
  half.set_data_type(10);
  half.add_dims(2);
  half.add_int32_data(0x3c00);
  half.add_int32_data(0xc000);
  EXPECT_EQ(frontend::import_tensor(half, {}, nullptr).real_at(0), 1.0);
  EXPECT_EQ(frontend::import_tensor(half, {}, nullptr).real_at(1), -2.0);
  onnx::TensorProto nibbles;
  nibbles.set_data_type(22);  // int4, low nibble first; the last one is padding
  nibbles.add_dims(3);
  nibbles.set_raw_data(std::string("\x71\xff", 2));
  const ir::Tensor int4 = frontend::import_tensor(nibbles, {}, nullptr);
  EXPECT_EQ(int4.int_at(0), 1);
  EXPECT_EQ(int4.int_at(1), 7);
  EXPECT_EQ(int4.int_at(2), -1);
  EXPECT_EQ(std::to_integer<int>(int4.bytes()[1]), 0x0f);
  onnx::TensorProto boolean;
  boolean.set_data_type(9);
  boolean.add_dims(2);
  boolean.set_raw_data(std::string("\x02\x00", 2));
  EXPECT_EQ(std::to_integer<int>(frontend::import_tensor(boolean, {}, nullptr).bytes()[0]), 1);
}

TEST(FrontendTensor, EntriesBeyondTheTypeAreRefused) {
  onnx::TensorProto proto;
  proto.set_data_type(3);  // int8
  proto.add_dims(1);
  proto.add_int32_data(200);
  EXPECT_THAT(message_of(proto), HasSubstr("the value 200 at position 0 does not fit int8"));
  proto.set_data_type(2);  // uint8
  EXPECT_EQ(message_of(proto), "");
  proto.set_int32_data(0, -1);
  EXPECT_THAT(message_of(proto), HasSubstr("does not fit uint8"));
}

/// A model whose initializer lies in another file.
std::string external_model(const std::vector<std::pair<std::string, std::string>>& entries) {
  onnx::ModelProto model = proto_of(model_text("(float[2] a) => (float[2] y)", "y = Add(a, w)"));
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(1);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : entries) {
    onnx::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model.SerializeAsString();
}

std::string two_floats(float a, float b) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &a, 4);
  std::memcpy(bytes.data() + 4, &b, 4);
  return bytes;
}

TEST(FrontendExternal, ReadsRangesOfFilesInsideTheFolder) {
  const Folder folder;
  folder.write("data/w.bin", "abcd" + two_floats(3, 4));
  folder.write("model.onnx", external_model({{"location", "data/w.bin"}, {"offset", "4"}, {"length", "8"}}));
  Diagnostics diagnostics;
  const auto model = frontend::import_model_file(folder.path("model.onnx"), {}, diagnostics);
  const auto y = ir::evaluate_graph(model.graph, {ir::Tensor::of_floats(std::vector<float>{1, 1}, {2})});
  EXPECT_EQ(y[0].real_at(1), 5);
}

TEST(FrontendExternal, RefusesEverythingElse) {
  const Folder folder;
  folder.write("w.bin", two_floats(3, 4));
  folder.write("model/inside.bin", two_floats(3, 4));
  fs::create_symlink("../w.bin", folder.path("model/link.bin"));
  fs::create_directory_symlink("..", folder.path("model/up"));
  ASSERT_EQ(::mkfifo(folder.path("model/pipe").c_str(), 0600), 0);
  const auto errors = [&](std::vector<std::pair<std::string, std::string>> entries) {
    return import_bytes(external_model(entries), {}, folder.path("model")).errors;
  };
  EXPECT_EQ(errors({{"location", "inside.bin"}}), "");
  EXPECT_THAT(errors({{"location", "../w.bin"}}), HasSubstr("by '..'"));
  EXPECT_THAT(errors({{"location", "a/../../w.bin"}}), HasSubstr("by '..'"));
  EXPECT_THAT(errors({{"location", folder.path("w.bin")}}), HasSubstr("absolute path"));
  EXPECT_THAT(errors({{"location", ""}}), HasSubstr("location is empty"));
  EXPECT_THAT(errors({{"location", "."}}), HasSubstr("names no file"));
  EXPECT_THAT(errors({{"location", std::string("inside.bin\0x", 12)}}), HasSubstr("NUL"));
  EXPECT_THAT(errors({{"location", "missing.bin"}}), HasSubstr("No such file"));
  EXPECT_THAT(errors({{"location", "link.bin"}}), HasSubstr("symbolic link"));
  EXPECT_THAT(errors({{"location", "up/w.bin"}}), HasSubstr("symbolic link"));
  EXPECT_THAT(errors({{"location", "pipe"}}), HasSubstr("not a regular file"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"offset", "4"}}),
              HasSubstr("outside the file of 8 bytes"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"offset", "9223372036854775807"}}),
              HasSubstr("outside the file"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"offset", "18446744073709551615"}}),
              HasSubstr("not a number"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"offset", "-8"}}), HasSubstr("not a number"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"length", "4"}}),
              HasSubstr("length is 4, the type needs 8"));
  EXPECT_THAT(errors({{"location", "inside.bin"}, {"__class__", "x"}}),
              HasSubstr("key '__class__' is not known"));
  // Without a folder nothing can be inside it.
  EXPECT_THAT(import_bytes(external_model({{"location", "inside.bin"}})).errors,
              HasSubstr("not read from a folder"));
}

TEST(FrontendExternal, LinksAreFollowedOnlyWhenAllowed) {
  const Folder folder;
  folder.write("blobs/w.bin", two_floats(3, 4));
  fs::create_directories(folder.path("model"));
  fs::create_symlink("../blobs/w.bin", folder.path("model/w.bin"));
  frontend::ImportOptions options;
  options.allow_symlinks = true;
  const std::string model = external_model({{"location", "w.bin"}});
  EXPECT_TRUE(import_bytes(model, options, folder.path("model")).model);
  EXPECT_THAT(
      import_bytes(external_model({{"location", "../blobs/w.bin"}}), options, folder.path("model")).errors,
      HasSubstr("by '..'"));
}

TEST(FrontendExternal, AFileOfTwoNamesIsRefusedUnlessLinksAreAllowed) {
  const Folder folder;
  folder.write("secret.bin", two_floats(3, 4));
  fs::create_directories(folder.path("model"));
  fs::create_hard_link(folder.path("secret.bin"), folder.path("model/w.bin"));
  const std::string model = external_model({{"location", "w.bin"}});
  EXPECT_THAT(import_bytes(model, {}, folder.path("model")).errors,
              AllOf(HasSubstr("hard link"), HasSubstr("--allow-symlinks")));
  frontend::ImportOptions options;
  options.allow_symlinks = true;
  EXPECT_TRUE(import_bytes(model, options, folder.path("model")).model);
}

TEST(FrontendExternal, TheDigestOfAModelCoversItsData) {
  const Folder folder;
  const std::string model = external_model({{"location", "w.bin"}});
  folder.write("w.bin", two_floats(3, 4));
  const auto digest = [&] { return import_bytes(model, {}, folder.path()).model.value().info.sha256; };
  const std::string before = digest();
  EXPECT_EQ(before, sha256_hex(fmt::format("{}  model\n{}  w.bin\n", sha256_hex(model),
                                           sha256_hex(two_floats(3, 4)))));
  folder.write("w.bin", two_floats(3, 5));
  EXPECT_NE(digest(), before);
  const std::string alone =
      proto_of(model_text("(float[2] a) => (float[2] y)", "y = Relu(a)")).SerializeAsString();
  EXPECT_EQ(import_bytes(alone).model.value().info.sha256, sha256_hex(alone));
}

/// Raw bytes of 2000 floats, each its position and something more.
std::string many_floats(float more) {
  std::string bytes;
  for (int i = 0; i < 2000; ++i) {
    const float value = static_cast<float>(i) + more;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

void set_many(onnx::TensorProto& tensor, const std::string& name, float more) {
  tensor.set_name(name);
  tensor.set_data_type(1);
  tensor.add_dims(2000);
  tensor.set_raw_data(many_floats(more));
}

std::vector<double> second_elements(const frontend::ImportedModel& model) {
  std::vector<double> values;
  for (const ir::ValueId id : model.graph.values()) {
    const ir::Tensor* constant = model.graph.constant(id);
    if (constant && constant->count() == 2000) values.push_back(constant->real_at(1));
  }
  return values;
}

TEST(FrontendTensor, LargeRawDataStaysInTheMappedFile) {
  onnx::ModelProto proto = proto_of(
      model_text("(float[2000] a) => (float[2000] y)", "c = Add(a, w)\n d = Add(c, e)\n y = Add(d, f)"));
  set_many(*proto.mutable_graph()->add_initializer(), "w", 0.5f);
  set_many(*proto.mutable_graph()->add_initializer(), "e", 0.25f);
  onnx::NodeProto& node = *proto.mutable_graph()->add_node();
  node.set_op_type("Constant");
  node.add_output("f");
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  set_many(*attribute.mutable_t(), "", 0.125f);
  const std::string bytes = proto.SerializeAsString();

  // Protobuf sees none of it.
  const onnx::ModelProto left = frontend::parse_model_bytes(bytes, {}, frontend::RawData::kLeft);
  EXPECT_LT(left.SerializeAsString().size(), 2000u);
  ASSERT_EQ(left.graph().initializer_size(), 2);
  for (const onnx::TensorProto& tensor : left.graph().initializer()) {
    const auto place = frontend::raw_place(tensor);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->bytes, 8000);
    const std::string_view there =
        std::string_view(bytes).substr(static_cast<std::size_t>(place->offset), 8000);
    EXPECT_EQ(there, many_floats(tensor.name() == "w" ? 0.5f : 0.25f));
  }

  const Folder folder;
  for (const std::size_t padding :
       {std::size_t{0}, std::size_t{1}, std::size_t{100000}}) {  // read, and mapped
    proto.set_doc_string(std::string(padding, 'x'));
    folder.write("model.onnx", proto.SerializeAsString());
    Diagnostics diagnostics;
    const auto model = frontend::import_model_file(folder.path("model.onnx"), {}, diagnostics);
    EXPECT_THAT(second_elements(model), UnorderedElementsAre(1.5, 1.25, 1.125)) << padding;
    EXPECT_EQ(model.info.sha256, sha256_hex(proto.SerializeAsString()));
  }
}

TEST(FrontendTensor, RepeatedRawDataIsTheLastAsProtobufHasIt) {
  onnx::TensorProto first, second;
  set_many(first, "w", 0.5f);
  second.set_raw_data(many_floats(0.25f));
  // Concatenated messages are merged: dims of the first, raw data of the second.
  const std::string tensor = first.SerializeAsString() + second.SerializeAsString();
  onnx::ModelProto proto = proto_of(model_text("(float[2000] a) => (float[2000] y)", "y = Add(a, w)"));
  onnx::TensorProto merged;
  ASSERT_TRUE(merged.ParseFromString(tensor));
  *proto.mutable_graph()->add_initializer() = merged;
  std::string bytes = proto.SerializeAsString();
  const Folder folder;
  // The same file with the tensor in two parts: a graph that follows is merged too.
  onnx::ModelProto rest = proto;
  rest.mutable_graph()->clear_initializer();
  const auto varint = [](std::size_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
    return text + static_cast<char>(value);
  };
  const std::string initializer = "\x2a" + varint(tensor.size()) + tensor;
  folder.write("model.onnx", rest.SerializeAsString() + "\x3a" + varint(initializer.size()) + initializer);
  Diagnostics diagnostics;
  const auto model = frontend::import_model_file(folder.path("model.onnx"), {}, diagnostics);
  EXPECT_THAT(second_elements(model), UnorderedElementsAre(1.25));
}

TEST(FrontendExternal, OldKernelsWalkTheComponents) {
  const Folder folder;
  folder.write("a/b.bin", "x");
  folder.write("c.bin", "x");
  fs::create_directory_symlink("a", folder.path("link"));
  fs::create_symlink("../c.bin", folder.path("a/c.bin"));
  for (const bool use_openat2 : {true, false}) {
    std::string why;
    EXPECT_TRUE(frontend::open_beneath(folder.path(), "a/b.bin", use_openat2, why).open()) << why;
    EXPECT_TRUE(frontend::open_beneath(folder.path(), "./a//b.bin", use_openat2, why).open()) << why;
    EXPECT_FALSE(frontend::open_beneath(folder.path(), "link/b.bin", use_openat2, why).open());
    EXPECT_THAT(why, HasSubstr("symbolic link"));
    EXPECT_FALSE(frontend::open_beneath(folder.path(), "a/c.bin", use_openat2, why).open());
    EXPECT_THAT(why, HasSubstr("symbolic link"));
    EXPECT_FALSE(frontend::open_beneath(folder.path(), "c.bin/d", use_openat2, why).open());
  }
}

TEST(FrontendData, ReadsNumberedFilesInOrder) {
  const Folder folder;
  for (int k = 0; k < 11; ++k) {
    const auto value = static_cast<float>(k);
    folder.write(
        fmt::format("test_data_set_0/input_{}.pb", k),
        frontend::write_tensor({fmt::format("x{}", k), ir::Tensor::of_floats(std::span(&value, 1), {1})}));
  }
  folder.write("test_data_set_10/output_0.pb",
               frontend::write_tensor({"y", ir::Tensor::of_ints(std::vector<std::int64_t>{7}, {})}));
  folder.write("test_data_set_2/output_1.pb", "");
  EXPECT_EQ(frontend::test_data_folders(folder.path()),
            (std::vector<std::string>{folder.path("test_data_set_0"), folder.path("test_data_set_2"),
                                      folder.path("test_data_set_10")}));
  const frontend::TestData data = frontend::read_test_data(folder.path("test_data_set_0"), {});
  ASSERT_EQ(data.inputs.size(), 11u);
  EXPECT_EQ(data.inputs[10].name, "x10");
  EXPECT_EQ(data.inputs[2].value.real_at(0), 2);
  EXPECT_EQ(frontend::read_test_data(folder.path("test_data_set_10"), {}).outputs[0].value.int_at(0), 7);
  const auto message = [&](const std::string& name) -> std::string {
    try {
      frontend::read_test_data(folder.path(name), {});
    } catch (const CompileError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("test_data_set_2"), HasSubstr("output_0.pb is missing"));
  EXPECT_THAT(message("nothing"), HasSubstr("No such file"));
  folder.write("empty/readme", "");
  EXPECT_THAT(message("empty"), HasSubstr("neither input_0.pb nor output_0.pb"));
  folder.write("broken/input_0.pb", "garbage");
  EXPECT_THAT(message("broken"), HasSubstr("holds no tensor"));
}

TEST(FrontendData, OfSequencesAndOptionalsAreTheirElements) {
  const Folder folder;
  onnx::TensorProto tensor;
  tensor.ParseFromString(frontend::write_tensor({"", ir::Tensor::of_ints(std::vector<std::int64_t>{7}, {})}));
  onnx::SequenceProto sequence;
  sequence.set_elem_type(onnx::SequenceProto::TENSOR);
  *sequence.add_tensor_values() = tensor;
  *sequence.add_tensor_values() = tensor;
  onnx::OptionalProto none, some;
  some.set_elem_type(onnx::OptionalProto::TENSOR);
  *some.mutable_tensor_value() = tensor;
  folder.write("input_0.pb", sequence.SerializeAsString());
  folder.write("input_1.pb", none.SerializeAsString());
  folder.write("input_2.pb", some.SerializeAsString());
  folder.write("input_3.pb", tensor.SerializeAsString());
  const frontend::ModelPorts ports = {
      {{"s", false, true, "s_"}, {"n", true, true, "n_"}, {"o", true, false}, {"t"}}, {}};
  const frontend::TestData data = frontend::read_test_data(folder.path(), {}, ports);
  std::vector<std::string> names;
  for (const frontend::NamedTensor& input : data.inputs) names.push_back(input.name);
  EXPECT_EQ(names, (std::vector<std::string>{"s_0", "s_1", "o", ""}));
  EXPECT_EQ(frontend::input_names(ports, data.elements), (std::vector<std::string>{"s_0", "s_1", "o", "t"}));
  ASSERT_EQ(data.elements.size(), 3u);
  EXPECT_EQ(data.elements[0].count, 2);
  EXPECT_EQ(data.elements[1].count, std::nullopt);
  EXPECT_EQ(data.elements[2].count, 1);
}

}  // namespace
}  // namespace gcompile
