// Compiles mutated models in memory and tells what ends in an internal error, a crash,
// a hang or too much memory.
//
//     fuzz [--seconds N] [--seed N] [--all] [--findings DIR] SEED...   mutates the models SEED (files or
//     folders) fuzz --run FILE...                                              compiles models as they are
//
// --all takes every mutation of every model in turn, in place of random ones. Case N of a seed is the same on
// every machine. Exit: 0 nothing found, 1 something found, 2 usage.
// Findings are made smaller and written to DIR.

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "base/diagnostics.h"
#include "frontend/files/file_bytes.h"
#include "frontend/files/model_file.h"
#include "tests/fuzz/isolated.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/whole_compile.h"

#ifdef __SANITIZE_ADDRESS__
/// A quarantine that leaves the memory of a case visible, and no report at the end of each process.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:quarantine_size_mb=8:max_allocation_size_mb=2048:allocator_may_return_null=0";
}
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
#endif

namespace gcompile::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSeedBytes = 200'000;  // larger ones say nothing that a small one does not
constexpr Setting kSettings[] = {{false, 3}, {true, 3}, {false, 0}, {true, 0}};

struct Options {
  double seconds = 60;
  std::uint64_t seed = 1;
  bool all = false;
  bool run = false;
  std::string findings;
  std::vector<std::string> paths;
};

struct Seed {
  std::string path;
  onnx::ModelProto model;
  std::string text = {};  // of a model that is written so
};

/// In the order of the arguments, and of names inside a folder: the same wherever the folders lie.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".onnx" || kind == ".onnxtxt") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// Models that cannot be read at all are left out: nothing could be mutated in them.
std::vector<Seed> read_seeds(const std::vector<std::string>& paths) {
  std::vector<Seed> seeds;
  for (const std::string& path : files_of(paths)) {
    if (fs::file_size(path) > static_cast<std::uintmax_t>(kSeedBytes)) continue;
    try {
      const std::string bytes = frontend::read_file(path, kSeedBytes);
      if (frontend::is_text_name(path)) {
        seeds.push_back({path, frontend::parse_model_text(bytes, {}), bytes});
      } else {
        seeds.push_back({path, frontend::parse_model_bytes(bytes, {})});
      }
    } catch (const CompileError&) {
    }
  }
  return seeds;
}

struct Case {
  std::string seed;
  onnx::ModelProto model;
  Setting setting;
  std::string text = {};  // in place of the model, where the setting says so
  std::string bytes() const { return setting.is_text ? text : model.SerializeAsString(); }
};

/// Cases of a random run, by number.
Case random_case(const std::vector<Seed>& seeds, std::uint64_t seed, std::uint64_t number) {
  Choice choice = Choice::random(seed * 0x9e3779b97f4a7c15u + number);
  const Seed& from = seeds[choice.pick(seeds.size())];
  Case made{from.path, from.model, kSettings[choice.pick(std::size(kSettings))]};
  // A model that is text is taken as text every other time.
  made.setting.is_text = !from.text.empty() && choice.pick(2) == 0;
  made.text = from.text;
  if (made.setting.is_text) {
    mutate(made.text, choice);
  } else {
    mutate(made.model, choice);
  }
  return made;
}

/// Cases of a run of all, which must be asked for in order.
class AllCases {
 public:
  explicit AllCases(const std::vector<Seed>& seeds) : seeds_(seeds) {}
  /// False after the last one.
  bool advance(std::uint64_t to) {
    for (; at_ < to; ++at_) {
      if (!made_) current();  // what is chosen shows only when the mutator runs
      made_ = false;
      if (choice_.next()) continue;
      choice_ = Choice::first();
      if (++mutator_ < mutators().size()) continue;
      mutator_ = 0;
      if (++seed_ == seeds_.size()) return false;
    }
    return true;
  }
  Case current() {
    Case made{seeds_[seed_].path, seeds_[seed_].model, kSettings[at_ % 2]};
    mutators()[mutator_].run(made.model, choice_);
    made.model.mutable_graph()->clear_value_info();
    made_ = true;
    return made;
  }

 private:
  const std::vector<Seed>& seeds_;
  std::size_t seed_ = 0, mutator_ = 0;
  Choice choice_ = Choice::first();
  std::uint64_t at_ = 0;
  bool made_ = false;
};

std::string isolated_defect(const std::string& bytes, const Setting& setting) {
  return run_isolated([&] { return compile_in_memory(bytes, setting); }).text;
}

/// Defects of one kind have one place in the source, or one signal.
std::string kind_of(const std::string& text) { return text.substr(0, text.find(" does not hold")); }

/// The next smaller one that still has the defect, until there is none.
template <class Model, class Smaller>
Model minimised(Model model, const Smaller& smaller_ones, const std::function<bool(const Model&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (Model& next : smaller_ones(model)) {
      if (!fails(next)) continue;
      model = std::move(next);
      smaller = true;
      break;
    }
  }
  return model;
}

