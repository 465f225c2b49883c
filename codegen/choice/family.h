#pragma once
// A kernel family is a record, as an operator and a rule are (DESIGN law 11): one file, both targets side by
// side, one line in families.def. Forms name a kind of work; the families of that kind say, as functions of a
// Problem alone, whether they take it, in which layouts, with which plans, what those cost on a machine, and
// how they are called.
//
// After MIOpen's solvers (stateless; a family that does not refuse computes the problem right) and oneDNN's
// lists (one table in order; every refusal can be read by the user).

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/choice/machine.h"
#include "ir/graph/problem.h"

namespace gcompile {

class CallWriter;

/// Why a family does not take a problem; nullopt: it does.
using Refusal = std::optional<std::string>;

/// Numbers that a family chooses for a problem: tile, blocking, prefetch, split axis. What they mean is said
/// by the recipe's `fields`, in the same order.
struct KernelPlan {
  std::vector<std::int64_t> fields;
  bool operator==(const KernelPlan&) const = default;
};

/// What one plan costs on a machine.
struct Cost {
  std::int64_t picoseconds = 0;
  std::int64_t scratch = 0, stack = 0, code = 0;  // bytes
  std::int64_t extra_weights = 0;                 // bytes by which packing enlarges the constants
  std::string code_key = {};                      // calls with the same key share their code
  int launches = 1;
  gcrt::KernelTime time = {};  // on a device, as predicted; zero: streams its bytes
};

struct PlannedCost {
  KernelPlan plan;
  Cost cost;
};

/// Physical order of an operand's axes that a kernel needs, outermost first; empty: row-major. nullopt: it
/// reads the operand as it lies.
using NeededOrder = std::optional<ir::AxisOrder>;

/// What a recipe for a device says beside the rest.
struct DeviceRecipe {
  /// Whether operand 0 may be the result of loops over rows that every block makes for itself
  /// (CallWriter::make_rows). Null: never.
  bool (*takes_made_rows)(const ir::Problem&, const Machine&) = nullptr;
  /// Its kernels start while the one before still works.
  bool overlaps = false;
  /// Operands may lie in two places, and are written joined (CallWriter::joined).
  bool joins_operands = false;
};

/// How a family serves one target.
struct Recipe {
  /// Null: never refuses what the family takes.
  Refusal (*refuses)(const ir::Problem&, const Machine&) = nullptr;
  /// Whether it serves a problem some of whose sizes only a run knows (formulas, see Dim); everything else
  /// here but `call` is then asked about the typical sizes. Null: it serves none.
  bool (*takes_formulas)(const ir::Problem&) = nullptr;
  /// Order that operand `i` must be copied to, when as it lies it does not serve. Null: reads every layout.
  NeededOrder (*needs)(const ir::Problem&, std::size_t i) = nullptr;
  /// Orders that it asks for where layouts are chosen. Null: reads and writes every layout.
  ir::LayoutOffer (*layout)(const ir::Problem&) = nullptr;
  /// Names of the plan's fields.
  std::span<const char* const> fields = {};
  /// At least one for what is not refused; the first is the fastest.
  std::vector<PlannedCost> (*plans)(const ir::Problem&, const Machine&) = nullptr;
  /// Writes the call: parameters, weights in their format (which follows from the problem
  /// alone), scratch, body.
  void (*call)(const ir::Problem&, const KernelPlan&, CallWriter&) = nullptr;
  DeviceRecipe device = {};  // where the target is one
  /// Whether a call of a convolution or a pool of one image makes rows: the call may be for some rows of the
  /// result (CallWriter::by_rows), and then reads only the rows of operand 0 that their windows reach.
  bool makes_rows = false;
};

struct KernelFamily {
  std::string_view name;  // kind, dot, algorithm: "conv.direct"
  ir::Kind kind;
  /// What no target takes. Null: nothing.
  Refusal (*refuses)(const ir::Problem&) = nullptr;
  std::array<Recipe, 2> targets;  // by Target
  const Recipe& recipe(Target target) const { return targets[static_cast<std::size_t>(target)]; }
};

/// All families, in the order of the table: of families that cost the same, the first is taken.
std::span<const KernelFamily* const> families();
/// nullptr: there is none of that name.
const KernelFamily* find_family(std::string_view name);

struct Candidate {
  const KernelFamily* family = nullptr;
  PlannedCost planned;
};

/// What can serve a problem, best first, and why the others cannot.
struct Ranking {
  std::vector<Candidate> taken;
  std::vector<std::pair<std::string_view, std::string>> refused;
};
/// `forced`: the only family that is asked; nullptr: all of the kind. With machine.smallest_scratch the least
/// scratch comes first, else the least time; extra weights count as time by machine.weight_price.
Ranking rank(const ir::Problem& problem, const Machine& machine, const KernelFamily* forced = nullptr);
/// Where the problem's result lies as it will: families that ask for another layout, and would store with strides,
/// go last.
void prefer_layout(Ranking& ranking, const ir::Problem& problem, Target target);

/// "tile k64x64, splits 2" of a plan, by the names of its fields; empty when there are none.
std::string to_string(const Recipe& recipe, const KernelPlan& plan);

}  // namespace gcompile
