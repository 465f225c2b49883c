#include "driver/command_line/run_options.h"

#include "driver/command_line/values.h"

namespace gcompile {

using enum Command;
using enum Group;

std::vector<OptionRecord> verify_options() {
  const std::vector<Command> verify = {kVerify};
  return {
      {"--data",
       "",
       "DIR",
       ValueKind::kFolder,
       {},
       Group::kRun,
       verify,
       false,
       "input_K.pb and output_K.pb, inputs.npz and outputs.npz, or folders test_data_set_* of them; without "
       "it inputs are random, and the evaluator tells the outputs",
       [](Options& options, const std::string& value) { options.data = value; }},
      {"--layers",
       "",
       "",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "also judges every kernel by itself, and every value that survives in the program",
       [](Options& options, const std::string&) { options.layers = true; }},
      {"--seed",
       "",
       "N",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "the seed of the random inputs (1)",
       [](Options& options, const std::string& value) {
         options.seed = static_cast<std::uint64_t>(number_of("--seed", value, 0, INT64_MAX));
       }},
      {"--cases",
       "",
       "N",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "how many random inputs (1)",
       [](Options& options, const std::string& value) {
         options.random_cases = static_cast<int>(number_of("--cases", value, 1, 1000));
       }},
      {"--threads",
       "",
       "N",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "how many threads the runner has (1)",
       [](Options& options, const std::string& value) {
         options.threads = static_cast<int>(number_of("--threads", value, 1, 1024));
       }},
      {"--cxx",
       "",
       "COMPILER",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "the C++ compiler ($CXX, else c++)",
       [](Options& options, const std::string& value) { options.cxx = value; }},
      {"--emulate",
       "",
       "",
       ValueKind::kText,
       {},
       Group::kRun,
       verify,
       false,
       "runs a CUDA project on the CPU, also where there is a GPU",
       [](Options& options, const std::string&) { options.emulate = true; }},
      {"--runner",
       "",
       "FILE",
       ValueKind::kFile,
       {},
       Group::kRun,
       verify,
       false,
       "the project's runner, NAME_run, where it was built before from this model with these options",
       [](Options& options, const std::string& value) { options.runner = value; }},
      {"--keep",
       "",
       "DIR",
       ValueKind::kFolder,
       {},
       Group::kRun,
       verify,
       false,
       "where project, inputs and outputs stay",
       [](Options& options, const std::string& value) { options.keep = value; }},
  };
}

std::vector<OptionRecord> check_options() {
  return {
      {"--ports",
       "",
       "",
       ValueKind::kText,
       {},
       Group::kModel,
       {kCheck},
       false,
       "only the inputs and outputs that the model declares, with the names of open sizes",
       [](Options& options, const std::string&) { options.ports_alone = true; }},
  };
}

std::vector<OptionRecord> report_options() {
  const std::vector<Command> report = {kReport};
  return {
      {"--output",
       "-o",
       "FILE",
       ValueKind::kFile,
       {},
       kMeasured,
       report,
       false,
       "where the page is written; the project stays as it is",
       [](Options& options, const std::string& value) { options.output = value; }},
      {"--layers",
       "",
       "FILE",
       ValueKind::kFile,
       {},
       kMeasured,
       report,
       false,
       "what NAME_bench --layers --json printed: the time of every layer",
       [](Options& options, const std::string& value) { options.layer_times = value; }},
      {"--sizes-from",
       "",
       "BUILD",
       ValueKind::kFile,
       {},
       kMeasured,
       report,
       false,
       "the folder of a build, or a library, program or object file: what code takes",
       [](Options& options, const std::string& value) { options.sizes_from = value; }},
  };
}

std::vector<OptionRecord> diff_options() {
  return {
      {"--max-regression",
       "",
       "FIGURE=MOST,...",
       ValueKind::kText,
       {},
       kMeasured,
       {kDiff},
       false,
       "by how much figures may grow, in their units or as a percentage, before the exit code is 3: "
       "ram=0,flash=2%,time=5%",
       [](Options& options, const std::string& value) { add_most_growth(options, value); }},
  };
}

}  // namespace gcompile
