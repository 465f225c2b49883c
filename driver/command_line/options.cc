#include "driver/command_line/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/diagnostics.h"
#include "base/names.h"
#include "driver/command_line/option_table.h"
#include "jinja/text.h"

namespace gcompile {
namespace {

/// Names that would collide with a word of the languages, or with targets and namespaces of the output's own.
bool is_unusable_name(const std::string& name) {
  static const std::set<std::string> names = {"all",     "clean", "gcrt", "help",
                                              "install", "main",  "std",  "test"};
  return names.count(name) > 0 || is_reserved_word(name);
}

/// "model" of "folder/model.onnx".
std::string stem_of(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return file.substr(0, file.rfind('.'));
}

/// "detector" of "out/detector/"; nothing an identifier is made of where the path ends otherwise.
std::string last_folder(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::string canonical_options(const Options& options) {
  std::string text = fmt::format("--target {} -O{}", info_of(options.target).name, options.level);
  const auto add = [&](std::string_view flag, const std::string& value) {
    text += fmt::format(" {} {}", flag, value);
  };
  if (options.optimize_for_size) add("--optimize-for", "size");
  if (options.exact) text += " --exact";
  if (options.weight_bits != 0) add("--weight-bits", std::to_string(options.weight_bits));
  for (const std::string& dim : options.dims) add("--dim", dim);
  for (const std::string& shape : options.shapes) add("--shape", shape);
  for (const std::string& set : options.sets) add("--set", set);
  for (const auto& [input, count] : options.import.bindings.elements)
    add("--elements", fmt::format("{}={}", input, count ? std::to_string(*count) : "none"));
  for (const auto& [input, output] : options.import.states) add("--state", input + "=" + output);
  std::vector<std::string> disabled = options.disabled;
  std::sort(disabled.begin(), disabled.end());
  for (const std::string& pass : disabled) add("--disable-pass", pass);
  if (options.pass_limit >= 0) add("--pass-limit", std::to_string(options.pass_limit));
  if (options.cpu != "native") add("--cpu", options.cpu);
  if (info_of(options.target).has_device_memory) add("--arch", options.arch);
  if (options.cublaslt) add("--gemm", "cublaslt");
  if (options.precision != Precision::kFp32) add("--precision", facts_of(options.precision).name);
  if (!options.activations.empty()) add("--activations", options.activations);
  for (const std::string& node : options.kept_fp32) add("--keep-fp32", node);
  for (const auto& [node, family] : options.forced_kernels) add("--kernel", node + "=" + family);
  if (options.extra_weights_percent != 100) {
    add("--extra-weights", std::to_string(options.extra_weights_percent));
  }
  if (options.weights != WeightsMode::kIncbin) add("--weights", weights_mode_name(options.weights));
  if (options.selftest) text += " --selftest";
  for (const std::string& pack : options.packs) add("--pack", pack);
  return text;
}

std::string program_name(const Options& options) {
  if (!options.name.empty()) {
    const std::string& name = options.name;
    const bool good =
        name[0] >= 'a' && name[0] <= 'z' && c_identifier_stem(name) == name && !is_unusable_name(name);
    if (!good && is_unusable_name(name)) {
      usage_error(fmt::format("--name '{}' is taken: it is a word of C++, of C or of the build files", name),
                  fmt::format("for example --name {}_model", name));
    }
    if (!good) {
      usage_error(fmt::format("--name '{}' cannot be a prefix", printable(name)),
                  "use lower-case words of at most 40 characters, such as 'face_detector'");
    }
    return name;
  }
  std::string stem = c_identifier_stem(stem_of(options.model));
  if (stem == "model") stem = c_identifier_stem(last_folder(options.output));
  if (stem.empty()) return "model";
  if (stem[0] >= '0' && stem[0] <= '9') return "model_" + stem;
  return is_unusable_name(stem) ? stem + "_model" : stem;
}

}  // namespace gcompile
