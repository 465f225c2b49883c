#pragma once
// What kernels run on, as far as costs depend on it (DESIGN law 11). Bytes never depend on the host: `--cpu
// native` is a generic machine.

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/kernels/precision.h"
#include "codegen/target.h"

namespace gcompile {

/// A set of vector instructions that kernels are compiled for.
struct Level {
  int vector_bytes = 32;
  int registers = 16;
  bool has_dot = false;  // integer dot products of groups of four
};

struct Machine {
  std::string name = "generic";
  Target target = Target::kCpp;
  Level level;
  double gigahertz = 3;      // of one core
  int fma_per_clock = 2;     // vector instructions
  double bytes_per_ns = 10;  // of memory
  std::int64_t l1 = 32 << 10, l2 = 1 << 20;
  int capability = 80;  // CUDA: 10 * major + minor
  gcrt::DeviceModel gpu = gcrt::device_model(80);
  Precision precision = Precision::kFp32;  // CUDA: of products of floats
  bool cublaslt = false;                   // CUDA: products of more than eight rows may be left to cuBLASLt
  bool smallest_scratch = false;           // rather than the fastest
  double weight_price = 0;                 // picoseconds that a byte of extra weights has to save

  /// Of a core: float32 multiply-adds, and bytes streamed, whichever takes longer.
  std::int64_t picoseconds(std::int64_t multiply_adds, std::int64_t bytes, double efficiency = 1) const;
};

/// The machine behind a value of --cpu: "native", a level such as "x86-64-v3", or a compiler's name of a
/// core, which is taken for the generic machine of its vectors where it is not known.
Machine machine_of_cpu(std::string_view cpu);
/// The oldest GPU that --arch names decides tiles.
Machine machine_of_gpu(int capability, Precision precision, bool cublaslt);
/// What a target is compiled for when nothing more is said.
Machine default_machine(Target target);

}  // namespace gcompile
