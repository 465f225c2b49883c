// TfIdfVectorizer of integers: how often each n-gram of a pool is found, its elements next to each other or with a
// distance between them. Made of comparisons of the sequence, moved by the distance, with the pool.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

using Gram = std::vector<std::int64_t>;

struct Pool {
  std::map<std::int64_t, std::map<Gram, std::size_t>> grams;  // their numbers, by size and n-gram
  std::int64_t size = 0;                                      // of a row of the result
  std::int64_t skips = 0;
};

/// An n-gram that is listed twice counts for the last one.
Pool pool_of(const Attributes& attributes) {
  if (attributes.has("pool_strings")) operator_error("n-grams of strings are not supported");
  const std::int64_t least = attributes.int_of("min_gram_length"),
                     most = attributes.int_of("max_gram_length");
  const std::vector<std::int64_t> starts = attributes.ints_of("ngram_counts");
  const std::vector<std::int64_t> indexes = attributes.ints_of("ngram_indexes");
  const std::vector<std::int64_t> elements =
      attributes.has("pool_int64s") ? attributes.ints_of("pool_int64s") : std::vector<std::int64_t>{};
  Pool pool;
  pool.skips = attributes.int_of("max_skip_count");
  if (least < 1 || most < least) operator_error(fmt::format("n-grams of {} to {} elements", least, most));
  if (pool.skips < 0 || pool.skips > 1000) operator_error(fmt::format("max_skip_count is {}", pool.skips));
  if (indexes.empty()) operator_error("attribute 'ngram_indexes' has no entry");
  for (const std::int64_t column : indexes) {
    if (column < 0 || column > (1 << 24))
      operator_error(fmt::format("attribute 'ngram_indexes' has the value {}", column));
    pool.size = std::max(pool.size, column + 1);
  }
  std::size_t gram = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto total = static_cast<std::int64_t>(elements.size());
    const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : total;
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (begin < 0 || begin > end || end > total || (end - begin) % length != 0) {
      operator_error(fmt::format("attribute 'ngram_counts' has the value {}, which does not fit", begin));
    }
    for (std::int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= indexes.size()) {
        operator_error(
            fmt::format("attribute 'ngram_indexes' has {} entries, fewer than n-grams", indexes.size()));
      }
      if (length < least || length > most) continue;
      pool.grams[length][Gram(elements.begin() + at, elements.begin() + at + length)] = gram;
    }
  }
  return pool;
}

/// Distances at which n-grams of a size are looked for in sequences of `length`: 1 and up. Where the bounds leave
/// open whether a sequence has so many elements, it is refused.
std::int64_t distances_of(const Pool& pool, std::int64_t size, Dim length) {
  const std::int64_t most = size == 1 ? 1 : pool.skips + 1;
  for (std::int64_t distance = 1; distance <= most; ++distance) {
    if (always_less((size - 1) * distance, length)) continue;
    if (length.is_constant()) return distance - 1;
    operator_error("the sequence may be shorter than an n-gram",
                   fmt::format("give it bounds from {} on", (size - 1) * most + 1));
  }
  return most;
}

void infer(InferContext& context) {
  const Attributes& attributes = context.attributes();
  require_one_of(attributes, "mode", {"TF", "IDF", "TFIDF"});
  if (context.element(0) != ElementType::kInt32 && context.element(0) != ElementType::kInt64) {
    operator_error("the sequences must be of int32 or int64");
  }
  const Pool pool = pool_of(attributes);
  const std::size_t count = attributes.ints_of("ngram_indexes").size();
  if (attributes.has("weights") && attributes.floats_of("weights").size() != count) {
    operator_error(fmt::format("attribute 'weights' must have one entry for each of {} n-grams", count));
  }
  Shape y = context.shape(0);
  if (y.empty() || y.size() > 2)
    operator_error(fmt::format("sequences must be (C) or (B, C), not {}", to_string(y)));
  for (const auto& [size, grams] : pool.grams) distances_of(pool, size, y.back());
  y.back() = pool.size;
  context.set_result(0, ElementType::kFloat32, std::move(y));
}

