#include "codegen/emit/program_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/emit/compile_flags.h"
#include "codegen/emit/emit.h"
#include "codegen/emit/file_marks.h"
#include "codegen/emit/interface_json.h"
#include "codegen/emit/kernel_files.h"
#include "codegen/emit/schedule_json.h"
#include "codegen/emit/schedule_tables_json.h"
#include "codegen/emit/size_text.h"
#include "codegen/emit/told_sizes_json.h"
#include "codegen/report/report_json.h"
#include "gcrt/cuda/device/run_plan.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// Bytes of the instance block of a CPU program: a mark and the weights that were checked.
constexpr std::int64_t kInstanceBytes = 64;
constexpr std::size_t kCommentWidth = 107;                  // of emitted lines of 110 columns
constexpr std::int64_t kLargePage = std::int64_t{2} << 20;  // of x86-64 and of AArch64

/// CUDA: of the graphs of a schedule that are remembered. `sizes`: that a run is told.
std::int64_t instance_bytes(const Schedule& schedule, std::size_t sizes) {
  const auto ports = static_cast<std::int64_t>(std::max<std::size_t>(1, schedule.inputs.size()) +
                                               std::max<std::size_t>(1, schedule.outputs.size()));
  const std::int64_t bytes =
      gcrt::instance_room(std::max<std::int64_t>(1, schedule.device->graph_steps), ports,
                          static_cast<std::int64_t>(sizes), schedule.device->host_bytes);
  return (bytes + kInstanceBytes - 1) / kInstanceBytes * kInstanceBytes;
}

/// The nodes of the calls that a kernel serves, or its sizes, in lines.
Json comments_of(const std::vector<std::string>& comments) {
  Json lines = Json::array();
  for (const std::string& comment : comments) {
    poll_interrupt();
    for (std::string& line : comment_lines(comment, kCommentWidth)) lines.push_back(std::move(line));
  }
  return lines;
}

Json kernel_files_json(const Program& program, int kernels_per_file) {
  Json files = Json::array();
  for (const KernelFile& file : split_kernels(program, kernels_per_file)) {
    std::set<std::string> headers, functors;
    Json kernels = Json::array();
    for (const std::size_t i : file.kernels) {
      poll_interrupt();
      const Kernel& kernel = program.kernels[i];
      headers.insert(kernel.headers.begin(), kernel.headers.end());
      functors.insert(kernel.functors.begin(), kernel.functors.end());
      const auto told = static_cast<int>(kernel.comments.size());
      kernels.push_back({{"name", kernel.name},
                         {"text", kernel.text},
                         {"comments", comments_of(kernel.comments)},
                         {"sizes", comments_of(kernel.sizes)},
                         {"is_shared", kernel.calls > told},
                         {"more_calls", kernel.calls - told}});
    }
    Json entry = Json::object();
    entry["stem"] = file.stem;
    entry["headers"] = headers;
    entry["functors"] = Json::array();
    for (const Functor& functor : program.functors) {
      if (!functor.text.empty() && functors.count(functor.name) > 0)
        entry["functors"].push_back(functor.text);
    }
    entry["kernels"] = std::move(kernels);
    files.push_back(std::move(entry));
  }
  return files;
}

void add_sizes(Json& out, const Program& program) {
  const bool has_weights = program.weights_bytes > 0;
  out["arena_bytes"] = arena_bytes(program);
  out["state_bytes"] = program.state_bytes;
  out["payload_bytes"] = program.weights_bytes;
  out["weights_bytes"] = weights_file_bytes(program);
  out["instance_bytes"] = instance_bytes(program);
  out["alignment"] = program.alignment;
  out["buffer_alignment"] = program.buffer_alignment;
  out["in_tiles"] = program.in_tiles;
  out["zeroes_denormals"] = program.zeroes_denormals;
  out["has_arena"] = arena_bytes(program) > 0;
  out["has_state_bytes"] = program.state_bytes > 0;
  // The macros of blocks that are not needed say 1, because C and C++ have no array of 0; init asks for none.
  const std::string prefix = capitals(program.name);
  out["arena_to_check"] = arena_bytes(program) > 0 ? prefix + "_ARENA_BYTES" : "0";
  out["state_to_check"] = program.state_bytes > 0 ? prefix + "_STATE_BYTES" : "0";
  out["has_weights"] = has_weights;
  out["weights_of_run"] =
      has_weights ? "static_cast<const std::byte*>(weights) + kWeightsHeaderBytes" : "nullptr";
  // A plan for a device says how many launches there are, too.
  out["has_offsets"] = arena_bytes(program) > 0 || has_weights || program.state_bytes > 0 ||
                       info_of(program.target).has_device_memory;
  out["weight_offsets"] = Json::array();
  for (const Offset& offset : program.weight_offsets) out["weight_offsets"].push_back(offset_json(offset));
}

