#pragma once
// Writes the kernels of one loop form around the bodies of its nests: signatures, guards, grids and launches.

#include <set>
#include <string>
#include <vector>

#include "codegen/loops/cuda/cuda_loop_plan.h"
#include "codegen/loops/cuda/cuda_loop_printer.h"
#include "codegen/loops/size_parameters.h"

namespace gcompile {

/// Numbers of this magnitude have sums of 32 bits, at all sizes.
bool is_small(ir::Dim size);

/// One nest, ready to be put into a kernel.
struct PrintedNest {
  CudaLoopPlan plan;
  std::string worker;   // what its index is called
  std::string counter;  // type of that
  std::string body;
  std::string shared;                // of tiles: bytes
  std::set<std::string> parameters;  // that the body names
  std::set<std::size_t> sizes;       // likewise, of SizeParameters
};

class CudaKernelWriter {
 public:
  /// `checked`: kernels do nothing once the trap word is set.
  CudaKernelWriter(std::vector<CudaParameter> parameters, bool checked, SizeParameters& sizes);

  /// Name of the parameter that the trap word has.
  static constexpr const char* kTrap = "trap";
  /// And those of rows that blocks share.
  static constexpr const char* kWorkspace = "workspace";
  static constexpr const char* kCounters = "counters";
  static constexpr const char* kParts = "parts";

  /// Parts in which every thread works alone share one launch: each takes whole blocks of it.
  void add_threads(const std::vector<PrintedNest>& parts, const std::string& suffix, bool guarded);
  /// Every block works on one tile or row, or its warps on one row each.
  void add_groups(const PrintedNest& part, const std::string& suffix, bool guarded);
  CudaLoops finish();

 private:
  /// What a kernel's body names.
  struct Named {
    std::set<std::string> parameters;
    std::set<std::size_t> sizes;
    bool narrow;                 // sizes are ints
    bool awaits_itself = false;  // the grid ahead
  };

  /// A kernel takes only the parameters that its body names. It is called as the host function, with
  /// "_kernel" and the suffix. `workers`: of which a block has `each`.
  void add(const std::string& suffix, const std::string& body, const Named& named, ir::Dim workers,
           std::int64_t each, int threads, const std::string& shared);
  /// The same for a grid in words, which has so many blocks at typical sizes.
  void add(const std::string& suffix, const std::string& body, const Named& named, const std::string& blocks,
           std::int64_t typical_blocks, int threads, const std::string& shared);
  /// Blocks that share rows; a run's own number of parts is a variable of the host function.
  std::string shared_blocks(const SharedRows& rows);

  std::vector<CudaParameter> parameters_;
  bool checked_;
  SizeParameters& sizes_;
  Text device_, launches_;
  std::int64_t blocks_ = 0;  // of the first launch
  int count_ = 0;
  bool has_parts_ = false;
};

}  // namespace gcompile
