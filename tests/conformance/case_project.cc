#include "tests/conformance/case_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <sstream>

#include "base/diagnostics.h"
#include "codegen/emit/compile_flags.h"
#include "codegen/emit/embedded.h"
#include "codegen/emit/emit.h"
#include "driver/machine/local_files.h"
#include "driver/machine/process.h"
#include "frontend/files/file_bytes.h"

namespace gcompile::conformance {
namespace {

namespace fs = std::filesystem;

/// Beside the flags of emitted projects: the warnings that they promise to pass.
constexpr const char* kWarnings = "-Wall -Wextra -Wconversion -Wshadow -Werror";

std::string byte_counts(const std::string& name, const std::vector<Port>& ports) {
  std::string text = fmt::format("constexpr std::size_t {}[] = {{", name);
  for (const Port& port : ports) text += fmt::format("{}, ", port.type.bytes());
  return text + "0};\n";
}

/// From void pointers to the model's own structs. On CUDA arena, weights and state are copied to the device.
std::string glue(const Program& program) {
  const std::string& name = program.name;
  const bool cuda = program.target == Target::kCuda;
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  std::string text = fmt::format("namespace {0}_case {{\n", name);
  text += byte_counts("kIn", program.schedules.back().inputs) +
          byte_counts("kOut", program.schedules.back().outputs);
  text += "int run(const EmittedMemory& given, const void* const* from, void* const* to) {\n";
  if (cuda) {
    text += fmt::format(
        "  const auto upload = [](const void* data, std::size_t bytes) {{\n"
        "    void* device = nullptr;\n"
        "    if (cudaMalloc(&device, bytes > 0 ? bytes : 1) != cudaSuccess) return "
        "static_cast<void*>(nullptr);\n"
        "    if (bytes > 0) cudaMemcpy(device, data, bytes, cudaMemcpyHostToDevice);\n"
        "    return device;\n"
        "  }};\n"
        "  void* const arena = upload(given.arena, {0}_ARENA_BYTES);\n"
        "  void* const weights = upload(given.weights, {0}_WEIGHTS_BYTES);\n"
        "  void* const state = upload(given.state, {0}_STATE_BYTES);\n",
        upper);
  }
  text += fmt::format("  const {}_memory memory = {{{}, given.instance, nullptr, nullptr}};\n", name,
                      cuda ? "arena, weights, state" : "given.arena, given.weights, given.state");
  text += fmt::format(
      "  int status = {0}_init(&memory);\n"
      "  if (status != 0) return status;\n"
      "  {0}_inputs in{{}};\n"
      "  {0}_outputs out{{}};\n"
      "  static_cast<void>(from);\n"
      "  static_cast<void>(to);\n",
      name);
  for (std::size_t i = 0; i < program.schedules.back().inputs.size(); ++i) {
    const Port& port = program.schedules.back().inputs[i];
    text += fmt::format("  in.{} = static_cast<const {}*>(from[{}]);\n", port.c_name, port.c_type, i);
  }
  for (std::size_t i = 0; i < program.schedules.back().outputs.size(); ++i) {
    const Port& port = program.schedules.back().outputs[i];
    text += fmt::format("  out.{} = static_cast<{}*>(to[{}]);\n", port.c_name, port.c_type, i);
  }
  text += fmt::format("  status = {0}_run(&memory, &in, &out);\n", name);
  if (cuda) {
    text += fmt::format(
        "  if (status == 0) status = {0}_finish(&memory);\n"
        "  {0}_release(&memory);\n"
        "  for (void* const block : {{arena, weights, state}}) cudaFree(block);\n",
        name);
  }
  text += "  return status;\n}\n";
  text += fmt::format(
      "constexpr EmittedCase kCase = {{\"{0}\", {1}_ARENA_BYTES, {1}_WEIGHTS_BYTES, {1}_STATE_BYTES, "
      "{1}_INSTANCE_BYTES, {2}, {3}, kIn, kOut, run}};\n}}\n",
      name, upper, program.schedules.back().inputs.size(), program.schedules.back().outputs.size());
  return text;
}

bool is_library_source(const std::string& path, const std::string& name) {
  if (path.rfind("src/", 0) != 0) return false;
  const std::string suffix = path.substr(path.rfind('.'));
  return (suffix == ".cpp" || suffix == ".cu") && path != fmt::format("src/{}_threads.cpp", name);
}

/// Whether it is of the runtime, but not of the programs and the thread pool.
bool is_library_header(const std::string& path) {
  return path.rfind("gcrt/", 0) == 0 && path.rfind("gcrt/app/", 0) != 0 && path != "gcrt/npy.h" &&
         path != "gcrt/thread_pool.h";
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

CaseProject::CaseProject(const ProjectOptions& options, std::string source_root)
    : options_(options), source_root_(std::move(source_root)) {
  fs::remove_all(options_.folder);
  fs::create_directories(options_.folder + "/data");
}

void CaseProject::add(const Program& program, const std::vector<ir::Tensor>& inputs) {
  const std::string& name = program.name;
  GC_CHECK(inputs.size() == program.schedules.back().inputs.size());
  EmitOptions emit_options;
  emit_options.kernels_per_file = std::numeric_limits<int>::max();  // all of a case are in one unit
  emit_options.weights = WeightsMode::kExtern;
  const FileSet files = emit(program, emit_options);
  Entry entry;
  entry.name = name;
  entry.text = fmt::format("namespace {0}_unit {{\n", name);
  for (const auto& [path, file] : files.files()) {
    if (is_library_header(path)) entry.headers.push_back(path);
    const bool is_source = is_library_source(path, name);
    if (!is_source && path.rfind("include/", 0) != 0 && path.rfind("src/", 0) != 0) continue;
    const std::size_t slash = path.rfind('/');
    write_text_file(options_.folder + "/" + path.substr(0, slash), path.substr(slash + 1), file.bytes);
    if (is_source) entry.text += fmt::format("#include \"{}\"\n", path);
  }
  entry.text += "#undef GCRT_NAMESPACE\n" + glue(program) + "}\n";
  if (program.weights_bytes > 0) {
    write_text_file(options_.folder + "/data", name + ".weights", program.weights.bytes);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    write_text_file(options_.folder + "/data", fmt::format("{}.in{}", name, i), as_text(inputs[i].bytes()));
  }
  entries_.push_back(std::move(entry));
}

void CaseProject::write_unit(const Unit& unit) const {
  std::set<std::string> headers = {"gcrt/pack_types.h"};
  headers.insert(is_cuda() ? "gcrt/cuda/device/launch.h" : "gcrt/parallel.h");
  for (const Entry* entry : unit.entries) headers.insert(entry->headers.begin(), entry->headers.end());
  std::string text =
      "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <cmath>\n#include "
      "\"case_abi.h\"\n"
      "#define GCRT_NAMESPACE conformance_gcrt\n";
  if (is_cuda()) text += "#include \"gcrt/cuda/device/device.h\"\n";
  for (const std::string& header : headers) text += fmt::format("#include \"{}\"\n", header);
  // Inside the runtime's namespace, so that the cases find it as if it were compiled into their own.
  text += "#undef GCRT_NAMESPACE\nnamespace conformance_gcrt {\n";
  for (const Entry* entry : unit.entries) text += entry->text;
  text += "constexpr EmittedCase kCases[] = {\n";
  for (const Entry* entry : unit.entries)
    text += fmt::format("    {0}_unit::{0}_case::kCase,\n", entry->name);
  text += fmt::format(
      "}};\n}}\nextern const EmittedUnit {0};\nconst EmittedUnit {0} = {{conformance_gcrt::kCases, {1}}};\n",
      unit.name, unit.entries.size());
  write_text_file(options_.folder, unit.name + ".cpp", text);
}

std::vector<CaseProject::Unit> CaseProject::compile(const std::vector<Unit>& units) const {
  std::string rules = "all:", recipes;
  for (const Unit& unit : units) {
    write_unit(unit);
    rules += fmt::format(" {}.o", unit.name);
    recipes += fmt::format(
        "{0}.o: {0}.cpp\n\t{1} -std=c++17 {6} {7} {2} {3} -I. -Iinclude {5} -I{4}/runtime_stub "
        "-I{4}/tests/conformance -c $< -o "
        "$@ "
        "> {0}.log 2>&1\n",
        unit.name, options_.compiler, kWarnings, options_.flags, source_root_,
        is_cuda() ? fmt::format("-I{}/runtime_stub/emulator", source_root_) : "",
        arithmetic_flags(Target::kCpp), library_flags());
  }
  write_text_file(options_.folder, "Makefile", rules + "\n" + recipes);
  run_process({"make", "-s", "-k", fmt::format("-j{}", options_.jobs), "-C", options_.folder});
  std::vector<Unit> failed;
  for (const Unit& unit : units) {
    if (!fs::exists(fmt::format("{}/{}.o", options_.folder, unit.name))) failed.push_back(unit);
  }
  return failed;
}

std::string CaseProject::first_error(const std::string& unit) const {
  std::istringstream lines(frontend::read_file(fmt::format("{}/{}.log", options_.folder, unit), INT32_MAX));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos) return line;
  }
  return "the compiler did not say why";
}

std::vector<std::string> CaseProject::runner_sources(const std::vector<Unit>& units) const {
  std::string text = "#include \"case_abi.h\"\n";
  for (const Unit& unit : units) text += fmt::format("extern const EmittedUnit {};\n", unit.name);
  text += "extern const EmittedUnit* const kUnits[];\nextern const int kUnitCount;\n";
  text += "const EmittedUnit* const kUnits[] = {";
  for (const Unit& unit : units) text += fmt::format("&{}, ", unit.name);
  text += fmt::format("nullptr}};\nconst int kUnitCount = {};\n", units.size());
  write_text_file(options_.folder, "main.cpp", text);
  std::vector<std::string> sources = {options_.folder + "/main.cpp",
                                      source_root_ + "/tests/conformance/case_runner.cc"};
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string path(file.path);
    if (is_cuda() && path.rfind("runtime_stub/emulator/", 0) == 0 && path.substr(path.size() - 3) == ".cc")
      sources.push_back(source_root_ + "/" + path);
  }
  return sources;
}

