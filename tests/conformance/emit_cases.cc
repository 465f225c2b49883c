// The official cases of ONNX, emitted, compiled, run and compared.
//
//     conformance_cases --cases FOLDER --expected FILE --build FOLDER [options]
//
// FOLDER holds node/test_*/, and perhaps simple/, pytorch-operator/ and pytorch-converted/. Each case is
// compiled at -O3 and at -O0; where both give the same program it runs once. Where weights that a run gives
// are left to plain loops, the case runs with these weights as constants, too. With --stride N a run takes
// every Nth case and one of each operator; which ones, the commit decides, so that all have their turn:
// GCOMPILE_ROTATION=NUMBER repeats a choice. Exit: 0 all as expected, 1 not, 2 usage, 77 there are no cases.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "base/diagnostics.h"
#include "codegen/emit/program_json.h"
#include "driver/machine/process.h"
#include "driver/verify/compare.h"
#include "driver/verify/counted_outputs.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_project.h"
#include "tests/conformance/expectations.h"
#include "tests/conformance/official_case.h"
#include "tests/conformance/project_arguments.h"
#include "tests/conformance/rotation.h"

namespace gcompile::conformance {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string cases, expected, exceptions, only;
  ProjectOptions project;
  std::size_t stride = 1;
  std::size_t shard = 0, shards = 1;
  bool bless = false;
  bool verbose = false;
};

struct Folder {
  std::string name, path;
};

std::vector<Folder> all_cases(const std::string& root) {
  std::vector<Folder> out;
  for (const char* group : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root + "/" + group, error)) {
      if (!fs::exists(entry.path() / "model.onnx")) continue;
      const std::string name = entry.path().filename().string();
      out.push_back(
          {std::string(group) == "node" ? name : fmt::format("{}/{}", group, name), entry.path().string()});
    }
  }
  std::sort(out.begin(), out.end(), [](const Folder& a, const Folder& b) { return a.name < b.name; });
  return out;
}

/// Every stride-th from the rotation on, and one of each operator; of these the shard's.
std::vector<Folder> chosen(const std::vector<Folder>& all, const Options& options, std::size_t number) {
  std::set<std::size_t> wanted;
  std::map<std::string, std::vector<std::size_t>> by_operator;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!options.only.empty() && all[i].name.find(options.only) == std::string::npos) continue;
    if (i % options.stride == number % options.stride) wanted.insert(i);
    if (options.stride == 1) continue;
    for (const std::string& kind : operator_kinds(all[i].path)) by_operator[kind].push_back(i);
  }
  for (const auto& [kind, cases] : by_operator) {
    const bool is_covered =
        std::any_of(cases.begin(), cases.end(), [&](std::size_t i) { return wanted.count(i) != 0; });
    if (!is_covered) wanted.insert(cases[number % cases.size()]);
  }
  std::vector<Folder> out;
  std::size_t position = 0;
  for (const std::size_t i : wanted) {
    if (position++ % options.shards == options.shard) out.push_back(all[i]);
  }
  return out;
}

bool same_bits(const ir::Tensor& expected, const ir::Tensor& actual, std::int64_t i) {
  const ir::Scalar a = expected.at(i), b = actual.at(i);
  if (!ir::is_float(a.type)) return a.integer == b.integer;
  return (a.real == b.real && std::signbit(a.real) == std::signbit(b.real)) ||
         (std::isnan(a.real) && std::isnan(b.real));
}

/// Empty: right.
std::string difference(const ir::Tensor& expected, const ir::Tensor& actual, bool is_exact) {
  const Comparison c = compare(expected, actual);
  if (!c.mismatch.empty()) return c.mismatch;
  if (!c.same) {
    return fmt::format("{} of {} elements, worst at {}: {:.9g} instead of {:.9g}", c.wrong, expected.count(),
                       position_text(expected.shape(), c.worst), c.actual, c.expected);
  }
  for (std::int64_t i = 0; is_exact && i < expected.count(); ++i) {
    if (same_bits(expected, actual, i)) continue;
    return fmt::format("not the same bits at {}: {:.9g} instead of {:.9g}",
                       position_text(expected.shape(), i), actual.real_at(i), expected.real_at(i));
  }
  return {};
}

