// What a model's entry points return. Nothing in the runtime throws or exits.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// The numbers are those of NAME_status in the C header.
enum class Status : int {
  ok = 0,
  invalid_argument = 1,    // a null pointer, or memory that is not aligned
  index_out_of_range = 2,  // Gather, Scatter and friends met an index outside its axis
  shape_mismatch = 3,      // the model took a branch whose shapes contradict each other
  bad_weights = 4,         // not this model's, or damaged
  not_initialized = 5,     // no init on this instance and this memory
  device_error = 6,        // the CUDA runtime refused
  unsupported_processor = 7,
};

// A static English sentence; never null.
inline const char* status_text(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid_argument:
      return "invalid argument: a null pointer, or memory that is not aligned";
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
  }
  return "unknown status";
}

}  // namespace GCRT_NAMESPACE
