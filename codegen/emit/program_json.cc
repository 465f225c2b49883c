#include "codegen/emit/program_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "codegen/emit/compile_flags.h"
#include "codegen/emit/report_json.h"
#include "codegen/emit/schedule_json.h"
#include "ir/diagnostics.h"
#include "ir/sha256.h"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// Bytes of the instance block of a CPU program: a mark and the weights that were checked.
constexpr std::int64_t kInstanceBytes = 64;
constexpr std::int64_t kLargePage = std::int64_t{2} << 20;  // of x86-64 and of AArch64

/// Pairs of buffers that one static_assert looks at; clang evaluates about 10^6 steps in one constant.
constexpr std::int64_t kPairsPerCheck = 20'000;

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

Json shape_json(const ir::Shape& shape) {
  Json dims = Json::array();
  for (const std::int64_t dim : shape) dims.push_back(dim);
  return dims;
}

Json port_json(const std::string& c_name, const std::string& model_name, const std::string& c_type,
               const ir::TensorType& type, std::size_t index) {
  Json port = Json::object();
  port["index"] = index;
  port["c_name"] = c_name;
  port["model_name"] = model_name;
  port["c_type"] = c_type;
  port["type"] = to_string(type);
  port["element"] = name_of(type.element);
  port["rank"] = type.rank();
  port["shape"] = shape_json(type.shape);
  port["has_shape"] = type.rank() > 0;
  port["elements"] = type.count();
  port["element_bytes"] = bits_of(type.element) / 8;
  port["bytes"] = type.bytes();
  port["has_elements"] = type.count() > 0;
  port["offset"] = 0;
  port["remark"] = "";
  return port;
}

/// A mark and the weights that were checked; on CUDA also the graph, 16 bytes for each of its steps, and the
/// pointers that it copies from and to.
std::int64_t instance_bytes(const Program& program) {
  if (!info_of(program.target).has_device_memory) return kInstanceBytes;
  const auto ports = static_cast<std::int64_t>(std::max<std::size_t>(1, program.inputs.size()) +
                                               std::max<std::size_t>(1, program.outputs.size()));
  const std::int64_t bytes =
      128 + program.host_bytes + 8 * ports + 16 * std::max<std::int64_t>(1, program.graph_steps);
  return (bytes + kInstanceBytes - 1) / kInstanceBytes * kInstanceBytes;
}

Json offset_json(const Offset& offset) {
  return {{"name", offset.name}, {"value", offset.value}, {"bytes", offset.bytes}, {"what", offset.what}};
}

/// The plan as emitted code checks it: sorted by the begin of lives, so that only pairs that overlap in time
/// are compared, in several constants of bounded work.
void add_plan(Json& out, const Program& program) {
  std::vector<std::size_t> order(program.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return program.buffers[a].begin_step < program.buffers[b].begin_step;
  });
  Json plan = Json::array(), checks = Json::array();
  std::int64_t pairs = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Buffer& buffer = program.buffers[order[i]];
    plan.push_back({{"name", program.arena_offsets[order[i]].name},
                    {"bytes", (buffer.size + buffer.alignment - 1) / buffer.alignment * buffer.alignment},
                    {"begin", buffer.begin_step},
                    {"end", buffer.end_step}});
    for (std::size_t j = i + 1; j < order.size() && program.buffers[order[j]].begin_step < buffer.end_step;
         ++j) {
      ++pairs;
    }
    if (pairs > kPairsPerCheck || i + 1 == order.size()) {
      checks.push_back({{"first", first}, {"last", i + 1}});
      first = i + 1;
      pairs = 0;
    }
  }
  out["plan"] = std::move(plan);
  out["plan_checks"] = std::move(checks);
  out["has_plan"] = !order.empty();
}

