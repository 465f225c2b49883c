#pragma once
// What the expressions of a loop form read of its operands, and what they cost.

#include <map>
#include <string_view>
#include <vector>

#include "ir/forms/form.h"

namespace gcompile::passes {

/// Roots of all stages, then those of all regions.
std::vector<int> roots_of(const ir::LoopForm& form);

/// Work for one point, in additions.
int work_of(const ir::LoopForm& form);

/// Whether the load reads the element at the form's own axes.
bool is_identity_load(const ir::LoopForm& form, const ir::ScalarNode& load);

/// Every index is a bare axis or a constant: what an epilogue can address from (m, n).
bool is_broadcast_load(const ir::ScalarNode& load);

bool is_pure_movement(const ir::LoopForm& form);

/// What a kernel reads of one operand.
struct OperandReads {
  double elements = 0;       // again for each root that reaches a load: every stage walks its expression anew
  bool at_own_index = true;  // all of them
  bool indirect = false;     // any of them
};

/// By operand, of `count`.
std::vector<OperandReads> reads_of(const ir::LoopForm& form, std::size_t count);

/// The reads of a map that decide whether it can be the last expression of something else.
class JoiningReader {
 public:
  explicit JoiningReader(const ir::LoopForm& form);
  std::size_t size() const { return size_; }  // scalar nodes
  /// Which read stands in the way of joining operand k: "" for none, "iota" for one without a remark.
  std::string_view obstacle(int k, bool contract) const;

 private:
  std::size_t size_ = 0;
  int first_iota_ = -1;
  std::map<int, int> displaced_;  // by operand, the first load at another index than the element's own
  /// Operand and load at an index that is no axis or constant, in the order of loads; never the same
  /// operand twice in a row, so the first of another operand than k is among the first two.
  std::vector<std::pair<int, int>> computed_;
};

}  // namespace gcompile::passes
