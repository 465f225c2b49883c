// Every operator with an axis of an operand of size 0 or 1: empty results flow through, and what is no error
// in the specification is none here.
//
//     zero_and_one --cases FOLDER --models FILE --build FOLDER [options]
//
// The operators are the registry's; their models are official cases of one node and those of FILE, and an
// operator without any fails the test. A cell is one axis of one operand at one size. Each is compiled at -O3
// and at -O0 in a process of its own, so that a crash is one finding; then it is built with the others, run,
// and compared with the evaluator. A refusal has to be one that the specification asks for (kErrors). With
// --stride N every Nth cell is built and run; which ones, the commit decides. Exit: 0 all as they should be,
// 1 not, 2 usage.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "base/diagnostics.h"
#include "driver/machine/local_files.h"
#include "driver/verify/compare.h"
#include "frontend/import/data_files.h"
#include "ir/graph/checks.h"
#include "ir/graph/operator.h"
#include "tests/conformance/case_project.h"
#include "tests/conformance/edge_cells.h"
#include "tests/conformance/official_case.h"
#include "tests/conformance/project_arguments.h"
#include "tests/conformance/rotation.h"

namespace gcompile::conformance {
namespace {

struct Options {
  std::string cases, models, only, write;
  ProjectOptions project;
  std::size_t stride = 1;
  bool verbose = false;
};

constexpr unsigned kSeconds = 30;

/// Errors that the specification asks for, by what the message says of them.
constexpr const char* kErrors[] = {
    // Shapes that belong together.
    "must have the shape",
    "do not broadcast",
    "does not fit",
    "do not fit",
    "inner dimensions differ",
    "hidden_size is",
    "must end in K",
    "disagrees with the weight's shape",
    "past_key and past_value must be",
    "must have the same shape",
    "cos_cache and sin_cache",
    "has the value 0",
    // Lists that have an entry for each axis, channel, position or element.
    "must have one entry per axis",
    "must have two entries per axis",
    "neither scales nor sizes are given",
    "repeats given for",
    "pads given",
    "elements, not",
    "elements instead of",
    "must have M elements",
    "the bias must",
    "scale and bias must be",
    "must be scalars or (M)",
    "values must be (off, on)",
    "must be one value",
    "qkv_hidden_sizes must be",
    "positions for a sequence of",
    "copies a dim that the input has not",
    "do not split",
    "the weight must be",
    // Sizes that a split into heads, groups, pairs or blocks needs.
    "heads of different sizes",
    "must be multiples of their heads",
    "does not divide into",
    "cannot share",
    "no multiple of",
    "cannot be rotated in pairs",
    // Elements that have to be there: to choose the largest of, to repeat, to enlarge.
    "the axis has no elements",
    "has no elements to pad with",
    "an empty axis cannot be resized",
    "is outside [",
    "sequence_lens has the length",
    "the grid must be (",
    "theta must be (",
    "the size must be (",
    "there are no classes",
    "an image that may be empty has no elements to read",
    "do not divide into",
    "must be a square matrix",
    "must have the type",
    "the regions must be (",
    "does not fit into a signal",
    "frame_length is",
    "the last axis must have 1 element or 2",
    "must be (batch, length, 1 or 2)",
    "boxes must be (",
    "a complex signal has no one-sided transform",
    "the transform has ",
    "the window must have one axis",
    "output_shape must have",
    "image_shape has no sizes",
    "attribute 'block_shape' has ",
    "of the carried value",
    "its sequences have lengths of",
    "the sequence is empty, so that",
    "along axis 0 operands have",
    "along axis 1 operands have",
    // Features, of which a model has as many as it was trained with.
    "rows have no features",
    "coefficients for",
    "support vectors of",
    "asks for feature",
    "has not the rows of",
};

bool is_error_of_the_model(const std::string& message) {
  return std::any_of(std::begin(kErrors), std::end(kErrors),
                     [&](const char* text) { return message.find(text) != std::string::npos; });
}

/// What the compiler makes of a cell.
struct Verdict {
  enum class Kind { kCompiles, kTraps, kRefused, kBroken };
  Kind kind = Kind::kBroken;
  std::size_t variant = 0;  // of resized_models
  bool zero_positions = false;
  std::string text;
};

std::string first_line(const char* text) {
  const std::string whole = text;
  return whole.substr(0, whole.find('\n'));
}

/// The evaluator's results; nullopt: it refuses the values.
std::optional<std::vector<ir::Tensor>> expected_of(const OfficialCase& given) {
  try {
    return ir::evaluate_graph(given.graph, given.inputs);
  } catch (const OperatorError&) {
    return std::nullopt;
  } catch (const CompileError& error) {
    if (error.exit_code() != ExitCode::kModel) throw;
    return std::nullopt;
  }
}

OfficialCase bound(const EdgeModel& model, Target target) {
  OfficialCase given;
  given.known = model.known;
  frontend::TestData data;
  for (const ir::Tensor& input : model.inputs) data.inputs.push_back({{}, input});
  return bind_inputs(model.model, data, {}, target, std::move(given), Constants::kForFastKernels);
}

EdgeModel chosen_model(const EdgeCell& cell, const Verdict& verdict) {
  EdgeModel model = resized_models(cell)[verdict.variant];
  return verdict.zero_positions ? with_zero_positions(std::move(model)) : model;
}

Verdict judge_model(const EdgeModel& model, Target target) {
  const OfficialCase given = bound(model, target);
  Verdict verdict;
  verdict.text = given.refusal;
  if (given.is_bug) return verdict;
  verdict.kind = Verdict::Kind::kRefused;
  if (!given.refusal.empty()) return verdict;
  for (const int level : {3, 0}) static_cast<void>(lower_case(given, level, "c", target));
  verdict.kind = expected_of(given) ? Verdict::Kind::kCompiles : Verdict::Kind::kTraps;
  return verdict;
}

/// The first variant that compiles and has results; else one that compiles;
/// else why the first one is refused.
Verdict judge_cell(const EdgeCell& cell, Target target) {
  std::optional<Verdict> best;
  const std::vector<EdgeModel> models = resized_models(cell);
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const bool zero_positions : {false, true}) {
      Verdict verdict = judge_model(zero_positions ? with_zero_positions(models[i]) : models[i], target);
      verdict.variant = i;
      verdict.zero_positions = zero_positions;
      if (verdict.kind == Verdict::Kind::kCompiles || verdict.kind == Verdict::Kind::kBroken) return verdict;
      if (!best || (best->kind == Verdict::Kind::kRefused && verdict.kind == Verdict::Kind::kTraps))
        best = verdict;
      if (verdict.kind == Verdict::Kind::kRefused) break;
    }
  }
  return *best;
}

