#include "codegen/emit/emit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "codegen/emit/embedded.h"
#include "codegen/emit/kernel_files.h"
#include "codegen/program/lowering.h"
#include "driver/machine/local_files.h"
#include "driver/machine/process.h"
#include "ir/graph/operator.h"
#include "nlohmann/json.hpp"
#include "passes/engine/pass_manager.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile {
namespace {

/// Names that try to leave the comment, string, file or tag they are printed in.
std::vector<std::string> hostile_names() {
  using namespace std::string_literals;
  return {
      "*/ #error evil /*",
      "line\n#error evil\n",
      "carriage\r#error evil",
      "backslash at the end \\",
      "trigraph ?\?/",
      "nul\0#error evil"s,
      "\"); evil(); (\"",
      "{{ name }} {% raw %}",
      "</title><script>evil()</script>",
      "]]> --> `evil` [evil](http://evil) | evil |",
      "\xff\xfe not UTF-8 \xc3",
      "Gr\xc3\xbc\xc3\x9f"
      "e",
      "/layer1/conv/Conv",
      "int",
      "",
      "a",
      "A",
      "$(evil) ${evil} %evil% `evil`",
      std::string(100000, 'x'),
      "%s%n%*",
      "'; evil",
  };
}

/// y_k = Relu(x_k + c_k) for every hostile name: inputs, constants, nodes and outputs carry it.
ir::Graph hostile_graph() {
  ir::Graph graph;
  int index = 0;
  for (const std::string& name : hostile_names()) {
    const ir::TensorType type{ir::ElementType::kFloat32, {2, 3 + index++}};
    const ir::ValueId x = graph.add_input(name + "x", type);
    ir::Tensor constant(type);
    constant.set(0, ir::Scalar::of_real(type.element, index));
    const ir::ValueId c = graph.add_constant(constant, name + "c");
    const ir::NodeId add = graph.add_node(ir::operator_named("Add"), {x, c}, {}, 1, name);
    ir::infer_node(graph, add);
    const ir::NodeId relu =
        graph.add_node(ir::operator_named("Relu"), {graph.node(add).results[0]}, {}, 1, name + "r");
    ir::infer_node(graph, relu);
    for (const ir::NodeId id : {add, relu}) {
      graph.node(id).origins = {{std::string(graph.node(id).op->name), graph.node(id).name}};
      graph.value(graph.node(id).results[0]).name = name + std::string(graph.node(id).op->name);
    }
    graph.add_output(graph.node(relu).results[0], name + "y");
  }
  return graph;
}

Program hostile_program(int level) {
  ir::Graph graph = hostile_graph();
  passes::Options options;
  options.level = level;
  passes::optimise(graph, options);
  LoweringOptions lowering;
  lowering.name = "hostile";
  Program program = lower_graph(graph, lowering);
  program.tool_version = "0";
  program.model_sha256 = std::string(64, '0');
  program.producer = hostile_names()[0] + hostile_names()[1] + hostile_names()[8];
  program.opset = hostile_names()[2];
  program.options = "--set '" + hostile_names()[8] + "'";
  for (const std::string& name : hostile_names())
    program.schedules.back().report.remarks.push_back({name, name, name});
  return program;
}

EmitOptions with_weights(WeightsMode mode) {
  EmitOptions options;
  options.weights = mode;
  return options;
}

bool ends_with(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

TEST(Emit, WritesOnlyPlainAsciiWhateverTheModelIsCalled) {
  const FileSet files = emit(hostile_program(3), EmitOptions());
  for (const auto& [path, file] : files.files()) {
    if (ends_with(path, ".bin") || ends_with(path, ".html")) continue;
    for (const char c : file.bytes.text()) {
      ASSERT_TRUE(c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f)) << path << " has byte " << int(c);
    }
    EXPECT_EQ(file.bytes.text().find("\n#error evil"), std::string::npos) << path;
    if (ends_with(path, ".json") || path == "Makefile") continue;
    EXPECT_EQ(file.bytes.text().find("?\?/"), std::string::npos) << path;
    // A line that a name continues would swallow the next one.
    EXPECT_EQ(file.bytes.text().find("end \\\n"), std::string::npos) << path;
  }
  const std::string_view report = files.find("report.html")->bytes;
  EXPECT_EQ(report.find("<script"), report.rfind("<script")) << "the page's own";
  EXPECT_NE(report.find("&lt;script"), std::string::npos);
  EXPECT_EQ(files.find("README.md")->bytes.text().find("[evil]"), std::string::npos);
}

/// Compiles every source and header of a project with the system compiler, warnings as errors, trigraphs on.
void expect_compiles(const FileSet& files, const std::string& name) {
  const TemporaryFolder folder;
  std::vector<CommandLine> commands;
  for (const auto& [path, file] : files.files()) {
    const std::size_t slash = path.rfind('/');
    write_text_file(folder.path() + (slash == std::string::npos ? "" : "/" + path.substr(0, slash)),
                    slash == std::string::npos ? path : path.substr(slash + 1), file.bytes);
    const std::string source = folder.path() + "/" + path;
    CommandLine flags = {"-fsyntax-only",
                         "-Wall",
                         "-Wextra",
                         "-Werror",
                         "-I" + folder.path(),
                         "-I" + folder.path() + "/include",
                         "-I" + folder.path() + "/apps"};
    if (ends_with(path, ".cpp") || ends_with(path, ".hpp")) {
      // "pragma once in main file" is no finding here.
      CommandLine command = {"c++", "-std=c++17", "-trigraphs", "-Wno-pragma-once-outside-header",
                             "-x",  "c++"};
      command.insert(command.end(), flags.begin(), flags.end());
      if (ends_with(path, ".hpp")) {
        write_text_file(folder.path(), "wrapper.cpp", "#include \"" + name + "/" + name + ".hpp\"\n");
        command.push_back(folder.path() + "/wrapper.cpp");
      } else {
        command.push_back(source);
      }
      commands.push_back(command);
    } else if (path == "include/" + name + "/" + name + ".h" || ends_with(path, ".c")) {
      CommandLine command = {"cc", "-std=c99", "-trigraphs", "-pedantic", "-x", "c"};
      command.insert(command.end(), flags.begin(), flags.end());
      command.push_back(source);
      commands.push_back(command);
    }
  }
  ASSERT_GE(commands.size(), 7u);
  const std::vector<ProcessResult> results = run_processes(commands, 2);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    EXPECT_EQ(results[i].status, 0) << command_text(commands[i]) << '\n' << results[i].output.substr(0, 4000);
  }
}

