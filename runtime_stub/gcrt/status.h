// What a model's entry points return. Nothing in the runtime throws or exits.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

enum class Status : int {
  ok = 0,
  invalid_argument = 1,    // a null pointer, a misaligned arena, a value outside its documented range
  index_out_of_range = 2,  // Gather, Scatter and friends met an index outside its axis
  shape_mismatch = 3,      // a shape known only at run time contradicts the one that was compiled
  unsupported = 4,         // a branch that the compiler could not compile was taken
};

// A static English sentence; never null.
GCRT_INLINE const char* status_text(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid_argument:
      return "invalid argument";
    case Status::index_out_of_range:
      return "index out of range";
    case Status::shape_mismatch:
      return "shape mismatch";
    case Status::unsupported:
      return "unsupported at run time";
  }
  return "unknown status";
}

}  // namespace GCRT_NAMESPACE
