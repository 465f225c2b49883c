// Products of one value with several constants, as the queries, keys and values of attention are:
//   x A + a, x B + b -> slices of x (A | B) + (a | b)
// The slices are views. Parts live as long as the longest-lived one, so only products that meet again in one
// attention are joined; and none of which another branch multiplies by the weights one by one, or they would
// be stored twice: merged decoders have the keys of a prompt as a result,
// and those of later words behind others.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/interrupt.h"
#include "base/names.h"
#include "ir/ops/rewrite.h"
#include "passes/engine/passes.h"
#include "passes/engine/rule.h"
#include "passes/forms/view_reach.h"

namespace gcompile::passes {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

/// Nodes between a product and the attention that reads it.
constexpr std::size_t kMostBetween = 48;

struct Part {
  NodeId product;
  const Tensor* weights = nullptr;  // (depth, columns)
  const Tensor* bias = nullptr;     // one value per column
  ValueId bias_value;
  ValueId result;  // with the bias
  std::int64_t columns() const { return weights->shape()[1]; }
};

/// Products of one value that can be one, and why others of it cannot.
struct Join {
  ValueId left;
  std::vector<Part> parts;
  std::vector<std::pair<NodeId, std::string>> refused;
};

/// Finds joins in a graph.
class Finder {
 public:
  explicit Finder(const ir::Graph& graph) : graph_(graph) {}

  bool is(NodeId id, std::string_view op) const { return is_operator(graph_.node(id), op); }

  /// The joins of what an attention reads.
  std::vector<Join> joins_before(NodeId attention) const {
    std::vector<std::pair<ValueId, std::vector<Part>>> groups;  // by left side, in the order of Q, K, V
    for (const NodeId product : products_before(attention)) add(groups, product);
    std::vector<Join> joins;
    for (const auto& [left, parts] : groups) {
      if (parts.size() > 1) joins.push_back(join_of(left, parts));
    }
    return joins;
  }

  /// Whether these weights are joined here too, in the same way.
  bool joins_alike(const Join& other) const {
    const auto is_same = [](const Part& a, const Part& b) { return a.weights->identical(*b.weights); };
    for (const NodeId id : graph_.nodes()) {
      if (!is(id, "FusedAttention")) continue;
      for (const Join& join : joins_before(id)) {
        if (std::equal(join.parts.begin(), join.parts.end(), other.parts.begin(), other.parts.end(), is_same))
          return true;
      }
    }
    return false;
  }

