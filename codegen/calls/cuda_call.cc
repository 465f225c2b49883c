#include "codegen/calls/cuda_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/diagnostics.h"
#include "codegen/loops/c_types.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

const char* tile_name(gcrt::Tile tile) {
  switch (tile) {
    case gcrt::Tile::k16x64:
      return "k16x64";
    case gcrt::Tile::k32x64:
      return "k32x64";
    case gcrt::Tile::k64x64:
      return "k64x64";
    case gcrt::Tile::k128x32:
      return "k128x32";
    case gcrt::Tile::k128x64:
      return "k128x64";
    case gcrt::Tile::k128x128:
      return "k128x128";
    case gcrt::Tile::kGemv1:
      return "kGemv1";
    case gcrt::Tile::kGemv2:
      return "kGemv2";
    case gcrt::Tile::kGemv4:
      return "kGemv4";
    case gcrt::Tile::kGemv8:
      return "kGemv8";
  }
  GC_CHECK(false);
}

int narrow(std::int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN) operator_error("a dimension does not fit 32 bits");
  return static_cast<int>(value);
}

gcrt::ConvShape conv_shape(const ImageShape& s) {
  return {narrow(s.batch),
          narrow(s.in_h),
          narrow(s.in_w),
          narrow(s.in_c),
          narrow(s.out_h),
          narrow(s.out_w),
          narrow(s.out_c),
          narrow(s.kernel_h),
          narrow(s.kernel_w),
          narrow(s.stride_h),
          narrow(s.stride_w),
          narrow(s.pad_top),
          narrow(s.pad_left),
          narrow(s.dilation_h),
          narrow(s.dilation_w),
          narrow(s.groups),
          s.pixel,
          s.row,
          s.image};
}

std::string precision_argument(Precision precision) {
  return fmt::format("Precision::{}", facts_of(precision).enumerator);
}

PlannedCost planned(const gcrt::Plan& plan, const Machine& machine, std::int64_t products,
                    std::int64_t entries) {
  PlannedCost out;
  out.plan.fields = {static_cast<std::int64_t>(plan.tile), plan.splits};
  out.cost.time = plan.time.times(static_cast<double>(products));
  out.cost.picoseconds = picoseconds_of(out.cost.time);
  out.cost.launches = narrow(products * gcrt::product_launches(machine.gpu, entries, plan.splits));
  return out;
}

std::span<const char* const> tile_fields() {
  static constexpr std::array<const char*, 2> kFields = {"tile", "splits"};
  return kFields;
}

gcrt::Tile tile_of(const Plan& plan) { return static_cast<gcrt::Tile>(plan.fields.at(0)); }

int splits_of(const Plan& plan) { return static_cast<int>(plan.fields.at(1)); }

Refusal refuse_wgmma(const Machine& machine) {
  if (!machine.architecture.has_wgmma) return "--arch asks for other machine code than that of sm_90a";
  if (machine.precision == Precision::kFp32) return "--precision fp32 keeps more bits than wgmma multiplies";
  return std::nullopt;
}

PlannedCost planned(const gcrt::WgmmaPlan& plan, std::int64_t products) {
  PlannedCost out;
  out.plan.fields = {static_cast<std::int64_t>(plan.tile), plan.cluster};
  out.cost.time = plan.time.times(static_cast<double>(products));
  out.cost.picoseconds = picoseconds_of(out.cost.time);
  out.cost.launches = narrow(products);
  return out;
}

std::span<const char* const> wgmma_fields() {
  static constexpr std::array<const char*, 2> kFields = {"tile", "cluster"};
  return kFields;
}

namespace {

const char* tile_name(gcrt::WgmmaTile tile) {
  switch (tile) {
    case gcrt::WgmmaTile::k64x64:
      return "k64x64";
    case gcrt::WgmmaTile::k64x128:
      return "k64x128";
    case gcrt::WgmmaTile::k128x64:
      return "k128x64";
    case gcrt::WgmmaTile::k128x128:
      return "k128x128";
    case gcrt::WgmmaTile::k128x256:
      return "k128x256";
  }
  GC_CHECK(false);
}

}  // namespace

