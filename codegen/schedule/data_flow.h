#pragma once
// Which calls read what other calls wrote: the edges of the graph that the report draws.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "codegen/calls/kernel_call.h"

namespace gcompile {

/// Calls are added in the order of the schedule. Where values share a buffer, parts of a Concat for one, a
/// call reads from those whose bytes may be among its own.
class DataFlow {
 public:
  /// The calls that `call` reads from, ascending; from then on `call` is the one at `position`.
  std::vector<std::size_t> add(const KernelCall& call, std::size_t position);
  /// Images of strips are counted anew.
  void begin_strips() { strips_.clear(); }

 private:
  struct Write {
    std::int64_t begin, end;  // bytes of the buffer
    std::size_t call;
  };
  std::map<int, std::vector<Write>> buffers_;
  std::map<int, std::size_t> strips_;  // image -> the call that makes its rows
};

}  // namespace gcompile
