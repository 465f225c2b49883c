#pragma once
// The command line.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/choice/precision.h"
#include "codegen/emit/program_json.h"
#include "codegen/target.h"
#include "driver/machine/cuda_arch.h"
#include "driver/machine/terminal.h"
#include "frontend/import/import.h"

namespace gcompile {

enum class Command {
  kCompile,
  kVerify,
  kCheck,
  kOpt,
  kOps,
  kExplain,
  kReport,
  kDiff,
  kCompletion,
  kManual,
  kHelp,
  kVersion,
};

/// By how much a figure of a project may grow (--max-regression).
struct MostGrowth {
  std::string figure;
  double amount = 0;  // bytes, microseconds of "time", calls; or a percentage of what it was
  bool is_percent = false;
};

struct Options {
  Command command = Command::kCompile;
  std::string model;                  // "-" is standard input
  bool is_piped = false;              // it was; `model` is a copy
  std::vector<std::string> operands;  // of ops, explain, report, diff, completion and help
  std::set<std::string> given;        // options that were typed, by name (by letter where there is no name)

  // How to read the model.
  frontend::ImportOptions import;
  std::vector<std::string> dims, shapes, sets;  // as typed
  std::vector<frontend::DimList> size_lists;    // --dim with several sizes

  // What to do with the graph.
  int level = 3;
  bool optimize_for_size = false;
  bool exact = false;
  int weight_bits = 0;  // --weight-bits: constant weights of products are packed in so many; 0: they stay
  std::vector<std::string> disabled;
  int pass_limit = -1;
  std::string save_onnx;
  std::string dump_dir;
  bool verify_passes = false;  // every pass is judged by itself

  // What to emit.
  std::string output;  // -o
  Target target = Target::kCpp;
  std::string name;  // prefix; empty: from the file's name
  std::string cpu = "native";
  std::optional<std::int64_t> max_flash, max_ram, max_stack;  // bytes
  std::string arch = kDefaultCudaArch;
  bool cublaslt = false;                                            // --gemm cublaslt
  std::vector<std::pair<std::string, std::string>> forced_kernels;  // --kernel: node of the model, family
  std::vector<std::string> explained;                               // --explain: nodes of the model
  std::int64_t extra_weights_percent = 100;                         // by which kernels may enlarge weights
  Precision precision = Precision::kFp32;
  std::string activations;             // --activations: the name of a precision; empty: that of `precision`
  std::vector<std::string> kept_fp32;  // --keep-fp32: nodes of the model
  WeightsMode weights = WeightsMode::kIncbin;
  bool selftest = false;
  std::vector<std::string> packs;
  bool force = false;

  // verify
  std::string data;
  bool layers = false;
  std::uint64_t seed = 1;
  int random_cases = 1;
  int threads = 1;
  std::string cxx;
  bool emulate = false;  // runs CUDA on the CPU
  std::string gpu_code;  // what of --arch the GPU here runs; of the emulator "sm_75", or nothing: a later one
  std::string keep;      // folder in which project, inputs and outputs stay
  std::string runner;    // a program of the project that was built before; empty: it is built

  // report
  std::string layer_times;  // --layers: the file
  std::string sizes_from;   // --sizes-from: what was built, or where

  // diff
  std::vector<MostGrowth> max_regression;

  // check
  bool ports_alone = false;  // --ports: what the model declares, no more

  // How to talk.
  Verbosity verbosity = Verbosity::kNormal;
  ColorMode color = ColorMode::kAuto;
  bool json = false;
};

/// Reads the command line; --help and --version become commands. Throws CompileError (kUsage).
Options parse_command_line(int argc, const char* const* argv);

/// The options that shape the output, in one order whatever was typed; for the manifest.
std::string canonical_options(const Options& options);

/// The prefix of every symbol: --name, or made from the model's file name.
std::string program_name(const Options& options);

}  // namespace gcompile
