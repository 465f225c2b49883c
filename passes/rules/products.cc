// Products of products, and sums of them: another order of the factors, or one product in place of two.

#include <algorithm>
#include <cmath>

#include "passes/rules/constant_products.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

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

}  // namespace gcompile::passes
