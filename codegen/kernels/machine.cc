#include "codegen/kernels/machine.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gcompile {
namespace {

// Tiles of 12 rows and more have more row pointers than there are registers for them: g++ 12 reloads them
// for every step of k, which costs a tenth (12x2 of 64 bytes: 193 of 247 GF/s, 8x3: 220).
constexpr TileShape kTiles16[] = {{4, 2}};
constexpr TileShape kTiles16Of32[] = {{8, 2}};
constexpr TileShape kTiles32[] = {{6, 2}};
constexpr TileShape kTiles64[] = {{8, 3}, {6, 4}};

constexpr Level kSse = {16, 16, false, kTiles16};
constexpr Level kNeon = {16, 32, false, kTiles16Of32};
constexpr Level kNeonDot = {16, 32, true, kTiles16Of32};
constexpr Level kAvx2 = {32, 16, false, kTiles32};
constexpr Level kAvx512 = {64, 32, false, kTiles64};

struct LevelRow {
  std::string_view name;  // of --cpu
  Level level;
};

// What GCC and Clang call the levels of the x86-64 psABI, cores of ARM, and of microcontrollers. A core that
// is not listed is generic.
constexpr std::array<LevelRow, 7> kLevels = {{
    {"x86-64", kSse},
    {"x86-64-v2", kSse},
    {"x86-64-v3", kAvx2},
    {"x86-64-v4", kAvx512},
    {"armv8-a", kNeon},
    {"armv8.2-a+dotprod", kNeonDot},
    {"cortex-m7", {4, 16, false, kTiles16}},
}};

}  // namespace

Level generic_level() { return kAvx2; }

std::vector<Level> generic_levels() { return {kSse, kNeon, kAvx2, kAvx512}; }

std::int64_t Machine::picoseconds(std::int64_t multiply_adds, std::int64_t bytes, double efficiency) const {
  const double lanes = static_cast<double>(level.vector_bytes) / 4;
  const double compute =
      static_cast<double>(multiply_adds) / (lanes * fma_per_clock * gigahertz * efficiency);
  const double stream = static_cast<double>(bytes) / bytes_per_ns;
  return std::llround(1000 * std::max(compute, stream));
}

std::int64_t Machine::stall(std::int64_t working_set, std::int64_t bytes) const {
  // Picoseconds for 16 bytes. A cache holds what else a program touches as well.
  const auto fits = [&](std::int64_t cache) { return working_set <= cache / 8 * 7; };
  const int cost = fits(l1) ? 0 : fits(l2) ? 4 : fits(l3) ? 112 : 640;
  return bytes / 16 * cost;
}

double Machine::least_threaded_work() const {
  constexpr double kAddition = 60;  // picoseconds; of one lane, with its share of loads and stores
  return 2 * static_cast<double>(least_item) / kAddition;
}

Machine machine_of_cpu(std::string_view cpu) {
  Machine machine;
  for (const LevelRow& row : kLevels) {
    if (row.name != cpu) continue;
    machine.name = cpu;
    machine.level = row.level;
    machine.levels = {row.level};
  }
  return machine;
}

Machine machine_of_gpu(int capability, Precision precision, bool cublaslt) {
  Machine machine;
  machine.name = "sm_" + std::to_string(capability);
  machine.target = Target::kCuda;
  machine.capability = capability;
  machine.gpu = gcrt::device_model(capability);
  machine.precision = precision;
  machine.cublaslt = cublaslt;
  return machine;
}

Machine default_machine(Target target) {
  return target == Target::kCuda ? machine_of_gpu(80, Precision::kFp32, false) : Machine{};
}

}  // namespace gcompile
