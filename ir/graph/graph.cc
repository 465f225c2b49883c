#include "ir/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile::ir {

std::string to_string(const Origin& origin) {
  return origin.name ? fmt::format("{} '{}'", origin.what, printable(*origin.name)) : origin.what;
}

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph::Graph(const Graph& other) { *this = other; }

Graph& Graph::operator=(const Graph& other) {
  if (this == &other) return *this;
  const auto copy = [](const auto& from, auto& to) {
    to.clear();
    for (const auto& slot : from) {
      auto& added = to.emplace_back();
      added.generation = slot.generation;
      if (slot.item) added.item = std::make_unique<std::decay_t<decltype(*slot.item)>>(*slot.item);
    }
  };
  name = other.name;
  trap = other.trap;
  copy(other.values_, values_);
  copy(other.nodes_, nodes_);
  live_nodes_ = other.live_nodes_;
  inputs_ = other.inputs_;
  outputs_ = other.outputs_;
  output_names_ = other.output_names_;
  packed_inputs_ = other.packed_inputs_;
  packed_outputs_ = other.packed_outputs_;
  return *this;
}

ValueId Graph::add_value(Value value) {
  const auto index = static_cast<std::uint32_t>(values_.size());
  values_.emplace_back();
  values_.back().item = std::make_unique<Value>(std::move(value));
  return {index, 0};
}

ValueId Graph::add_input(std::string input_name, TensorType type) {
  Value value;
  value.name = std::move(input_name);
  value.type = std::move(type);
  value.is_input = true;
  const ValueId id = add_value(std::move(value));
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(Tensor tensor, std::string constant_name) {
  Value value;
  value.name = std::move(constant_name);
  value.type = tensor.type();
  value.constant = std::move(tensor);
  return add_value(std::move(value));
}

ValueId Graph::add_sizes(ElementType element, Shape shape, Shape elements) {
  Value value;
  value.type = {element, std::move(shape)};
  value.sizes = std::move(elements);
  return add_value(std::move(value));
}

NodeId Graph::add_node(const Operator& op, std::vector<ValueId> operands, Attributes attributes,
                       int result_count, std::string node_name) {
  const NodeId id{static_cast<std::uint32_t>(nodes_.size()), 0};
  nodes_.emplace_back();
  nodes_.back().item = std::make_unique<Node>();
  ++live_nodes_;
  Node& node = *nodes_.back().item;
  node.op = &op;
  node.name = std::move(node_name);
  node.attributes = std::move(attributes);
  set_operands(id, std::move(operands));
  for (int i = 0; i < result_count; ++i) add_result(id);
  return id;
}

ValueId Graph::add_result(NodeId node_id, std::string result_name) {
  Value value;
  value.name = std::move(result_name);
  value.producer = node_id;
  value.result_index = static_cast<int>(node(node_id).results.size());
  const ValueId id = add_value(std::move(value));
  node(node_id).results.push_back(id);
  return id;
}

void Graph::add_output(ValueId value, std::string output_name) {
  add_use(value, Use{NodeId{}, static_cast<int>(outputs_.size())});
  outputs_.push_back(value);
  output_names_.push_back(std::move(output_name));
}

void Graph::remove_input(std::size_t position) {
  const ValueId id = inputs_[position];
  GC_CHECK(value(id).uses.empty() && packed_inputs_.empty());
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(position));
  erase_value(id);
}

void Graph::set_output(std::size_t position, ValueId id) {
  const Use use{NodeId{}, static_cast<int>(position)};
  remove_use(outputs_[position], use);
  outputs_[position] = id;
  add_use(id, use);
}

const TensorType& Graph::input_type(std::size_t position) const {
  const auto packed = packed_inputs_.find(position);
  return packed != packed_inputs_.end() ? packed->second : value(inputs_[position]).type;
}

const TensorType& Graph::output_type(std::size_t position) const {
  const auto packed = packed_outputs_.find(position);
  return packed != packed_outputs_.end() ? packed->second : value(outputs_[position]).type;
}

void Graph::pack_input(std::size_t position, TensorType type) {
  value(inputs_[position]).type = {ElementType::kUInt8, {type.bytes()}};
  packed_inputs_.insert_or_assign(position, std::move(type));
}

void Graph::pack_output(std::size_t position, TensorType type) {
  const TensorType stored{ElementType::kUInt8, {type.bytes()}};
  GC_CHECK(value(outputs_[position]).type == stored);
  packed_outputs_.insert_or_assign(position, std::move(type));
}

bool Graph::alive(ValueId id) const {
  return id.index < values_.size() && values_[id.index].item && values_[id.index].generation == id.generation;
}

bool Graph::alive(NodeId id) const {
  return id.index < nodes_.size() && nodes_[id.index].item && nodes_[id.index].generation == id.generation;
}

const Value& Graph::value(ValueId id) const {
  GC_CHECK(alive(id));
  return *values_[id.index].item;
}

Value& Graph::value(ValueId id) {
  GC_CHECK(alive(id));
  return *values_[id.index].item;
}