/// How often the n-grams, all of `length`, are found in x (B, C) with `distance` between their elements, as
/// (B, n-grams).
ValueId emit_counts(RewriteContext& context, ValueId x, const std::map<Gram, std::size_t>& grams,
                    std::int64_t length, std::int64_t distance) {
  const Dim places = context.type(x).shape[1] - (length - 1) * distance;
  ValueId found;
  for (std::int64_t k = 0; k < length; ++k) {
    std::vector<std::int64_t> elements;
    for (const auto& [gram, number] : grams) elements.push_back(gram[static_cast<std::size_t>(k)]);
    const auto count = static_cast<std::int64_t>(elements.size());
    const ValueId pool = context.constant(Tensor::of_ints(elements, {1, count, 1}));
    ValueId part = emit_slice(context, x, 1, k * distance, places + k * distance);
    part = emit_reshape(context, part, {context.type(x).shape[0], 1, places});
    const ValueId same = context.emit("Equal", {part, pool});
    found = k == 0 ? same : context.emit("And", {found, same});
  }
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const std::vector<std::int64_t> last = {2};
  return context.emit("ReduceSum",
                      {emit_cast(context, found, ElementType::kFloat32), context.constant_ints(last)},
                      attributes);
}

/// The counts of all n-grams, and a column of zeros behind them, of which each column of the result takes its own.
bool decompose(RewriteContext& context) {
  const Attributes& given = context.attributes();
  const Pool pool = pool_of(given);
  const Shape shape = context.shape(0), y = context.result(0).shape;
  const Dim batch = shape.size() == 2 ? shape[0] : Dim(1), length = shape.back();
  ValueId x =
      emit_reshape(context, emit_cast(context, context.operand_id(0), ElementType::kInt64), {batch, length});
  std::vector<ValueId> parts;
  std::vector<std::vector<std::int64_t>> takers(static_cast<std::size_t>(pool.size));
  std::vector<float> weights;  // of the n-grams as they are counted
  const std::vector<std::int64_t> columns = given.ints_of("ngram_indexes");
  const std::string& mode = given.string_of("mode");
  std::int64_t count = 0;
  for (const auto& [size, grams] : pool.grams) {
    ValueId sum;
    for (std::int64_t distance = 1; distance <= distances_of(pool, size, length); ++distance) {
      const ValueId found = emit_counts(context, x, grams, size, distance);
      sum = sum.valid() ? context.emit("Add", {sum, found}) : found;
    }
    if (!sum.valid()) continue;
    for (const auto& [gram, number] : grams) {
      takers[static_cast<std::size_t>(columns[number])].push_back(count++);
      if (given.has("weights")) weights.push_back(given.floats_of("weights")[number]);
    }
    parts.push_back(sum);
  }
  parts.push_back(emit_zeros(context, {ElementType::kFloat32, {batch, 1}}));
  weights.push_back(0);
  ValueId counts = parts.size() == 1 ? parts[0] : emit_concat(context, parts, 1);
  if (mode == "IDF") counts = context.emit("Sign", {counts});
  if (mode != "TF" && given.has("weights")) {
    counts = context.emit("Mul", {counts, context.constant(Tensor::of_floats(weights, {count + 1}))});
  }
  // Several n-grams may share a column.
  std::size_t most = 1;
  for (const auto& taken : takers) most = std::max(most, taken.size());
  ValueId sum;
  for (std::size_t k = 0; k < most; ++k) {
    std::vector<std::int64_t> taken;
    for (const auto& all : takers) taken.push_back(k < all.size() ? all[k] : count);
    Attributes along;
    along.set("axis", std::int64_t{1});
    const ValueId part = context.emit("Gather", {counts, context.constant_ints(taken)}, along);
    sum = sum.valid() ? context.emit("Add", {sum, part}) : part;
  }
  context.replace_result(0, emit_reshape(context, sum, y));
  return true;
}

}  // namespace

const Operator& operator_TfIdfVectorizer() {
  static const Operator op = {
      .name = "TfIdfVectorizer",
      .versions = {9},
      .attributes = {{"max_gram_length", AttributeKind::kInt, std::nullopt, true},
                     {"max_skip_count", AttributeKind::kInt, std::nullopt, true},
                     {"min_gram_length", AttributeKind::kInt, std::nullopt, true},
                     {"mode", AttributeKind::kString, std::nullopt, true},
                     {"ngram_counts", AttributeKind::kInts, std::nullopt, true},
                     {"ngram_indexes", AttributeKind::kInts, std::nullopt, true},
                     {"pool_int64s", AttributeKind::kInts, std::nullopt},
                     {"pool_strings", AttributeKind::kStrings, std::nullopt},
                     {"weights", AttributeKind::kFloats, std::nullopt}},
      .accuracy = Accuracy::kRounding,
      .summary = "how often n-grams of integers are found",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
