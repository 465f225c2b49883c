#pragma once
// Prints loop forms as CUDA kernels: the expressions are those of the CPU, walked by a grid of threads.

#include <optional>
#include <string>
#include <vector>

#include "codegen/loops/code_text.h"
#include "codegen/loops/loop_nest.h"
#include "codegen/loops/size_parameters.h"
#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

/// Text of the kernels of one loop form, and of the launches in order.
struct CudaLoops {
  Text device;                       // definitions of __global__ functions
  Text launches;                     // statements of the host function; `queue` is in scope
  int count = 0;                     // of launches
  std::int64_t blocks = 0;           // of the first, at typical sizes
  std::int64_t workspace_bytes = 0;  // of the parameter "workspace"; 0: there is none
  std::int64_t counters = 0;         // words of the queue in which blocks count
  int joins = 0;                     // launches whose blocks wait for one another
  double rounds = 0;                 // how often a thread waits for memory
  double bytes_again = 0;            // read once more than once, at the largest sizes
  std::vector<std::string> headers;
  std::string choice;  // how the first is spread over the grid, for the report
};

struct CudaParameter {
  std::string declaration;  // "const float* x"
  std::string name;         // "x"
  std::string argument;     // what the host passes
};

/// `parameters`: those of the host function, behind which it has `sizes`. Kernels are named as the host
/// function, with "_kernel" and more; with `form.checks`, indices out of range set the queue's trap word: by
/// the thread that would use one, which then does nothing, or by kernels of their own, and then those behind
/// do nothing. `device`: the one that the grid is made for.
CudaLoops print_cuda_loops(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                           const KernelTensor& result, const std::vector<CudaParameter>& parameters,
                           const gcrt::DeviceModel& device, SizeParameters& sizes);

/// Rows that one block of `threads` makes, one after the other, as the text of a functor: `y` and `scratch`,
/// its group's place in shared memory, are in scope.
struct CudaRows {
  std::string body;  // indented by two levels
  std::vector<std::string> headers;
};
/// nullopt: the form is no reduction whose rows a group shares.
std::optional<CudaRows> print_cuda_rows(const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                                        const KernelTensor& result, const gcrt::DeviceModel& device,
                                        int threads);

}  // namespace gcompile
