#pragma once
// Operators that nobody implements, gathered over the whole model so that one run names every node.

#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"

namespace gcompile::frontend {

class Unsupported {
 public:
  /// `operands`: "float32[1, 3], ?" as far as known. `place`: graph and enclosing function.
  void add(const onnx::NodeProto& node, std::optional<int> opset, const std::string& operands,
           const std::string& place);
  /// One error E0101 per operator, each listing its nodes in model order.
  void report(Diagnostics& diagnostics) const;

 private:
  struct Entry {
    std::optional<int> opset;
    std::vector<std::string> nodes;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by domain and name
};

}  // namespace gcompile::frontend