void add_weights_mode(Json& out, const Program& program, WeightsMode mode) {
  const bool present = program.weights_bytes > 0;
  Json weights = Json::object();
  weights["mode"] = weights_mode_name(mode);
  weights["incbin"] = present && mode == WeightsMode::kIncbin;
  weights["array"] = present && mode == WeightsMode::kArray;
  weights["file"] = present && mode == WeightsMode::kFile;
  weights["caller"] = present && mode == WeightsMode::kExtern;
  weights["linked"] = present && (mode == WeightsMode::kIncbin || mode == WeightsMode::kArray);
  weights["loaded"] = present && (mode == WeightsMode::kFile || mode == WeightsMode::kExtern);
  // What the wrapper of a processor allocates: blocks of large pages miss the TLB less.
  const std::int64_t block =
      std::max(arena_bytes(program), mode == WeightsMode::kFile ? weights_file_bytes(program) : 0);
  out["large_blocks"] = block >= kLargePage;
  out["weights"] = std::move(weights);
}

/// Weights that --weight-bits packed; manifest and report tell it from here.
void add_packed_weights(Json& out, const Program& program) {
  out["packed_weights"] = Json::array();
  for (const ir::PackedWeight& weight : program.packed_weights) {
    out["packed_weights"].push_back({{"name", weight.name},
                                     {"rows", weight.rows},
                                     {"columns", weight.columns},
                                     {"bytes", weight.bytes},
                                     {"relative_error", weight.relative_error},
                                     {"largest_difference", weight.largest_difference}});
  }
}

/// A library that is for no processor in particular holds its kernels for several.
void add_levels(Json& out, const TargetInfo& target, const EmitOptions& options, bool in_tiles) {
  out["level_sets"] = Json::array();
  if (target.has_levels && options.cpu == "native") {
    for (const LevelSet& set : library_levels()) {
      Json levels = Json::array();
      for (const LevelFlags& level : set.levels) {
        // Without tiles its code would be that of the level below.
        if (level.has_tile_unit && !in_tiles) continue;
        levels.push_back({{"name", level.name}, {"flags", level.flags}});
      }
      out["level_sets"].push_back({{"architecture", set.architecture},
                                   {"directive", out["level_sets"].empty() ? "if" : "elif"},
                                   {"cmake", out["level_sets"].empty() ? "if" : "elseif"},
                                   {"levels", std::move(levels)},
                                   {"lowest", set.levels.back().name}});
    }
  }
  out["has_levels"] = !out["level_sets"].empty();
  out["make_levels"] = out["level_sets"].empty() ? "" : "make ARCH=levels, ";  // within a list of examples
}

/// "32 to 960, a multiple of 32"; "128".
std::string bounds_text(const ir::Bounds& bounds, std::int64_t multiple) {
  if (bounds.low == bounds.high) return std::to_string(bounds.low);
  const std::string steps = multiple > 1 ? fmt::format(", a multiple of {}", multiple) : "";
  return fmt::format("{} to {}{}", bounds.low, bounds.high, steps);
}

/// By the choice of a schedule.
bool is_chosen(const ir::Bounds& bounds) { return bounds.low == bounds.high; }

/// "batch_4_seq_128": how files and functions of a schedule tell themselves apart.
std::string label_of(const Program& program, const Schedule& schedule) {
  std::string label;
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    label += (i > 0 ? "_" : "") + program.sizes[i].c_name;
    if (is_chosen(schedule.bounds[i])) label += fmt::format("_{}", schedule.sizes[i]);
  }
  return label;
}

/// "4", "1 to 512": of each size.
std::vector<std::string> size_texts(const Program& program, const Schedule& schedule) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < program.sizes.size(); ++i)
    texts.push_back(bounds_text(schedule.bounds[i], program.sizes[i].multiple));
  return texts;
}

/// "batch = 4, seq = 1 to 128", by the names of the model.
std::string choice_text(const Program& program, const std::vector<std::string>& texts) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i)
    text += fmt::format("{}{} = {}", i > 0 ? ", " : "", program.sizes[i].name, texts[i]);
  return text;
}