/// Compiled one by one, so that ccache knows all but main.cpp from the last time.
void CaseProject::link(const std::vector<Unit>& units) const {
  std::vector<CommandLine> commands;
  std::string objects;
  for (const std::string& source : runner_sources(units)) {
    const std::string object = fmt::format("runner_{}.o", commands.size());
    commands.push_back({"sh", "-c",
                        fmt::format("cd {0} && {1} -std=c++17 -O1 -I{2}/tests/conformance "
                                    "-I{2}/runtime_stub/emulator -c {3} -o {4}",
                                    options_.folder, options_.compiler, source_root_, source, object)});
    objects += " " + object;
  }
  for (const Unit& unit : units) objects += fmt::format(" {}.o", unit.name);
  std::vector<ProcessResult> results = run_processes(commands, options_.jobs);
  results.push_back(run_process(
      {"sh", "-c",
       fmt::format("cd {} && {}{} -pthread -o runner", options_.folder, options_.compiler, objects)}));
  for (const ProcessResult& result : results) {
    if (result.status == 0) continue;
    throw CompileError(ExitCode::kInternal, "linking failed: " + result.output);
  }
}

std::map<std::string, std::string> CaseProject::build_and_run() {
  std::map<std::string, std::string> results;
  if (entries_.empty()) return results;
  std::vector<Unit> units;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i % static_cast<std::size_t>(options_.cases_per_unit) == 0)
      units.push_back({fmt::format("unit_{}", units.size()), {}});
    units.back().entries.push_back(&entries_[i]);
  }
  std::vector<Unit> single;
  for (const Unit& unit : compile(units)) {
    for (const Entry* entry : unit.entries) single.push_back({"unit_" + entry->name, {entry}});
    units.erase(std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit.name; }));
  }
  std::set<std::string> broken;
  if (!single.empty()) {
    for (const Unit& unit : compile(single)) {
      broken.insert(unit.name);
      results[unit.entries.front()->name] = "does not compile: " + first_error(unit.name);
    }
  }
  for (const Unit& unit : single) {
    if (broken.count(unit.name) == 0) units.push_back(unit);
  }
  if (units.empty()) return results;
  link(units);
  const ProcessResult run = run_process({options_.folder + "/runner", options_.folder + "/data"});
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) results[line.substr(0, space)] = line.substr(space + 1);
  }
  return results;
}

ir::Tensor CaseProject::output(const std::string& name, int index, const ir::TensorType& type) const {
  const std::string text =
      frontend::read_file(fmt::format("{}/data/{}.out{}", options_.folder, name, index), INT32_MAX);
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return ir::Tensor(type, std::move(bytes));
}

}  // namespace gcompile::conformance
