#include "codegen/schedule/data_flow.h"

#include <algorithm>
#include <limits>
#include <set>

namespace gcompile {
namespace {

/// Bytes of its buffer that an argument reaches. An offset that only a run knows may be anywhere.
std::pair<std::int64_t, std::int64_t> bytes_of(const CallArgument& argument) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  if (!argument.storage.offset.is_constant()) return {0, kEnd};
  const std::int64_t begin = argument.storage.offset * bits_of(argument.element) / 8;
  if (!argument.bytes) return {begin, kEnd};
  // A stride that is longer than all elements in a row steps over what is not its own: it may end anywhere.
  const std::int64_t bytes = ir::highest(*argument.bytes);
  const std::int64_t elements = bytes * 8 / bits_of(argument.element);
  const bool is_dense =
      std::all_of(argument.storage.strides.begin(), argument.storage.strides.end(),
                  [&](const ir::Dim stride) { return stride.is_constant() && stride <= elements; });
  return {begin, is_dense ? begin + bytes : kEnd};
}

bool is_stored(const CallArgument& argument) {
  return argument.kind == CallArgument::Kind::kStorage && argument.storage.valid();
}

}  // namespace

std::vector<std::size_t> DataFlow::add(const KernelCall& call, std::size_t position) {
  std::set<std::size_t> from;
  std::set<int> read;
  for (const CallArgument& argument : call.arguments) {
    if (argument.writes) continue;
    if (argument.kind == CallArgument::Kind::kStrip) {
      const auto made = strips_.find(argument.strip);
      if (made != strips_.end()) from.insert(made->second);
    }
    if (!is_stored(argument)) continue;
    read.insert(argument.storage.buffer);
    const auto [begin, end] = bytes_of(argument);
    for (const Write& write : buffers_[argument.storage.buffer]) {
      if (write.begin < end && begin < write.end) from.insert(write.call);
    }
  }
  for (const CallArgument& argument : call.arguments) {
    if (!argument.writes) continue;
    if (argument.kind == CallArgument::Kind::kStrip) strips_[argument.strip] = position;
    if (!is_stored(argument)) continue;
    const auto [begin, end] = bytes_of(argument);
    std::vector<Write>& writes = buffers_[argument.storage.buffer];
    // In place: what it read there is gone.
    if (read.count(argument.storage.buffer) > 0) {
      std::erase_if(writes, [first = begin](const Write& write) { return write.begin == first; });
    }
    writes.push_back({begin, end, position});
  }
  return {from.begin(), from.end()};
}

}  // namespace gcompile