TEST(Emit, CompilesWhateverTheModelIsCalled) {
  expect_compiles(emit(hostile_program(3), with_weights(WeightsMode::kArray)), "hostile");
}

TEST(Emit, CompilesWithoutOptimisationAndWithWeightsInAFile) {
  expect_compiles(emit(hostile_program(0), with_weights(WeightsMode::kFile)), "hostile");
}

TEST(Emit, CompilesWithTheCallersWeights) {
  expect_compiles(emit(hostile_program(3), with_weights(WeightsMode::kExtern)), "hostile");
}

/// One element that is repeated has no step: no position in it is looked up.
/// What is not negative is not wrapped.
TEST(Emit, CompilesWhereNothingReadsThePositions) {
  ir::Graph graph = testing::parse(
      "g (float[5] x) => (float[3] a, float[3] b, float[3] c, float[3,1] d)"
      " <int64[2] shape = {4,1}, int64[1] four = {4}, int64[3] i = {0,-1,2}, int64[3] positive = {0,3,2},"
      " int64[3,1] j = {0,3,2}> { m = ReduceMax<keepdims = 0>(x)\n u = Expand(m, four)\n"
      " v = Expand(m, shape)\n a = GatherElements<axis = 0>(u, i)\n"
      " b = GatherElements<axis = 0>(u, positive)\n c = GatherND(u, j)\n"
      " d = GatherElements<axis = 0>(v, j) }");
  passes::Options options;
  options.level = 0;
  passes::optimise(graph, options);
  LoweringOptions lowering;
  lowering.name = "positions";
  Program program = lower_graph(graph, lowering);
  program.tool_version = "0";
  expect_compiles(emit(program, with_weights(WeightsMode::kArray)), "positions");
}

