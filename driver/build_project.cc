#include "driver/build_project.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "driver/local_files.h"
#include "driver/process.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

CommandLine compiler_command(const Options& options) {
  const char* from_environment = std::getenv("CXX");
  std::string text = options.cxx;
  if (text.empty() && from_environment != nullptr) text = from_environment;
  std::istringstream words(text);
  CommandLine command;
  for (std::string word; words >> word;) command.push_back(word);
  if (command.empty()) command = {"c++"};
  return command;
}

bool has_suffix(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
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
      add({"-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions", "-fno-rtti",
           "-fvisibility=hidden", "-fPIC"});
      if (!options.cpu.empty()) add({"-march=" + options.cpu});
#if defined(__x86_64__)
      add({"-mprefer-vector-width=512"});
#endif
    } else {
      add({"-O0", "-pthread"});  // their speed is of no interest here, their compile time is
    }
  }
  add({"-c", project + "/" + source, "-o", object});
  return command;
}

void write_files(const FileSet& files, const std::string& folder) {
  for (const auto& [path, file] : files.files()) {
    const std::size_t slash = path.rfind('/');
    const std::string below = slash == std::string::npos ? folder : folder + "/" + path.substr(0, slash);
    write_text_file(below, slash == std::string::npos ? path : path.substr(slash + 1), file.bytes);
  }
}

[[noreturn]] void build_error(const CommandLine& command, const ProcessResult& result) {
  ir::Diagnostic diagnostic;
  diagnostic.message =
      fmt::format("internal compiler error: the emitted code does not build (exit code {})", result.status);
  diagnostic.location = command_text(command);
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line) && diagnostic.details.size() < 30;) {
    diagnostic.details.push_back(line);
  }
  throw ir::CompileError(ir::ExitCode::kInternal, {diagnostic});
}

}  // namespace

std::string build_runner(const FileSet& files, const std::string& name, const std::string& folder,
                         const Options& options, Terminal& terminal) {
  const std::string project = folder + "/" + name;
  write_files(files, project);
  std::error_code ignored;
  std::filesystem::create_directories(folder + "/objects", ignored);
  const CommandLine compiler = compiler_command(options);
  const std::string runner = folder + "/" + name + "_run";
  std::vector<CommandLine> commands;
  CommandLine link = compiler;
  for (const auto& [path, file] : files.files()) {
    const bool in_library = path.rfind("src/", 0) == 0 && !has_suffix(path, ".h");
    if (!in_library && path != "apps/run.cpp") continue;
    const bool is_host = path == "apps/run.cpp" || path == fmt::format("src/{}_threads.cpp", name);
    const std::string object = fmt::format("{}/objects/{}.o", folder, commands.size());
    commands.push_back(compile_command(compiler, project, path, object, options, !is_host));
    link.push_back(object);
  }
  link.insert(link.end(), {"-pthread", "-o", runner});
  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  terminal.detail(fmt::format("  {} compiler calls, {} at a time", commands.size(), jobs));
  const std::vector<ProcessResult> results = run_processes(commands, jobs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status != 0) build_error(commands[i], results[i]);
  }
  if (const ProcessResult result = run_process(link); result.status != 0) build_error(link, result);
  return runner;
}

}  // namespace gcompile
