#include "codegen/schedule/strips.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile {
namespace {

/// Begins a kernel, and its tiles that a strip does not fill.
constexpr std::int64_t kCall = 1'000'000;  // picoseconds
/// Smaller images, in L2s, come back as fast as kernels ask for them: measured on MobileNetV2, of which
/// strips save nothing below 2 MB, neither of Zen 5 nor of a Xeon.
constexpr std::int64_t kLeastImage = 4;
constexpr std::int64_t kMostStep = 8;
/// Of two parts both make the rows between them: at most that share of theirs.
constexpr std::int64_t kPartsPerOverlap = 4;

/// The images between the kernels, with as many rows as strips of `step` rows hold; nullopt: as many as all.
std::optional<std::vector<gcrt::StripImage>> held_images(std::span<const StripKernel> kernels,
                                                         std::int64_t step) {
  std::vector<gcrt::StripImage> images(kernels.size() - 1);
  std::int64_t rows = step;
  for (std::size_t i = images.size(); i-- > 0;) {
    const StripKernel& reader = kernels[i + 1];
    rows = (rows - 1) * reader.stride + reader.span;
    if (rows >= kernels[i].rows) return std::nullopt;
    images[i] = {
        static_cast<int>(kernels[i].rows), static_cast<int>(reader.span), static_cast<int>(reader.stride),
        static_cast<int>(reader.pad),      kernels[i].row_bytes,          static_cast<int>(rows)};
  }
  return images;
}

/// Parts that threads may take, such that few rows are made twice.
std::int64_t most_parts(std::span<const StripKernel> kernels, const Machine& machine) {
  std::int64_t parts = machine.cores;
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    const StripKernel& reader = kernels[i];
    const std::int64_t twice = std::max<std::int64_t>(0, reader.span - reader.stride);
    if (twice > 0) parts = std::min(parts, kernels[i - 1].rows / (kPartsPerOverlap * twice));
  }
  return std::min(parts, kernels.back().rows);
}

/// Picoseconds to move bytes within a cache: half a vector each clock.
std::int64_t copying(std::int64_t bytes, const Machine& machine) {
  return static_cast<std::int64_t>(2000 * static_cast<double>(bytes) /
                                   (machine.level.vector_bytes * machine.gigahertz));
}

/// Picoseconds by which the strips are faster than one kernel after the other.
std::int64_t saved_time(std::span<const StripKernel> kernels, const StripPlan& plan, const Machine& machine) {
  const std::int64_t part = plan.part_bytes();
  const std::int64_t strips = (plan.rows + plan.step - 1) / plan.step;
  std::int64_t weights = 0;
  for (const StripKernel& kernel : kernels) weights += kernel.weight_bytes;
  std::int64_t saved = 0;
  for (std::size_t i = 0; i < plan.images.size(); ++i) {
    const gcrt::StripImage& image = plan.images[i];
    const std::int64_t bytes = image.rows * image.row_bytes;
    // Written, and read.
    if (bytes > kLeastImage * machine.l2) {
      saved += machine.stall(bytes, 2 * bytes) - machine.stall(part + weights, 2 * bytes);
    }
    const std::int64_t kept = std::max(0, image.span - image.stride) * image.row_bytes;
    saved -= strips * copying(kept, machine);
  }
  saved -= strips * machine.stall(part + weights, weights);
  return saved - (strips - 1) * static_cast<std::int64_t>(kernels.size()) * kCall;
}

}  // namespace

std::int64_t StripPlan::part_bytes() const {
  std::int64_t bytes = 0;
  for (const gcrt::StripImage& image : images) bytes += gcrt::bytes_of(image);
  return bytes;
}

std::optional<StripPlan> plan_strips(std::span<const StripKernel> kernels, const Machine& machine) {
  std::optional<StripPlan> best;
  const std::int64_t parts = most_parts(kernels, machine);
  for (std::int64_t step = 1; step <= kMostStep; ++step) {
    const auto images = held_images(kernels, step);
    if (!images) break;
    StripPlan plan;
    plan.rows = kernels.back().rows;
    plan.step = step;
    plan.images = *images;
    for (const gcrt::StripImage& image : *images) plan.whole_bytes += image.rows * image.row_bytes;
    if (machine.smallest_scratch) {
      if (plan.saved_bytes() > 0) return plan;
      break;
    }
    // Threads work on parts, so that a few have to fit the memory of whole images at least twice.
    constexpr std::int64_t kLeastParts = 4;
    plan.parts = std::min(parts, plan.whole_bytes / 2 / plan.part_bytes()) / 2 * 2;
    plan.saved_picoseconds = saved_time(kernels, plan, machine);
    if (plan.parts < kLeastParts || plan.saved_picoseconds <= 0) continue;
    if (!best || plan.saved_picoseconds > best->saved_picoseconds) best = std::move(plan);
  }
  return best;
}

std::string to_string(const StripPlan& plan) {
  return fmt::format("{} rows, {} at a time, in {} part{}: {} bytes in place of {}", plan.rows, plan.step,
                     plan.parts, plan.parts == 1 ? "" : "s", plan.parts * plan.part_bytes(),
                     plan.whole_bytes);
}

}  // namespace gcompile
