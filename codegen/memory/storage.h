#pragma once
// Homes of values before offsets are planned (DESIGN law 4).

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile {

enum class Space : std::uint8_t { kArena, kWeights, kInput, kOutput, kState, kHost };

/// One contiguous piece of memory that values live in.
struct StorageBuffer {
  Space space = Space::kArena;
  int port = -1;  // kInput, kOutput: position in the graph's lists; kState: state tensor; kHost: byte offset
  std::int64_t bytes = 0;
  std::string name;        // of the value it was made for
  std::string maker;       // the node that makes a value without a name, which emitted code calls it after
  ir::TensorType type;     // likewise, for comments
  ir::Shape strides = {};  // likewise
  bool scratch = false;
  std::int64_t first_step = -1;  // kArena: life in schedule time, half-open
  std::int64_t end_step = -1;
  int weights_entry = -1;  // kWeights: entry of the blob
};

/// What emitted code calls the buffer.
const std::string& name_in_code(const StorageBuffer& buffer);

struct Storage {
  int buffer = -1;
  ir::Dim offset = 0;  // elements of the value's type
  ir::Shape strides;
  bool valid() const { return buffer >= 0; }
};

/// Axes of more than one element in the order in which they lie in memory, outermost first.
std::vector<std::size_t> axes_in_memory(const ir::Shape& shape, const ir::Shape& strides);

/// "float32[1, 120, 160, 16] channels last": axes in the order in which they lie in memory, and which they
/// are where that is not the order of the type.
std::string layout_text(const ir::TensorType& type, const ir::Shape& strides);
/// The same behind the name of the value, if it has one.
std::string layout_text(const std::string& name, const ir::TensorType& type, const ir::Shape& strides);

}  // namespace gcompile
