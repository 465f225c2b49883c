#pragma once
// A kernel function and the arguments of one call, before names, offsets and deduplication are settled.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernels/kernel_options.h"
#include "codegen/kernels/weights.h"
#include "codegen/loops/cuda_loop_printer.h"
#include "codegen/loops/loop_printer.h"
#include "codegen/memory/storage.h"
#include "ir/operator.h"

namespace gcompile {

struct CallArgument {
  enum class Kind : std::uint8_t { kStorage, kWeights, kScratch };
  Kind kind = Kind::kStorage;
  Storage storage;  // kStorage: pointer to element `storage.offset`
  ir::ElementType element = ir::ElementType::kFloat32;
  int weights = -1;                // kWeights: entry of the blob
  std::int64_t scratch_bytes = 0;  // kScratch
  std::int64_t bytes = -1;         // of it that the kernel reads or writes; -1: all
  bool writes = false;
  std::string c_type;  // pointee in the signature, without const
  std::string parameter;
};

struct KernelCall {
  static constexpr const char* kName = kKernelNamePlaceholder;
  static constexpr const char* kFunctor = "@FUNCTOR@";  // placeholder for the functor's name in `body`
  std::string family;
  std::vector<std::string> headers;
  std::string functor;  // text of the functor type; empty: none
  std::string device;   // CUDA: __global__ functions that the body launches
  std::string body;     // statements of the function, indented by one level
  std::vector<CallArgument> arguments;
  bool checked = false;   // body ends by returning bool
  bool on_host = false;   // of a CUDA program: a function of the host
  bool traps = false;     // CUDA: kernels set the queue's trap word
  bool is_fixed = false;  // CUDA: no update of a graph gives it other memory
  bool threaded = false;  // last parameter `const Threads* threads`
  std::int64_t multiply_adds = 0;
  int launches = 1;               // CUDA: at most
  double microseconds = 0;        // CUDA: predicted; 0: as long as its bytes and multiply-adds take
  double products_per_clock = 0;  // CUDA: of its multiply-adds by a multiprocessor; 0: without tensor cores
  std::string choice;             // CUDA: how it is spread over the grid, for the report
  std::string warning;            // CUDA: why the products are not formed as asked for; empty: they are

  CallArgument& add(CallArgument argument) {
    arguments.push_back(std::move(argument));
    return arguments.back();
  }
};

/// "const float* x0, float* y".
std::string parameter_list(const KernelCall& call);

/// Builds calls for nodes of one graph. Throws ir::OperatorError when a kernel does not take the node.
class KernelBuilder {
 public:
  KernelBuilder(const ir::Graph& graph, const std::map<ir::ValueId, Storage>& storage, WeightBlob& weights,
                const KernelOptions& options)
      : graph_(graph),
        storage_(storage),
        weights_(weights),
        target_(options.target),
        cublaslt_(options.cublaslt),
        precision_(options.precision),
        smallest_scratch_(options.smallest_scratch),
        device_(gcrt::device_model(options.capability)) {}

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
  friend class RecurrentCall;
  const ir::Node& node(ir::NodeId id) const { return graph_.node(id); }
  const Storage& stored(ir::ValueId id) const { return storage_.at(id); }
  /// Refuses other elements of operand 0.
  void require_float32(ir::NodeId id) const;
  /// Operand 1 of a convolution.
  const ir::Tensor& constant_weights(ir::NodeId id) const;
  /// Adds the parameter for operand i of a node: a weights entry for constants, the value's storage
  /// otherwise.
  KernelTensor operand_parameter(KernelCall& call, ir::NodeId id, int i, const std::string& parameter);
  KernelTensor result_parameter(KernelCall& call, ir::NodeId id, int i, const std::string& parameter);
  void weights_parameter(KernelCall& call, int entry, const std::string& parameter,
                         const std::string& c_type);
  void scratch_parameter(KernelCall& call, std::int64_t bytes, const std::string& parameter,
                         const std::string& c_type);

