#pragma once
// Bounds on what a model may ask of us, checked before anything is allocated.

#include <cstdint>

namespace gcompile::frontend {

struct Limits {
  std::int64_t file_bytes = (std::int64_t{1} << 31) - 1;       // protobuf's own bound on one message
  std::int64_t external_bytes = std::int64_t{1} << 36;         // all external data of a model
  std::int64_t tensor_elements = (std::int64_t{1} << 31) - 1;  // one tensor
  std::int64_t folded_bytes = std::int64_t{1} << 28;           // values computed while importing
  std::int64_t propagated_elements = 4096;                     // one such value
  std::int64_t shape_value_elements = std::int64_t{1} << 20;   // the same for operators that compute shapes
  int rank = 16;
  int nodes = 1'000'000;  // after inlining
  // What a file of few bytes may grow to: each level of functions that call two multiplies by two, and a loop makes
  // nodes of each of its trips.
  int nodes_of_calls = 100'000;
  std::int64_t bytes_of_calls = std::int64_t{1} << 28;  // of names, attributes and values in these
  int nodes_of_trials = 100'000;                        // that are looked at to suggest sizes
  int graph_nesting = 30;                               // Ifs and loops inside each other
  int function_nesting = 64;
};

}  // namespace gcompile::frontend
