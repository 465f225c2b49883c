// ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder and ZipMap. Strings are no elements of tensors: what a model
// names by strings, a run names by their positions.

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "ir/ops/lookup.h"
#include "ir/ops/words.h"

namespace gcompile::ir {
namespace {

template <class T>
bool is_given(const Attributes& attributes, std::string_view name,
              const T& (Attributes::*get)(std::string_view) const) {
  return attributes.has(name) && !(attributes.*get)(name).empty();
}

/// The one list of keys, or of values, that is given: "keys_int64s", "keys_floats", "keys_tensor", and of strings the
/// positions of each among those that differ.
struct Listed {
  std::optional<Tensor> tensor;
  Words words;
};

Tensor int_list(const std::vector<std::int64_t>& numbers) {
  return Tensor::of_ints(numbers, {static_cast<std::int64_t>(numbers.size())});
}

/// The position of each string among those that differ.
Tensor positions_of(Words& words, const std::vector<std::string>& strings) {
  std::vector<std::int64_t> positions;
  for (const std::string& word : strings) positions.push_back(words.position_of(word));
  return int_list(positions);
}

/// 0, 1, ...
Tensor counted(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return int_list(numbers);
}

Listed listed(const Attributes& attributes, const std::string& kind) {
  Listed found;
  int lists = 0;
  if (is_given(attributes, kind + "_int64s", &Attributes::ints_of)) {
    found.tensor = int_list(attributes.ints_of(kind + "_int64s"));
    ++lists;
  }
  if (is_given(attributes, kind + "_floats", &Attributes::floats_of)) {
    const auto& numbers = attributes.floats_of(kind + "_floats");
    found.tensor = Tensor::of_floats(numbers, {static_cast<std::int64_t>(numbers.size())});
    ++lists;
  }
  if (attributes.has(kind + "_tensor")) {
    const Tensor& tensor = attributes.tensor_of(kind + "_tensor");
    found.tensor = tensor.reshaped({tensor.count()});
    ++lists;
  }
  if (is_given(attributes, kind + "_strings", &Attributes::strings_of)) {
    if (kind == "keys")
      operator_error("keys that are strings are not supported", "no tensor of a run holds strings");
    found.tensor = positions_of(found.words, attributes.strings_of(kind + "_strings"));
    ++lists;
  }
  if (lists != 1) operator_error(fmt::format("{} lists of {} are given instead of one", lists, kind));
  return found;
}

// LabelEncoder ----------------------------------------------------------------------------------------------

/// Version 1: positions of classes, which are strings, stand for them already.
bool names_classes(const Attributes& attributes) { return attributes.has("classes_strings"); }

struct Encoding {
  Tensor keys, values;
  Scalar other;
};

Scalar default_of(const Attributes& attributes, Listed& values) {
  const ElementType type = values.tensor->element();
  if (!values.words.all().empty())
    return Scalar::of_integer(type, values.words.position_of(attributes.string_of("default_string")));
  if (attributes.has("default_tensor")) {
    const Tensor& tensor = attributes.tensor_of("default_tensor");
    if (tensor.count() != 1 || tensor.element() != type)
      operator_error("attribute 'default_tensor' must be one element of the type of the values");
    return tensor.at(0);
  }
  return is_float(type) ? Scalar::of_real(type, static_cast<double>(attributes.float_of("default_float")))
                        : Scalar::of_integer(type, attributes.int_of("default_int64"));
}

Encoding encoding_of(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  Listed keys = listed(attributes, "keys"), values = listed(attributes, "values");
  if (keys.tensor->count() != values.tensor->count()) {
    operator_error(fmt::format("{} keys have {} values", keys.tensor->count(), values.tensor->count()));
  }
  if (keys.tensor->element() != node.element(0)) {
    operator_error(fmt::format("keys are {}, the input has elements of {}", name_of(keys.tensor->element()),
                               name_of(node.element(0))));
  }
  require_distinct(*keys.tensor, "keys");
  const Scalar other = default_of(attributes, values);
  return {*keys.tensor, *values.tensor, other};
}

/// Each number is the string at its place, all others the default.
Encoding encoding_of_words(const Attributes& attributes, Tensor keys, std::string_view strings) {
  Words words;
  Encoding encoding{std::move(keys), positions_of(words, attributes.strings_of(strings)), {}};
  const std::int64_t other = words.position_of(attributes.string_of("default_string"));
  encoding.other = Scalar::of_integer(ElementType::kInt64, other);
  return encoding;
}

Encoding label_encoding(const NodeView& node) {
  if (!names_classes(node.attributes())) return encoding_of(node);
  if (node.element(0) != ElementType::kInt64) operator_error("positions of classes must be int64");
  const std::size_t count = node.attributes().strings_of("classes_strings").size();
  return encoding_of_words(node.attributes(), counted(count), "classes_strings");
}

void infer_label(InferContext& context) {
  require_computable(context, 0);
  context.set_result(0, label_encoding(context).values.element(), context.shape(0));
}

bool decompose_label(RewriteContext& context) {
  const Encoding encoding = label_encoding(context);
  context.replace_result(
      0, emit_lookup(context, context.operand_id(0), encoding.keys, encoding.values, encoding.other));
  return true;
}

// CategoryMapper --------------------------------------------------------------------------------------------

/// From numbers to strings, of which the result has the positions.
Encoding mapping_of(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  if (node.element(0) != ElementType::kInt64) operator_error("categories must be int64");
  if (!attributes.has("cats_int64s") || !attributes.has("cats_strings"))
    operator_error("the categories are not listed");
  const Tensor numbers = int_list(attributes.ints_of("cats_int64s"));
  const std::size_t strings = attributes.strings_of("cats_strings").size();
  if (numbers.count() != static_cast<std::int64_t>(strings))
    operator_error(fmt::format("{} numbers belong to {} strings", numbers.count(), strings));
  require_distinct(numbers, "categories");
  return encoding_of_words(attributes, numbers, "cats_strings");
}

void infer_mapper(InferContext& context) {
  mapping_of(context);
  context.set_result(0, ElementType::kInt64, context.shape(0));
}

bool decompose_mapper(RewriteContext& context) {
  const Encoding mapping = mapping_of(context);
  context.replace_result(
      0, emit_lookup(context, context.operand_id(0), mapping.keys, mapping.values, mapping.other));
  return true;
}

// OneHotEncoder ---------------------------------------------------------------------------------------------

std::vector<std::int64_t> categories_of(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  if (is_given(attributes, "cats_strings", &Attributes::strings_of)) {
    operator_error("categories that are strings are not supported", "no tensor of a run holds strings");
  }
  if (!is_given(attributes, "cats_int64s", &Attributes::ints_of)) operator_error("there is no category");
  return attributes.ints_of("cats_int64s");
}

void infer_one_hot(InferContext& context) {
  require_computable(context, 0);
  const std::vector<std::int64_t> categories = categories_of(context);
  const auto count = static_cast<std::int64_t>(categories.size());
  require_distinct(int_list(categories), "categories");
  Shape y = context.shape(0);
  y.push_back(count);
  context.set_result(0, ElementType::kFloat32, std::move(y));
}

/// Floats are truncated. Where no category may be missing, a Gather meets the end of a list, which ends the run.
bool decompose_one_hot(RewriteContext& context) {
  const std::vector<std::int64_t> categories = categories_of(context);
  const auto count = static_cast<std::int64_t>(categories.size());
  const Tensor all = counted(categories.size());
  const ValueId x = emit_cast(context, context.operand_id(0), ElementType::kInt64);
  ValueId place =
      emit_lookup(context, x, int_list(categories), all, Scalar::of_integer(ElementType::kInt64, count));
  const ValueId places = context.constant(all);
  if (!context.attributes().flag("zeros")) place = context.emit("Gather", {places, place});
  Shape shape = context.shape(0);
  shape.push_back(1);
  const ValueId is_here = context.emit("Equal", {emit_reshape(context, place, shape), places});
  context.replace_result(0, emit_cast(context, is_here, ElementType::kFloat32));
  return true;
}

// ZipMap ----------------------------------------------------------------------------------------------------

void infer_zip_map(InferContext& context) { context.set_result(0, context.operand(0)); }

bool decompose_zip_map(RewriteContext& context) {
  context.replace_result(0, context.operand_id(0));
  return true;
}

Operator record(std::string_view name, std::vector<int> versions, std::string_view summary,
                void (*infer)(InferContext&), bool (*decompose)(RewriteContext&)) {
  Operator op;
  op.name = name;
  op.domain = "ai.onnx.ml";
  op.versions = std::move(versions);
  op.summary = summary;
  op.infer = infer;
  op.decompose = decompose;
  return op;
}

}  // namespace

const Operator& operator_MlLabelEncoder() {
  static const Operator op = [] {
    Operator o =
        record("LabelEncoder", {1, 2, 4}, "the value of each number; of values that are strings, positions",
               infer_label, decompose_label);
    o.attributes = {{"classes_strings", AttributeKind::kStrings, std::nullopt},
                    {"default_float", AttributeKind::kFloat, -0.0f},
                    {"default_int64", AttributeKind::kInt, std::int64_t{-1}},
                    {"default_string", AttributeKind::kString, std::string("_Unused")},
                    {"default_tensor", AttributeKind::kTensor, std::nullopt},
                    {"keys_floats", AttributeKind::kFloats, std::nullopt},
                    {"keys_int64s", AttributeKind::kInts, std::nullopt},
                    {"keys_strings", AttributeKind::kStrings, std::nullopt},
                    {"keys_tensor", AttributeKind::kTensor, std::nullopt},
                    {"values_floats", AttributeKind::kFloats, std::nullopt},
                    {"values_int64s", AttributeKind::kInts, std::nullopt},
                    {"values_strings", AttributeKind::kStrings, std::nullopt},
                    {"values_tensor", AttributeKind::kTensor, std::nullopt}};
    o.traits.decides = true;
    return o;
  }();
  return op;
}

const Operator& operator_MlCategoryMapper() {
  static const Operator op = [] {
    Operator o = record("CategoryMapper", {1}, "positions of the strings that numbers stand for",
                        infer_mapper, decompose_mapper);
    o.attributes = {{"cats_int64s", AttributeKind::kInts, std::nullopt},
                    {"cats_strings", AttributeKind::kStrings, std::nullopt},
                    {"default_int64", AttributeKind::kInt, std::int64_t{-1}},
                    {"default_string", AttributeKind::kString, std::string("_Unused")}};
    return o;
  }();
  return op;
}

const Operator& operator_MlOneHotEncoder() {
  static const Operator op = [] {
    Operator o = record("OneHotEncoder", {1}, "1 for the category that a number is, 0 for all others",
                        infer_one_hot, decompose_one_hot);
    o.attributes = {{"cats_int64s", AttributeKind::kInts, std::nullopt},
                    {"cats_strings", AttributeKind::kStrings, std::nullopt},
                    {"zeros", AttributeKind::kInt, std::int64_t{1}}};
    o.traits.decides = true;
    return o;
  }();
  return op;
}

const Operator& operator_MlZipMap() {
  static const Operator op = [] {
    Operator o = record("ZipMap", {1}, "x as it is: a tensor stands for the maps, its columns for their keys",
                        infer_zip_map, decompose_zip_map);
    o.attributes = {{"classlabels_int64s", AttributeKind::kInts, std::nullopt},
                    {"classlabels_strings", AttributeKind::kStrings, std::nullopt}};
    o.traits.keeps_elements = true;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