  /// Body of a kernel that walks loops, for the target.
  void print_body(KernelCall& call, const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                  const KernelTensor& result) const;
  KernelCall conv(ir::NodeId id, const ir::ContractForm& form);
  KernelCall conv_transpose(ir::NodeId id, const ir::ContractForm& form);
  KernelCall matmul(ir::NodeId id, const ir::ContractForm& form);
  KernelCall attention(ir::NodeId id, const ir::ContractForm& form);
  KernelCall pool(ir::NodeId id, const ir::ContractForm& form);
  KernelCall conv_integer(ir::NodeId id, const ir::ContractForm& form);
  KernelCall matmul_integer(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_contract(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_conv(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_conv_transpose(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_pool(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_matmul(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_attention(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_conv_integer(ir::NodeId id, const ir::ContractForm& form);
  KernelCall cuda_matmul_integer(ir::NodeId id, const ir::ContractForm& form);
  std::string split_argument(KernelCall& call, int splits, std::int64_t floats);
  /// How the products of a node's first `factors` operands are formed: as asked for, or in TF32 where float16
  /// cannot hold a constant among them, with a warning. The one place that decides it.
  Precision precision_of(KernelCall& call, ir::NodeId id, std::size_t factors = 2) const;
  /// Adds the parameter for the constant operand 1 of a node, packed, in the type that the precision stores.
  void packed_parameter(KernelCall& call, ir::NodeId id, Packing packing, const std::string& parameter,
                        Precision precision);
  KernelCall cuda_library(ir::NodeId id, const ir::LibraryForm& form);
  KernelCall cuda_recurrent(ir::NodeId id);
  /// Adds what a scatter of `updates` over `targets` places needs on CUDA: scratch and launches.
  void scatter_on_device(KernelCall& call, bool replaces, std::int64_t targets, std::int64_t updates);
  const char* queue_argument() const { return target_ == Target::kCuda ? "queue, " : ""; }
  KernelCall recurrent(ir::NodeId id);
  KernelCall top_k(ir::NodeId id);
  KernelCall scatter(ir::NodeId id);
  KernelCall cumulative_sum(ir::NodeId id);

  const ir::Graph& graph_;
  const std::map<ir::ValueId, Storage>& storage_;
  WeightBlob& weights_;
  Target target_;
  bool cublaslt_;
  Precision precision_;
  bool smallest_scratch_;
  gcrt::DeviceModel device_;
};

/// The epilogue functor of a contraction whose accumulators lie at (row m, column n).
class EpilogueWriter {
 public:
  /// `rows`: result axes that m counts, outermost first; `column`: the axis n runs along; other axes are
  /// batch axes, walked by loops b<axis> outside the kernel. CUDA: those of `grid_axes`, outermost first, are
  /// walked by the grid.
  EpilogueWriter(KernelBuilder& builder, KernelCall& call, ir::NodeId id, const ir::ContractForm& form,
                 std::vector<int> rows, int column, std::vector<int> grid_axes = {});
  /// "const @FUNCTOR@ epilogue{x2, y, 58};", inside the batch loops.
  const std::string& declaration() const { return declaration_; }

 private:
  struct Access {
    std::string field;        // pointer member
    std::string position;     // "m * x2_row + n" or literal formula
    std::int64_t column = 0;  // stride along n
  };
  Access access(const ir::Index& address, const KernelTensor& tensor, const std::string& field);
  /// Lanes of an aligned access along n, at most `lanes`.
  int aligned_lanes(const ir::Index& address, const KernelTensor& tensor, int lanes) const;
  void write_at_batch(CodeText& code) const;
  KernelCall& call_;
  const ir::LoopForm& loops_;
  std::vector<int> rows_;
  int column_;
  std::vector<int> grid_axes_;
  int lanes_ = 4;
  std::vector<std::pair<std::string, std::string>> batch_steps_;  // field, elements per grid axis
  std::vector<std::pair<std::string, std::string>> members_;      // declaration, initialiser
  std::string declaration_;
};

}  // namespace gcompile