  bool multiplies_by(const Tensor& weights) const {
    const std::vector<NodeId> nodes = graph_.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      if (!is(id, "MatMul")) return false;
      const Tensor* constant = graph_.constant(graph_.node(id).operands[1]);
      return constant && constant->identical(weights);
    });
  }

 private:
  /// Matrix products with element-wise operators and movements only between them and the attention.
  std::vector<NodeId> products_before(NodeId attention) const {
    std::vector<NodeId> products;
    std::set<NodeId> seen;
    const std::vector<ValueId>& operands = graph_.node(attention).operands;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<ValueId> open = {operands[i]};
      while (!open.empty() && seen.size() < kMostBetween) {
        const NodeId id = graph_.value(open.back()).producer;
        open.pop_back();
        if (!id.valid() || !seen.insert(id).second) continue;
        const Node& node = graph_.node(id);
        if (is(id, "MatMul")) {
          products.push_back(id);
          continue;
        }
        if (!node.subgraphs.empty() || !node.op->lower) continue;
        if (!std::holds_alternative<ir::LoopForm>(ir::form_of(graph_, id))) continue;
        for (const ValueId operand : node.operands) {
          if (operand.valid() && !graph_.constant(operand)) open.push_back(operand);
        }
      }
    }
    return products;
  }

  void add(std::vector<std::pair<ValueId, std::vector<Part>>>& groups, NodeId id) const {
    const Node& node = graph_.node(id);
    Part part;
    part.product = id;
    part.result = node.results[0];
    part.weights = graph_.constant(node.operands[1]);
    if (!part.weights || part.weights->shape().size() != 2 || graph_.constant(node.operands[0])) return;
    find_bias(part);
    const auto at = std::find_if(groups.begin(), groups.end(),
                                 [&](const auto& group) { return group.first == node.operands[0]; });
    if (at == groups.end()) {
      groups.push_back({node.operands[0], {part}});
    } else {
      at->second.push_back(part);
    }
  }

  void find_bias(Part& part) const {
    const std::vector<ir::Use>& uses = graph_.value(part.result).uses;
    if (uses.size() != 1 || !uses[0].node.valid() || !is(uses[0].node, "Add")) return;
    const Node& add = graph_.node(uses[0].node);
    const Tensor* bias = graph_.constant(add.operands[1 - uses[0].slot]);
    if (!bias || bias->count() != part.columns() || bias->shape().empty() ||
        bias->shape().back() != part.columns() ||
        graph_.value(add.results[0]).type != graph_.value(part.result).type) {
      return;
    }
    part.bias = bias;
    part.bias_value = add.operands[1 - uses[0].slot];
    part.result = add.results[0];
  }

  Join join_of(ValueId left, const std::vector<Part>& all) const {
    std::int64_t columns = 0;
    for (const Part& part : all) columns += part.columns();
    Join join;
    join.left = left;
    for (const Part& part : all) {
      std::string reason = unless_it_joins(part, columns);
      if (reason.empty()) {
        join.parts.push_back(part);
      } else {
        join.refused.emplace_back(part.product, std::move(reason));
      }
    }
    return join;
  }

  std::string unless_it_joins(const Part& part, std::int64_t columns) const {
    const ir::Value& value = graph_.value(part.result);
    if (graph_.is_output(part.result)) return "the product is an output";
    if (joins_epilogue(part.result)) return "its reader would no longer be its epilogue";
    Shape whole = value.type.shape;
    whole.back() = columns;
    return unless_views_reach(graph_, part.result, ir::row_major_strides(whole));
  }

  /// Whether fusion would compute the only reader together with the product.
  bool joins_epilogue(ValueId value) const {
    const std::vector<ir::Use>& uses = graph_.value(value).uses;
    const NodeId reader = uses.empty() ? NodeId{} : uses[0].node;
    for (const ir::Use& use : uses) {
      if (use.node != reader) return false;
    }
    if (!reader.valid() || !graph_.node(reader).op->lower) return false;
    const ir::Form form = ir::form_of(graph_, reader);
    const auto* loops = std::get_if<ir::LoopForm>(&form);
    return loops && loops->is_map() && !ir::pure_load(*loops) &&
           graph_.value(graph_.node(reader).results[0]).type.shape == graph_.value(value).type.shape;
  }

  const ir::Graph& graph_;
};