/// The same in a process of its own.
Verdict judge_apart(const EdgeCell& cell, Target target) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    alarm(kSeconds);
    Verdict verdict;
    try {
      verdict = judge_cell(cell, target);
    } catch (const CompileError& error) {
      verdict.text = first_line(error.what());
    } catch (const OperatorError& error) {
      verdict.text = "not caught: " + error.message;
    } catch (const std::exception& error) {
      verdict.text = first_line(error.what());
    }
    const std::string line = fmt::format("{} {} {} {}", static_cast<int>(verdict.kind), verdict.variant,
                                         verdict.zero_positions ? 1 : 0, verdict.text);
    const bool written = write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string line;
  std::array<char, 4096> part{};
  for (ssize_t count; (count = read(ends[0], part.data(), part.size())) > 0;)
    line.append(part.data(), static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Verdict verdict;
  if (WIFSIGNALED(status)) {
    verdict.text = fmt::format("the compiler ends with signal {}", WTERMSIG(status));
    return verdict;
  }
  std::istringstream words(line);
  int kind = static_cast<int>(Verdict::Kind::kBroken);
  words >> kind >> verdict.variant >> verdict.zero_positions;
  verdict.kind = static_cast<Verdict::Kind>(kind);
  std::getline(words >> std::ws, verdict.text);
  return verdict;
}

