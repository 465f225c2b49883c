#pragma once
// The Program: plain data, everything a template may see. Built by codegen, dumped as JSON, rendered by emit.
// All decisions are made here; templates only loop, name and include (DESIGN, rule 1).

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "codegen/calls/kernel_call.h"
#include "codegen/choice/precision.h"
#include "codegen/memory/plan.h"
#include "codegen/program/weights_file.h"
#include "codegen/schedule/strips.h"
#include "codegen/target.h"
#include "ir/graph/pass_report.h"
#include "ir/sizes/sizes.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

/// An output of which data decides how many positions of an axis a run fills, from the front.
struct CountedPort {
  int axis = 0;
  int count = -1;  // the output that says how many, by index
};

/// A graph input or output as the C API shows it.
struct Port {
  std::string c_name;      // unique [a-z0-9_] identifier within inputs or outputs
  std::string model_name;  // as in the model; reaches text only through escape filters
  ir::TensorType type;
  std::string c_type;  // "float", "int64_t", "uint16_t" (16-bit floats as bits), "uint8_t" for bool
  /// On a device: kernels may use it in the caller's memory; else it lies at this constant of the arena.
  /// Empty: no kernel names it, or it is always copied.
  std::string place = {};
  /// Elements that pass, where it is an input that a run checks.
  std::optional<ir::Tensor> example = {};
  std::optional<CountedPort> counted = {};
};

/// "; filled for the first `boxes_count` of axis 0", of an output of that kind; "" of all others.
std::string filled_text(const Port& port, const std::vector<Port>& outputs);

/// A persistent tensor: an input that the caller declared to be fed by an output.
struct StateTensor {
  std::string c_name;
  std::string input_name, output_name;  // model names
  ir::TensorType type;                  // of the input
  std::string c_type;
  std::int64_t offset = 0;      // bytes in the state memory
  std::string place_type = {};  // of its elements, as the first call has them
  ir::Shape room;               // numbers: for how many elements there is memory along each axis
  int growing_axis = -1;  // along which runs append rows to those that are there, in the layout of `room`
  ir::Dim rows_after;     // a run: where it grows
  bool in_place = false;  // kernels write the next value where the last one is; always so where it grows

  std::int64_t bytes() const { return ir::TensorType{type.element, room}.bytes(); }
  bool grows() const { return growing_axis >= 0; }
  /// In elements. What does not grow lies dense, at the sizes of the runs.
  ir::Shape strides() const { return ir::row_major_strides(grows() ? room : type.shape); }
};

/// A size that the state remembers, at its front: of how many rows it holds, or what it was at the run that
/// began it.
struct HeldSize {
  std::size_t size = 0;        // of Program::sizes
  std::vector<ir::Dim> after;  // a run, of each schedule
  std::int64_t highest = 0;    // after any of them
  bool counts_rows() const { return after[0] != ir::Dim::symbol(static_cast<int>(size)); }
};

/// Where a kernel argument points to.
struct Argument {
  enum class Space : std::uint8_t {
    kArena,
    kWeights,
    kInput,
    kOutput,
    kPlacedInput,  // where an input lies on the device during the run; outputs likewise
    kPlacedOutput,
    kState,
    kHost,
    kStrip
  };
  Space space = Space::kArena;
  int port = -1;      // kInput, kOutput, kPlaced*: index of the port; kStrip: of the image
  std::string place;  // kArena, kWeights, kState: the constant that says where it lies. kHost: a byte offset
  ir::Dim extra = 0;  // further bytes (views)
  std::optional<ir::Dim> elements = 0;  // the same in elements of c_type, where it is a multiple of those
  std::string value = {};               // name of the value in the model, where it is one
  std::string layout = {};              // likewise: "relu_1 float32[1, 4, 4, 8] channels last"
  std::string c_type;                   // pointee
  bool writes = false;
};