TEST(Emit, GivesTheSameFilesTwice) {
  const FileSet first = emit(hostile_program(3), EmitOptions());
  const FileSet second = emit(hostile_program(3), EmitOptions());
  EXPECT_TRUE(first.files() == second.files());
}

TEST(Emit, PutsWeightsWhereTheModeSays) {
  const Program program = hostile_program(3);
  const FileSet incbin = emit(program, with_weights(WeightsMode::kIncbin));
  EXPECT_NE(incbin.find("src/hostile_weights.S"), nullptr);
  EXPECT_NE(incbin.find("data/hostile.weights.bin"), nullptr);
  const FileSet array = emit(program, with_weights(WeightsMode::kArray));
  EXPECT_NE(array.find("src/hostile_weights.c"), nullptr);
  EXPECT_EQ(array.find("data/hostile.weights.bin"), nullptr);
  for (const WeightsMode mode : {WeightsMode::kFile, WeightsMode::kExtern}) {
    const FileSet files = emit(program, with_weights(mode));
    EXPECT_NE(files.find("data/hostile.weights.bin"), nullptr);
    EXPECT_EQ(files.find("src/hostile_weights.S"), nullptr);
    EXPECT_EQ(files.find("include/hostile/hostile.h")->bytes.text().find("hostile_weights(void)"),
              std::string::npos);
  }
}

TEST(Emit, SelfTestOnlyWithVectors) {
  const Program program = hostile_program(3);
  EXPECT_EQ(emit(program, EmitOptions()).find("tests/selftest.cpp"), nullptr);
  EmitOptions options;
  options.golden = {"GCGOLDEN"};
  const FileSet files = emit(program, options);
  EXPECT_NE(files.find("tests/selftest.cpp"), nullptr);
  EXPECT_EQ(files.find("data/hostile.golden.bin")->bytes.text(), "GCGOLDEN");
}

TEST(Emit, CopiesExactlyTheHeadersThatAreIncluded) {
  const FileSet files = emit(hostile_program(3), EmitOptions());
  std::set<std::string> included;
  for (const auto& [path, file] : files.files()) {
    for (std::size_t at = file.bytes.text().find("#include \"gcrt/"); at != std::string::npos;
         at = file.bytes.text().find("#include \"gcrt/", at + 1)) {
      const std::size_t begin = at + 10;
      included.emplace(file.bytes.text().substr(begin, file.bytes.text().find('"', begin) - begin));
    }
  }
  for (const std::string& header : included) EXPECT_NE(files.find(header), nullptr) << header;
  for (const auto& [path, file] : files.files()) {
    if (path.rfind("gcrt/", 0) == 0) {
      EXPECT_EQ(included.count(path), 1u) << path << " is not needed";
    }
  }
}

TEST(Emit, AnUnknownRuntimeHeaderIsABug) {
  EXPECT_THROW(runtime_headers({"gcrt/no_such.h"}), CompileError);
  const std::vector<std::string> closure = runtime_headers({"gcrt/parallel.h"});
  EXPECT_EQ(closure, (std::vector<std::string>{"gcrt/config.h", "gcrt/float_mode.h", "gcrt/isa/intrinsics.h",
                                               "gcrt/parallel.h"}));
}