/// " --dim batch=4", of the project's programs.
std::string dim_flags(const Program& program, const Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    text += fmt::format(" --dim {}={}", program.sizes[i].c_name, schedule.sizes[i]);
  }
  return text;
}

/// C++ of all that has to hold of the sizes of a run of the schedule.
Json size_conditions(const Program& program, const Schedule& schedule) {
  Json out = Json::array();
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    const ir::Bounds& bounds = schedule.bounds[i];
    const std::string field = "sizes->" + program.sizes[i].c_name;
    if (is_chosen(bounds)) {
      out.push_back(fmt::format("{} == {}", field, bounds.low));
      continue;
    }
    out.push_back(fmt::format("{0} >= {1} && {0} <= {2}", field, bounds.low, bounds.high));
    const std::int64_t multiple = program.sizes[i].multiple;
    if (multiple > 1) out.push_back(fmt::format("{} % {} == 0", field, multiple));
  }
  for (const ir::SizeFact& condition : schedule.conditions) {
    const std::string formula = size_text(program, condition.formula);
    if (condition.bounds.low == condition.bounds.high) {
      out.push_back(fmt::format("{} == {}", formula, condition.bounds.low));
      continue;
    }
    out.push_back(fmt::format("{} >= {}", formula, condition.bounds.low));
    out.push_back(fmt::format("{} <= {}", formula, condition.bounds.high));
  }
  return out;
}

/// C++ of whether sizes, which are those of one of several schedules, are this one's.
std::string chooses_text(const Program& program, const Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    if (!is_chosen(schedule.bounds[i])) continue;
    text += fmt::format("{}sizes.{} == {}", text.empty() ? "" : " && ", program.sizes[i].c_name,
                        schedule.bounds[i].low);
  }
  return text;
}

Json schedule_json(const Program& program, const Schedule& schedule, std::size_t index) {
  const ir::SizesScope scope(schedule.formulas.get());
  Json out = Json::object();
  out["schedule_index"] = index;
  out["label"] = label_of(program, schedule);
  out["entry"] = program.sizes.empty() ? "run" : "run_" + label_of(program, schedule);
  out["plan_scope"] = program.sizes.empty() ? "plan" : label_of(program, schedule) + "_plan";
  out["plan_stem"] = fmt::format("{}_{}", program.name, out["plan_scope"].get<std::string>());
  out["sizes"] = schedule.sizes;
  out["sizes_text"] = fmt::format("{}", fmt::join(schedule.sizes, ", "));
  const std::vector<std::string> texts = size_texts(program, schedule);
  out["size_texts"] = texts;
  out["text"] = choice_text(program, texts);
  out["chooses"] = chooses_text(program, schedule);
  out["size_conditions"] = size_conditions(program, schedule);
  out["dim_flags"] = dim_flags(program, schedule);
  out["own_instance_bytes"] =
      instance_bytes(schedule, program.has_bounds ? program.sizes.size() : 0);  // CUDA
  out["uploads_weights"] = index == 0;
  out["arena_of_sizes"] = schedule.arena_bytes;
  add_schedule_tables(out, program, schedule);
  add_schedule(out, program, schedule);
  add_report(out, program, schedule);
  return out;
}

/// Without copies: those of a schedule may be large.
void move_members(Json& into, Json from) {
  for (auto& [name, value] : from.items()) into[name] = std::move(value);
}