std::string wgmma_arguments(CallWriter& writer, const Plan& plan, Precision precision) {
  const char* const tile = tile_name(static_cast<gcrt::WgmmaTile>(plan.fields.at(0)));
  const std::int64_t cluster = plan.fields.at(1);
  writer.call().choice =
      fmt::format("wgmma {}{}, {}", tile + 1, cluster > 1 ? fmt::format(", clusters of {}", cluster) : "",
                  facts_of(precision).name);
  return fmt::format("{}, WgmmaTile::{}, /*cluster*/ {}", precision_argument(precision), tile, cluster);
}

void note_plan(CallWriter& writer, const Plan& plan, Precision precision) {
  KernelCall& call = writer.call();
  call.choice = tile_name(tile_of(plan)) + 1;
  if (splits_of(plan) > 1) {
    const bool is_cluster = gcrt::adds_in_clusters(writer.machine().gpu);
    call.choice += fmt::format(", depth in {} parts{}", splits_of(plan), is_cluster ? " of a cluster" : "");
  }
  if (precision != Precision::kFp32 && precision != Precision::kInt8) {
    call.choice += fmt::format(", {}", facts_of(precision).name);
  }
}

std::string split_argument(CallWriter& writer, int splits, ir::Dim floats_of_part, std::int64_t counters) {
  if (splits <= 1) return "SplitDepth<>{}";
  const std::int64_t floats = ir::typical(floats_of_part) * splits;
  writer.scratch(floats * 4, "workspace", "float");
  writer.call().counters = counters;
  if (floats_of_part.is_constant()) return fmt::format("SplitDepth<{}>{{workspace}}", splits);
  return fmt::format("SplitWithin<{}>{{workspace, /*floats, of a part*/ {}, {}}}", splits, floats,
                     writer.call().sizes(floats_of_part));
}

std::string split_argument(CallWriter& writer, const Plan& plan, ir::Dim floats_of_part,
                           std::int64_t counters) {
  const int splits = splits_of(plan);
  if (splits <= 1 || !gcrt::adds_in_clusters(writer.machine().gpu)) {
    return split_argument(writer, splits, floats_of_part, counters);
  }
  return fmt::format("SplitInCluster<{}>{{}}", splits);
}

std::string copied_in(const KernelTensor& tensor, std::span<const ir::Dim> steps) {
  const std::int64_t element = bits_of(tensor.element) / 8;
  for (const std::int64_t bytes : {16, 8, 4}) {
    if (bytes == 8 && element == 4) continue;  // tile_load.h has no such copy
    const bool fits = bytes >= element && tensor.alignment % bytes == 0 &&
                      std::all_of(steps.begin(), steps.end(),
                                  [&](ir::Dim step) { return content(step) * element % bytes == 0; });
    if (fits) return fmt::format("copied_in<{}>", bytes);
  }
  return ir::are_constant(steps) ? fmt::format("copied_in<{}>", element) : std::string();
}

std::string copied(const std::string& width, const std::string& pointer) {
  return width.empty() ? pointer : fmt::format("{}({})", width, pointer);
}

int element_bytes(const ir::Problem& problem, std::size_t operand) {
  return static_cast<int>(bits_of(problem.operands[operand].element) / 8);
}