/// Whether two programs of one name have the same schedule, kernels and weights.
bool are_same(const Program& a, const Program& b) {
  if (!(a.weights.bytes == b.weights.bytes) || arena_bytes(a) != arena_bytes(b)) return false;
  const nlohmann::ordered_json x = program_json(a, {}), y = program_json(b, {});
  for (const char* part : {"steps", "kernel_files", "plan", "parts", "weight_offsets"}) {
    if (x.at(part) != y.at(part)) return false;
  }
  return true;
}

class Test {
 public:
  Test(const Options& options) : options_(options), project_(options.project, GCOMPILE_SOURCE_DIR) {}

  int run() {
    const std::vector<Folder> all = all_cases(options_.cases);
    if (all.empty()) {
      std::cout << fmt::format("skipped: no official cases in {}\n", options_.cases);
      return 77;
    }
    const Rotation turn = rotation();
    for (const Folder& folder : chosen(all, options_, turn.number)) emit_case(folder);
    std::cout << fmt::format(
                     "{} of {} cases, {} programs with {}; shard {} of {}; rotation {} of {}, by {}\n",
                     results_.size(), all.size(), running_.size(), options_.project.flags, options_.shard,
                     options_.shards, turn.number % options_.stride, options_.stride, turn.source)
              << std::flush;
    const std::map<std::string, std::string> ran = project_.build_and_run();
    for (const auto& [program, running] : running_) judge(program, running, ran);
    return report();
  }

 private:
  struct Running {
    OfficialCase given;
    int level;
    std::vector<ir::TensorType> outputs;
  };

  void emit_case(const Folder& folder) {
    if (options_.verbose) std::cout << folder.name << std::endl;
    const std::string number = fmt::format("{:04}", results_.size());
    const std::vector<OfficialCase> variants =
        read_official_case(folder.path, folder.name, options_.project.target);
    const OfficialCase& given = variants.front();
    std::string& result = results_[folder.name];
    if (!given.refusal.empty()) {
      const std::string reason = refusal_reason(given.refusal);
      result = reason.empty() || given.is_bug ? "wrong: refused: " + given.refusal : "unsupported: " + reason;
      return;
    }
    result = given.known.empty() ? "pass" : fmt::format("pass, {} constant", given.known);
    if (!given.computes) folded_.insert(folder.name);
    try {
      for (std::size_t i = 0; i < variants.size(); ++i) emit(variants[i], i == 0 ? number : number + "w");
    } catch (const CompileError& error) {
      result = fmt::format("wrong: {}", error.what());
    }
  }

  void emit(const OfficialCase& given, const std::string& number) {
    const Target target = options_.project.target;
    const Program best = lower_case(given, 3, "c" + number, target);
    add(best, given, 3);
    if (!are_same(best, lower_case(given, 0, "c" + number, target)))
      add(lower_case(given, 0, "b" + number, target), given, 0);
  }

  void add(const Program& program, const OfficialCase& given, int level) {
    project_.add(program, given.inputs);
    Running running{given, level, {}};
    for (const Port& port : program.schedules.back().outputs) running.outputs.push_back(port.type);
    running_.emplace(program.name, std::move(running));
  }

  void judge(const std::string& program, const Running& running,
             const std::map<std::string, std::string>& ran) {
    const OfficialCase& given = running.given;
    const auto found = ran.find(program);
    std::string problem = found == ran.end() ? "did not run" : found->second == "ok" ? "" : found->second;
    const std::vector<std::string>& names = given.graph.output_names();
    std::set<std::string> counts;
    for (const frontend::CountedOutput& counted : given.counted) counts.insert(counted.count);
    if (problem.empty() && given.outputs.size() + counts.size() != running.outputs.size())
      problem = "another number of outputs";
    const auto output = [&](std::size_t i) {
      return project_.output(program, static_cast<int>(i), running.outputs[i]);
    };
    for (std::size_t i = 0; problem.empty() && i < given.outputs.size(); ++i) {
      ir::Tensor actual = output(i);
      for (const frontend::CountedOutput& counted : given.counted) {
        if (counted.name != names[i]) continue;
        const auto at = std::find(names.begin(), names.end(), counted.count) - names.begin();
        actual = front_of(actual, counted.axis, output(static_cast<std::size_t>(at)).int_at(0));
      }
      problem = difference(given.outputs[i], actual, given.is_exact);
      if (!problem.empty()) problem = fmt::format("output {}: {}", i, problem);
    }
    if (!problem.empty())
      results_[given.name] = fmt::format("wrong: -O{} {}: {}", running.level, program, problem);
  }

