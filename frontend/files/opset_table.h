#pragma once
// Opset imports of a model or a function.

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostics.h"

namespace gcompile::frontend {

/// The first opset, and the newest whose definitions this compiler's records were written against.
constexpr std::int64_t kOldestOpset = 1;
constexpr std::int64_t kNewestOpset = 28;

/// "ai.onnx" and "" are one domain.
std::string canonical_domain(std::string_view domain);

class OpsetTable {
 public:
  using Imports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

  OpsetTable() = default;
  /// Where a domain comes twice the last one wins, with a warning. `where` names the model or the function. A
  /// function inherits from `outer` what it does not import itself.
  OpsetTable(const Imports& imports, const std::string& where, const OpsetTable* outer,
             Diagnostics& diagnostics);

  /// The imported version of a domain.
  std::optional<int> version(std::string_view domain) const;
  const std::map<std::string, std::int64_t>& all() const { return versions_; }

 private:
  std::map<std::string, std::int64_t> versions_;
};

}  // namespace gcompile::frontend
