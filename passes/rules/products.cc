// Products of products, sums of them and parts of them: another order of the factors, one product in place of
// two, and nothing of what nobody reads.

#include <algorithm>
#include <cmath>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

constexpr std::string_view kNotReal = "the product is one of integers";
constexpr std::string_view kLeaveRange = "the weights together leave their range";

bool is_real(const Match& match) { return ir::is_float(match.result_type().element); }

/// Types in which what lies between the nodes of a model does not come near the ends of the range.
std::string unless_range_is_wide(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  return match.result_type().element == ir::ElementType::kFloat16 ? "float16 may overflow in another order"
                                                                  : "";
}

// (x W) V -> x (W V) ----------------------------------------------------------------------------------------

std::string guard_linears(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  const Shape &w = match.shape("w"), &v = match.shape("v");
  if (w.size() != 2 || v.size() != 2) return "the weights are not matrices";
  if (w[0] * v[1] >= w[0] * w[1] + v[0] * v[1]) return "one product would not be cheaper";
  if (match.has("b") && (match.shape("sum") != match.shape("inner") || !column_bias(match, "b", "inner")))
    return "the addend is not one value per column";
  if (!is_affordable(w[0], w[1], v[1])) return "the product of the weights takes too long";
  const Tensor& left = match.constant("w");
  const Tensor& right = match.constant("v");
  if (!keeps_columns(product_of(left, right), left, right)) return std::string(kLeaveRange);
  return !match.has("b") || all_finite(row_times(*column_bias(match, "b", "inner"), right))
             ? ""
             : std::string(kLeaveRange);
}

ValueId build_linears(Rewriter& rewriter) {
  const Tensor& v = rewriter.constant("v");
  const Tensor weights = product_of(rewriter.constant("w"), v);
  const std::string_view name = rewriter.type("v").bytes() > rewriter.type("w").bytes() ? "v" : "w";
  const ValueId product =
      rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(weights, name)});
  if (!rewriter.has("b")) return product;
  const Tensor bias = row_times(*column_bias(rewriter, "b", "inner"), v);
  return rewriter.emit("Add", {product, rewriter.add_constant(bias, "b")});
}

// (A B) C -> A (B C) ----------------------------------------------------------------------------------------

/// Matrices a (rows, depth), b (depth, width), c (width, columns), for each of which there is one batch.
struct Chain {
  Dim rows, depth, width, columns;
  Dim left_first() const { return rows * width * (depth + columns); }
  Dim right_first() const { return depth * columns * (width + rows); }
};

bool have_one_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

std::optional<Chain> chain_of(const Match& match) {
  const Shape &a = match.shape("a"), &b = match.shape("b"), &c = match.shape("c");
  Chain chain{a[a.size() - 2], a.back(), b.back(), c.back()};
  if (have_one_batch(a, b) && have_one_batch(b, c)) return chain;
  if (b.size() != 2) return std::nullopt;
  const bool rows = c.size() == 2, columns = a.size() == 2;
  if (!rows && !columns) return std::nullopt;
  // What has a batch is one matrix with more rows, or more columns.
  const Shape& batch = rows ? a : c;
  Dim& count = rows ? chain.rows : chain.columns;
  for (std::size_t i = 0; i + 2 < batch.size(); ++i) count *= batch[i];
  return chain;
}

std::string guard_chain(const Match& match, bool left_first) {
  const std::string reason = unless_range_is_wide(match);
  if (!reason.empty()) return reason;
  const ir::Graph& graph = match.graph();
  if (graph.constant(match.value("b")) && graph.constant(match.value(left_first ? "a" : "c")))
    return "the product of constants is another matter";
  const std::optional<Chain> chain = chain_of(match);
  if (!chain) return "several of the factors have batches";
  const Dim left = chain->left_first(), right = chain->right_first();
  return ir::always_less_equal(2 * (left_first ? left : right), left_first ? right : left)
             ? ""
             : "the other order is not twice as cheap";
}
std::string guard_right_first(const Match& match) { return guard_chain(match, false); }
std::string guard_left_first(const Match& match) { return guard_chain(match, true); }

