#pragma once
// A step of the schedule before offsets are known: the schedule is a tree of them over storage buffers.

#include <string>
#include <vector>

#include "codegen/calls/kernel_call.h"
#include "codegen/memory/storage.h"
#include "codegen/schedule/strips.h"
#include "ir/graph/graph.h"

namespace gcompile {

struct LoweredStep {
  enum class Kind : std::uint8_t { kCall, kIf, kTrap, kStrips };
  Kind kind = Kind::kCall;
  KernelCall call;
  bool alone = false;               // kCall: runs in one thread, although its kernel takes several
  Storage condition;                // kIf: one bool
  std::vector<ir::Origin> origins;  // what it computes: nodes of the model, or "layout"
  std::string comment, result;
  std::string trap;     // kTrap: why the branch cannot run
  ir::Dim trapped = 1;  // kTrap: where this size is not 0
  std::int64_t bytes_read = 0, bytes_written = 0;
  std::int64_t weight_bytes = 0;   // among those read
  std::int64_t scratch_bytes = 0;  // among those written
  std::vector<LoweredStep> then_steps, else_steps;
  // kStrips: the kernels, in their order, and the buffers of all parts.
  std::vector<LoweredStep> strip_steps;
  StripPlan strips;
  Storage strip_buffers;
};

/// Where a node came from; its own name when it says nothing of that.
std::vector<ir::Origin> origins_of(const ir::Node& node);
/// The first of the model's nodes that the value comes from, or its operator; empty for a value that no node makes.
std::string maker_of(const ir::Graph& graph, ir::ValueId value);
/// "Conv 'conv1', Relu 'relu1'".
std::string comment_of(const ir::Node& node);

}  // namespace gcompile
