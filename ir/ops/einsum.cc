// Einsum: sums of products named by letters. Taken apart into diagonals, sums, and one MatMul (or
// multiplication) per further operand, from left to right.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/ops/rewrite.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// A letter, or kEllipsis + distance from the right end of the ellipsis.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;

bool is_ellipsis(Label label) { return label >= kEllipsis; }
bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Equation {
  std::vector<Labels> operands;
  Labels output;
  std::map<Label, Dim> extents;
};

/// Labels of one term; `ellipsis` axes stand for the dots.
Labels term_labels(std::string_view term, std::int64_t ellipsis) {
  Labels labels;
  bool seen = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "..." && !seen) {
      seen = true;
      i += 2;
      for (std::int64_t axis = ellipsis; axis-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(axis));
    } else {
      operator_error(fmt::format("'{}' is not a term of an equation", printable(term)));
    }
  }
  return labels;
}

std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

void bind_extents(Equation& equation, const Labels& labels, const Shape& shape) {
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    Dim& extent = equation.extents.try_emplace(labels[axis], 1).first->second;
    if (!extent.is_constant() || !shape[axis].is_constant()) {
      extent = broadcast({extent}, {shape[axis]})[0];
      continue;
    }
    if (shape[axis] == 1) continue;
    if (extent != 1 && extent != shape[axis]) {
      operator_error(is_ellipsis(labels[axis])
                         ? fmt::format("the axes of '...' have the sizes {} and {}", extent, shape[axis])
                         : fmt::format("the label '{}' has the sizes {} and {}",
                                       static_cast<char>(labels[axis]), extent, shape[axis]));
    }
    extent = shape[axis];
  }
}

/// Without "->": the ellipsis, then every letter that occurs once, in alphabetical order (numpy.einsum).
Labels implicit_output(const Equation& equation) {
  std::map<Label, int> counts;
  Labels output;
  for (const Labels& labels : equation.operands) {
    for (const Label label : labels) ++counts[label];
  }
  for (auto at = counts.rbegin(); at != counts.rend(); ++at) {
    if (is_ellipsis(at->first)) output.push_back(at->first);
  }
  for (const auto& [label, count] : counts) {
    if (!is_ellipsis(label) && count == 1) output.push_back(label);
  }
  return output;
}

Equation parse(const NodeView& node) {
  std::string text;
  for (const char c : node.attributes().string_of("equation")) {
    if (c != ' ') text += c;
  }
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> terms = split_terms(std::string_view(text).substr(0, arrow));
  if (static_cast<int>(terms.size()) != node.operand_count()) {
    operator_error(
        fmt::format("the equation has {} terms for {} inputs", terms.size(), node.operand_count()));
  }
  Equation equation;
  std::int64_t widest = 0;
  for (int i = 0; i < node.operand_count(); ++i) {
    const std::string& term = terms[i];
    const Shape& shape = node.shape(i);
    const bool dots = term.find("...") != std::string::npos;
    const auto named = static_cast<std::int64_t>(term.size()) - (dots ? 3 : 0);
    const std::int64_t ellipsis = static_cast<std::int64_t>(shape.size()) - named;
    if (ellipsis < 0 || (ellipsis > 0 && !dots)) {
      operator_error(fmt::format("the term '{}' does not fit input {} of shape {}", printable(term), i,
                                 to_string(shape)));
    }
    widest = std::max(widest, dots ? ellipsis : 0);
    equation.operands.push_back(term_labels(term, ellipsis));
    bind_extents(equation, equation.operands.back(), shape);
  }
  equation.output = arrow == std::string::npos
                        ? implicit_output(equation)
                        : term_labels(std::string_view(text).substr(arrow + 2), widest);
  for (std::size_t i = 0; i < equation.output.size(); ++i) {
    const Label label = equation.output[i];
    if (!equation.extents.contains(label)) {
      operator_error(fmt::format("the output label '{}' is in no input", static_cast<char>(label)));
    }
    if (contains(Labels(equation.output.begin(), equation.output.begin() + static_cast<std::ptrdiff_t>(i)),
                 label)) {
      operator_error("an output label is repeated");
    }
  }
  return equation;
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const ElementType type = same_type(context);
  const Equation equation = parse(context);
  Shape shape;
  for (const Label label : equation.output) shape.push_back(equation.extents.at(label));
  context.set_result(0, type, std::move(shape));
}

/// A value whose axes are named.
struct Factor {
  ValueId value;
  Labels labels;
};

Dim extent_of(const RewriteContext& context, const Factor& factor, Label label) {
  const auto axis = std::find(factor.labels.begin(), factor.labels.end(), label) - factor.labels.begin();
  return context.type(factor.value).shape[axis];
}

Factor permuted(RewriteContext& context, const Factor& factor, const Labels& labels) {
  std::vector<std::int64_t> perm;
  for (const Label label : labels) {
    perm.push_back(std::find(factor.labels.begin(), factor.labels.end(), label) - factor.labels.begin());
  }
  return {emit_transpose(context, factor.value, perm), labels};
}