namespace {

/// The first of the factors that float16 cannot hold; -1: none.
int beyond_float16(const ir::Problem& problem, const Machine& machine, std::size_t factors) {
  if (machine.precision != Precision::kFp16) return -1;
  for (std::size_t i = 0; i < factors; ++i) {
    const std::optional<ir::ConstantFacts>& constant = problem.operands[i].constant;
    if (constant && !constant->fits_float16) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Precision precision_of(const ir::Problem& problem, const Machine& machine, std::size_t factors) {
  return beyond_float16(problem, machine, factors) >= 0 ? Precision::kTf32 : machine.precision;
}

Refusal refuse_unless_factors(const ir::Problem& problem, const Machine& machine, std::size_t factors,
                              std::initializer_list<std::size_t> may_be_stored) {
  const Precision precision = precision_of(problem, machine, factors);
  const ir::ElementType stored = facts_of(precision).weight;
  const bool is_stored =
      machine.target == Target::kCuda && gcrt::has_tensor_cores(machine.architecture.capability, precision);
  for (std::size_t i = 0; i < factors; ++i) {
    const ir::ElementType element = problem.operands[i].element;
    if (element == ir::ElementType::kFloat32) continue;
    const bool may_be = std::find(may_be_stored.begin(), may_be_stored.end(), i) != may_be_stored.end();
    if (is_stored && may_be && element == stored && !problem.operands[i].constant) continue;
    return fmt::format("elements of {}", name_of(element));
  }
  return std::nullopt;
}

void warn_of_precision(const ir::Problem& problem, CallWriter& writer, std::size_t factors) {
  const int operand = beyond_float16(problem, writer.machine(), factors);
  if (operand < 0) return;
  writer.call().warning = fmt::format("the constant '{}' is out of the range of float16: multiplied in TF32",
                                      printable(writer.name(operand)));
}

void packed_weights(CallWriter& writer, Packing packing, const std::string& kernel,
                    const std::string& parameter, Precision precision) {
  const ir::ElementType stored = facts_of(precision).weight;
  std::string format = "packed for " + kernel;
  if (stored != ir::ElementType::kFloat32) format += fmt::format(" as {}", name_of(stored));
  const bool is_tf32 = precision == Precision::kTf32;
  writer.packed(1, is_tf32 ? round_to_tf32(std::move(packing)) : std::move(packing), format, parameter,
                is_tf32 ? "Tf32" : kernel_type(stored));
}

gcrt::KernelTime predicted_time(const Execution& execution, std::int64_t multiply_adds,
                                const Machine& machine, const Traffic& traffic) {
  // What is read again comes from memory again unless the second-level cache holds it.
  const double again = execution.bytes_again;
  const double bytes = static_cast<double>(traffic.all) + again;
  const double of_memory = static_cast<double>(traffic.memory) +
                           (gcrt::stays_in_cache(machine.gpu, static_cast<double>(traffic.all)) ? 0 : again);
  gcrt::KernelTime time = execution.time;
  if (time.microseconds() > 0) {
    // What moves is known better here; tiles read some of it several times.
    time.memory = gcrt::memory_microseconds(machine.gpu, of_memory);
    const std::ptrdiff_t blocks = time.blocks > 0 ? time.blocks : machine.gpu.multiprocessors;
    time.cache = std::max(time.cache, gcrt::cache_microseconds(machine.gpu, bytes, blocks));
  } else {
    const double per_clock = execution.products_per_clock > 0 ? execution.products_per_clock
                                                              : gcrt::scalar_products_per_clock(machine.gpu);
    time = gcrt::streaming_time(machine.gpu, execution.launches, execution.overlaps, of_memory, bytes,
                                static_cast<double>(multiply_adds), per_clock, execution.time.blocks);
    time.latency = gcrt::waiting_microseconds(machine.gpu, execution.rounds);
    time.join = gcrt::clocks_to_microseconds(machine.gpu, execution.joins * gcrt::kArrivalClocks);
  }
  time.fill += gcrt::clocks_to_microseconds(machine.gpu, execution.reductions * gcrt::kReductionClocks);
  return time;
}

std::int64_t picoseconds_of(const gcrt::KernelTime& time) { return std::llround(time.microseconds() * 1e6); }

std::int64_t streaming_picoseconds(const ir::Problem& problem, const Machine& machine) {
  const auto bytes = static_cast<double>(problem.bytes());
  return picoseconds_of(gcrt::streaming_time(machine.gpu, 1, true, bytes, bytes,
                                             static_cast<double>(problem.multiply_adds()),
                                             gcrt::scalar_products_per_clock(machine.gpu)));
}

Refusal refuse_beyond_32_bits(const ir::Problem& problem, const Machine&) {
  for (const auto* list : {&problem.operands, &problem.results}) {
    for (const ir::ProblemOperand& operand : *list) {
      for (const std::int64_t extent : operand.shape) {
        if (extent > INT32_MAX) return "a dimension does not fit 32 bits";
      }
    }
  }
  return std::nullopt;
}

bool fits_32_bits(const ir::Problem& problem) { return !refuse_beyond_32_bits(ir::at_highest(problem), {}); }

const char* window_name(const gcrt::ConvShape& shape) {
  switch (gcrt::depthwise_window(shape)) {
    case gcrt::DepthwiseWindow::k3:
      return "k3";
    case gcrt::DepthwiseWindow::k3Stride2:
      return "k3Stride2";
    case gcrt::DepthwiseWindow::k5:
      return "k5";
    case gcrt::DepthwiseWindow::kAny:
      return "kAny";
  }
  GC_CHECK(false);
}

}  // namespace gcompile