TEST(Emit, TheWeightsFileHasAHeaderAndAChecksum) {
  const auto content = [] {
    ZeroedMemory bytes(kWeightsHeaderBytes + 64);
    bytes.data()[64] = 1;
    return bytes;
  };
  const WeightsFile file = weights_file(content());
  const std::string_view bytes = file.bytes;
  ASSERT_EQ(bytes.size(), 128u);
  EXPECT_EQ(bytes.substr(0, 8), "GCWEIGHT");
  EXPECT_EQ(bytes[8], 2);
  EXPECT_EQ(bytes[16], 64);
  EXPECT_EQ(bytes[64], 1);
  // FNV-1a over words, computed by hand: (offset ^ 1) * prime, then seven times * prime.
  std::uint64_t expected = (0xcbf29ce484222325u ^ 1) * 0x100000001b3u;
  for (int i = 0; i < 7; ++i) expected *= 0x100000001b3u;
  EXPECT_EQ(file.checksum, expected);
  ZeroedMemory other = content();
  other.data()[other.size() - 1] = 1;
  EXPECT_NE(weights_file(std::move(other)).checksum, expected);
}

Program program_with_kernels(int count) {
  Program program;
  program.name = "m";
  program.kernels.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) program.kernels[static_cast<std::size_t>(i)].name = "k" + std::to_string(i);
  return program;
}

TEST(Emit, SplitsKernelsIntoFiles) {
  const std::vector<KernelFile> files = split_kernels(program_with_kernels(200), 30);
  EXPECT_EQ(files[0].stem, "m_kernels_1");
  std::size_t count = 0;
  for (const KernelFile& file : files) {
    EXPECT_LE(file.kernels.size(), 40u);
    EXPECT_TRUE(&file == &files.back() || file.kernels.size() >= 20u);
    for (const std::size_t kernel : file.kernels) EXPECT_EQ(kernel, count++);
  }
  EXPECT_EQ(count, 200u);
  EXPECT_EQ(split_kernels(program_with_kernels(40), 30).size(), 1u);
  EXPECT_EQ(split_kernels(program_with_kernels(40), 30)[0].stem, "m_kernels");
  EXPECT_EQ(split_kernels(program_with_kernels(0), 30).size(), 1u);
  EXPECT_EQ(split_kernels(program_with_kernels(3), 1).size(), 3u);
}

TEST(Emit, PartsOfOneShapeShareAKernel) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_input("x", {ir::ElementType::kFloat32, {5, 8}});
  for (const std::int64_t row : {0, 1, 3}) {
    const ir::ValueId at = graph.add_constant(
        ir::Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kInt64, row)), "at" + std::to_string(row));
    ir::Attributes attributes;
    attributes.set("axis", std::int64_t{0});
    const ir::NodeId gather =
        graph.add_node(ir::operator_named("Gather"), {x, at}, attributes, 1, "row" + std::to_string(row));
    ir::infer_node(graph, gather);
    graph.value(graph.node(gather).results[0]).name = "row" + std::to_string(row);
    graph.add_output(graph.node(gather).results[0], "row" + std::to_string(row));
  }
  passes::optimise(graph, {});
  const Program program = lower_graph(graph, {});
  ASSERT_EQ(program.schedules.back().steps.size(), 3u);
  EXPECT_EQ(program.kernels.size(), 1u);
  for (int i = 0; i < 3; ++i) {
    const Step& step = program.schedules.back().steps[static_cast<std::size_t>(i)];
    EXPECT_EQ(step.arguments[0].elements, std::vector<std::int64_t>({0, 8, 24})[static_cast<std::size_t>(i)]);
  }
}

/// The kernels of each file, by name.
std::set<std::vector<std::string>> files_of(const Program& program) {
  std::set<std::vector<std::string>> out;
  for (const KernelFile& file : split_kernels(program, 12)) {
    std::vector<std::string> names;
    for (const std::size_t kernel : file.kernels) names.push_back(program.kernels[kernel].name);
    out.insert(std::move(names));
  }
  return out;
}

TEST(Emit, AKernelMoreLeavesMostFilesAlone) {
  const Program program = program_with_kernels(120);
  const std::set<std::vector<std::string>> before = files_of(program);
  for (const int at : {0, 17, 60, 119}) {
    Program more = program;
    more.kernels.insert(more.kernels.begin() + at, Kernel())->name = "more";
    std::size_t changed = 0;
    for (const std::vector<std::string>& file : files_of(more)) changed += before.count(file) == 0 ? 1 : 0;
    EXPECT_LE(changed, 2u) << at;
  }
}