ValueId build_right_first(Rewriter& rewriter) {
  const ValueId right = rewriter.emit("MatMul", {rewriter.value("b"), rewriter.value("c")});
  return rewriter.emit("MatMul", {rewriter.value("a"), right});
}
ValueId build_left_first(Rewriter& rewriter) {
  const ValueId left = rewriter.emit("MatMul", {rewriter.value("a"), rewriter.value("b")});
  return rewriter.emit("MatMul", {left, rewriter.value("c")});
}

// Sums of products ------------------------------------------------------------------------------------------

/// Both products have the shape of the result, so that what is added to them is added to their sum.
bool are_alike(const Match& match) {
  return match.shape("first") == match.result_type().shape &&
         match.shape("second") == match.result_type().shape;
}

ValueId with_addends(Rewriter& rewriter, ValueId sum) {
  for (const std::string_view addend : {"b", "c"}) {
    if (rewriter.has(addend)) sum = rewriter.emit("Add", {sum, rewriter.value(addend)});
  }
  return sum;
}

std::string guard_one_weight(const Match& match) {
  if (match.type("x") != match.type("z") || !are_alike(match)) return "what is multiplied is broadcast";
  return unless_range_is_wide(match);
}

ValueId build_one_weight(Rewriter& rewriter) {
  const ValueId sum = rewriter.emit("Add", {rewriter.value("x"), rewriter.value("z")});
  return with_addends(rewriter, rewriter.emit("MatMul", {sum, rewriter.value("w")}));
}

std::string guard_one_operand(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  if (match.type("w") != match.type("v") || !are_alike(match)) return "the weights are of unlike shapes";
  return all_finite(sum_of(match.constant("w"), match.constant("v"))) ? "" : std::string(kLeaveRange);
}

ValueId build_one_operand(Rewriter& rewriter) {
  const Tensor weights = sum_of(rewriter.constant("w"), rewriter.constant("v"));
  const ValueId product = rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(weights, "w")});
  return with_addends(rewriter, product);
}

// (x + c) W -> x W + c W ------------------------------------------------------------------------------------

std::string guard_shift(const Match& match) {
  if (!is_real(match)) return std::string(kNotReal);
  if (match.shape("w").size() != 2) return "the weights are not a matrix";
  if (match.shape("shifted") != match.shape("x")) return "the addition enlarges the operand";
  const auto shifts = column_bias(match, "c", "x");
  if (!shifts) return "the addend is not one value per row of the weights";
  return all_finite(row_times(*shifts, match.constant("w"))) ? "" : std::string(kLeaveRange);
}

ValueId build_shift(Rewriter& rewriter) {
  const Tensor bias = row_times(*column_bias(rewriter, "c", "x"), rewriter.constant("w"));
  const ValueId product = rewriter.emit("MatMul", {rewriter.value("x"), rewriter.value("w")});
  return rewriter.emit("Add", {product, rewriter.add_constant(bias, "c")});
}

// Weights that do nothing -----------------------------------------------------------------------------------

std::string guard_identity(const Match& match) {
  const Tensor& w = match.constant("w");
  if (!keeps_type(match, "x") || w.shape().size() != 2) return "the weights are no square";
  const std::int64_t n = w.shape()[1];
  for (std::int64_t i = 0; i < w.count(); ++i) {
    if (w.real_at(i) != (i / n == i % n ? 1 : 0)) return "the weights are not the identity";
  }
  return "";
}

ValueId build_identity(Rewriter& rewriter) { return rewriter.value("x"); }

ValueId build_negated_weights(Rewriter& rewriter) {
  const Tensor w = negated(rewriter.constant("w"));
  return rewriter.emit("MatMul", {rewriter.value("x"), rewriter.add_constant(w, "w")});
}

// Parts of products -----------------------------------------------------------------------------------------

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
  return axis_of(match.attributes("gather"), match.type("product").rank());
}

