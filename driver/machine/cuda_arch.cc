#include "driver/machine/cuda_arch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/diagnostics.h"
#include "base/nearest_name.h"

namespace gcompile {

namespace {

constexpr int kLowest = 75;

/// To guess what was meant; nvcc knows which there are.
constexpr const char* kKnown[] = {"sm_75",  "sm_80",      "sm_86",      "sm_87",      "sm_89",  "sm_90",
                                  "sm_90a", "sm_100",     "sm_100a",    "sm_103",     "sm_110", "sm_120",
                                  "sm_121", "compute_80", "compute_90", "compute_100"};

/// "sm_90a", "compute_90", read.
struct Entry {
  bool is_ptx = false;
  int capability = 0;
  char suffix = 0;  // a: of this architecture alone; f: of its family
};

std::optional<Entry> entry_of(std::string_view word) {
  Entry entry;
  entry.is_ptx = word.substr(0, 8) == "compute_";
  if (!entry.is_ptx && word.substr(0, 3) != "sm_") return std::nullopt;
  word.remove_prefix(word.find('_') + 1);
  if (!word.empty() && (word.back() == 'a' || word.back() == 'f')) {
    entry.suffix = word.back();
    word.remove_suffix(1);
  }
  const bool is_number = (word.size() == 2 || word.size() == 3) &&
                         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return std::nullopt;
  entry.capability = std::stoi(std::string(word));
  return entry;
}

/// CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility": machine code runs on later
/// devices of its generation, PTX on all later ones; what has a suffix on less; Jetson shares machine code
/// with nobody.
bool runs(int device, const Entry& code) {
  if (device == code.capability) return true;
  if (device < code.capability || code.suffix == 'a') return false;
  const bool is_of_generation = device / 10 == code.capability / 10;
  if (code.suffix == 'f') return is_of_generation;
  const bool is_shared = !is_integrated({device, false}) && !is_integrated({code.capability, false});
  return code.is_ptx || (is_of_generation && is_shared);
}

}  // namespace

std::vector<std::string> cuda_architectures(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    const std::optional<Entry> entry = entry_of(word);
    if (!entry || entry->capability < kLowest) {
      const std::string nearest = did_you_mean(word, {std::begin(kKnown), std::end(kKnown)});
      throw CompileError(
          ExitCode::kUsage,
          fmt::format("--arch '{}': '{}' is not an architecture of sm_{} or later", printable(list),
                      printable(word), kLowest),
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
    const GpuArchitecture gpu = {entry_of(word)->capability, word == "sm_90a" && !names_sm_90};
    if (std::find(out.begin(), out.end(), gpu) == out.end()) out.push_back(gpu);
  }
  std::sort(out.begin(), out.end(), [](const GpuArchitecture& a, const GpuArchitecture& b) {
    return std::tie(a.capability, a.has_wgmma) < std::tie(b.capability, b.has_wgmma);
  });
  return out;
}

std::string code_for(int device, const std::vector<std::string>& architectures) {
  const auto rank = [](const Entry& entry) {
    return std::tuple(!entry.is_ptx, entry.capability, entry.suffix != 0);
  };
  const std::string* best = nullptr;
  for (const std::string& word : architectures) {
    const Entry entry = *entry_of(word);
    if (runs(device, entry) && (best == nullptr || rank(entry) > rank(*entry_of(*best)))) best = &word;
  }
  if (best != nullptr) return *best;
  throw CompileError(
      ExitCode::kUsage,
      fmt::format("the GPU here is of compute capability {}.{}, which runs nothing of --arch {}", device / 10,
                  device % 10, fmt::join(architectures, ",")),
      fmt::format("--arch sm_{}, or --emulate for the CPU", device));
}

}  // namespace gcompile
