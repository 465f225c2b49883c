// Parts of products: what nobody reads of them is not computed.

#include <algorithm>

#include "ir/ops/support.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

/// The part of a value that broadcasts to `whole` which belongs to a slice of `counts` elements of that.
ValueId part_of(Rewriter& rewriter, ValueId value, const Strided& slice, const Shape& whole,
                const Shape& counts) {
  const Shape own = rewriter.type_of(value).shape;
  const std::size_t lead = whole.size() - own.size();
  Strided part{Ints(own.size(), 0), Ints(own.size(), 1)};
  Shape kept = own;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == 1) continue;
    part.start[i] = slice.start[i + lead];
    part.step[i] = slice.step[i + lead];
    kept[i] = counts[i + lead];
  }
  return emit_slice(rewriter, value, part, kept);
}

/// Whether an addend leaves the product its shape.
bool keeps_shape(const Match& match) {
  return !match.has("c") || match.shape("sum") == match.shape("product");
}

ValueId with_addend(Rewriter& rewriter, ValueId product, const Strided& slice) {
  if (!rewriter.has("c")) return product;
  const ValueId addend =
      part_of(rewriter, rewriter.value("c"), slice, rewriter.shape("product"), rewriter.result_type().shape);
  return rewriter.emit("Add", {product, addend});
}

// Slices ----------------------------------------------------------------------------------------------------

std::string guard_slice(const Match& match) {
  if (match.shape("w").size() != 2) return "the weights are not a matrix";
  if (!keeps_shape(match)) return "the addition enlarges the product";
  if (!strided(match.graph(), match.node("slice"))) return "what is taken is not known, or turned";
  return match.shape("product") != match.result_type().shape ? "" : "all of the product is taken";
}

/// Rows of the product are rows of x, its columns those of the weights.
ValueId build_slice(Rewriter& rewriter) {
  const Strided slice = *strided(rewriter.graph(), rewriter.node("slice"));
  const Shape whole = rewriter.shape("product"), counts = rewriter.result_type().shape;
  const std::size_t last = whole.size() - 1;
  Strided rows = slice;
  Shape row_counts = counts;
  rows.start[last] = 0;
  rows.step[last] = 1;
  row_counts[last] = rewriter.shape("x").back();
  const Strided columns{{0, slice.start[last]}, {1, slice.step[last]}};
  const ValueId x = emit_slice(rewriter, rewriter.value("x"), rows, row_counts);
  const ValueId w =
      emit_slice(rewriter, rewriter.value("w"), columns, {rewriter.shape("w")[0], counts[last]});
  return with_addend(rewriter, rewriter.emit("MatMul", {x, w}), slice);
}

/// Channels of a convolution alone.
std::string guard_channels(const Match& match) {
  if (match.attributes("conv").int_of("group") != 1) return "groups of channels";
  const auto slice = strided(match.graph(), match.node("slice"));
  if (!slice) return "what is taken is not known, or turned";
  Shape rest = match.shape("conv"), taken = match.result_type().shape;
  if (rest[1] == taken[1]) return "all channels are taken";
  rest[1] = taken[1] = 1;
  return rest == taken ? "" : "pixels are left out";
}

ValueId build_channels(Rewriter& rewriter) {
  const Strided slice = *strided(rewriter.graph(), rewriter.node("slice"));
  const auto channels = [&](std::string_view name) {
    Shape counts = rewriter.shape(name);
    Strided part{Ints(counts.size(), 0), Ints(counts.size(), 1)};
    counts[0] = rewriter.result_type().shape[1];
    part.start[0] = slice.start[1];
    part.step[0] = slice.step[1];
    return emit_slice(rewriter, rewriter.value(name), part, counts);
  };
  std::vector<ValueId> operands = {rewriter.value("x"), channels("w")};
  if (rewriter.has("b")) operands.push_back(channels("b"));
  return rewriter.emit("Conv", std::move(operands), rewriter.attributes("conv"));
}

// Gathers ---------------------------------------------------------------------------------------------------

std::size_t gathered_axis(const Match& match) {
  const std::int64_t axis = match.attributes("gather").int_of("axis");
  return static_cast<std::size_t>(ir::normalise_axis(axis, match.type("product").rank()));
}

std::string guard_gather(const Match& match) {
  if (match.shape("w").size() != 2) return "the weights are not a matrix";
  if (!keeps_shape(match)) return "the addition enlarges the product";
  if (!ir::always_less(match.result_type().count(), match.type("product").count()))
    return "no fewer elements are taken than there are";
  const std::size_t indices = match.shape("indices").size();
  const bool is_column = gathered_axis(match) + 1 == match.shape("product").size();
  if (is_column) {
    if (indices != 1) return "columns are gathered into several axes";
    const bool is_row = !match.has("c") || (match.shape("c").size() == 1 && match.shape("c")[0] != 1);
    return is_row ? "" : "the addend is not one value per column";
  }
  if (match.has("c") && match.shape("c").size() > 1) return "the addend is another one in each row";
  return match.result_type().rank() >= 2 ? "" : "one row is no matrix";
}

ValueId build_gather(Rewriter& rewriter) {
  const std::size_t axis = gathered_axis(rewriter);
  const auto gathered = [&](std::string_view name, std::size_t along) {
    ir::Attributes attributes;
    attributes.set("axis", static_cast<std::int64_t>(along));
    return rewriter.emit("Gather", {rewriter.value(name), rewriter.value("indices")}, std::move(attributes));
  };
  const bool is_column = axis + 1 == rewriter.shape("product").size();
  const ValueId x = is_column ? rewriter.value("x") : gathered("x", axis);
  const ValueId w = is_column ? gathered("w", 1) : rewriter.value("w");
  const ValueId product = rewriter.emit("MatMul", {x, w});
  if (!rewriter.has("c")) return product;
  return rewriter.emit("Add", {product, is_column ? gathered("c", 0) : rewriter.value("c")});
}

Pattern slice_of(Pattern from) {
  return op("Slice",
            {std::move(from), constant("starts"), constant("ends"), constant("axes").optional(),
             constant("steps").optional()},
            "slice");
}

}  // namespace

const RuleTable& cut_rules() {
  static const RuleTable rules = [] {
    const Tier exact = Tier::kExact;
    const Pattern product = op("MatMul", {any("x"), any("w")}, "product");
    const Pattern sum = op("Add", {product, any("c")}, "sum");
    const Pattern conv = op("Conv", {any("x"), any("w"), any("b").optional()}, "conv");
    const auto gather_of = [](const Pattern& from) { return op("Gather", {from, any("indices")}, "gather"); };
    RuleTable table = {
        // (x W)[rows, columns] -> x[rows] W[columns]
        {"slice-of-product", exact, slice_of(product), guard_slice, build_slice},
        // (x W + c)[rows, columns] -> x[rows] W[columns] + c[rows, columns]
        {"slice-of-product", exact, slice_of(sum), guard_slice, build_slice},
        // Conv(x, W, b)[channels] -> Conv(x, W[channels], b[channels])
        {"slice-of-conv", exact, slice_of(conv), guard_channels, build_channels},
        // Gather(x W, i) -> Gather(x, i) W, or x Gather(W, i) of columns
        {"gather-of-product", exact, gather_of(product), guard_gather, build_gather},
        // Gather(x W + c, i) -> Gather(x, i) W + c, or x Gather(W, i) + Gather(c, i)
        {"gather-of-product", exact, gather_of(sum), guard_gather, build_gather},
    };
    for (Rule& rule : table) rule.quiet = true;
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes
