#include "driver/verify/build_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/diagnostics.h"
#include "codegen/emit/compile_flags.h"
#include "codegen/emit/embedded.h"
#include "driver/machine/local_files.h"
#include "driver/machine/process.h"

namespace gcompile {
namespace {

CommandLine words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  CommandLine out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

void append(CommandLine& command, const CommandLine& words) {
  command.insert(command.end(), words.begin(), words.end());
}

CommandLine compiler_command(const Options& options) {
  const char* from_environment = std::getenv("CXX");
  std::string text = options.cxx;
  if (text.empty() && from_environment != nullptr) text = from_environment;
  CommandLine command = words_of(text);
  if (command.empty()) command = {"c++"};
  return command;
}

/// Decided as in the project's Makefile: by the name of the compiler.
bool is_clang(const CommandLine& compiler) {
  return std::any_of(compiler.begin(), compiler.end(),
                     [](const std::string& word) { return word.find("clang") != std::string::npos; });
}

bool has_suffix(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

/// Compilers for ARM tell names of cores from those of architectures. Of the machine that this runs on.
std::string cpu_flag(const std::string& cpu) {
#if defined(__aarch64__) || defined(__arm__)
  const bool is_core = cpu.compare(0, 4, "armv") != 0;
#else
  const bool is_core = false;
#endif
  return (is_core ? "-mcpu=" : "-march=") + cpu;
}

CommandLine compile_command(const CommandLine& compiler, const std::string& project,
                            const std::string& source, const std::string& object, const Options& options,
                            bool is_library) {
  CommandLine command = compiler;
  const auto add = [&](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  if (has_suffix(source, ".S")) {
    add({"-I" + project + "/data"});
  } else if (has_suffix(source, ".c")) {
    add({"-x", "c", "-std=c99", "-O1", "-fPIC"});
  } else {
    add({"-std=c++17", "-I" + project, "-I" + project + "/include", "-I" + project + "/apps"});
    if (is_library) {
      add({"-O2", "-fPIC"});
      append(command, words_of(arithmetic_flags(Target::kCpp)));
      append(command, words_of(library_flags()));
      if (!options.cpu.empty()) add({cpu_flag(options.cpu)});
      if (is_clang(compiler)) append(command, words_of(clang_flags()));
    } else {
      add({"-O0", "-pthread"});  // their speed is of no interest here, their compile time is
    }
  }
  add({"-c", project + "/" + source, "-o", object});
  return command;
}

constexpr std::string_view kEmulator = "runtime_stub/emulator/";

/// Writes the emulator that stands for a GPU; returns its sources.
std::vector<std::string> write_emulator(const std::string& folder) {
  std::vector<std::string> sources;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.substr(0, kEmulator.size()) != kEmulator) continue;
    const std::string name(file.path.substr(kEmulator.size()));
    write_text_file(folder, name, std::string(file.contents));
    if (has_suffix(name, ".cc")) sources.push_back(name);
  }
  return sources;
}

/// Kernels and host code of a CUDA project as plain C++ over the emulator, or by nvcc.
CommandLine cuda_compile_command(const CommandLine& compiler, const std::string& source,
                                 const std::string& object, const std::vector<std::string>& folders,
                                 const Options& options) {
  if (has_suffix(source, ".S") || has_suffix(source, ".c")) {
    CommandLine command = {"cc", "-c", source, "-o", object};
    for (const std::string& folder : folders) command.push_back("-I" + folder);
    return command;
  }
  CommandLine command = compiler;
  const auto add = [&](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  add({"-std=c++17"});
  if (options.emulate) {
    add({"-x", "c++", has_suffix(source, "/apps/run.cpp") ? "-O0" : "-O2", "-march=native", "-pthread"});
    append(command, words_of(arithmetic_flags(Target::kCpp)));
    if (options.gpu_code == "sm_75") add({"-DGCRT_EMULATE_SM_75"});
  } else {
    // The same as in the project's build files. nvcc's own "native" leaves out what sm_90a has more than sm_90.
    const std::string ptx = "compute" + options.gpu_code.substr(options.gpu_code.find('_'));
    add({"-O3", "-gencode", fmt::format("arch={},code={}", ptx, options.gpu_code)});
    append(command, words_of(arithmetic_flags(options.target)));
  }
  for (const std::string& folder : folders) add({"-I" + folder});
  add({"-c", source, "-o", object});
  return command;
}

/// $NVCC, else the toolkit's usual place, else by PATH.
std::string nvcc_path() {
  if (const char* from_environment = std::getenv("NVCC")) return from_environment;
  std::error_code ignored;
  const std::string usual = "/usr/local/cuda/bin/nvcc";
  return std::filesystem::exists(usual, ignored) ? usual : "nvcc";
}

void write_files(const FileSet& files, const std::string& folder) {
  for (const auto& [path, file] : files.files()) {
    const std::size_t slash = path.rfind('/');
    const std::string below = slash == std::string::npos ? folder : folder + "/" + path.substr(0, slash);
    write_text_file(below, slash == std::string::npos ? path : path.substr(slash + 1), file.bytes);
  }
}

/// Whether the compiler makes a program of a few lines: else what does not build is not the emitted code.
bool makes_programs(const CommandLine& compiler, const std::string& folder) {
  write_text_file(folder, "probe.cpp",
                  "#include <cstddef>\n#include <thread>\n"
                  "int main() {\n  std::thread([] {}).join();\n  return 0;\n}\n");
  CommandLine command = compiler;
  command.insert(command.end(), {"-std=c++17", folder + "/probe.cpp", "-o", folder + "/probe"});
  if (compiler.front().find("nvcc") == std::string::npos) command.push_back("-pthread");
  return run_process(command).status == 0;
}

/// A compiler that the user names is the user's; the usual one is only where it makes no program at all, or
/// was ended from outside.
bool is_fault_of_compiler(const CommandLine& compiler, const std::string& folder, const ProcessResult& result,
                          const Options& options) {
  constexpr int kEndedBySignal = 128;
  const char* from_environment = std::getenv("CXX");
  const bool is_named = !options.cxx.empty() || (from_environment != nullptr && *from_environment != '\0');
  return is_named || result.status >= kEndedBySignal ||
         result.output.find("terminated program") != std::string::npos || !makes_programs(compiler, folder);
}

[[noreturn]] void build_error(const CommandLine& command, const ProcessResult& result, bool is_of_compiler) {
  Diagnostic diagnostic;
  diagnostic.message =
      is_of_compiler ? fmt::format("the compiler '{}' does not build the project (exit code {})",
                                   printable(command.front()), result.status)
                     : fmt::format("internal compiler error: the emitted code does not build (exit code {})",
                                   result.status);
  if (is_of_compiler) {
    diagnostic.help =
        "name another by --cxx or CXX: g++ 12 or clang++ 13 or later; if such a one fails too, report it "
        "with "
        "the model";
  }
  diagnostic.location = command_text(command);
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line) && diagnostic.details.size() < 30;) {
    diagnostic.details.push_back(line);
  }
  throw CompileError(is_of_compiler ? ExitCode::kInputOutput : ExitCode::kInternal, {diagnostic});
}

}  // namespace

std::string build_runner(const FileSet& files, const std::string& name, const std::string& folder,
                         const Options& options, Terminal& terminal) {
  const std::string project = folder + "/" + name;
  write_files(files, project);
  std::error_code ignored;
  std::filesystem::create_directories(folder + "/objects", ignored);
  const bool cuda = info_of(options.target).has_device_memory;
  const CommandLine compiler =
      cuda && !options.emulate ? CommandLine{nvcc_path()} : compiler_command(options);
  const std::string runner = folder + "/" + name + "_run";
  std::vector<CommandLine> commands;
  CommandLine link = compiler;
  const std::string emulator = folder + "/emulator";
  std::vector<std::string> cuda_folders = {project, project + "/include", project + "/apps",
                                           project + "/data"};
  const auto object_path = [&] { return fmt::format("{}/objects/{}.o", folder, commands.size()); };
  if (cuda && options.emulate) {
    cuda_folders.insert(cuda_folders.begin(), emulator);
    for (const std::string& source : write_emulator(emulator)) {
      link.push_back(object_path());
      commands.push_back(
          cuda_compile_command(compiler, emulator + "/" + source, link.back(), cuda_folders, options));
    }
  }
  for (const auto& [path, file] : files.files()) {
    const bool in_library = path.rfind("src/", 0) == 0 && !has_suffix(path, ".h");
    if (!in_library && path != "apps/run.cpp") continue;
    const bool is_host = path == "apps/run.cpp" || path == fmt::format("src/{}_threads.cpp", name);
    const std::string object = object_path();
    commands.push_back(
        cuda ? cuda_compile_command(compiler, project + "/" + path, object, cuda_folders, options)
             : compile_command(compiler, project, path, object, options, !is_host));
    link.push_back(object);
  }
  if (!cuda || options.emulate) link.push_back("-pthread");
  if (cuda && !options.emulate && options.cublaslt) link.push_back("-lcublasLt");
  link.insert(link.end(), {"-o", runner});
  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  terminal.detail(fmt::format("  {} compiler calls, {} at a time", commands.size(), jobs));
  const std::vector<ProcessResult> results = run_processes(commands, jobs);
  const auto expect_built = [&](const CommandLine& command, const ProcessResult& result) {
    if (result.status == 0) return;
    build_error(command, result, is_fault_of_compiler(compiler, folder, result, options));
  };
  for (std::size_t i = 0; i < results.size(); ++i) expect_built(commands[i], results[i]);
  expect_built(link, run_process(link));
  return runner;
}

}  // namespace gcompile
