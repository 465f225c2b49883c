#pragma once
// A kernel function and the arguments of one call, before names, offsets and deduplication are settled.

#include <string>
#include <vector>

#include "codegen/storage.h"
#include "codegen/weights.h"

namespace gcompile {

struct CallArgument {
  enum class Kind : std::uint8_t { kStorage, kWeights, kScratch };
  Kind kind = Kind::kStorage;
  Storage storage;  // kStorage: pointer to element `storage.offset`
  ir::ElementType element = ir::ElementType::kFloat32;
  int weights = -1;                // kWeights: entry of the blob
  std::int64_t scratch_bytes = 0;  // kScratch
  bool writes = false;
  std::string c_type;  // pointee in the signature, without const
  std::string parameter;
};

struct FunctorText {
  std::string text;  // with the placeholder kFunctorName
};

struct KernelCall {
  static constexpr const char* kName = "@KERNEL@";      // placeholder for the function's name
  static constexpr const char* kFunctor = "@FUNCTOR@";  // placeholder for the functor's name in `body`
  std::string family;
  std::vector<std::string> headers;
  std::string functor;  // text of the functor type; empty: none
  std::string body;     // statements of the function, indented by one level
  std::vector<CallArgument> arguments;
  bool checked = false;   // body ends by returning bool
  bool threaded = false;  // last parameter `const Threads* threads`
  std::int64_t multiply_adds = 0;

  CallArgument& add(CallArgument argument) {
    arguments.push_back(std::move(argument));
    return arguments.back();
  }
};

/// Builds calls for nodes of one graph. Throws ir::OperatorError when a kernel does not take the node.
class KernelBuilder {
 public:
  KernelBuilder(const ir::Graph& graph, const std::map<ir::ValueId, Storage>& storage, WeightBlob& weights)
      : graph_(graph), storage_(storage), weights_(weights) {}

  KernelCall loops(ir::NodeId id, const ir::LoopForm& form);
  KernelCall contract(ir::NodeId id, const ir::ContractForm& form);
  KernelCall library(ir::NodeId id, const ir::LibraryForm& form);
  /// Copies a tensor between two layouts.
  KernelCall copy(const ir::TensorType& type, const Storage& from, const Storage& to);

  /// Layout a contract needs for operand `i` (axis order, outermost first), when the operand as stored does
  /// not serve.
  std::optional<std::vector<int>> needed_order(ir::NodeId id, const ir::Form& form, int i) const;

 private:
  friend class EpilogueWriter;
  const ir::Node& node(ir::NodeId id) const { return graph_.node(id); }
  const Storage& stored(ir::ValueId id) const { return storage_.at(id); }
  /// Adds the parameter for operand i of a node: a weights entry for constants, the value's storage
  /// otherwise.
  KernelTensor operand_parameter(KernelCall& call, ir::NodeId id, int i, const std::string& parameter);
  KernelTensor result_parameter(KernelCall& call, ir::NodeId id, int i, const std::string& parameter);
  void weights_parameter(KernelCall& call, int entry, const std::string& parameter,
                         const std::string& c_type);
  void scratch_parameter(KernelCall& call, std::int64_t bytes, const std::string& parameter,
                         const std::string& c_type);

  KernelCall conv(ir::NodeId id, const ir::ContractForm& form);
  KernelCall conv_transpose(ir::NodeId id, const ir::ContractForm& form);
  KernelCall matmul(ir::NodeId id, const ir::ContractForm& form);
  KernelCall pool(ir::NodeId id, const ir::ContractForm& form);
  KernelCall conv_integer(ir::NodeId id, const ir::ContractForm& form);
  KernelCall matmul_integer(ir::NodeId id, const ir::ContractForm& form);
  KernelCall recurrent(ir::NodeId id);
  KernelCall top_k(ir::NodeId id);
  KernelCall scatter(ir::NodeId id);
  KernelCall cumulative_sum(ir::NodeId id);

  const ir::Graph& graph_;
  const std::map<ir::ValueId, Storage>& storage_;
  WeightBlob& weights_;
};

/// The epilogue functor of a contraction whose accumulators lie at (row m, column n).
class EpilogueWriter {
 public:
  /// `rows`: result axes that m counts, outermost first; `column`: the axis n runs along; other axes are
  /// batch axes, walked by loops b<axis> outside the kernel.
  EpilogueWriter(KernelBuilder& builder, KernelCall& call, ir::NodeId id, const ir::ContractForm& form,
                 std::vector<int> rows, int column);
  /// "@FUNCTOR@{x2, y, 58}": constructor expression inside the batch loops.
  const std::string& construction() const { return construction_; }

 private:
  struct Access {
    std::string field;        // pointer member
    std::string position;     // "m * x2_row + n" or literal formula
    std::int64_t column = 0;  // stride along n
  };
  Access access(const ir::Index& address, const std::string& pointer, const std::string& field);
  KernelCall& call_;
  const ir::LoopForm& loops_;
  std::vector<int> rows_;
  int column_;
  std::vector<std::pair<std::string, std::string>> members_;  // declaration, initialiser
  std::string construction_;
};

}  // namespace gcompile
