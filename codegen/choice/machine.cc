#include "codegen/choice/machine.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gcompile {
namespace {

constexpr double kAddition = 60;  // picoseconds; of one lane, with its share of loads and stores

// Tiles of 12 rows and more have more row pointers than there are registers for them: g++ 12 reloads them
// for every step of k, which costs a tenth (12x2 of 64 bytes: 193 of 247 GF/s, 8x3: 220).
constexpr TileShape kTiles16[] = {{4, 2}};
constexpr TileShape kTiles16Of32[] = {{8, 2}};
constexpr TileShape kTiles32[] = {{6, 2}};
constexpr TileShape kTiles64[] = {{6, 4}, {8, 3}};

// vpmaddubsw and vpmaddwd, or both factors widened and vpmaddwd: measured, with what tells the words apart.
constexpr Level kSse = {16, 16, 1.75, 1.9, kTiles16};
constexpr Level kAvx2 = {32, 16, 1.75, 1.9, kTiles32};
constexpr Level kAvx512 = {64, 32, 1.75, 1.9, kTiles64};
// vpdpbusd, vpdpwssd.
constexpr Level kVnni = {64, 32, 4, 2, kTiles64};
constexpr Level kAmx = {64, 32, 4, 2, kTiles64, kTileUnitRate};
constexpr Level kAvxVnni = {32, 16, 4, 2, kTiles32};
// SMULL and SADALP, or SDOT; SMLAL.
constexpr Level kNeon = {16, 32, 1, 1, kTiles16Of32};
constexpr Level kNeon32 = {16, 16, 1, 1, kTiles16};
// A core without vectors: words, and the registers that a loop has beside its pointers.
constexpr Level kScalar = {4, 16, 1, 1, kTiles16};
constexpr Level kNeonDot = {16, 32, 4, 1, kTiles16Of32};

struct LevelRow {
  std::string_view name;  // of --cpu
  Level level;
};

// What GCC and Clang call the levels of the x86-64 psABI and architectures of ARM. What is
// not listed here or among the cores is generic.
constexpr std::array<LevelRow, 15> kLevels = {{
    {"x86-64", kSse},
    {"x86-64-v2", kSse},
    {"x86-64-v3", kAvx2},
    {"x86-64-v4", kAvx512},
    {"cascadelake", kVnni},
    {"icelake-client", kVnni},
    {"icelake-server", kVnni},
    {"sapphirerapids", kAmx},
    {"emeraldrapids", kAmx},
    {"graniterapids", kAmx},
    {"alderlake", kAvxVnni},
    {"znver4", kVnni},
    {"znver5", kVnni},
    {"armv8-a", kNeon},
    {"armv8.2-a+dotprod", kNeonDot},
}};

// The M profile of ARM.
constexpr std::string_view kMicrocontrollers[] = {"cortex-m0",   "cortex-m0plus", "cortex-m1",  "cortex-m3",
                                                  "cortex-m4",   "cortex-m7",     "cortex-m23", "cortex-m33",
                                                  "cortex-m35p", "cortex-m52",    "cortex-m55", "cortex-m85"};

/// One word a clock from tightly coupled memory, which all of it is; one core.
Machine microcontroller(std::string_view name) {
  Machine machine;
  machine.name = name;
  machine.level = kScalar;
  machine.levels = {kScalar};
  machine.rivals.clear();
  machine.has_tile_unit = false;
  machine.gigahertz = 0.2;
  machine.fma_per_clock = 1;
  machine.fma_latency = 3;
  machine.loads_per_clock = 1;
  machine.bytes_per_ns = 0.8;
  machine.l1 = machine.l2 = machine.l3 = 256 << 10;
  machine.cores = 1;
  return machine;
}

/// A core as its maker describes it: the Arm Software Optimization Guide and Technical Reference Manual of
/// each, with the clock and the caches of a usual system on chip. FMA are vectors of 16 bytes; the latency is
/// that between two that add to one sum.
struct Core {
  std::string_view name;  // of --cpu
  Level level;
  double gigahertz;
  int fma_per_clock, fma_latency, loads_per_clock;
  double bytes_per_ns;
  std::int64_t l1, l2, l3;  // KiB
  int cores;
};

constexpr std::array<Core, 8> kCores = {{
    {"cortex-a7", kNeon32, 1.0, 1, 8, 1, 2, 32, 256, 256, 4},
    {"cortex-a15", kNeon32, 1.7, 1, 4, 1, 5, 32, 1024, 1024, 4},
    {"cortex-a53", kNeon, 1.4, 1, 4, 1, 3, 32, 512, 512, 4},
    {"cortex-a55", kNeonDot, 1.8, 1, 4, 1, 5, 32, 128, 1024, 4},
    {"cortex-a72", kNeon, 1.8, 1, 3, 1, 5, 32, 1024, 1024, 4},
    {"cortex-a76", kNeonDot, 2.4, 2, 2, 2, 10, 64, 512, 2048, 4},
    {"cortex-a78", kNeonDot, 2.4, 2, 2, 2, 12, 64, 512, 4096, 8},
    {"neoverse-n1", kNeonDot, 2.6, 2, 2, 2, 15, 64, 1024, 8192, 16},
}};

}  // namespace