/// Repeated labels: the two axes go last, become one, and every (n + 1)th element is taken.
Factor diagonal(RewriteContext& context, Factor factor) {
  for (std::size_t i = 0; i < factor.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < factor.labels.size(); ++j) {
      if (factor.labels[i] != factor.labels[j]) continue;
      const Label label = factor.labels[i];
      std::vector<std::int64_t> perm;
      Labels rest;
      for (std::size_t k = 0; k < factor.labels.size(); ++k) {
        if (k == i || k == j) continue;
        perm.push_back(static_cast<std::int64_t>(k));
        rest.push_back(factor.labels[k]);
      }
      perm.push_back(static_cast<std::int64_t>(i));
      perm.push_back(static_cast<std::int64_t>(j));
      factor.value = emit_transpose(context, factor.value, perm);
      Shape shape = context.type(factor.value).shape;
      const std::int64_t n = shape.back();
      if (n != shape[shape.size() - 2]) {
        operator_error(fmt::format("the label '{}' has the sizes {} and {}", static_cast<char>(label),
                                   shape[shape.size() - 2], n));
      }
      shape.pop_back();
      shape.back() = n * n;
      factor.value = emit_reshape(context, factor.value, shape);
      factor.value =
          emit_slice(context, factor.value, static_cast<std::int64_t>(shape.size()) - 1, 0, n * n, n + 1);
      rest.push_back(label);
      return diagonal(context, {factor.value, rest});
    }
  }
  return factor;
}

/// Sums away the labels that `drop` names.
Factor summed(RewriteContext& context, const Factor& factor, const Labels& drop) {
  std::vector<std::int64_t> axes;
  Labels kept;
  for (std::size_t axis = 0; axis < factor.labels.size(); ++axis) {
    if (contains(drop, factor.labels[axis])) {
      axes.push_back(static_cast<std::int64_t>(axis));
    } else {
      kept.push_back(factor.labels[axis]);
    }
  }
  if (axes.empty()) return factor;
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  return {context.emit("ReduceSum", {factor.value, context.constant_ints(axes)}, attributes), kept};
}

Dim product_of(const RewriteContext& context, const Factor& factor, const Labels& labels) {
  Dim product = 1;
  for (const Label label : labels) product *= extent_of(context, factor, label);
  return product;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// Elementwise product over the union of the labels, aligned by axes of size 1.
Factor multiplied(RewriteContext& context, const Factor& a, const Factor& b) {
  Labels all = a.labels;
  for (const Label label : b.labels) {
    if (!contains(all, label)) all.push_back(label);
  }
  const auto aligned = [&](const Factor& factor) {
    Labels order;
    Shape shape;
    for (const Label label : all) {
      const bool has = contains(factor.labels, label);
      if (has) order.push_back(label);
      shape.push_back(has ? extent_of(context, factor, label) : Dim(1));
    }
    return emit_reshape(context, permuted(context, factor, order).value, shape);
  };
  const ValueId left = aligned(a);
  return {context.emit("Mul", {left, aligned(b)}), all};
}

/// The product of two factors in which `needed` labels survive.
Factor contracted(RewriteContext& context, Factor a, Factor b, const Labels& needed) {
  Labels batch, inner, rows, columns, alone;
  const auto drop_alone = [&](Factor& from, const Factor& other) {
    alone.clear();
    for (const Label label : from.labels) {
      // An inner label of size 1 against n is a sum over the n alone.
      const bool shared = contains(other.labels, label) &&
                          extent_of(context, from, label) == extent_of(context, other, label);
      if (!contains(needed, label) && !shared) alone.push_back(label);
    }
    return alone;
  };
  const Labels a_alone = drop_alone(a, b);
  const Labels b_alone = drop_alone(b, a);
  a = summed(context, a, a_alone);
  b = summed(context, b, b_alone);
  for (const Label label : a.labels) {
    (!contains(b.labels, label) ? rows : contains(needed, label) ? batch : inner).push_back(label);
  }
  for (const Label label : b.labels) {
    if (!contains(a.labels, label)) columns.push_back(label);
  }
  if (inner.empty()) return multiplied(context, a, b);
  const auto matrix = [&](const Factor& factor, const Labels& first, const Labels& second) {
    const Factor ordered = permuted(context, factor, joined({&batch, &first, &second}));
    Shape shape;
    for (const Label label : batch) shape.push_back(extent_of(context, factor, label));
    shape.push_back(product_of(context, factor, first));
    shape.push_back(product_of(context, factor, second));
    return emit_reshape(context, ordered.value, shape);
  };
  const ValueId left = matrix(a, rows, inner);
  const ValueId product = context.emit("MatMul", {left, matrix(b, inner, columns)});
  Shape shape(context.type(product).shape.begin(), context.type(product).shape.end() - 2);
  for (const Label label : rows) shape.push_back(extent_of(context, a, label));
  for (const Label label : columns) shape.push_back(extent_of(context, b, label));
  return {emit_reshape(context, product, shape), joined({&batch, &rows, &columns})};
}

bool decompose(RewriteContext& context) {
  const Equation equation = parse(context);
  const std::vector<ValueId> operands = context.node().operands;
  Factor result = diagonal(context, {operands[0], equation.operands[0]});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Labels needed = equation.output;
    for (std::size_t later = i + 1; later < operands.size(); ++later) {
      needed = joined({&needed, &equation.operands[later]});
    }
    result = contracted(context, result, diagonal(context, {operands[i], equation.operands[i]}), needed);
  }
  Labels drop;
  for (const Label label : result.labels) {
    if (!contains(equation.output, label)) drop.push_back(label);
  }
  result = permuted(context, summed(context, result, drop), equation.output);
  if (result.value == operands[0]) result.value = context.emit("Identity", {result.value});
  context.replace_result(0, result.value);
  return true;
}

}  // namespace

const Operator& operator_Einsum() {
  static const Operator op = {
      .name = "Einsum",
      .versions = {12},
      .operands = {1, -1},
      .attributes = {{"equation", AttributeKind::kString, std::nullopt, true}},
      .accuracy = Accuracy::kSum,
      .summary = "sums of products named by an equation",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
