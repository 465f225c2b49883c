#pragma once
// What kernels run on, as far as costs depend on it (DESIGN law 11). Bytes never depend on the host: `--cpu
// native` is a generic machine.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/choice/precision.h"
#include "codegen/target.h"
#include "gcrt/cuda/device/time_model.h"

namespace gcompile {

/// Sums that a kernel keeps in registers: rows, and vectors of float32 per row.
struct TileShape {
  std::int64_t rows, vectors;
  bool operator==(const TileShape&) const = default;
};

/// Multiply-adds of bytes by a tile unit in the time of one of float32 by FMA: 16 clocks of TDPBUSD for 16 x
/// 16 words by words, between two of which two registers are loaded in as many. By Intel's manual of
/// optimisation; no such machine was measured. TDPBF16PS makes half as many.
constexpr double kTileUnitRate = 16;

/// A set of vector instructions that kernels are compiled for.
struct Level {
  int vector_bytes = 32;
  int registers = 16;
  /// Multiply-adds of bytes and of int16, with sums of 32 bits, in the time of one of float32.
  double byte_rate = 1, int16_rate = 1;
  /// The tiles whose sums, factors and row pointers fit the registers of both compilers;
  /// of equal ones the first is taken.
  std::span<const TileShape> tiles = {};
  /// Like byte_rate, for whole registers of a tile unit (gcrt/isa/tiles.h); 0: there is none.
  double tile_unit_rate = 0;
  /// Words of 32 bits are all that a core without vectors multiplies.
  bool has_vectors() const { return vector_bytes > 4; }
};

/// The level of a machine of which nothing is known.
Level generic_level();
std::vector<Level> generic_levels();
std::vector<Level> generic_rivals();

/// A GPU as --arch names it: what its code may use and, by gcrt::device_model, what is fast on it.
struct GpuArchitecture {
  int capability = 80;     // 10 * major + minor
  bool has_wgmma = false;  // all machine code of this capability is that of sm_90a
  bool operator==(const GpuArchitecture&) const = default;
};
/// Whether it shares its memory with the host, as Jetson does: a GPU of few multiprocessors.
bool is_integrated(const GpuArchitecture& architecture);
/// "sm_90a".
std::string name_of(const GpuArchitecture& architecture);

struct Machine {
  std::string name = "generic";
  Target target = Target::kCpp;
  Level level = generic_level();  // the usual one
  /// The levels that the project may be built for, in the order of TileOfLevel (gcrt/cpu/product/dot.h).
  std::vector<Level> levels = generic_levels();
  /// The levels that families are chosen for besides the usual one: all share one set of weights,
  /// so that what costs least on average is taken.
  std::vector<Level> rivals = generic_rivals();
  bool has_tile_unit = true;  // the project may be built for a level that has one
  double gigahertz = 3;       // of one core
  int fma_per_clock = 2;      // vector instructions
  int fma_latency = 4;        // clocks
  int loads_per_clock = 2;
  double bytes_per_ns = 10;  // of memory
  /// Bytes of cache that one core has, or may hold of a shared one.
  std::int64_t l1 = 32 << 10, l2 = 512 << 10, l3 = 8 << 20;
  int cores = 16;                       // that work is split for, at most
  std::int64_t least_item = 3'000'000;  // picoseconds that are worth another thread, with its barrier
  GpuArchitecture architecture;         // CUDA
  gcrt::DeviceModel gpu = gcrt::device_model(80);
  Precision precision = Precision::kFp32;  // of products of floats
  bool cublaslt = false;                   // CUDA: products of more than eight rows may be left to cuBLASLt
  bool smallest_scratch = false;           // rather than the fastest
  double weight_price = 0;                 // picoseconds that a byte of extra weights has to save

  /// The time that a core takes: float32 multiply-adds, and bytes streamed, whichever takes longer.
  std::int64_t picoseconds(std::int64_t multiply_adds, std::int64_t bytes, double efficiency = 1) const;
  /// What is left of the time of `bytes` that a kernel reads, one line after the other, behind its
  /// multiply-adds, while `working_set` bytes are in use.
  std::int64_t stall(std::int64_t working_set, std::int64_t bytes) const;
  /// Whether a step that takes so long is not worth a second thread.
  bool is_short(std::int64_t step) const { return step < 2 * least_item; }
  /// Additions in a printed loop that are.
  double least_threaded_work() const;
  /// The time that so many take.
  std::int64_t picoseconds_of_work(double additions) const;
};

/// The machine behind a value of --cpu: "native", a level such as "x86-64-v3", or a compiler's name of a
/// core, which is taken for the generic machine of its vectors where it is not known.
Machine machine_of_cpu(std::string_view cpu);
/// A core without vectors, caches or other cores, and with little memory: of ARM's M profile, or of RISC-V
/// with 32 bits. Also one of that kind whose name is not known.
bool is_microcontroller(std::string_view cpu);
/// The values of --cpu of which there are figures.
std::vector<std::string> known_cpus();
Machine machine_of_gpu(const GpuArchitecture& architecture, Precision precision, bool cublaslt);
/// The same with another GPU.
Machine machine_on(Machine machine, const GpuArchitecture& architecture);
/// What a target is compiled for when nothing more is said.
Machine default_machine(Target target);

}  // namespace gcompile