Level generic_level() { return kAvx2; }

std::vector<Level> generic_levels() { return {kSse, kNeon, kAvx2, kAvx512}; }

std::vector<Level> generic_rivals() { return {kVnni}; }

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

double Machine::least_threaded_work() const { return 2 * static_cast<double>(least_item) / kAddition; }

std::int64_t Machine::picoseconds_of_work(double additions) const {
  constexpr double kLongest = 1e18;  // ten days: sizes of hostile models reach far beyond
  return std::llround(std::min(additions * kAddition, kLongest));
}

bool is_microcontroller(std::string_view cpu) {
  for (const std::string_view prefix : {"cortex-m", "rv32"}) {
    if (cpu.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

Machine machine_of_cpu(std::string_view cpu) {
  if (is_microcontroller(cpu)) return microcontroller(cpu);
  Machine machine;
  for (const LevelRow& row : kLevels) {
    if (row.name != cpu) continue;
    machine.name = cpu;
    machine.level = row.level;
    machine.levels = {row.level};
    machine.rivals.clear();
    machine.has_tile_unit = row.level.tile_unit_rate > 0;
  }
  for (const Core& core : kCores) {
    if (core.name != cpu) continue;
    machine.name = cpu;
    machine.level = core.level;
    machine.levels = {core.level};
    machine.rivals.clear();
    machine.has_tile_unit = false;
    machine.gigahertz = core.gigahertz;
    machine.fma_per_clock = core.fma_per_clock;
    machine.fma_latency = core.fma_latency;
    machine.loads_per_clock = core.loads_per_clock;
    machine.bytes_per_ns = core.bytes_per_ns;
    machine.l1 = core.l1 << 10;
    machine.l2 = core.l2 << 10;
    machine.l3 = core.l3 << 10;
    machine.cores = core.cores;
  }
  return machine;
}

std::vector<std::string> known_cpus() {
  std::vector<std::string> names;
  for (const LevelRow& row : kLevels) names.emplace_back(row.name);
  for (const Core& core : kCores) names.emplace_back(core.name);
  for (const std::string_view name : kMicrocontrollers) names.emplace_back(name);
  return names;
}

bool is_integrated(const GpuArchitecture& architecture) {
  return architecture.capability == 87 || architecture.capability == 110;
}

std::string name_of(const GpuArchitecture& architecture) {
  return "sm_" + std::to_string(architecture.capability) + (architecture.has_wgmma ? "a" : "");
}

Machine machine_of_gpu(const GpuArchitecture& architecture, Precision precision, bool cublaslt) {
  Machine machine;
  machine.target = Target::kCuda;
  machine.rivals.clear();
  machine.precision = precision;
  machine.cublaslt = cublaslt;
  return machine_on(std::move(machine), architecture);
}

Machine machine_on(Machine machine, const GpuArchitecture& architecture) {
  machine.name = name_of(architecture);
  machine.architecture = architecture;
  machine.gpu = gcrt::device_model(architecture.capability);
  return machine;
}

Machine default_machine(Target target) {
  return target == Target::kCuda ? machine_of_gpu({}, Precision::kFp32, false) : Machine{};
}

}  // namespace gcompile
