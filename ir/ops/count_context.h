#pragma once
// What the nodes are made of that stand for those whose size depends on data; for ir/ops/counted*.cc only.

#include <span>
#include <string_view>
#include <utility>

#include "ir/ops/counted.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {

class CountContext : public RewriteContext {
 public:
  CountContext(Graph& graph, NodeId id, const CountedFacts& facts)
      : RewriteContext(graph, id, 0), facts_(facts) {}

  const CountedAxis* counted(int i) const { return has_operand(i) ? counted(operand_id(i)) : nullptr; }
  const CountedAxis* counted(ValueId value) const {
    const auto at = facts_.axes.find(value);
    return at == facts_.axes.end() ? nullptr : &at->second;
  }
  /// Null: no element of the operand is a count.
  const CountedSizes* sizes(int i) const {
    const auto at = has_operand(i) ? facts_.sizes.find(operand_id(i)) : facts_.sizes.end();
    return at == facts_.sizes.end() ? nullptr : &at->second;
  }
  bool is_read(int i) const { return has_result(i); }

  ValueId op(std::string_view name, std::vector<ValueId> operands, Attributes attributes = {}) {
    return emit(name, std::move(operands), std::move(attributes));
  }
  ValueId number(std::int64_t value) {
    return constant_scalar(ElementType::kInt64, static_cast<double>(value));
  }
  ValueId select(ValueId condition, ValueId a, ValueId b) { return op("Where", {condition, a, b}); }
  ValueId gather(ValueId data, ValueId positions, std::int64_t axis = 0) {
    return op("Gather", {data, positions}, along(axis));
  }
  /// The same with updates put where `positions`, all of them different, say.
  ValueId scattered(ValueId data, ValueId positions, ValueId updates) {
    return op("ScatterElements", {data, positions, updates}, along(0));
  }
  ValueId counting(Dim size) { return emit_positions(*this, {size}); }
  ValueId running_sum(ValueId values) { return op("CumSum", {values, number(0)}); }
  ValueId as_integers(ValueId bools) { return emit_cast(*this, bools, ElementType::kInt64); }
  Attributes along(std::int64_t axis) {
    Attributes attributes;
    attributes.set("axis", axis);
    return attributes;
  }
  /// What has elements where it is filled.
  ValueId filled(int i, ValueId other) {
    const CountedAxis* const axis = counted(i);
    return axis ? filled_or(*this, operand_id(i), *axis, other) : operand_id(i);
  }

 private:
  const CountedFacts& facts_;
};

/// How nodes of an operator of ai.onnx are expressed.
struct CountRow {
  std::string_view name;
  std::optional<CountedResults> (*count)(CountContext&);
};
/// Rows of the operators that read across a counted axis.
std::span<const CountRow> counted_readers();

std::optional<CountedResults> count_scatter_elements(CountContext& context);
std::optional<CountedResults> count_scatter_nd(CountContext& context);

}  // namespace gcompile::ir
