#pragma once
// A kernel function and the arguments of one call, before names, offsets and deduplication are settled.

#include <optional>
#include <string>
#include <vector>

#include "codegen/calls/run_figures.h"
#include "codegen/loops/code_text.h"
#include "codegen/loops/size_parameters.h"
#include "codegen/memory/storage.h"
#include "gcrt/cuda/device/time_model.h"

namespace gcompile {

struct CallArgument {
  enum class Kind : std::uint8_t { kStorage, kWeights, kScratch, kStrip };
  Kind kind = Kind::kStorage;
  int strip = -1;   // kStrip: image of its step's strips
  Storage storage;  // kStorage: pointer to element `storage.offset`
  ir::ElementType element = ir::ElementType::kFloat32;
  int weights = -1;                // kWeights: entry of the blob
  std::int64_t scratch_bytes = 0;  // kScratch
  std::optional<ir::Dim> bytes;    // bytes of the tensor that the kernel touches; nullopt: all
  bool writes = false;
  std::string c_type;  // pointee in the signature, without const
  std::string parameter;
  std::string value = {};   // kStorage: name of the value in the model, where it is one
  std::string layout = {};  // "relu_1 float32[1, 4, 4, 8] channels last"
};

/// A family that could have served, or why it did not.
struct Rival {
  std::string family;
  std::string plan;                // "tile k64x64, splits 2"; empty: one plan
  std::int64_t picoseconds = 0;    // predicted
  std::int64_t extra_weights = 0;  // bytes
  std::string refusal;             // empty: it takes the problem
};

/// "depthwise3x3_64_relu", and the words that tell it from another function of that name, in the order in
/// which they join it: "at_60x80".
struct KernelName {
  std::string base;
  std::vector<std::string> details;
};

/// How a call runs on one GPU.
struct Execution {
  std::string family;             // "conv.direct", "map"
  int launches = 1;               // at most
  gcrt::KernelTime time;          // predicted; zero: as long as its bytes and multiply-adds take
  bool overlaps = false;          // starts while the kernel before still works
  int reductions = 0;             // sums over threads that wait for one another
  int joins = 0;                  // launches in which blocks wait for one another's sums
  double rounds = 0;              // how often a thread waits for memory, one time behind the other
  double bytes_again = 0;         // read once more, by later walks over rows
  double products_per_clock = 0;  // of its multiply-adds by a multiprocessor; 0: without tensor cores
  std::string choice;             // how it is spread over the grid, for the report
};

/// What only a call of a device has. As an execution it is that on the oldest GPU.
struct DeviceCall : Execution {
  Text functions;                     // __global__ functions that the body launches
  bool traps = false;                 // kernels set the queue's trap word
  std::int64_t counters = 0;          // words of the queue in which its blocks count
  bool is_fixed = false;              // no update of a graph gives it other memory
  std::string warning;                // why the products are not formed as asked for; empty: they are
  std::vector<Execution> executions;  // on each GPU that kernels are chosen for, where there are several
  bool has_instances = false;         // not all of them start the same kernels
};

struct KernelCall {
  KernelName name;
  std::string family;                // "conv.direct", "map"
  std::optional<DeviceCall> device;  // none for what runs on the host
  std::vector<std::string> headers;
  std::string functor_name;  // "BiasRelu"; empty: there is no functor
  Text functor;              // text of its type; empty: gcrt has it
  Text shape;  // the first statements of the function: sizes that are the same whatever kernel serves
  Text body;   // those behind them, indented by one level as they are
  std::vector<CallArgument> arguments;
  SizeParameters sizes;         // parameters behind them
  bool checked = false;         // body ends by returning bool
  bool on_host = false;         // a function of the host in a program for a device
  bool in_tiles = false;        // multiplies in the tile unit where a level has one
  bool threaded = false;        // last parameter `const Threads* threads`
  bool is_short = false;        // takes less time than a second thread is worth: that parameter is not wanted
  bool by_rows = false;         // last parameters `begin, end`: makes these rows of its result
  std::int64_t time_alone = 0;  // picoseconds, predicted, in one thread
  std::int64_t multiply_adds = 0;  // at the largest sizes
  RunFigures figures;              // bytes: set where the call joins a schedule
  bool multiplies_bytes = false;   // both sides of them are integers of 8 bits
  bool multiplies_floats = false;  // one side of them is
  std::string problem;             // what families were asked, for the report
  std::vector<Rival> rivals;  // of the family, in the order of preference; the one that was taken is first

  // Defined in one file: what dozens of files would each make again of so many members.
  KernelCall();
  KernelCall(const KernelCall&);
  KernelCall(KernelCall&&) noexcept;
  KernelCall& operator=(const KernelCall&);
  KernelCall& operator=(KernelCall&&) noexcept;
  ~KernelCall();

  CallArgument& add(CallArgument argument);
};

/// "const float* x, float* y".
std::string parameter_list(const KernelCall& call);

}  // namespace gcompile