Json kernel_files_json(const Program& program, int kernels_per_file) {
  Json files = Json::array();
  for (const KernelFile& file : split_kernels(program, kernels_per_file)) {
    std::set<std::string> headers, functors;
    Json kernels = Json::array();
    for (const std::size_t i : file.kernels) {
      const Kernel& kernel = program.kernels[i];
      headers.insert(kernel.headers.begin(), kernel.headers.end());
      functors.insert(kernel.functors.begin(), kernel.functors.end());
      kernels.push_back({{"name", kernel.name}, {"text", kernel.text}});
    }
    Json entry = Json::object();
    entry["stem"] = file.stem;
    entry["headers"] = headers;
    entry["functors"] = Json::array();
    for (const Functor& functor : program.functors) {
      if (functors.count(functor.name) > 0) entry["functors"].push_back(functor.text);
    }
    entry["kernels"] = std::move(kernels);
    files.push_back(std::move(entry));
  }
  return files;
}

void add_ports(Json& out, const Program& program) {
  const auto list = [&](const std::vector<Port>& ports) {
    Json entries = Json::array();
    for (std::size_t i = 0; i < ports.size(); ++i) {
      entries.push_back(port_json(ports[i].c_name, ports[i].model_name, ports[i].c_type, ports[i].type, i));
      entries.back()["block"] = (&ports == &program.outputs ? program.inputs.size() : 0) + i;
      entries.back()["is_placed"] = !ports[i].place.empty();
      entries.back()["place"] = ports[i].place;
    }
    return entries;
  };
  out["inputs"] = list(program.inputs);
  out["outputs"] = list(program.outputs);
  const auto is_placed = [](const Port& port) { return !port.place.empty(); };
  out["has_placed"] = std::any_of(program.inputs.begin(), program.inputs.end(), is_placed) ||
                      std::any_of(program.outputs.begin(), program.outputs.end(), is_placed);
  // The braces of an initialiser in examples: "input3, mask".
  const auto names = [](const std::vector<Port>& ports) {
    std::string text;
    for (const Port& port : ports) text += (text.empty() ? "" : ", ") + port.c_name;
    return text;
  };
  out["example_inputs"] = names(program.inputs);
  out["example_outputs"] = names(program.outputs);
  out["has_inputs"] = !program.inputs.empty();
  out["has_outputs"] = !program.outputs.empty();
  out["input_count"] = program.inputs.size();
  out["output_count"] = program.outputs.size();
  int rank = 1;
  for (const Port& port : program.inputs) rank = std::max(rank, port.type.rank());
  for (const Port& port : program.outputs) rank = std::max(rank, port.type.rank());
  out["max_rank"] = rank;

  Json states = Json::array();
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const StateTensor& state = program.states[i];
    Json entry = port_json(state.c_name, state.input_name, state.c_type, state.type, i);
    entry["output_name"] = state.output_name;
    entry["offset"] = state.offset;
    const std::int64_t end =
        i + 1 < program.states.size() ? program.states[i + 1].offset : program.state_bytes;
    entry["padding"] = end - state.offset - state.type.bytes();
    entry["has_padding"] = end - state.offset - state.type.bytes() > 0;
    states.push_back(std::move(entry));
  }
  out["states"] = std::move(states);
  out["state_count"] = program.states.size();
  out["has_states"] = !program.states.empty();
}

