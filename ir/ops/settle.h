#pragma once
// Operands that have to be known when a model is compiled, but are inputs of a run: where the shapes that the
// model declares for an operator's results decide them, they become constants, and each run checks that the
// inputs agree (docs/sizes.md).

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/checks.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {

using Numbers = std::vector<std::int64_t>;
/// Shapes of values by name, those of which all sizes are declared.
using DeclaredShapes = std::map<std::string, Numbers, std::less<>>;

/// Whether the result has the shape of every operand, if these have the same: what is declared of it is then a
/// guess at theirs.
bool keeps_shape(const Operator& op);

/// Before inference of a node that has its normal form. The node may become another one with the same results.
Settled settle(Graph& graph, NodeId id, const DeclaredShapes& declared);

/// What the functions of single operators are made of.
class SettleContext : public RewriteContext {
 public:
  SettleContext(Graph& graph, NodeId id, const DeclaredShapes& declared)
      : RewriteContext(graph, id, 0), declared_(declared) {}

  /// Operand i is there, of one axis or none, and only a run knows its elements.
  bool is_open(int i) const;
  /// The operand's sizes, as numbers; null: they are formulas.
  std::optional<Numbers> sizes(int i) const;
  /// What the model says of result i.
  const Numbers* declared(int i) const;

  /// A run goes on where `holds` does. Operand i is, or is made of, inputs of the model, for which `example`
  /// is a value that passes. False: it is not, and nothing has changed.
  bool check(int i, const Tensor& example, ValueId holds) { return check_all({{i, example}}, holds); }
  using Examples = std::vector<std::pair<int, Tensor>>;
  bool check_all(const Examples& given, ValueId holds);
  /// The same of an operand of integers that becomes what the example says.
  bool assume(int i, const Numbers& value, ValueId holds);
  /// Whether inference gives the declared shapes where operands of integers are these.
  using Values = std::map<int, Numbers>;
  bool fits(const Values& values) const;
  /// Operand i becomes a constant, without a check.
  void make_known(int i, const Numbers& value);
  /// Operand i is one of several values, each of which a node serves. `holds` tells whether it is that one.
  using Holds = std::function<ValueId(RewriteContext&, ValueId operand, const Numbers& value)>;
  bool choose(int i, const std::vector<Numbers>& values, const Holds& holds);

  const Settled& settled() const { return settled_; }

 private:
  const DeclaredShapes& declared_;
  Settled settled_;
};

/// int64 of one axis.
ValueId as_list(RewriteContext& context, ValueId integers);
ValueId list_of(RewriteContext& context, const Numbers& numbers);
/// Whether all are true, as one bool.
ValueId all_of(RewriteContext& context, ValueId bools);
ValueId both(RewriteContext& context, ValueId a, ValueId b);
ValueId either(RewriteContext& context, ValueId a, ValueId b);
/// Whether the integers are those numbers.
ValueId are(RewriteContext& context, ValueId integers, const Numbers& numbers);
/// Tells of each pair of a named axis and one of `rank` axes whether they are the same; bool[n, rank].
ValueId matches(RewriteContext& context, ValueId axes, std::int64_t rank);
/// Whether the axes, all of them different, are those named, in whatever order.
ValueId are_axes(RewriteContext& context, ValueId axes, const Numbers& named, std::int64_t rank);

// One for each kind of operator, in the files settle_*.cc.
void settle_reshape(SettleContext& context);
void settle_expand(SettleContext& context);
void settle_tile(SettleContext& context);
void settle_reduce(SettleContext& context);
void settle_squeeze(SettleContext& context);
void settle_unsqueeze(SettleContext& context);
void settle_split(SettleContext& context);
void settle_top_k(SettleContext& context);
void settle_one_hot(SettleContext& context);
void settle_cumulative(SettleContext& context);
void settle_window(SettleContext& context);
void settle_constant_of_shape(SettleContext& context);
void settle_crop(SettleContext& context);
void settle_grid(SettleContext& context);
void settle_unpool(SettleContext& context);
void settle_slice(SettleContext& context);
void settle_pad(SettleContext& context);
void settle_range(SettleContext& context);
void settle_compress(SettleContext& context);
void settle_dft(SettleContext& context);
void settle_stft(SettleContext& context);
void settle_col2im(SettleContext& context);
void settle_resize(SettleContext& context);

}  // namespace gcompile::ir
