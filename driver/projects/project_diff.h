#pragma once
// How two projects differ: memory, weights, code, predicted time, the calls of a run, and the text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace gcompile {

/// What people set budgets for. `name` is that of --max-regression and of JSON.
struct DiffFigure {
  const char* name;
  const char* unit;                           // "bytes", "picoseconds", "" for counts
  std::optional<std::int64_t> before, after;  // nullopt: the project was not built
  std::int64_t change() const { return *after - *before; }
  bool is_known() const { return before && after; }
};

/// A call that only one project has, or that is another one in each.
struct DiffCall {
  std::string schedule;                  // its label; "run" where there is one alone
  nlohmann::ordered_json before, after;  // layers of the manifests, with their "step"; null: there is none
};

/// What the plan of a call is, for people who compare it: members of its layer.
inline constexpr const char* kPlanMembers[] = {"family", "bytes", "weight_bytes", "picoseconds"};

/// A file that only one project has, or whose text differs.
struct DiffFile {
  std::string path;
  std::int64_t removed = 0, added = 0;  // lines; 0 of files that are no text
};

struct ProjectDiff {
  std::vector<DiffFigure> figures;
  std::vector<DiffCall> calls;
  std::vector<DiffFile> files;
};

/// Names of figures: ram, arena, state, stack, weights, flash, code, calls, kernels, multiply_adds, time.
std::vector<std::string> diff_figure_names();

/// Compares two folders that compilation made. Code and flash are known where both were built in their
/// folder `build`. Throws CompileError (kInputOutput) for others.
ProjectDiff diff_projects(const std::string& before, const std::string& after);

}  // namespace gcompile