class Test {
 public:
  explicit Test(const Options& options) : options_(options), project_(options.project, GCOMPILE_SOURCE_DIR) {}

  int run() {
    models_ = official_models(options_.cases);
    const std::size_t official = models_.size();
    for (EdgeModel& model : written_models(options_.models)) models_.push_back(std::move(model));
    std::cout << fmt::format("{} models of official cases, {} of {}\n", official, models_.size() - official,
                             options_.models);
    check_operators();
    std::vector<EdgeCell> cells;
    for (EdgeModel& model : models_) {
      OfficialCase given = bound(model, options_.project.target);
      // Declared shapes are those of the sizes inside: what they say of an operand does not hold at the edge.
      for (const char* more : {"integers", "small", "rest", "all"}) {
        if (ir::demands_of(given.graph).empty()) break;
        model.known = more;
        given = bound(model, options_.project.target);
      }
      if (!given.refusal.empty()) {
        std::cout << fmt::format("left out: {}: {}\n", model.name, given.refusal);
        continue;
      }
      model.known = given.known;  // weights are constants at the edge where they are inside
      const std::vector<EdgeCell> more = cells_of(model);
      cells.insert(cells.end(), more.begin(), more.end());
    }
    const Rotation turn = rotation();
    std::size_t taken = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!options_.only.empty() && cells[i].name().find(options_.only) == std::string::npos) continue;
      const bool runs = i % options_.stride == turn.number % options_.stride;
      take(cells[i], runs ? std::optional(i / options_.stride % 2 == 0 ? 3 : 0) : std::nullopt);
      ++taken;
    }
    std::cout << fmt::format("{} cells, of which {} are run; rotation {} of {}, by {}\n", taken,
                             running_.size(), turn.number % options_.stride, options_.stride, turn.source)
              << std::flush;
    const std::map<std::string, std::string> ran = project_.build_and_run();
    for (const auto& [program, running] : running_) judge(program, running, ran);
    std::cout << fmt::format(
        "{} cells compile, {} are refused; run: {} right, {} end with a status; {} wrong\n", compiled_,
        refused_, right_, trapped_, wrong_);
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  struct Running {
    std::string name;
    std::optional<std::vector<ir::Tensor>> expected;
    std::vector<ir::TensorType> outputs;
  };

  void report(const std::string& name, const std::string& problem) {
    ++wrong_;
    std::cout << fmt::format("{}: {}\n", name, problem);
  }

  void check_operators() {
    std::set<std::string> covered;
    for (const EdgeModel& model : models_) covered.insert(model.operator_name);
    for (const ir::Operator* op : ir::all_operators()) {
      if (op->domain == "gcompile") continue;
      const std::string name =
          op->domain.empty() ? std::string(op->name) : fmt::format("{}.{}", op->domain, op->name);
      if (covered.count(name) == 0)
        report(name, fmt::format("has neither an official case nor a model in {}", options_.models));
    }
  }

  /// `level`: of the program that is run; nullopt: none is.
  void take(const EdgeCell& cell, std::optional<int> level) {
    if (options_.verbose) std::cout << cell.name() << std::endl;
    const Target target = options_.project.target;
    const Verdict verdict = judge_apart(cell, target);
    if (!options_.write.empty()) write_cell(cell, verdict);
    if (verdict.kind == Verdict::Kind::kBroken) return report(cell.name(), verdict.text);
    if (verdict.kind == Verdict::Kind::kRefused) {
      ++refused_;
      if (!is_error_of_the_model(verdict.text)) report(cell.name(), "refused: " + verdict.text);
      return;
    }
    ++compiled_;
    if (!level) return;
    const OfficialCase given = bound(chosen_model(cell, verdict), target);
    const Program program = lower_case(given, *level, fmt::format("c{:05}", running_.size()), target);
    project_.add(program, given.inputs);
    Running running{fmt::format("{} (-O{}, {})", cell.name(), *level, program.name), expected_of(given), {}};
    for (const Port& port : program.schedules.back().outputs) running.outputs.push_back(port.type);
    running_.emplace(program.name, std::move(running));
  }

  void judge(const std::string& program, const Running& running,
             const std::map<std::string, std::string>& ran) {
    const auto found = ran.find(program);
    const std::string result = found == ran.end() ? "did not run" : found->second;
    if (!running.expected) {
      // Where nothing is made, nothing reads a position.
      const bool is_empty = std::all_of(running.outputs.begin(), running.outputs.end(),
                                        [](const ir::TensorType& type) { return type.count() == 0; });
      if (result.rfind("returns status", 0) != 0 && !(is_empty && result == "ok"))
        return report(running.name, "the evaluator refuses the values, and the program: " + result);
      ++trapped_;
      return;
    }
    if (result != "ok") return report(running.name, result);
    for (std::size_t i = 0; i < running.outputs.size(); ++i) {
      const ir::Tensor& expected = running.expected->at(i);
      const Comparison c =
          compare(expected, project_.output(program, static_cast<int>(i), running.outputs[i]));
      if (c.same && c.mismatch.empty()) continue;
      return report(running.name,
                    !c.mismatch.empty()
                        ? c.mismatch
                        : fmt::format("output {}: {} of {} elements, worst {:.9g} instead of {:.9g}", i,
                                      c.wrong, expected.count(), c.actual, c.expected));
    }
    ++right_;
  }

  /// FOLDER/NUMBER/: model.onnx, input_K.pb, output_K.pb where the evaluator has results, and verdict.txt.
  void write_cell(const EdgeCell& cell, const Verdict& verdict) {
    const std::string folder = fmt::format("{}/{:05}", options_.write, written_++);
    std::filesystem::create_directories(folder);
    const EdgeModel model = chosen_model(cell, verdict);
    write_text_file(folder, "model.onnx", model.model.SerializeAsString());
    for (std::size_t i = 0; i < model.inputs.size(); ++i)
      write_text_file(folder, fmt::format("input_{}.pb", i), frontend::write_tensor({"", model.inputs[i]}));
    write_text_file(folder, "verdict.txt",
                    fmt::format("{}\n{}\n{}\n", cell.name(), static_cast<int>(verdict.kind), verdict.text));
    if (verdict.kind != Verdict::Kind::kCompiles) return;
    const auto expected = expected_of(bound(model, options_.project.target));
    for (std::size_t i = 0; i < expected->size(); ++i)
      write_text_file(folder, fmt::format("output_{}.pb", i), frontend::write_tensor({"", expected->at(i)}));
  }

  const Options& options_;
  CaseProject project_;
  std::vector<EdgeModel> models_;
  std::map<std::string, Running> running_;  // by program
  int compiled_ = 0, right_ = 0, trapped_ = 0, refused_ = 0, wrong_ = 0, written_ = 0;
};

int run_main(int argc, char** argv) {
  Options options;
  CLI::App app("Every operator with axes of size 0 and 1: emitted, compiled, run and compared.");
  app.add_option("--cases", options.cases, "Folder with node/")->required();
  app.add_option("--models", options.models, "File of further models")->required();
  add_project_arguments(app, options.project);
  app.add_option("--stride", options.stride, "Every Nth cell is run")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "Cells whose name contains this");
  app.add_option("--write", options.write, "Folder for the cells as models with their data");
  app.add_flag("--verbose", options.verbose, "Prints every cell before it is compiled");
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
    std::cerr << "zero_and_one: " << error.what() << '\n';
    return 1;
  }
}