  int report() {
    Expectations expected;
    if (fs::exists(options_.expected) || !options_.bless) expected = read_expectations(options_.expected);
    const Expectations usual = expected;
    if (!options_.exceptions.empty()) {
      for (const auto& [name, result] : read_expectations(options_.exceptions)) expected[name] = result;
    }
    int known_wrong = 0, surprises = 0;
    int right = 0, constant = 0, folded = 0, unsupported = 0;
    for (const auto& [name, result] : results_) {
      const bool is_right = result.rfind("pass", 0) == 0;
      if (is_right) ++(folded_.count(name) != 0 ? folded : result == "pass" ? right : constant);
      unsupported += result.rfind("unsupported", 0) == 0 ? 1 : 0;
      const auto found = expected.find(name);
      if (found != expected.end() && agrees(found->second, result)) {
        known_wrong += result.rfind("wrong", 0) == 0 ? 1 : 0;
        continue;
      }
      ++surprises;
      std::cout << fmt::format("{}: {}, expected {}\n", name, result,
                               found == expected.end() ? "nothing: it is not on the list" : found->second);
      expected[name] = result;
    }
    std::cout << fmt::format(
        "{} cases: {} right, {} right with inputs that the compiler must know, {} with nothing left to run, "
        "{} unsupported, {} known to be wrong, {} unexpected\n",
        results_.size(), right, constant, folded, unsupported, known_wrong, surprises);
    if (options_.bless && options_.exceptions.empty())
      write_expectations(options_.expected, expected, List::kAll);
    if (options_.bless && !options_.exceptions.empty()) {
      for (const auto& [name, result] : usual) {
        if (expected[name] == result) expected.erase(name);
      }
      write_expectations(options_.exceptions, expected, List::kExceptions);
    }
    return surprises == 0 || options_.bless ? 0 : 1;
  }

  const Options& options_;
  CaseProject project_;
  std::map<std::string, std::string> results_;  // by case
  std::map<std::string, Running> running_;      // by program
  std::set<std::string> folded_;                // cases whose programs compute nothing
};

int run_main(int argc, char** argv) {
  Options options;
  CLI::App app("The official cases of ONNX, emitted, compiled, run and compared.");
  app.add_option("--cases", options.cases, "Folder with node/, simple/, ...")->required();
  app.add_option("--expected", options.expected, "List of expectations")->required();
  add_project_arguments(app, options.project);
  app.add_option("--exceptions", options.exceptions, "List of what differs from the expectations");
  app.add_option("--stride", options.stride, "Every Nth case, and one of each operator")
      ->check(CLI::PositiveNumber);
  app.add_option("--shards", options.shards, "Into how many runs the cases are divided")
      ->check(CLI::PositiveNumber);
  app.add_option("--shard", options.shard, "Which of them this one is, from 0");
  app.add_option("--only", options.only, "Cases whose name contains this");
  app.add_flag("--bless", options.bless, "Writes what happens into the list");
  app.add_flag("--verbose", options.verbose, "Prints every case before it is compiled");
  CLI11_PARSE(app, argc, argv);
  if (is_long_test()) options.stride = 1;
  return Test(options).run();
}

}  // namespace
}  // namespace gcompile::conformance

int main(int argc, char** argv) {
  try {
    return gcompile::conformance::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "conformance_cases: " << error.what() << '\n';
    return 1;
  }
}
