#include "driver/cuda_arch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "ir/diagnostics.h"
#include "ir/nearest_name.h"

namespace gcompile {

namespace {

constexpr int kLowest = 75;

/// To guess what was meant; nvcc knows which there are.
constexpr const char* kKnown[] = {"sm_75",  "sm_80",      "sm_86",      "sm_87",      "sm_89",  "sm_90",
                                  "sm_90a", "sm_100",     "sm_100a",    "sm_103",     "sm_110", "sm_120",
                                  "sm_121", "compute_80", "compute_90", "compute_100"};

/// 90 of "sm_90a", "compute_90"; -1 of anything else.
int capability_of(std::string_view word) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (word.substr(0, prefix.size()) == prefix) {
      word.remove_prefix(prefix.size());
      const bool has_suffix = !word.empty() && (word.back() == 'a' || word.back() == 'f');
      const std::string_view digits = word.substr(0, word.size() - (has_suffix ? 1 : 0));
      const bool is_number =
          (digits.size() == 2 || digits.size() == 3) &&
          std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
      return is_number ? std::stoi(std::string(digits)) : -1;
    }
  }
  return -1;
}

}  // namespace

std::vector<std::string> cuda_architectures(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    if (capability_of(word) < kLowest) {
      const std::string nearest = ir::did_you_mean(word, {std::begin(kKnown), std::end(kKnown)});
      throw ir::CompileError(
          ir::ExitCode::kUsage,
          fmt::format("--arch '{}': '{}' is not an architecture of sm_{} or later", ir::printable(list),
                      ir::printable(word), kLowest),
          nearest.empty()
              ? "for example sm_87, sm_90a or, as PTX, compute_90; a list has commas and no blanks"
              : nearest);
    }
    if (std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
    begin = end + 1;
  }
  return out;
}

std::vector<GpuArchitecture> gpus_of(const std::vector<std::string>& architectures) {
  const bool names_sm_90 =
      std::find(architectures.begin(), architectures.end(), "sm_90") != architectures.end();
  std::vector<GpuArchitecture> out;
  for (const std::string& word : architectures) {
    const GpuArchitecture gpu = {capability_of(word), word == "sm_90a" && !names_sm_90};
    if (std::find(out.begin(), out.end(), gpu) == out.end()) out.push_back(gpu);
  }
  std::sort(out.begin(), out.end(), [](const GpuArchitecture& a, const GpuArchitecture& b) {
    return std::tie(a.capability, a.has_wgmma) < std::tie(b.capability, b.has_wgmma);
  });
  return out;
}

}  // namespace gcompile
