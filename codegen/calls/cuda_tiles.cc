#include "codegen/calls/cuda_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostics.h"
#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_time.h"
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

gcrt::Tile tile_of(const KernelPlan& plan) { return static_cast<gcrt::Tile>(plan.fields.at(0)); }

int splits_of(const KernelPlan& plan) { return static_cast<int>(plan.fields.at(1)); }

Refusal refuse_wgmma(const Machine& machine) {
  if (!machine.architecture.has_wgmma) return "--arch asks for other machine code than that of sm_90a";
  if (machine.precision == Precision::kFp32) return "--precision fp32 keeps more bits than wgmma multiplies";
  return std::nullopt;
}

PlannedCost planned(const gcrt::WgmmaPlan& plan, std::int64_t products) {
  PlannedCost out;
  out.plan.fields = {static_cast<std::int64_t>(plan.tile), plan.parts};
  out.cost.time = plan.time.times(static_cast<double>(products));
  out.cost.picoseconds = picoseconds_of(out.cost.time);
  out.cost.launches = narrow(products);
  return out;
}

std::span<const char* const> wgmma_fields() {
  static constexpr std::array<const char*, 2> kFields = {"tile", "parts"};
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

std::string wgmma_arguments(CallWriter& writer, const KernelPlan& plan, Precision precision) {
  const char* const tile = tile_name(static_cast<gcrt::WgmmaTile>(plan.fields.at(0)));
  const std::int64_t parts = plan.fields.at(1);
  const std::string split = parts > 1 ? fmt::format(", depth in {} parts of a cluster", parts) : "";
  writer.device().choice = fmt::format("wgmma {}{}, {}", tile + 1, split, facts_of(precision).name);
  return fmt::format("{}, WgmmaTile::{}, /*parts*/ {}", precision_argument(precision), tile, parts);
}

void note_plan(CallWriter& writer, const KernelPlan& plan, Precision precision) {
  std::string& choice = writer.device().choice;
  choice = tile_name(tile_of(plan)) + 1;
  if (splits_of(plan) > 1) {
    const bool is_cluster = gcrt::adds_in_clusters(writer.machine().gpu);
    choice += fmt::format(", depth in {} parts{}", splits_of(plan), is_cluster ? " of a cluster" : "");
  }
  if (precision != Precision::kFp32 && precision != Precision::kInt8) {
    choice += fmt::format(", {}", facts_of(precision).name);
  }
}

std::string split_argument(CallWriter& writer, int splits, ir::Dim floats_of_part, std::int64_t counters) {
  if (splits <= 1) return "SplitDepth<>{}";
  const std::int64_t floats = ir::typical(floats_of_part) * splits;
  writer.scratch(floats * 4, "workspace", "float");
  writer.device().counters = counters;
  if (floats_of_part.is_constant()) return fmt::format("SplitDepth<{}>{{workspace}}", splits);
  return fmt::format("SplitWithin<{}>{{workspace, /*floats, of a part*/ {}, {}}}", splits, floats,
                     writer.call().sizes(floats_of_part));
}

std::string split_argument(CallWriter& writer, const KernelPlan& plan, ir::Dim floats_of_part,
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

}  // namespace gcompile