std::string minimised(const Case& found, const std::string& kind) {
  const auto fails = [&](const std::string& bytes) {
    return kind_of(isolated_defect(bytes, found.setting)) == kind;
  };
  if (found.setting.is_text) return minimised<std::string>(found.text, smaller_texts, fails);
  return minimised<onnx::ModelProto>(
             found.model, smaller_models,
             [&](const onnx::ModelProto& model) { return fails(model.SerializeAsString()); })
      .SerializeAsString();
}

class Report {
 public:
  explicit Report(std::string folder) : folder_(std::move(folder)) {}
  /// Whether this defect is new.
  bool add(std::uint64_t number, const Case& found, const std::string& text) {
    const std::string kind = kind_of(text);
    const bool is_new = counts_[kind]++ == 0;
    if (!is_new) return false;
    std::cout << fmt::format("case {} ({}, from {}): {}\n", number, to_string(found.setting), found.seed,
                             text)
              << std::flush;
    if (folder_.empty()) return true;
    fs::create_directories(folder_);
    const std::string path =
        fmt::format("{}/{:03}.{}", folder_, counts_.size(), found.setting.is_text ? "onnxtxt" : "onnx");
    std::ofstream(path, std::ios::binary) << found.bytes();  // at once: the rest may take long
    const std::string small = minimised(found, kind);
    std::ofstream(path, std::ios::binary) << small;
    std::cout << "    " << path << "\n" << std::flush;
    return true;
  }
  int finish(const Counts& run) const {
    std::cout << fmt::format(
        "{} cases, {} of them compiled, {} kinds of defects; the slowest, case {}, took {:.2f} s\n",
        run.cases, run.compiled, counts_.size(), run.slowest, run.slowest_seconds);
    for (const auto& [kind, count] : counts_) std::cout << fmt::format("{:6} {}\n", count, kind);
    return counts_.empty() ? 0 : 1;
  }

 private:
  std::string folder_;
  std::map<std::string, int> counts_;
};

int run_mutations(const Options& options) {
  const std::vector<Seed> seeds = read_seeds(options.paths);
  std::cout << fmt::format("{} models\n", seeds.size());
  if (seeds.empty()) return 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  AllCases all(seeds);
  bool exhausted = false;
  const auto stop = [&] { return exhausted || std::chrono::steady_clock::now() >= end; };
  const auto make = [&](std::uint64_t number) -> Case {
    if (!options.all) return random_case(seeds, options.seed, number);
    exhausted = !all.advance(number);
    return exhausted ? Case{"", seeds[0].model, kSettings[0]} : all.current();
  };
  const auto run = [&](std::uint64_t number) {
    const Case made = make(number);
    return compile_in_memory(made.bytes(), made.setting);
  };
  Report report(options.findings);
  Counts counts;
  for (std::uint64_t next = 0;;) {
    const Finding found = run_isolated(next, ~std::uint64_t{0}, {}, run, stop, counts);
    if (found.text.empty()) break;
    next = found.number + 1;
    const Case made = make(found.number);
    if (found.is_hang && isolated_defect(made.bytes(), made.setting).empty()) {
      std::cout << fmt::format("case {}: {}, but not again: the machine's\n", found.number, found.text);
      continue;
    }
    report.add(found.number, made, found.text);
  }
  return report.finish(counts);
}

int run_files(const Options& options) {
  int defects = 0;
  const std::vector<std::string> files = files_of(options.paths);
  for (const std::string& path : files) {
    const std::string bytes = frontend::read_file(path, kSeedBytes);
    for (Setting setting : kSettings) {
      setting.is_text = frontend::is_text_name(path);
      const Finding found = run_isolated([&] { return compile_in_memory(bytes, setting); });
      if (found.text.empty()) continue;
      ++defects;
      std::cout << fmt::format("{} ({}): {}\n", path, to_string(setting), found.text);
    }
  }
  std::cout << fmt::format("{} models, {} defects\n", files.size(), defects);
  return files.empty() ? 2 : defects > 0;
}

bool parse(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const bool has_value = i + 1 < count;
    if (argument == "--all") {
      options.all = true;
    } else if (argument == "--run") {
      options.run = true;
    } else if (argument == "--seconds" && has_value) {
      options.seconds = std::atof(arguments[++i]);
    } else if (argument == "--seed" && has_value) {
      options.seed = std::strtoull(arguments[++i], nullptr, 10);
    } else if (argument == "--findings" && has_value) {
      options.findings = arguments[++i];
    } else if (argument.rfind("--", 0) == 0) {
      return false;
    } else {
      options.paths.push_back(argument);
    }
  }
  return !options.paths.empty();
}

}  // namespace
}  // namespace gcompile::fuzz

int main(int count, char** arguments) {
  using namespace gcompile::fuzz;
  Options options;
  if (!parse(count, arguments, options)) {
    std::cerr << "usage: fuzz [--seconds N] [--seed N] [--all] [--findings DIR] SEED...\n"
                 "       fuzz --run FILE...\n";
    return 2;
  }
  try {
    return options.run ? run_files(options) : run_mutations(options);
  } catch (const std::exception& error) {
    std::cerr << "fuzz: " << error.what() << "\n";
    return 2;
  }
}