class Joiner {
 public:
  Joiner(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    const Finder finder(graph_);
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      if (!graph_.alive(id) || !finder.is(id, "FusedAttention")) continue;
      for (const Join& join : finder.joins_before(id)) changed |= apply(join);
    }
    return changed;
  }

 private:
  bool apply(const Join& join) {
    for (const auto& [product, reason] : join.refused) refuse(product, reason);
    if (join.parts.size() < 2) return false;
    if (is_apart_elsewhere(join)) {
      for (const Part& part : join.parts)
        refuse(part.product, "another branch multiplies by the same weights one by one");
      return false;
    }
    for (const Part& part : join.parts) context_.did(subject(part.product), "join-products");
    context_.count("join-products");
    rewrite(join.left, join.parts);
    return true;
  }

  bool is_apart_elsewhere(const Join& join) const {
    const std::vector<ir::Graph*> graphs = context_.graphs();
    return std::any_of(graphs.begin(), graphs.end(), [&](const ir::Graph* graph) {
      if (graph == &graph_) return false;
      const Finder other(*graph);
      return std::any_of(join.parts.begin(), join.parts.end(),
                         [&](const Part& part) { return other.multiplies_by(*part.weights); }) &&
             !other.joins_alike(join);
    });
  }

  void refuse(NodeId product, const std::string& reason) {
    context_.refused(subject(product), fmt::format("join-products: {}", reason));
  }

  std::string subject(NodeId id) const {
    return fmt::format("{} '{}'", graph_.node(id).op->name, printable(graph_.node(id).name));
  }

  /// What all of the parts' values are together; those that a part lacks have no name.
  std::string joined_name_of(const std::vector<Part>& parts,
                             const std::function<ValueId(const Part&)>& value_of) const {
    std::vector<std::string> names;
    for (const Part& part : parts) {
      const ValueId value = value_of(part);
      if (value.valid() && !graph_.value(value).name.empty()) names.push_back(graph_.value(value).name);
    }
    return names.empty() ? "" : joined_name(names);
  }

  void rewrite(ValueId left, const std::vector<Part>& parts) {
    const std::int64_t depth = parts[0].weights->shape()[0];
    const ir::ElementType type = parts[0].weights->element();
    std::int64_t columns = 0;
    ValueId biased;  // the first bias
    for (const Part& part : parts) {
      columns += part.columns();
      if (!biased.valid()) biased = part.bias_value;
    }
    Tensor weights(ir::TensorType{type, {depth, columns}});
    Tensor bias(ir::TensorType{type, {columns}});
    std::byte* const to = weights.mutable_bytes().data();
    const std::int64_t size = ir::bits_of(type) / 8;
    std::int64_t first = 0;
    for (const Part& part : parts) {
      for (std::int64_t k = 0; k < depth; ++k) {
        std::memcpy(to + (k * columns + first) * size,
                    part.weights->bytes().data() + k * part.columns() * size,
                    static_cast<std::size_t>(part.columns() * size));
      }
      for (std::int64_t n = 0; part.bias && n < part.columns(); ++n) bias.set(first + n, part.bias->at(n));
      first += part.columns();
    }
    ir::RewriteContext context(graph_, parts[0].product, 0);
    const ValueId first_weights = graph_.node(parts[0].product).operands[1];
    const ValueId all_weights = context.constant(std::move(weights), first_weights);
    graph_.value(all_weights).name =
        joined_name_of(parts, [&](const Part& part) { return graph_.node(part.product).operands[1]; });
    ValueId joined = context.emit("MatMul", {left, all_weights});
    const NodeId product = graph_.value(joined).producer;
    if (biased.valid()) {
      const ValueId all_biases = context.constant(std::move(bias), biased);
      graph_.value(all_biases).name = joined_name_of(parts, [](const Part& part) { return part.bias_value; });
      joined = context.emit("Add", {joined, all_biases});
    }
    graph_.value(joined).name = joined_name_of(parts, [](const Part& part) { return part.result; });
    const NodeId sum = graph_.value(joined).producer;
    std::vector<ir::Origin> product_origins, sum_origins;
    const auto append = [](std::vector<ir::Origin>& all, const std::vector<ir::Origin>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    const std::int64_t axis = graph_.value(joined).type.rank() - 1;
    first = 0;
    for (const Part& part : parts) {
      const NodeId old = graph_.value(part.result).producer;
      append(product_origins, graph_.node(part.product).origins);
      if (old != part.product) append(sum_origins, graph_.node(old).origins);
      const ValueId view = ir::emit_slice(context, joined, axis, first, first + part.columns());
      graph_.value(view).name = graph_.value(part.result).name;
      graph_.replace_uses(part.result, view);
      first += part.columns();
    }
    graph_.node(product).origins = std::move(product_origins);
    if (sum != product) graph_.node(sum).origins = std::move(sum_origins);
    for (const Part& part : parts) {
      const NodeId old = graph_.value(part.result).producer;
      graph_.erase_node(old);
      if (old != part.product) graph_.erase_node(part.product);
    }
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool join_products(ir::Graph& graph, PassContext& context) {
  if (!context.enabled("join-products", Tier::kReassociate)) return false;
  if (context.options().optimize_for_size) return false;  // joined results live at the same time
  return Joiner(graph, context).run();
}

}  // namespace gcompile::passes
