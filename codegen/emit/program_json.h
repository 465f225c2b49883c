#pragma once
// The Program as JSON: the only thing a template sees, and what --dump-dir writes.

#include "codegen/program/program.h"
#include "codegen/program/statistics.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// Where the packed constants of an output live.
enum class WeightsMode : std::uint8_t {
  kIncbin,  // data/NAME.weights.bin, linked in by the assembler
  kArray,   // the same bytes as a C array
  kFile,    // data/NAME.weights.bin, which the C++ wrapper loads
  kExtern,  // the same file, but where its bytes lie is the caller's business
};

/// "incbin", "array", "file" or "extern".
const char* weights_mode_name(WeightsMode mode);

struct EmitOptions {
  WeightsMode weights = WeightsMode::kIncbin;
  /// For each schedule test vectors in the layout of tests/selftest.cpp; empty: no self test.
  std::vector<std::string> golden;
  /// The model computes with quantised integers: the self test lets 0.1 % of them be off by one.
  bool quantised = false;
  /// Build systems of microcontrollers that the project is packed for:
  /// "esp-idf", "zephyr", "platformio", "arduino".
  std::vector<std::string> packs;
  /// Most kernels of one source file. 0: as many as the target's compiler takes in a few seconds.
  int kernels_per_file = 0;
  /// -march= that the output's own build asks for.
  std::string cpu = "native";
  /// What nvcc builds for: machine code, "sm_87", or PTX, "compute_90".
  std::vector<std::string> cuda_archs = {"sm_80"};
};

/// Everything about the program except the bytes of its weights. Texts that came from the model are raw:
/// templates print them through a filter that escapes.
nlohmann::ordered_json program_json(const Program& program, const EmitOptions& options);

/// The arena of the schedule that needs the most.
std::int64_t arena_bytes(const Program& program);

/// NAME_INSTANCE_BYTES.
std::int64_t instance_bytes(const Program& program);

}  // namespace gcompile
