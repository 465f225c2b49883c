#pragma once
// Prints loop forms and expressions as C++17 over the packs of gcrt (the one printer of Map
// and Reduce kernels).

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/loops/code_text.h"
#include "codegen/loops/loop_nest.h"
#include "codegen/loops/size_parameters.h"
#include "ir/loops/number_facts.h"

namespace gcompile {

/// What is known of the nodes of an expression: without it, everything may be NaN.
struct KnownNumbers {
  std::vector<ir::NumberFacts> facts = {};
  /// Bytes are made of words and of the floats that they are multiplied by, in one step: what cores do that have
  /// no floats.
  bool saturates_products = false;

  std::optional<ir::Saturation> saturation(const ir::Dag& dag, int id) const;
};

/// What a node's text is made of: of a saturating cast, what it rounds and adds itself.
ir::Arguments printed_arguments(const ir::Dag& dag, const KnownNumbers& known, int id);

/// What is handed to the store of a root: a store of 16-bit floats rounds by itself.
int stored_root(const ir::Dag& dag, int root);

/// Prints expressions of a dag. A binding is a variable that holds a node;
/// vector ones hold one value per lane.
class ExpressionPrinter {
 public:
  struct Binding {
    std::string name;
    bool vector = false;
    std::string holder = {};  // of values that wait in a variable: its name
  };
  /// Text of a load or accumulator in a given mode (vector or scalar).
  using LeafPrinter = std::function<std::string(int id, bool vector)>;

  ExpressionPrinter(const ir::Dag& dag, std::vector<std::uint64_t> dependence, LeafPrinter leaf)
      : dag_(dag), dependence_(std::move(dependence)), leaf_(std::move(leaf)) {}

  /// Spells constants by name instead of as literals (fields of a functor).
  void name_constants(std::map<int, std::string> names) { constants_ = std::move(names); }

  /// Constants that are printed as leaves are.
  void print_as_leaves(std::set<int> constants) { leaves_ = std::move(constants); }

  void know(KnownNumbers known) { known_ = std::move(known); }

  /// By node, the positions that loads and iotas print in place of their indices: an index along an axis of
  /// one element has no part in them, and what only it needs is not named. They have to outlive the printer.
  void address_by(const std::vector<ir::Index>& addresses) { addresses_ = &addresses; }

  /// Iotas that lanes count up where these axes vary per lane, and that are only compared with what all lanes share
  /// (gcrt/cpu/positions.h): no pack holds them.
  void compare_positions(std::set<int> iotas, std::uint64_t vector_mask) {
    positions_ = std::move(iotas);
    positions_mask_ = vector_mask;
  }
  bool is_position_along(int id, std::uint64_t vector_mask) const {
    return vector_mask == positions_mask_ && positions_.count(id) > 0;
  }
  bool is_position(int id) const { return is_position_along(id, vector_mask_); }

  /// Which axes (and accumulators) vary per lane; 0 outside vector loops.
  void set_vector_mask(std::uint64_t mask) { vector_mask_ = mask; }
  bool is_vector(int id) const { return (dependence_[id] & vector_mask_) != 0; }

  void bind(int id, std::string name, bool vector, std::string holder = {}) {
    scope_[id] = {std::move(name), vector, std::move(holder)};
  }
  void forget(int id) { scope_.erase(id); }
  const std::map<int, Binding>& scope() const { return scope_; }
  void restore(std::map<int, Binding> scope) { scope_ = std::move(scope); }

  /// Declares variables for every node needed by `roots` that is settled by `bound` and worth a name.
  void declare(CodeText& code, const std::vector<int>& roots, std::uint64_t bound);
  /// Text of the node; with `vector`, a pack (scalars are splatted).
  std::string text(int id, bool vector) const;

 private:
  std::string compute(int id, bool vector) const;
  std::string apply(int id, bool vector) const;
  /// Both sides of a comparison as they are printed, and the width of its mask.
  struct Comparison {
    ir::ScalarOp op;
    std::string left, right;
    int bits;
  };
  Comparison compared(int id, bool vector) const;
  bool is_number(int id) const { return !known_.facts.empty() && known_.facts[id].number; }

  const ir::Dag& dag_;
  std::vector<std::uint64_t> dependence_;
  LeafPrinter leaf_;
  const std::vector<ir::Index>* addresses_ = nullptr;
  KnownNumbers known_;
  std::map<int, std::string> constants_;
  std::set<int> leaves_;
  std::set<int> positions_;
  std::uint64_t positions_mask_ = 0;
  std::uint64_t vector_mask_ = 0;
  std::map<int, Binding> scope_;
  int next_ = 0;
};

struct PrintedLoops {
  std::string text;
  bool threaded = false;  // names `threads`
  double work = 0;        // what the expressions take, in additions of one element
  std::set<std::string> headers;
};

/// Body of a kernel function (without signature): loops over all regions. Those of `least_work` units of work
/// (one addition each) and more are split among threads, along their outermost axis. `rows`: an axis of which the
/// function makes the part [begin, end) that its caller names, in one thread; -1: it makes everything.
PrintedLoops print_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                         const KernelTensor& result, int depth, double least_work, SizeParameters& sizes,
                         int rows = -1);

/// Statements that return false when one of the form's run-time indices is out of range.
std::string print_checks(const ir::LoopForm& form, const std::vector<KernelTensor>& operands, int depth,
                         SizeParameters& sizes);

}  // namespace gcompile
