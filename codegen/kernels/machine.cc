#include "codegen/kernels/machine.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gcompile {
namespace {

struct LevelRow {
  std::string_view name;  // of --cpu
  Level level;
};

// What GCC and Clang call the levels of the x86-64 psABI, cores of ARM, and of microcontrollers. A core that
// is not listed is generic.
constexpr std::array<LevelRow, 7> kLevels = {{
    {"x86-64", {16, 16, false}},
    {"x86-64-v2", {16, 16, false}},
    {"x86-64-v3", {32, 16, false}},
    {"x86-64-v4", {64, 32, false}},
    {"armv8-a", {16, 32, false}},
    {"armv8.2-a+dotprod", {16, 32, true}},
    {"cortex-m7", {4, 16, false}},
}};

}  // namespace

std::int64_t Machine::picoseconds(std::int64_t multiply_adds, std::int64_t bytes, double efficiency) const {
  const double lanes = static_cast<double>(level.vector_bytes) / 4;
  const double compute =
      static_cast<double>(multiply_adds) / (lanes * fma_per_clock * gigahertz * efficiency);
  const double stream = static_cast<double>(bytes) / bytes_per_ns;
  return std::llround(1000 * std::max(compute, stream));
}

Machine machine_of_cpu(std::string_view cpu) {
  Machine machine;
  for (const LevelRow& row : kLevels) {
    if (row.name != cpu) continue;
    machine.name = cpu;
    machine.level = row.level;
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
