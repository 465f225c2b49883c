// Attention: softmax(scale * Q K' + mask) V -> FusedAttention(Q, K, V, mask), which never holds the matrix of
// scores. The parts are found from the last product backwards; what stands between the products may be
//   scores * c, scores / c         one factor, also on Q or K before
//   scores + m                     an added mask
//   Where(keep, scores, c)         a mask that keeps, in either order of the branches
//   Reshape                        of the axes before the columns
//   Where(Max(s) == -inf, 0, Softmax(s))   rows without any column give zero
// Splitting and joining heads needs no law: Transposes of the operands are views, and stay.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/fused_attention.h"
#include "ir/ops/rewrite.h"
#include "passes/engine/passes.h"
#include "passes/engine/rule.h"
#include "passes/forms/attention_mask.h"

namespace gcompile::passes {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

constexpr int kLongestChain = 16;

struct Found {
  NodeId root, softmax, product;
  std::vector<NodeId> nodes;         // all of them, the root first
  std::vector<AttentionStep> steps;  // from the softmax back to the product
  Shape scores;                      // where the masks are, else at the softmax
  bool has_masks = false;
  bool zero_if_empty = false;
  ValueId q, k;  // k as (..., size, columns)
  double factor = 1;
};

class Recogniser {
 public:
  Recogniser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      if (graph_.alive(id)) changed |= visit(id);
    }
    return changed;
  }

 private:
  bool visit(NodeId id) {
    if (!is(id, "MatMul") || graph_.node(id).form) return false;
    Found found;
    found.root = id;
    found.nodes = {id};
    if (!find_softmax(found)) return false;
    const std::string subject = fmt::format("MatMul '{}'", printable(graph_.node(id).name));
    std::string reason;
    if (!find_product(found, reason)) return false;
    if (reason.empty()) reason = unless_it_fits(found);
    if (reason.empty() && context_.options().optimize_for_size) reason = unless_it_saves_memory(found);
    AttentionMask mask;
    if (reason.empty()) reason = combine(found, nullptr, mask);
    if (!reason.empty()) {
      context_.refused(subject, fmt::format("attention: {}", reason));
      return false;
    }
    context_.did(subject, "attention");
    context_.count("attention");
    rewrite(found);
    return true;
  }

  /// Apart, queries and keys can be forgotten before the values are computed; together, there are no scores.
  std::string unless_it_saves_memory(const Found& found) const {
    const std::int64_t scores = ir::highest(ir::element_count(shape(graph_.node(found.softmax).results[0])));
    return scores > ir::highest(ir::element_count(shape(found.q)))
               ? ""
               : "the scores take less memory than the queries";
  }

  bool is(NodeId id, std::string_view op) const { return is_operator(graph_.node(id), op); }
  const Shape& shape(ValueId id) const { return graph_.value(id).type.shape; }
  NodeId producer(ValueId value, std::string_view op) const {
    const NodeId id = value.valid() ? graph_.value(value).producer : NodeId{};
    return id.valid() && is(id, op) ? id : NodeId{};
  }
  bool used_once(ValueId value) const { return graph_.use_count(value) == 1; }

  /// The number that all elements of a constant are.
  std::optional<double> number_of(ValueId value) const {
    const Tensor* tensor = value.valid() ? graph_.constant(value) : nullptr;
    if (!tensor || tensor->count() == 0 || !ir::is_float(tensor->element())) return std::nullopt;
    const double first = tensor->real_at(0);
    for (std::int64_t i = 1; i < tensor->count(); ++i) {
      if (tensor->real_at(i) != first) return std::nullopt;
    }
    return first;
  }

  /// A Reshape that leaves rows of columns as they are.
  NodeId rows_reshaped(ValueId value) const {
    const NodeId id = producer(value, "Reshape");
    if (!id.valid()) return {};
    const Shape& from = shape(graph_.node(id).operands[0]);
    const Shape& to = shape(value);
    return from.size() >= 2 && to.size() >= 2 && from.back() == to.back() ? id : NodeId{};
  }

  /// From the root to the softmax.
  bool find_softmax(Found& found) {
    ValueId value = graph_.node(found.root).operands[0];
    for (int i = 0; i < kLongestChain && used_once(value); ++i) {
      const NodeId id = rows_reshaped(value);
      if (!id.valid()) break;
      found.nodes.push_back(id);
      value = graph_.node(id).operands[0];
    }
    if (const NodeId where = producer(value, "Where"); where.valid() && used_once(value)) {
      if (!is_zero_where_empty(graph_.node(where))) return false;
      found.zero_if_empty = true;
      found.nodes.push_back(where);
      value = graph_.node(where).operands[2];
    }
    found.softmax = producer(value, "Softmax");
    if (!found.softmax.valid()) return false;
    found.nodes.push_back(found.softmax);
    return used_once(value);
  }

  /// Where(ReduceMax(s) == -infinity, 0, Softmax(s)).
  bool is_zero_where_empty(const Node& where) const {
    const NodeId equal = producer(where.operands[0], "Equal");
    const NodeId softmax = producer(where.operands[2], "Softmax");
    if (!equal.valid() || !softmax.valid() || number_of(where.operands[1]) != 0.0) return false;
    const NodeId max = producer(graph_.node(equal).operands[0], "ReduceMax");
    if (!max.valid() || number_of(graph_.node(equal).operands[1]) != -std::numeric_limits<double>::infinity())
      return false;
    const Node& reduce = graph_.node(max);
    const ValueId scores = graph_.node(softmax).operands[0];
    if (reduce.operands[0] != scores || reduce.operands.size() < 2 || !reduce.attributes.flag("keepdims"))
      return false;
    const Tensor* axes = graph_.constant(reduce.operands[1]);
    const auto rank = static_cast<std::int64_t>(shape(scores).size());
    return axes && axes->count() == 1 && (axes->int_at(0) == rank - 1 || axes->int_at(0) == -1);
  }

  /// From the softmax to the product. False: this is no attention; a reason: it is, but cannot be fused.
  bool find_product(Found& found, std::string& reason) {
    ValueId value = graph_.node(found.softmax).operands[0];
    found.scores = shape(value);
    std::size_t readers = found.zero_if_empty ? 2 : 1;
    bool elsewhere = false;
    for (int i = 0; i < kLongestChain; ++i) {
      const NodeId id = graph_.value(value).producer;
      if (!id.valid() || graph_.value(value).constant) return false;
      elsewhere |= graph_.use_count(value) != readers;
      readers = 1;
      found.nodes.push_back(id);
      if (is(id, "MatMul")) {
        found.product = id;
        find_factors(found);
        const auto axis = graph_.node(found.softmax).attributes.int_of("axis");
        const auto rank = static_cast<std::int64_t>(shape(graph_.node(found.softmax).results[0]).size());
        if (axis != -1 && axis != rank - 1) reason = "the softmax is not over the columns";
        if (elsewhere) reason = "the scores are used elsewhere";
        return true;
      }
      const std::optional<ValueId> next = step_back(found, id, reason);
      if (!next) return false;
      value = *next;
    }
    return false;
  }

  /// The scores that node `id` reads, when it is one of the steps.
  std::optional<ValueId> step_back(Found& found, NodeId id, std::string& reason) {
    const Node& node = graph_.node(id);
    const Shape& here = shape(node.results[0]);
    if (is(id, "Reshape")) {
      if (!rows_reshaped(node.results[0]).valid()) return std::nullopt;
      return node.operands[0];
    }
    if (is(id, "Mul") || is(id, "Div")) {
      for (const std::size_t side : {0u, 1u}) {
        const auto number = number_of(node.operands[1 - side]);
        if (!number || shape(node.operands[side]) != here || (side == 1 && is(id, "Div"))) continue;
        found.steps.push_back(
            {AttentionStep::Kind::kScale, is(id, "Div") ? 1 / *number : *number, {}, false});
        return node.operands[side];
      }
      return std::nullopt;
    }
    std::optional<ValueId> scores;
    AttentionStep step;
    if (is(id, "Add")) {
      for (const std::size_t side : {0u, 1u}) {
        if (scores || shape(node.operands[side]) != here || !leads_to_product(node.operands[side])) continue;
        scores = node.operands[side];
        step = {AttentionStep::Kind::kAdd, 0, node.operands[1 - side], false};
      }
    } else if (is(id, "Where")) {
      for (const std::size_t side : {1u, 2u}) {
        const auto number = number_of(node.operands[3 - side]);
        if (!number || shape(node.operands[side]) != here) continue;
        scores = node.operands[side];
        step = {AttentionStep::Kind::kKeep, *number, node.operands[0], side == 2};
      }
    }
    if (!scores) return std::nullopt;
    if (found.has_masks && found.scores != here) reason = "its masks have different axes";
    found.has_masks = true;
    found.scores = here;
    found.steps.push_back(step);
    return scores;
  }

  /// Which side of an addition is the scores: the one with a product behind the operators of a chain.
  bool leads_to_product(ValueId value) const {
    std::vector<ValueId> open = {value};
    for (int i = 0; i < kLongestChain && !open.empty(); ++i) {
      const ValueId next = open.back();
      open.pop_back();
      const NodeId id = next.valid() ? graph_.value(next).producer : NodeId{};
      if (!id.valid()) continue;
      if (is(id, "MatMul")) return true;
      if (is(id, "Reshape")) {
        open.push_back(graph_.node(id).operands[0]);
      } else if (is(id, "Mul") || is(id, "Div") || is(id, "Add") || is(id, "Where")) {
        for (const ValueId operand : graph_.node(id).operands) open.push_back(operand);
      }
    }
    return false;
  }

  /// Takes a factor off an operand of the product.
  ValueId without_factor(ValueId value, double& factor) const {
    const NodeId id = graph_.value(value).producer;
    if (!id.valid() || !used_once(value) || (!is(id, "Mul") && !is(id, "Div"))) return value;
    const std::vector<ValueId>& operands = graph_.node(id).operands;
    for (const std::size_t side : {0u, 1u}) {
      const auto number = number_of(operands[1 - side]);
      if (!number || shape(operands[side]) != shape(value) || (side == 1 && is(id, "Div"))) continue;
      factor *= is(id, "Div") ? 1 / *number : *number;
      return operands[side];
    }
    return value;
  }

  void find_factors(Found& found) const {
    const std::vector<ValueId>& operands = graph_.node(found.product).operands;
    found.q = without_factor(operands[0], found.factor);
    found.k = without_factor(operands[1], found.factor);
  }

  ir::Dim rows(const Found& found) const { return found.scores[found.scores.size() - 2]; }

  /// The axes before rows and columns that K or V with `matrices` matrices has: those of the scores, or with
  /// fewer heads.
  static std::optional<Shape> heads_of(const Shape& scores, ir::Dim matrices) {
    Shape heads(scores.begin(), scores.end() - 2);
    const ir::Dim all = ir::element_count(heads);
    if (all == matrices) return heads;
    if (heads.empty() || matrices == 0) return std::nullopt;
    const std::optional<ir::Dim> group = exact_quotient(all, matrices);
    const std::optional<ir::Dim> shared = group ? exact_quotient(heads.back(), *group) : std::nullopt;
    if (!shared) return std::nullopt;
    heads.back() = *shared;
    return heads;
  }
  /// x (..., heads, 1, rows, size) where `value` has the rows of each head several times in a row, as grouped
  /// queries are exported: Expand along the axis of one, and Reshape.
  std::optional<ValueId> ungrouped(ValueId value) const {
    const NodeId reshape = graph_.value(value).producer;
    if (!reshape.valid() || !is(reshape, "Reshape")) return std::nullopt;
    const ValueId wide = graph_.node(reshape).operands[0];
    const NodeId expand = graph_.value(wide).producer;
    if (!expand.valid() || !is(expand, "Expand")) return std::nullopt;
    const ValueId narrow = graph_.node(expand).operands[0];
    Shape grouped = shape(narrow), joined = shape(wide);
    if (joined.size() < 4 || joined.size() != grouped.size()) return std::nullopt;
    const std::size_t axis = joined.size() - 3;
    if (grouped[axis] != 1) return std::nullopt;
    grouped[axis] = joined[axis];
    if (grouped != joined) return std::nullopt;
    joined[axis - 1] *= joined[axis];
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(axis));
    return joined == shape(value) ? std::optional(narrow) : std::nullopt;
  }

  /// What the new node reads: K and V before they are repeated for several query heads, where both are.
  struct Sources {
    ValueId k, v;
    bool is_transposed;  // K is (size, rows)
  };
  Sources sources(const Found& found) const {
    const ValueId v = graph_.node(found.root).operands[1];
    const NodeId turn = graph_.value(found.k).producer;
    if (turn.valid() && is(turn, "Transpose") && swaps_last_axes(graph_.node(turn))) {
      const auto k_once = ungrouped(graph_.node(turn).operands[0]), v_once = ungrouped(v);
      if (k_once && v_once && matrices_of(*k_once) == matrices_of(*v_once)) return {*k_once, *v_once, false};
    }
    return {found.k, v, true};
  }
  static bool swaps_last_axes(const Node& transpose) {
    std::vector<std::int64_t> axes = transpose.attributes.ints_of("perm");
    if (axes.size() < 2) return false;
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return std::is_sorted(axes.begin(), axes.end());
  }

  ir::Dim matrices_of(ValueId value) const {
    const Shape& s = shape(value);
    return ir::element_count(Shape(s.begin(), s.end() - 2));
  }

  std::string unless_it_fits(const Found& found) const {
    const Node& root = graph_.node(found.root);
    const ValueId v = root.operands[1];
    const ir::ElementType type = graph_.value(v).type.element;
    if (type != ir::ElementType::kFloat32) return fmt::format("it computes in {}", name_of(type));
    const Shape& q = shape(found.q);
    const Shape& k = shape(found.k);
    const Shape& w = shape(root.operands[0]);
    const Shape& values = shape(v);
    const auto leading = [](const Shape& s) { return Shape(s.begin(), s.end() - 2); };
    if (leading(q) != leading(k) || leading(w) != leading(values))
      return "an operand is broadcast over heads";
    if (ir::element_count(found.scores) == 0 || values.back() == 0 || q.back() == 0) return "it is empty";
    const auto is_axis = [](ir::Dim extent) { return extent != 1; };
    if (found.scores.size() > 4 && std::count_if(found.scores.begin(), found.scores.end() - 3, is_axis) > 1) {
      return "its heads lie along more than two axes";
    }
    const Sources read = sources(found);
    const auto key_heads = heads_of(found.scores, matrices_of(read.k));
    if (!key_heads || key_heads != heads_of(found.scores, matrices_of(read.v)))
      return "Q, K and V have unlike heads";
    return unless_taken(problem(found, *key_heads, Masks::kNone));
  }

  /// What kernels would be asked: without a mask, with a bool mask that leaves another score than -infinity,
  /// and with one that is added behind it.
  enum class Masks { kNone, kKept, kBoth };
  ir::Problem problem(const Found& found, const Shape& key_heads, Masks masks) const {
    ir::AttentionWork work;
    work.heads = Shape(found.scores.begin(), found.scores.end() - 2);
    work.key_heads = key_heads;
    work.rows = rows(found);
    work.columns = found.scores.back();
    work.size = shape(found.q).back();
    work.value_size = shape(graph_.node(found.root).operands[1]).back();
    work.has_mask = masks != Masks::kNone;
    work.adds_behind = masks == Masks::kBoth;
    const auto dense = [](ir::ElementType element, Shape dims) {
      ir::ProblemOperand operand;
      operand.element = element;
      operand.strides = ir::row_major_strides(dims);
      operand.shape = std::move(dims);
      return operand;
    };
    constexpr ir::ElementType kFloat = ir::ElementType::kFloat32;
    ir::Problem out;
    out.operands = {dense(kFloat, with(work.heads, work.rows, work.size)),
                    dense(kFloat, with(key_heads, work.columns, work.size)),
                    dense(kFloat, with(key_heads, work.columns, work.value_size))};
    if (work.has_mask) out.operands.push_back(dense(ir::ElementType::kBool, found.scores));
    if (work.adds_behind) out.operands.push_back(dense(kFloat, found.scores));
    out.results = {dense(kFloat, with(work.heads, work.rows, work.value_size))};
    out.work = std::move(work);
    return out;
  }

  std::string unless_taken(const ir::Problem& problem) const {
    const ir::KernelPrices* prices = context_.options().prices;
    return prices ? prices->price(problem).refusal : "";
  }

  std::string combine(const Found& found, ir::RewriteContext* context, AttentionMask& mask) const {
    mask.scale = found.factor;
    // Any number, or -infinity alone, may be the score of what a bool mask hides.
    const std::optional<Shape> key_heads = heads_of(found.scores, matrices_of(sources(found).k));
    const auto takes = [&](Masks masks) {
      return key_heads && unless_taken(problem(found, *key_heads, masks)).empty();
    };
    return combine_masks(graph_, context, found.steps, rows(found), found.scores.back(), takes(Masks::kKept),
                         takes(Masks::kBoth), mask);
  }

  // The new node ------------------------------------------------------------------------------------------

  static Shape with(Shape heads, ir::Dim rows, ir::Dim columns) {
    heads.push_back(rows);
    heads.push_back(columns);
    return heads;
  }

  void rewrite(const Found& found) {
    ir::RewriteContext context(graph_, found.root, 0);
    AttentionMask mask;
    combine(found, &context, mask);
    const Sources read = sources(found);
    const Shape heads(found.scores.begin(), found.scores.end() - 2);
    const Shape key_heads = *heads_of(found.scores, matrices_of(read.k));
    const ir::Dim columns = found.scores.back(), size = shape(found.q).back();
    std::vector<std::int64_t> swapped;
    for (std::size_t i = 0; i < shape(found.k).size(); ++i) swapped.push_back(static_cast<std::int64_t>(i));
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    const ValueId k = read.is_transposed ? ir::emit_transpose(context, read.k, swapped) : read.k;
    std::vector<ValueId> operands = {
        ir::emit_reshape(context, found.q, with(heads, rows(found), size)),
        ir::emit_reshape(context, k, with(key_heads, columns, size)),
        ir::emit_reshape(context, read.v, with(key_heads, columns, shape(read.v).back()))};
    ir::Attributes attributes;
    attributes.set("scale", static_cast<float>(mask.scale));
    attributes.set("causal", std::int64_t{mask.causal});
    attributes.set("past", mask.past);
    attributes.set("zero_if_empty", std::int64_t{found.zero_if_empty});
    if (mask.kept.valid()) {
      operands.push_back(mask.kept);
      attributes.set("fill", static_cast<float>(mask.fill));
    }
    if (mask.added.valid()) operands.push_back(mask.added);
    const ValueId result = context.emit("FusedAttention", std::move(operands), std::move(attributes));
    graph_.node(graph_.value(result).producer).origins = origins_of(found);
    context.replace_result(0, ir::emit_reshape(context, result, context.result(0).shape));
    graph_.erase_node(found.root);
  }

  /// In the order of the model.
  std::vector<ir::Origin> origins_of(const Found& found) const {
    std::vector<ir::Origin> origins;
    for (auto id = found.nodes.rbegin(); id != found.nodes.rend(); ++id) {
      for (const ir::Origin& origin : graph_.node(*id).origins) {
        if (std::find(origins.begin(), origins.end(), origin) == origins.end()) origins.push_back(origin);
      }
    }
    return origins;
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool fuse_attention(ir::Graph& graph, PassContext& context) {
  if (!context.enabled("attention", Tier::kReassociate)) return false;
  return Recogniser(graph, context).run();
}

}  // namespace gcompile::passes
