#pragma once
// What the runner of emitted cases knows of each:
// compiled into the emitted project, C++17, no compiler headers.

#include <cstddef>

struct EmittedMemory {
  void *arena, *weights, *state, *instance;
};

struct EmittedCase {
  const char* name;
  std::size_t arena_bytes, weights_bytes, state_bytes, instance_bytes;
  int inputs, outputs;
  const std::size_t *input_bytes, *output_bytes;
  /// Init and run; the model's status.
  int (*run)(const EmittedMemory& memory, const void* const* inputs, void* const* outputs);
};

struct EmittedUnit {
  const EmittedCase* cases;
  int count;
};