/// Each by itself, and at the top the largest: what is said of tensors is said of them at most.
void add_schedules(Json& out, const Program& program) {
  out["has_sizes"] = !program.sizes.empty();
  out["has_bounds"] = program.has_bounds;
  out["has_choices"] = program.schedules.size() > 1;
  // What figures of tensors are of, in comments.
  out["at_sizes"] = program.sizes.empty() ? "" : ", at the largest sizes";
  out["beside_sizes"] =
      program.schedules.size() > 1 ? " Beside them: tensors as they are at the largest." : "";
  out["schedule_count"] = program.schedules.size();
  out["sizes_of_runs"] = program.has_bounds ? program.name + "_sizes" : "NoSizes";  // CUDA, a type
  out["of_runs"] = program.schedules.size() > 1 ? "kRuns." : "Run::";  // CUDA: whose functions run them
  // Within the lists of parameters and arguments of runs.
  out["sizes_parameter"] =
      program.has_bounds ? fmt::format("const {}_sizes* sizes,\n    ", program.name) : std::string();
  out["sizes_argument"] = program.has_bounds ? "sizes, " : "";
  out["sizes_is_null"] = program.sizes.empty() ? "" : "sizes == nullptr || ";
  out["of_level"] = program.sizes.empty() ? "level." : "";
  // What a level has: its run, or a table of them.
  out["run_name"] = program.sizes.empty() ? "run" : "schedules";
  out["run_type"] = program.sizes.empty() ? "Run" : "Run* const";
  out["run_declaration"] = program.sizes.empty() ? "Run run;" : "extern Run* const schedules[];";
  out["size_names"] = Json::array();
  std::vector<std::string> equalities;
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    std::set<std::int64_t> choices;
    for (const Schedule& schedule : program.schedules) choices.insert(schedule.bounds[i].low);
    const bool has_bounds = !is_chosen(program.schedules.front().bounds[i]);
    out["size_names"].push_back(
        {{"index", i},
         {"name", program.sizes[i].name},
         {"c_name", program.sizes[i].c_name},
         {"choices", has_bounds ? bounds_text(program.sizes[i].bounds, program.sizes[i].multiple)
                                : fmt::format("{}", fmt::join(choices, ", "))}});
    equalities.push_back(fmt::format("sizes->{0} == kChoices[i].{0}", program.sizes[i].c_name));
  }
  out["equals_choice"] = fmt::format("{}", fmt::join(equalities, " && "));
  out["schedules"] = Json::array();
  if (program.sizes.empty()) {
    move_members(out, schedule_json(program, program.schedules.back(), 0));
    return;
  }
  Json schedules = Json::array();
  for (std::size_t i = 0; i < program.schedules.size(); ++i) {
    schedules.push_back(schedule_json(program, program.schedules[i], i));
    schedules.back()["reports"] = Json::array({schedules.back()["report"]});
  }
  out.update(schedules.back());
  out["schedules"] = std::move(schedules);
}

/// How products are formed, where it is not as exactly as float32.
Json precision_json(Precision precision) {
  const PrecisionFacts& facts = facts_of(precision);
  return {{"is_reduced", is_reduced(precision)},
          {"name", facts.name},
          {"significant_bits", facts.significant_bits},
          {"has_small_weights", facts.weight != ir::ElementType::kFloat32},
          {"weight", name_of(facts.weight)},
          {"tolerance", fmt::format("{:.6g}", product_tolerance(precision))},
          {"smallest_scale", fmt::format("{}", kSmallestScale)}};
}

}  // namespace

const char* weights_mode_name(WeightsMode mode) {
  switch (mode) {
    case WeightsMode::kIncbin:
      return "incbin";
    case WeightsMode::kArray:
      return "array";
    case WeightsMode::kFile:
      return "file";
    case WeightsMode::kExtern:
      return "extern";
  }
  GC_CHECK(false);
}

std::int64_t instance_bytes(const Program& program) {
  if (!info_of(program.target).has_device_memory) return kInstanceBytes;
  const std::size_t sizes = program.has_bounds ? program.sizes.size() : 0;
  if (program.schedules.size() == 1) return instance_bytes(program.schedules[0], sizes);
  // Which of them ran last, and of what sizes the state is.
  const std::int64_t head = 8 * (1 + static_cast<std::int64_t>(sizes));
  std::int64_t bytes = (head + kInstanceBytes - 1) / kInstanceBytes * kInstanceBytes;
  for (const Schedule& schedule : program.schedules) bytes += instance_bytes(schedule, sizes);
  return bytes;
}

std::int64_t arena_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (const Schedule& schedule : program.schedules) bytes = std::max(bytes, schedule.arena_bytes);
  return bytes;
}

/// {"sm_87", "compute_90"} as CMAKE_CUDA_ARCHITECTURES has it: "87-real;90-virtual".
std::string cmake_architectures(const std::vector<std::string>& architectures) {
  std::string out;
  for (const std::string& word : architectures) {
    const std::size_t number = word.find('_') + 1;
    out += fmt::format("{}{}-{}", out.empty() ? "" : ";", word.substr(number),
                       word[0] == 's' ? "real" : "virtual");
  }
  return out;
}