const Node& Graph::node(NodeId id) const {
  GC_CHECK(alive(id));
  return *nodes_[id.index].item;
}

Node& Graph::node(NodeId id) {
  GC_CHECK(alive(id));
  return *nodes_[id.index].item;
}

const Tensor* Graph::constant(ValueId id) const {
  if (!id.valid()) return nullptr;
  const Value& v = value(id);
  return v.constant ? &*v.constant : nullptr;
}

bool Graph::is_input(ValueId id) const { return value(id).is_input; }

bool Graph::is_output(ValueId id) const {
  const std::vector<Use>& uses = value(id).uses;
  return !uses.empty() && !uses.back().node.valid();  // no node sorts behind all nodes
}

void Graph::add_use(ValueId id, Use use) {
  std::vector<Use>& uses = value(id).uses;
  uses.insert(std::lower_bound(uses.begin(), uses.end(), use), use);
}

void Graph::remove_use(ValueId id, Use use) {
  std::vector<Use>& uses = value(id).uses;
  const auto at = std::lower_bound(uses.begin(), uses.end(), use);
  GC_CHECK(at != uses.end() && *at == use);
  uses.erase(at);
}

void Graph::set_operand(NodeId id, int slot, ValueId to) {
  ValueId& operand = node(id).operands[slot];
  if (operand.valid()) remove_use(operand, Use{id, slot});
  operand = to;
  if (to.valid()) add_use(to, Use{id, slot});
}

void Graph::set_operands(NodeId id, std::vector<ValueId> operands) {
  Node& n = node(id);
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    if (n.operands[i].valid()) remove_use(n.operands[i], Use{id, static_cast<int>(i)});
  }
  n.operands = std::move(operands);
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    if (n.operands[i].valid()) add_use(n.operands[i], Use{id, static_cast<int>(i)});
  }
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to || value(from).uses.empty()) return;
  // Whole lists at once: one use after the other is quadratic in their number.
  const std::vector<Use> moved = std::exchange(value(from).uses, {});
  for (const Use& use : moved) {
    ValueId& slot = use.node.valid() ? node(use.node).operands[use.slot] : outputs_[use.slot];
    slot = to;
  }
  std::vector<Use>& uses = value(to).uses;
  const auto middle = static_cast<std::ptrdiff_t>(uses.size());
  uses.insert(uses.end(), moved.begin(), moved.end());
  const auto from_here = std::upper_bound(uses.begin(), uses.begin() + middle, moved.front());
  std::inplace_merge(from_here, uses.begin() + middle, uses.end());
}

void Graph::erase_value(ValueId id) {
  GC_CHECK(value(id).uses.empty());
  values_[id.index].item.reset();
  ++values_[id.index].generation;
}

void Graph::erase_node(NodeId id) {
  const std::vector<ValueId> results = node(id).results;
  set_operands(id, {});
  for (const ValueId result : results) {
    if (result.valid()) erase_value(result);
  }
  nodes_[id.index].item.reset();
  ++nodes_[id.index].generation;
  --live_nodes_;
}

void Graph::erase_unused_constants() {
  for (const ValueId id : values()) {
    const Value& v = value(id);
    if (v.uses.empty() && !v.producer.valid() && (v.constant || v.sizes) && !is_input(id)) erase_value(id);
  }
}

std::vector<NodeId> Graph::nodes() const {
  std::vector<NodeId> out;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].item) out.push_back({i, nodes_[i].generation});
  }
  return out;
}

std::vector<ValueId> Graph::values() const {
  std::vector<ValueId> out;
  for (std::uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].item) out.push_back({i, values_[i].generation});
  }
  return out;
}

/// Every operand is of a lower slot than its user: then the order of the slots is the one asked for.
bool Graph::is_in_order() const {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].item) continue;
    for (const ValueId operand : nodes_[i].item->operands) {
      if (!operand.valid()) continue;
      const NodeId producer = value(operand).producer;
      if (producer.valid() && producer.index >= i) return false;
    }
  }
  return true;
}

std::vector<NodeId> Graph::topological_order() const {
  if (is_in_order()) return nodes();
  std::vector<int> waiting(nodes_.size(), 0);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (const NodeId id : nodes()) {
    for (const ValueId operand : node(id).operands) {
      if (operand.valid() && value(operand).producer.valid()) ++waiting[id.index];
    }
    if (waiting[id.index] == 0) ready.push(id.index);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const std::uint32_t index = ready.top();
    ready.pop();
    order.push_back({index, nodes_[index].generation});
    for (const ValueId result : nodes_[index].item->results) {
      if (!result.valid()) continue;
      for (const Use& use : value(result).uses) {
        if (use.node.valid() && --waiting[use.node.index] == 0) ready.push(use.node.index);
      }
    }
  }
  if (order.size() == live_nodes_) return order;
  for (const NodeId id : nodes()) {
    if (waiting[id.index] > 0) {
      throw CompileError(ExitCode::kModel,
                         fmt::format("the graph has a cycle through node '{}'", printable(node(id).name)));
    }
  }
  return order;
}

}  // namespace gcompile::ir