/// One call of the schedule, or a conditional.
struct Step {
  enum class Kind : std::uint8_t { kCall, kCopy, kIf, kTrap, kStrips };
  Kind kind = Kind::kCall;
  std::string function;   // kCall: kernel function
  bool checked = false;   // kCall: the function returns false when a run-time index is out of range
  bool on_host = false;   // kCall: a function of the host in a program for a device
  bool threaded = false;  // kCall: takes the thread pool as last argument
  bool alone = false;     // kCall: takes none instead
  int strip_kernel = -1;  // kCall: position among the kernels of strips; takes its rows at last
  // kCall: in parameter order; kCopy: {from, to}; kIf: {condition}; kStrips: {buffers}
  std::vector<Argument> arguments;
  std::vector<ir::Dim> sizes;  // kCall: parameters behind them
  ir::Dim trapped = 1;         // kTrap: where this size is not 0
  ir::Dim bytes = 0;           // kCopy
  std::string comment;         // "Conv 'conv1', Relu 'r1'"; escaped when rendered
  std::string result;          // "float32[1, 8, 4, 4]"
  std::vector<Step> then_steps, else_steps;
  std::vector<Step> strip_steps;  // kStrips: calls
  StripPlan strips;
};

/// One kernel function with its text, shared by all calls that need the same text.
struct Kernel {
  std::string name;
  std::string family;                 // "loops", "conv2d", "gemm", ...: for the report
  std::string declaration;            // "void relu_64(const float* x, float* y);"
  std::string text;                   // complete definition, C++17
  std::vector<std::string> headers;   // gcrt headers, "gcrt/cpu/image/conv.h"
  std::vector<std::string> functors;  // names of Functor it uses
  bool takes_structs = false;         // a parameter has elements that a struct of gcrt holds
  int calls = 0;
  std::vector<std::string> comments;  // of the first calls, with their results; escaped when rendered
  std::vector<std::string> sizes;  // "n0: (height + 1) / 2", of parameters that no words name for all calls
};

/// An epilogue functor type, shared by all kernels with the same expression.
struct Functor {
  std::string name;
  std::string text;
};

/// A named byte offset in arena or weights.
struct Offset {
  std::string name;  // "at_relu_1"
  std::int64_t value = 0;
  std::int64_t bytes = 0;
  std::string what;         // "relu_1 float32[1, 4, 4, 8] channels last"; escaped when rendered
  std::string c_type = {};  // of its elements, as the first call has them
};

/// A value that lies within the buffer of another one.
struct BufferPart {
  std::string name;   // "at_row"
  std::string whole;  // the buffer's
  std::int64_t offset = 0;
  std::string what;
  std::string c_type;
};

/// A node of the model as it was read.
struct ModelNode {
  std::string name, what;       // "conv1", "Conv"; without a name it is not followed
  std::int64_t bytes = 0;       // of its results
  bool keeps_elements = false;  // its result has the elements of its operand
};

/// One layer as the report lists it.
struct Layer {
  std::string function, family, origins, result;
  std::int64_t multiply_adds = 0;  // these and the bytes at the largest sizes
  RunFigures figures;              // of a run
  bool multiplies_bytes = false;   // both sides of them are integers of 8 bits
  bool hands_over_strips = false;  // to the next layer, with which it runs
  std::int64_t bytes_read = 0, bytes_written = 0;
  std::int64_t weight_bytes = 0;      // among those read
  std::int64_t scratch_bytes = 0;     // among those written, which it reads again
  Execution execution;                // on a device, on the oldest of its GPUs
  std::vector<Execution> executions;  // on each of the program's architectures, if they are several
  std::vector<std::string> nodes;     // of the model that it computes
  std::vector<std::size_t> reads;     // layers that wrote what it reads
  std::int64_t picoseconds = 0;       // predicted; of what no family serves, by its arithmetic and bytes
  std::string problem;                // what kernel families were asked; empty: loops, copies
  std::vector<Rival> rivals;          // families that were asked, the one that serves first
};

/// The terms of a predicted time that there are, in microseconds: {"launch", 0.34}.
std::vector<std::pair<std::string, double>> terms_of(const gcrt::KernelTime& time);

struct Statistics {
  std::int64_t nodes_imported = 0, nodes_optimised = 0;
  std::int64_t arena_lower_bound = 0;  // max live bytes of the planned buffers
  std::int64_t bare_first_fit = 0;     // what bare tensors need, freed after last use, placed first-fit
  std::int64_t scratch_bytes = 0;      // largest scratch of one step, within the arena
  std::int64_t multiply_adds = 0;
  std::int64_t parameter_bytes = 0;
};

