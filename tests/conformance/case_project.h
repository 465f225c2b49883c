#pragma once
// Many emitted cases as one program: their library sources, verbatim, in few translation units that share one
// copy of the runtime headers.

#include <map>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "ir/tensors/tensor.h"

namespace gcompile::conformance {

struct ProjectOptions {
  std::string folder;         // emptied first
  std::string compiler;       // "g++", "ccache clang++-14"
  std::string flags = "-O0";  // the machine's own instructions need -march=native
  int jobs = 2;
  Target target = Target::kCpp;
  int cases_per_unit = 48;
};

class CaseProject {
 public:
  /// `runtime_stub` and `tests/conformance` are found below `source_root`.
  CaseProject(const ProjectOptions& options, std::string source_root);

  /// Emits the program's library and its inputs, in order.
  void add(const Program& program, const std::vector<ir::Tensor>& inputs);

  /// Compiles all units, links and runs. By case: "ok", or what went wrong. Cases of a unit that does not
  /// compile are compiled one by one.
  std::map<std::string, std::string> build_and_run();

  /// The case's output with this index as the runner wrote it.
  ir::Tensor output(const std::string& name, int index, const ir::TensorType& type) const;

 private:
  struct Entry {
    std::string name;
    std::string text;                  // of the unit
    std::vector<std::string> headers;  // of the runtime
  };
  struct Unit {
    std::string name;
    std::vector<const Entry*> entries;
  };

  bool is_cuda() const { return options_.target == Target::kCuda; }
  void write_unit(const Unit& unit) const;
  /// Compiles; the units whose object is missing afterwards.
  std::vector<Unit> compile(const std::vector<Unit>& units) const;
  /// What runs the units, main.cpp among it.
  std::vector<std::string> runner_sources(const std::vector<Unit>& units) const;
  void link(const std::vector<Unit>& units) const;
  std::string first_error(const std::string& unit) const;

  ProjectOptions options_;
  std::string source_root_;
  std::vector<Entry> entries_;
};

}  // namespace gcompile::conformance
