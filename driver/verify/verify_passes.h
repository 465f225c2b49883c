#pragma once
// Every pass judged by itself: the graph is evaluated before and behind it, with the forms that it has then, and
// at several sizes where they are open. So a pass that changes what a model computes is named, also where the
// passes behind it hide that.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/machine/terminal.h"
#include "driver/verify/judged_sizes.h"
#include "driver/verify/verify_reference.h"
#include "ir/graph/graph.h"
#include "passes/engine/pass_manager.h"

namespace gcompile {

/// What the inputs of a graph are filled with. Numbers that a model only sees at its edges find rewrites that
/// are laws of real numbers alone.
enum class InputKind : std::uint8_t {
  kRandom,   // as verify has them
  kSpecial,  // among them zeros of both signs, denormal numbers, infinities, NaN
  kExtreme,  // among them the largest and the smallest numbers of the type
};

/// Inputs of a graph, in its order; deterministic in `seed`.
std::vector<ir::Tensor> inputs_of_kind(const ir::Graph& graph, InputKind kind, std::uint64_t seed);

/// An output that a pass has changed.
struct PassDifference {
  std::string pass;
  int position = 0;  // of the pass among those that ran, as --pass-limit counts them
  std::string inputs, output, text;
  std::string sizes = {};  // "batch=4"; empty where none is open
};

std::string to_string(const PassDifference& difference);

struct PassCheck {
  int passes = 0;                           // that changed something
  std::int64_t compared = 0;                // outputs
  std::int64_t sizes = 0;                   // at which it was judged; 0: none is open
  std::int64_t refused = 0;                 // sets of inputs for which the model itself has no outputs
  std::vector<PassDifference> differences;  // of the first pass that differs with each set of inputs
};

/// Evaluates a graph before all passes and behind each one that changes something. What passes of tier exact
/// make is compared bit by bit (any NaN is a NaN); what others make within the tolerance of verify, or the
/// rounding noise of the model, in elements that are finite on both sides.
class PassChecker {
 public:
  /// Takes the sizes in force. Throws CompileError (kUsage) where it finds none that the model allows.
  PassChecker(const ir::Graph& imported, std::uint64_t seed, bool random_only = false);

  /// Options::dump of the passes.
  void after(const std::string& pass, int position, const ir::Graph& graph, passes::Tier allowed);
  const PassCheck& result() const { return check_; }

 private:
  /// The model at some sizes.
  struct Instance {
    SymbolValues sizes = {};
    std::string text = {};
    ir::Graph imported;
  };
  struct Set {
    std::string name;
    InputKind kind;
    std::size_t instance = 0;
    std::vector<ir::Tensor> inputs = {}, outputs = {};  // outputs: behind the last pass
    std::string error = {};                             // why there are none
    bool overflows = false;  // on the way: another order of the same arithmetic need not
    bool differs = false;
    std::optional<ReferenceNoise> noise = {};  // of the model, once it is asked for
    /// What an output was and is, as far as another order of the same arithmetic must not change it.
    std::pair<ir::Tensor, ir::Tensor> comparable(const ir::Tensor& before, const ir::Tensor& behind) const;
  };
  void compare_set(Set& set, const PassDifference& where, const ir::Graph& graph, bool is_exact);
  /// What is off in output `i`; empty where nothing is.
  std::string judge(Set& set, std::size_t i, const ir::Tensor& actual, bool is_exact) const;
  const Noise& noise_of(Set& set, std::size_t i) const;
  const ir::Graph& imported(const Set& set) const { return instances_[set.instance].imported; }
  void add_set(Set set, std::uint64_t seed);

  std::vector<Instance> instances_;
  std::vector<Set> sets_;
  PassCheck check_;
};

/// Says what was compared. Throws CompileError (kMismatch) that names the first pass that differs.
void tell(const PassCheck& check, Terminal& terminal);

/// Runs all passes on `graph`, and judges each.
PassCheck check_passes(ir::Graph& graph, passes::Options options, std::uint64_t seed,
                       bool random_only = false);

}  // namespace gcompile