void add_sizes(Json& out, const Program& program) {
  const bool has_weights = program.weights_bytes > 0;
  out["arena_bytes"] = program.arena_bytes;
  out["state_bytes"] = program.state_bytes;
  out["payload_bytes"] = program.weights_bytes;
  out["weights_bytes"] = weights_file_bytes(program);
  out["weights_header_bytes"] = kWeightsHeaderBytes;
  out["weights_checksum"] = fmt::format("0x{:016x}u", program.weights.checksum);
  out["instance_bytes"] = instance_bytes(program);
  out["graph_steps"] = std::max<std::int64_t>(1, program.graph_steps);
  out["has_host"] = program.host_bytes > 0;
  out["host_bytes"] = program.host_bytes;
  out["has_trap"] = program.trap_offset >= 0;
  out["has_steps"] = !program.steps.empty();
  out["trap_offset"] = program.trap_offset;
  out["alignment"] = program.alignment;
  out["buffer_alignment"] = program.buffer_alignment;
  // Marks an instance as initialised by this very program.
  out["instance_mark"] = fmt::format(
      "0x{}u",
      sha256_hex(fmt::format("{} {} {}", program.name, program.model_sha256, program.options)).substr(0, 16));
  out["in_tiles"] = program.in_tiles;
  out["zeroes_denormals"] = program.zeroes_denormals;
  out["has_arena"] = program.arena_bytes > 0;
  out["has_weights"] = has_weights;
  out["arena_offsets"] = Json::array();
  for (const Offset& offset : program.arena_offsets) out["arena_offsets"].push_back(offset_json(offset));
  out["has_offsets"] = program.arena_bytes > 0 || has_weights || program.state_bytes > 0;
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
  weights["on_disk"] = present && mode != WeightsMode::kArray;
  weights["loaded"] = present && (mode == WeightsMode::kFile || mode == WeightsMode::kExtern);
  // What the wrapper of a processor allocates: blocks of large pages miss the TLB less.
  const std::int64_t block =
      std::max(program.arena_bytes, mode == WeightsMode::kFile ? weights_file_bytes(program) : 0);
  out["large_blocks"] = block >= kLargePage;
  out["weights"] = std::move(weights);
}

void add_statistics(Json& out, const Program& program) {
  const Statistics& s = program.statistics;
  out["statistics"] = {{"nodes_imported", s.nodes_imported},       {"nodes_optimised", s.nodes_optimised},
                       {"kernels", program.kernels.size()},        {"calls", program.layers.size()},
                       {"arena_lower_bound", s.arena_lower_bound}, {"bare_first_fit", s.bare_first_fit},
                       {"scratch_bytes", s.scratch_bytes},         {"multiply_adds", s.multiply_adds},
                       {"parameter_bytes", s.parameter_bytes}};
}

/// Steps that several kernel families were asked to serve: what they were asked, then who serves, and what
/// the others said; manifest and report tell it from here.
void add_choices(Json& out, const Program& program) {
  out["choices"] = Json::array();
  for (std::size_t i = 0; i < program.layers.size(); ++i) {
    const Layer& layer = program.layers[i];
    if (layer.rivals.empty()) continue;
    Json families = Json::array();
    for (const Rival& rival : layer.rivals) {
      Json family = {{"family", rival.family}};
      if (!rival.plan.empty()) family["plan"] = rival.plan;
      if (rival.refusal.empty()) {
        family["picoseconds"] = rival.picoseconds;
        if (rival.extra_weights > 0) family["extra_weights"] = rival.extra_weights;
      } else {
        family["refusal"] = rival.refusal;
      }
      families.push_back(std::move(family));
    }
    out["choices"].push_back({{"step", i},
                              {"kernel", layer.function},
                              {"problem", layer.problem},
                              {"families", std::move(families)}});
  }
}