/// A size that a caller of the model chooses: a dimension with several choices, or with bounds.
struct Size {
  std::string name;    // in the model; reaches text only through escape filters
  std::string c_name;  // unique [a-z0-9_] identifier
  ir::Bounds bounds;   // of all schedules
  std::int64_t multiple = 1;
};

/// Weights that the host reads: it has a copy, of which `at` is the first byte.
struct HostWeights {
  std::string place;
  std::int64_t at = 0, bytes = 0;
};

/// What only the schedule of a device has.
struct DeviceSchedule {
  std::int64_t graph_steps = 0;    // launches and copies of one run, at most
  std::int64_t host_bytes = 0;     // what the host computes to choose branches, and weights for it
  std::set<int> host_inputs = {};  // by index, that the host reads for it
  std::vector<HostWeights> host_weights = {};
  std::int64_t trap_offset = -1;      // of the word in the arena that tells of an index out of range
  std::int64_t counters_offset = -1;  // and of those in which blocks count
  std::int64_t zeroed_offset = 0, zeroed_bytes = 0;  // of the arena, what is 0 when a run begins
};

/// A run of the model at one choice of its sizes: calls in order, and where everything lies meanwhile.
struct Schedule {
  std::vector<ir::Bounds> bounds;        // of each of Program::sizes; of one number where it is chosen
  std::shared_ptr<ir::Sizes> formulas;   // whose symbols are Program::sizes; null where each is a number
  std::vector<ir::SizeFact> conditions;  // what a run needs of its sizes beyond their own bounds
  std::vector<std::int64_t> sizes;       // the largest
  std::vector<Port> inputs, outputs;
  std::vector<Offset> arena_offsets;
  std::vector<BufferPart> parts;
  std::optional<DeviceSchedule> device;  // of a program for a device
  std::int64_t arena_bytes = 0;
  std::vector<Step> steps;
  std::vector<Layer> layers;
  ir::PassReport report;        // remarks of code generation, then what passes told
  std::vector<Buffer> buffers;  // what was planned, with lives; offsets in plan
  MemoryPlan plan;
  Statistics statistics;
  std::vector<ModelNode> nodes;  // of the model, operands before users
};

/// What only a program for a device has.
struct DeviceProgram {
  std::vector<GpuArchitecture> architectures;  // that kernels were chosen for, oldest first
  bool has_instances = false;                  // some kernels are for some of them alone
};

struct Program {
  Target target = Target::kCpp;
  Precision precision = Precision::kFp32;  // of products of floats
  std::string name;                        // the prefix of every symbol, [a-z][a-z0-9_]*
  std::string tool_version;
  std::string model_sha256, producer, opset;  // provenance; escaped when rendered
  std::string options;                        // command line options that shape the output, canonical order
  std::vector<Size> sizes;                    // empty: all are fixed
  bool has_bounds = false;                    // some have bounds, and formulas of them are in the schedules
  std::vector<Schedule> schedules;  // one for each choice, the largest last; they have the same ports
  std::vector<StateTensor> states;
  std::vector<HeldSize> held_sizes;  // by size
  std::vector<Offset> weight_offsets;
  std::int64_t state_bytes = 0, weights_bytes = 0;
  std::optional<DeviceProgram> device;
  bool in_tiles = false;               // some kernel multiplies in the tile unit where a level has one
  bool zeroes_denormals = false;       // a run counts denormal numbers as zeros
  std::int64_t alignment = 64;         // of the memory blocks that the caller gives
  std::int64_t buffer_alignment = 64;  // of buffers within the arena
  WeightsFile weights;
  std::vector<Functor> functors;
  std::vector<Kernel> kernels;
  std::vector<std::string> headers;  // gcrt headers of all kernels, sorted, with what they include
  std::vector<ir::PackedWeight> packed_weights;
  std::vector<Diagnostic> warnings;  // for the terminal; among the remarks too
};

}  // namespace gcompile