/// CUDA: which kernels code has, tested from the latest architecture to the oldest,
/// whose code all other code has.
void add_architectures(Json& out, const Program& program) {
  const DeviceProgram device = program.device.value_or(DeviceProgram{});
  out["has_instances"] = device.has_instances;
  out["architectures"] = Json::array();
  std::string bits;
  for (std::size_t i = device.architectures.size(); i-- > 0;) {
    const GpuArchitecture& gpu = device.architectures[i];
    bits = fmt::format("{} = {}{}", name_of(gpu), std::uint64_t{1} << i, bits.empty() ? "" : ", " + bits);
    // Tiles for few multiprocessors are for no other GPU.
    const std::string test =
        fmt::format("if (capability {} {}) ", is_integrated(gpu) ? "==" : ">=", gpu.capability);
    out["architectures"].push_back({{"name", name_of(gpu)},
                                    {"condition", i == 0          ? ""
                                                  : gpu.has_wgmma ? "if (has_warpgroups) "
                                                                  : test}});
  }
  out["architecture_bits"] = bits;
  // Code of the oldest one has no instruction that another device of its capability, or a later one, lacks;
  // but that of sm_90a runs nowhere else.
  if (device.architectures.empty()) return;
  const GpuArchitecture& oldest = device.architectures.front();
  out["made_for"] = {{"name", name_of(oldest)},
                     {"capability", oldest.capability},
                     {"has_warpgroups", oldest.has_wgmma},
                     {"needs", fmt::format("{{{}, {}}}", oldest.capability, oldest.has_wgmma)}};
}

namespace {

/// 10203 of "1.2.3": what preprocessors compare.
int version_number(const std::string& version) {
  int number = 0, part = 0;
  for (const char c : version + ".") {
    if (c == '.') {
      number = 100 * number + std::exchange(part, 0);
    } else if (c >= '0' && c <= '9') {
      part = 10 * part + (c - '0');
    }
  }
  return number;
}

}  // namespace

Json program_json(const Program& program, const EmitOptions& options) {
  const ir::SizesScope scope(program.schedules.back().formulas.get());  // shapes at most
  Json out = Json::object();
  out["name"] = program.name;
  out["upper"] = capitals(program.name);
  out["cuda"] = info_of(program.target).has_device_memory;
  out["of_state_data"] = info_of(program.target).has_device_memory
                             ? "\n * `data` is memory of the host or the device. Waits for the stream."
                             : "";
  out["cuda_archs"] = fmt::format("{}", fmt::join(options.cuda_archs, " "));
  out["cuda_cmake_archs"] = cmake_architectures(options.cuda_archs);
  add_architectures(out, program);
  out["precision"] = precision_json(program.precision);
  out["tool_version"] = program.tool_version;
  out["tool_version_number"] = version_number(program.tool_version);
  out["producer"] = program.producer;
  out["opset"] = program.opset;
  out["model_sha256"] = program.model_sha256;
  out["options"] = program.options;
  add_states(out, program);
  add_sizes(out, program);
  add_weights_mode(out, program, options.weights);
  out["declarations"] = Json::array();
  bool structs = false;
  for (const Kernel& kernel : program.kernels) {
    out["declarations"].push_back(kernel.declaration);
    structs = structs || kernel.takes_structs;
  }
  out["uses_structs"] = structs;
  out["kernel_files"] = kernel_files_json(program, options.kernels_per_file);
  out["headers"] = program.headers;
  out["uses_cublaslt"] = std::find(program.headers.begin(), program.headers.end(),
                                   "gcrt/cuda/product/cublaslt.h") != program.headers.end();
  out["link_flags"] = link_flags(program.target, out["uses_cublaslt"]);
  out["cpu"] = options.cpu;
  out["is_native"] = options.cpu == "native";
  add_levels(out, info_of(program.target), options, program.in_tiles);
  out["arithmetic_flags"] = arithmetic_flags(program.target);
  out["clang_flags"] = clang_flags();
  out["mingw_flags"] = mingw_flags();
  // The flags of clang as compiler of CUDA: host and device have the same.
  out["clang_arithmetic_flags"] = arithmetic_flags(Target::kCpp);
  out["selftest"] = !options.golden.empty();
  out["quantised"] = options.quantised;
  add_packed_weights(out, program);
  add_schedules(out, program);
  add_told_sizes(out, program);
  add_stack(out, runtime_headers(program.headers), machine_of_cpu(options.cpu), program.in_tiles);
  out["statuses"] = statuses_json(program.name, {!program.sizes.empty(), !program.held_sizes.empty()});
  return out;
}

}  // namespace gcompile