/// A schedule with a conditional, a trap, a copy and a checked call.
Program branching_program() {
  Program program;
  program.name = "b";
  const ir::TensorType type{ir::ElementType::kFloat16, {4}};
  program.schedules.emplace_back();
  program.schedules.back().inputs = {{"x", "x", type, "uint16_t"}};
  program.schedules.back().outputs = {{"y", "y", type, "uint16_t"}};
  const auto argument = [](Argument::Space space, std::string place, std::int64_t extra, std::string type,
                           std::int64_t element_bytes) {
    Argument a;
    a.space = space;
    a.port = 0;
    a.place = std::move(place);
    a.extra = extra;
    a.elements = extra / element_bytes;
    a.c_type = std::move(type);
    return a;
  };
  Step branch;
  branch.kind = Step::Kind::kIf;
  branch.arguments = {argument(Argument::Space::kArena, "at_c", 3, "std::uint8_t", 1)};
  Step call;
  call.function = "gather_0";
  call.checked = true;
  call.threaded = true;
  call.arguments = {argument(Argument::Space::kInput, "", 4, "Half", 2),
                    argument(Argument::Space::kWeights, "w_c", 64, "float", 4),
                    argument(Argument::Space::kOutput, "", 0, "Half", 2)};
  Step trap;
  trap.kind = Step::Kind::kTrap;
  trap.comment = "X must have rank 3";
  branch.then_steps = {call};
  branch.else_steps = {trap};
  program.schedules.back().steps = {branch};
  return program;
}

TEST(ProgramJson, FlattensBranches) {
  const nlohmann::ordered_json json = program_json(branching_program(), EmitOptions());
  const auto& steps = json["steps"];
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_TRUE(steps[0]["is_if"].get<bool>());
  EXPECT_EQ(steps[0]["condition"], "arena.as<std::uint8_t>(at_c) + 3");
  EXPECT_TRUE(steps[1]["is_call"].get<bool>());
  EXPECT_TRUE(steps[1]["is_checked"].get<bool>());
  EXPECT_EQ(steps[1]["indent"], "    ");
  EXPECT_EQ(steps[1]["arguments"],
            "as<const Half>(inputs->x, 4), weights.as<float>(w_c) + 16, as<Half>(outputs->y, 0),\n"
            "                  threads");
  EXPECT_TRUE(steps[2]["is_else"].get<bool>());
  EXPECT_TRUE(steps[3]["is_trap"].get<bool>());
  EXPECT_TRUE(steps[4]["is_end"].get<bool>());
  EXPECT_TRUE(json["uses_arena"].get<bool>());
  EXPECT_FALSE(json["uses_state"].get<bool>());
}

TEST(ProgramJson, ChecksEveryBufferOfThePlanOnce) {
  Program program = branching_program();
  for (int i = 0; i < 1000; ++i) {
    Buffer buffer;
    buffer.name = std::to_string(i);
    buffer.size = 10;
    buffer.begin_step = 999 - i;
    buffer.end_step = 1001;
    program.schedules.back().buffers.push_back(buffer);
    program.schedules.back().arena_offsets.push_back({"at_" + std::to_string(i), i * 64, 10, "x"});
    program.schedules.back().plan.offsets.push_back(i * 64);
  }
  program.schedules.back().arena_bytes = 64000;
  const nlohmann::ordered_json json = program_json(program, EmitOptions());
  ASSERT_EQ(json["plan"].size(), 1000u);
  EXPECT_EQ(json["plan"][0]["name"], "at_999");
  EXPECT_EQ(json["plan"][0]["bytes"], 64);  // the padding is the buffer's own
  std::size_t next = 0;
  for (const auto& check : json["plan_checks"]) {
    EXPECT_EQ(check["first"], next);
    next = check["last"].get<std::size_t>();
  }
  EXPECT_EQ(next, 1000u);
  EXPECT_GT(json["plan_checks"].size(), 5u);
}

}  // namespace
}  // namespace gcompile