/// Weights that --weight-bits packed; manifest and report tell it from here.
void add_packed_weights(Json& out, const Program& program) {
  out["packed_weights"] = Json::array();
  for (const PackedWeight& weight : program.packed_weights) {
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
}

/// What the calls of the schedule do, in their order, for programs that time them.
void add_layers(Json& out, const Program& program) {
  out["layers"] = Json::array();
  bool joins = false;  // layers that hand each other strips have one time
  for (const Layer& layer : program.layers) {
    const std::int64_t bytes = layer.bytes_read - layer.weight_bytes + layer.bytes_written;
    if (joins) {
      Json& whole = out["layers"].back();
      for (const auto& [key, text] :
           {std::pair("function", layer.function), {"family", layer.family}, {"origins", layer.origins}}) {
        whole[key] = whole[key].get<std::string>() + ", " + text;
      }
      for (const auto& [key, number] : {std::pair("multiply_adds", layer.multiply_adds),
                                        {"bytes", bytes},
                                        {"weight_bytes", layer.weight_bytes}}) {
        whole[key] = whole[key].get<std::int64_t>() + number;
      }
    } else {
      out["layers"].push_back({{"function", layer.function},
                               {"family", layer.family},
                               {"origins", layer.origins},
                               {"multiply_adds", layer.multiply_adds},
                               {"multiplies_bytes", layer.multiplies_bytes},
                               {"bytes", bytes},
                               {"weight_bytes", layer.weight_bytes}});
    }
    joins = layer.hands_over_strips;
  }
  out["is_timed"] = false;  // of the schedule that is being rendered
}

/// How products are formed, where it is not as exactly as float32.
Json precision_json(Precision precision) {
  const PrecisionFacts& facts = facts_of(precision);
  return {{"is_reduced", precision != Precision::kFp32},
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

std::int64_t weights_file_bytes(const Program& program) {
  return program.weights_bytes > 0 ? program.weights_bytes + static_cast<std::int64_t>(kWeightsHeaderBytes)
                                   : 0;
}

std::vector<KernelFile> split_kernels(const Program& program, int kernels_per_file) {
  const std::size_t count = program.kernels.size();
  const int usual = info_of(program.target).kernels_per_file;
  const std::size_t limit = static_cast<std::size_t>(kernels_per_file > 0 ? kernels_per_file : usual);
  const std::size_t files = std::max<std::size_t>(1, (count + limit - 1) / limit);
  std::vector<KernelFile> out;
  for (std::size_t f = 0; f < files; ++f) {
    KernelFile file;
    file.stem = fmt::format("{}_kernels", program.name);
    if (files > 1) file.stem += fmt::format("_{}", f + 1);
    for (std::size_t i = f * count / files; i < (f + 1) * count / files; ++i) file.kernels.push_back(i);
    out.push_back(std::move(file));
  }
  return out;
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

Json program_json(const Program& program, const EmitOptions& options) {
  Json out = Json::object();
  out["name"] = program.name;
  out["upper"] = upper(program.name);
  out["cuda"] = info_of(program.target).has_device_memory;
  out["cuda_archs"] = fmt::format("{}", fmt::join(options.cuda_archs, " "));
  out["cuda_cmake_archs"] = cmake_architectures(options.cuda_archs);
  out["precision"] = precision_json(program.precision);
  out["tool_version"] = program.tool_version;
  out["producer"] = program.producer;
  out["opset"] = program.opset;
  out["model_sha256"] = program.model_sha256;
  out["options"] = program.options;
  add_ports(out, program);
  add_sizes(out, program);
  add_weights_mode(out, program, options.weights);
  add_plan(out, program);
  add_schedule(out, program);
  out["declarations"] = Json::array();
  bool halves = false;
  for (const Kernel& kernel : program.kernels) {
    out["declarations"].push_back(kernel.declaration);
    halves = halves || kernel.takes_halves;
  }
  out["uses_halves"] = halves;
  out["kernel_files"] = kernel_files_json(program, options.kernels_per_file);
  out["headers"] = program.headers;
  out["uses_cublaslt"] = std::find(program.headers.begin(), program.headers.end(), "gcrt/cuda/cublaslt.h") !=
                         program.headers.end();
  out["cpu"] = options.cpu;
  add_levels(out, info_of(program.target), options, program.in_tiles);
  out["arithmetic_flags"] = arithmetic_flags(program.target);
  out["clang_flags"] = clang_flags();
  out["selftest"] = !options.golden.empty();
  out["quantised"] = options.quantised;
  add_statistics(out, program);
  add_choices(out, program);
  add_packed_weights(out, program);
  add_layers(out, program);
  add_report(out, program);
  return out;
}

}  // namespace gcompile
