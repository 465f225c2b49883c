#pragma once
// Model -> graph -> optimised graph -> program -> files: the stages in order.

#include <set>
#include <string>
#include <vector>

#include "codegen/emit/file_set.h"
#include "codegen/program/program.h"
#include "driver/command_line/options.h"
#include "driver/machine/terminal.h"
#include "frontend/import/import.h"
#include "nlohmann/json_fwd.hpp"
#include "passes/engine/preparation.h"

namespace gcompile {

/// A model at one choice of its sizes.
struct SizedModel {
  std::vector<frontend::DimBounds> sizes;  // as SizeChoice has them
  std::string text;                        // "batch=4"; empty: nothing is chosen
  std::shared_ptr<ir::Sizes> formulas;     // of the graphs; null where every size is a number
  ir::Graph imported;                      // as read, then prepare_graph(): the oracle's input
  passes::Prepared prepared;               // what prepare_graph() did
  ir::Graph optimised;                     // every node has a form
  passes::Report report;
  std::vector<frontend::CountedOutput> counted;
};

/// A model on its way to files.
struct Compilation {
  frontend::ModelInfo info;
  std::vector<SizedModel> models;  // one for each schedule
  Program program;
};

/// Judges what of the command line can be judged before the model is read. Throws CompileError (kUsage).
void check_early(const Options& options, Terminal& terminal);

/// Reads and checks the model; warnings go to the terminal, `again` only those of a kind that was not said
/// yet: what they say of the model at other sizes differs in the sizes alone.
frontend::ImportedModel import_model(const Options& options, Terminal& terminal, bool again = false);

/// Does what changes a model's arithmetic,
/// and is therefore the oracle's as well (passes/engine/preparation.h).
passes::Prepared prepare_graph(ir::Graph& graph, const Options& options, Terminal& terminal);

/// The graph at sizes that a caller of the program may choose,
/// one for each of Program::sizes, after prepare_graph().
ir::Graph bound_graph(const Options& options, const Program& program, const std::vector<std::int64_t>& sizes);

/// Runs the passes that the options ask for on `graph`. The report begins with the remarks of `earlier`.
/// `full_states`: inputs that are states and keep the model's type.
passes::Report optimise_graph(ir::Graph& graph, const Options& options, Terminal& terminal,
                              const passes::Report& earlier, const std::set<std::string>& full_states = {});

/// Everything up to the program.
Compilation compile_model(const Options& options, Terminal& terminal);

/// Makes the program anew from the optimised graphs.
void lower_compilation(Compilation& compilation, const Options& options);

/// The files of the project.
FileSet emit_project(const Compilation& compilation, const Options& options);

/// What was made, in figures: those of header and manifest, and of the largest schedule.
nlohmann::ordered_json figures_of(const Program& program);
/// "shapes: 34 nodes -> 13 calls of 13 kernels; arena 32.0 KiB (bound 32.0 KiB), weights 86.4 KiB".
std::string figures_text(const Program& program);

}  // namespace gcompile
