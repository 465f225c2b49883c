// What a model's entry points return. Nothing in the runtime throws or exits.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// The numbers are those of NAME_status in the C header.
enum class Status : int {
  ok = 0,
  invalid_argument = 1,    // outside its range
  index_out_of_range = 2,  // Gather, Scatter and friends met an index outside its axis
  shape_mismatch = 3,      // the model took a branch whose shapes contradict each other
  bad_weights = 4,         // not this model's, or damaged
  not_initialized = 5,     // no init on this instance and this memory
  device_error = 6,        // the CUDA runtime refused
  unsupported_processor = 7,
  invalid_sizes = 8,  // not among those that the model was compiled for
  null_pointer = 10,
  misaligned = 11,
  wrong_size = 12,  // a span has another number of elements than the tensor
};

// A static English sentence; never null.
inline const char* status_text(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid_argument:
      return "an argument is outside its range";
    case Status::index_out_of_range:
      return "an index is out of range";
    case Status::shape_mismatch:
      return "shapes contradict each other at run time";
    case Status::bad_weights:
      return "the weights are not this model's, or damaged";
    case Status::not_initialized:
      return "the instance is not initialized";
    case Status::device_error:
      return "the CUDA runtime refused; the model's device_error tells why";
    case Status::unsupported_processor:
      return "the processor lacks instructions that the library was built for";
    case Status::invalid_sizes:
      return "the sizes are not among those that the library was built for";
    case Status::null_pointer:
      return "a pointer is null, though bytes lie behind it";
    case Status::misaligned:
      return "a pointer is not aligned as the header asks";
    case Status::wrong_size:
      return "a span has another number of elements than its tensor";
  }
  return "unknown status";
}

}  // namespace GCRT_NAMESPACE
