#pragma once
// Runs passes over a graph and its subgraphs: verification, dumps, timing, bisection and remarks.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/pass_report.h"
#include "ir/graph/problem.h"

namespace gcompile::passes {

/// How far a rewrite may change results (DESIGN rule 3). A pass or rule of a higher tier than allowed does
/// not run.
enum class Tier : std::uint8_t {
  kExact,        // bit for bit
  kReassociate,  // another order of the same real arithmetic
  kApproximate,  // another formula
};

struct Options {
  int level = 3;  // -O0 ... -O3
  bool optimize_for_size = false;
  Tier tier = Tier::kReassociate;
  std::set<std::string> disabled = {};   // pass or rule names
  std::set<std::string> keep_fp32 = {};  // nodes of the model whose results lie in memory as float32
  /// What a product reads in 16 bits lies so in memory whoever else reads it (passes/forms/store_factors.cc).
  bool short_activations = false;
  /// Names of inputs and of the outputs that are those of the next run.
  std::vector<std::pair<std::string, std::string>> states = {};
  std::set<std::string> full_states = {};  // inputs among them that stay as the model has them
  /// What the target's kernels take and offer; nullptr: everything, images channels-last.
  const ir::KernelPrices* prices = nullptr;
  int pass_limit = -1;       // bisection: passes after the first N are skipped (required ones still run)
  bool all_remarks = false;  // also refusals of rules whose guards only complete their patterns
  /// Called after every pass that changed something (--dump-dir).
  std::function<void(const std::string& pass, int position, const ir::Graph&)> dump = {};
};

using ir::PassStatistics;
using ir::Remark;
using Report = ir::PassReport;

/// What folding may spend on the whole model, all rounds and branches together.
/// Above it nodes stay for run time.
struct FoldingBudget {
  bool is_set = false;
  std::int64_t work = 0;   // in steps of the evaluator, about a nanosecond each
  std::int64_t bytes = 0;  // by which constants may grow
};

class PassContext {
 public:
  PassContext(const Options& options, Report& report) : options_(options), report_(report) {}
  const Options& options() const { return options_; }
  bool enabled(const std::string& name, Tier tier = Tier::kExact) const {
    return tier <= options_.tier && options_.disabled.count(name) == 0;
  }
  void did(const std::string& subject, const std::string& text) { remark(subject, text, false); }
  void refused(const std::string& subject, const std::string& text) { remark(subject, text, true); }
  void count(const std::string& rule) { ++report_.rule_counts[rule]; }
  void enter(std::string pass) { pass_ = std::move(pass); }
  /// The whole model as it is now: the graph, and every subgraph below it. Found anew by every call.
  std::vector<ir::Graph*> graphs() const;
  void see(ir::Graph& model) { model_ = &model; }
  FoldingBudget& folding_budget() { return folding_budget_; }

 private:
  void remark(const std::string& subject, const std::string& text, bool refused);
  const Options& options_;
  Report& report_;
  std::string pass_;
  ir::Graph* model_ = nullptr;
  std::set<std::pair<std::string, std::string>> refusals_;  // said once, however often a pass comes by
  FoldingBudget folding_budget_;
};

struct Pass {
  std::string name;
  std::string summary;
  int level = 0;          // runs at this -O level and above
  bool required = false;  // cannot be disabled or bisected away: later stages rely on it
  bool (*run)(ir::Graph&, PassContext&) = nullptr;  // one graph, not its subgraphs; true: changed
  /// Neighbours of one number other than 0 are run in turn until a round changes nothing.
  int loop = 0;
  Tier tier = Tier::kExact;  // the highest of its rewrites
  bool rounds = false;       // elsewhere than the graph before it, whatever tier is allowed
  /// Also runs in front of preparations that look into composite operators (passes/engine/preparation.h).
  bool takes_apart = false;
};

/// The pipeline table, in order.
const std::vector<Pass>& pipeline();

/// Runs the pipeline. Afterwards every node carries a form. After each pass that changed something the graph
/// is verified; a violation is an internal error that names the pass.
Report optimise(ir::Graph& graph, const Options& options);
/// The same with another table, for tests.
Report run_passes(ir::Graph& graph, const std::vector<Pass>& passes, const Options& options);

}  // namespace gcompile::passes