std::string guard_gather(const Match& match) {
  if (match.shape("w").size() != 2) return "the weights are not a matrix";
  if (!keeps_shape(match)) return "the addition enlarges the product";
  const Dim taken = match.result_type().count(), all = match.type("product").count();
  if (taken == all || !ir::always_less_equal(taken, all)) return "no fewer elements are taken than there are";
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

/// Sums of two patterns, each with and without an addend of its own.
void add_sums(RuleTable& table, std::string_view name, const Pattern& first, const Pattern& second,
              std::string (*guard)(const Match&), ValueId (*build)(Rewriter&)) {
  const Pattern b = op("Add", {first, any("b")}), c = op("Add", {second, any("c")});
  for (const Pattern& sum : {op("Add", {first, second}), op("Add", {b, second}), op("Add", {b, c})})
    table.push_back({name, Tier::kReassociate, sum, guard, build, true});
}

}  // namespace

const RuleTable& product_rules() {
  static const RuleTable rules = [] {
    const Tier tier = Tier::kReassociate;
    const Pattern x = any("x"), a = any("a"), b = any("b"), c = any("c");
    const Pattern w = constant("w"), v = constant("v");
    const Pattern inner = op("MatMul", {x, w}, "inner");
    RuleTable table = {
        // (x W) V -> x (W V), where that takes fewer multiplications
        {"linear-of-linear", tier, op("MatMul", {inner, v}), guard_linears, build_linears},
        // (x W + b) V -> x (W V) + b V
        {"linear-of-linear", tier, op("MatMul", {op("Add", {inner, constant("b")}, "sum"), v}), guard_linears,
         build_linears},
        // (A B) C -> A (B C), A (B C) -> (A B) C, where that takes half of the multiplications
        {"product-chain", tier, op("MatMul", {op("MatMul", {a, b}), c}), guard_right_first, build_right_first,
         true},
        {"product-chain", tier, op("MatMul", {a, op("MatMul", {b, c})}), guard_left_first, build_left_first,
         true},
        // (x + c) W -> x W + c W
        {"shift-before-matmul", tier, op("MatMul", {op("Add", {x, constant("c")}, "shifted"), w}),
         guard_shift, build_shift},
        // x I -> x; the model multiplies what is infinite by zeros too
        {"identity-weights", tier, op("MatMul", {x, w}), guard_identity, build_identity, true},
        // (-x) W -> x (-W)
        {"neg-into-product", Tier::kExact, op("MatMul", {op("Neg", {x}), w}), nullptr, build_negated_weights},
        // -(x W) -> x (-W), but for the sign of zero
        {"neg-of-product", tier, op("Neg", {op("MatMul", {x, w})}), nullptr, build_negated_weights},
    };
    // x W + z W -> (x + z) W
    add_sums(table, "products-of-one-weight", op("MatMul", {x, any("w")}, "first"),
             op("MatMul", {any("z"), any("w")}, "second"), guard_one_weight, build_one_weight);
    // x W + x V -> x (W + V)
    add_sums(table, "products-of-one-operand", op("MatMul", {x, w}, "first"), op("MatMul", {x, v}, "second"),
             guard_one_operand, build_one_operand);
    return table;
  }();
  return rules;
}

const RuleTable& cut_rules() {
  static const RuleTable rules = [] {
    const Tier exact = Tier::kExact;
    const Pattern product = op("MatMul", {any("x"), any("w")}, "product");
    const Pattern sum = op("Add", {product, any("c")}, "sum");
    const Pattern conv = op("Conv", {any("x"), any("w"), any("b").optional()}, "conv");
    const auto gather_of = [](const Pattern& from) { return op("Gather", {from, any("indices")}, "gather"); };
    RuleTable table = {
        // (x W)[rows, columns] -> x[rows] W[columns]
        {"slice-of-product", exact, slice_of(product, "slice"), guard_slice, build_slice},
        // (x W + c)[rows, columns] -> x[rows] W[columns] + c[rows, columns]
        {"slice-of-product", exact, slice_of(sum, "slice"), guard_slice, build_slice},
        // Conv(x, W, b)[channels] -> Conv(x, W[channels], b[channels])
        {"slice-of-conv", exact, slice_of(conv, "slice"), guard_channels, build_channels},
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
