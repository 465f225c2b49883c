#include "codegen/schedule/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "gcrt/cpu/strips_plan.h"

namespace gcompile {
namespace {

/// Begins a kernel, and its tiles that a strip does not fill.
constexpr std::int64_t kCall = 1'000'000;  // picoseconds
/// Smaller images, in L2s, come back as fast as kernels ask for them: measured on MobileNetV2, of which
/// strips save nothing below 2 MB, neither of Zen 5 nor of a Xeon.
constexpr std::int64_t kLeastImage = 4;
constexpr std::int64_t kMostStep = 8;

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

bool StripPlan::is_open() const {
  return std::any_of(sizes.begin(), sizes.end(), [](const Size& size) {
    return !size.rows.is_constant() || !size.row_bytes.is_constant();
  });
}

std::optional<StripPlan> plan_strips(std::span<const StripKernel> chain, const Machine& machine) {
  std::vector<StripKernel> kernels(chain.begin(), chain.end());
  for (StripKernel& kernel : kernels) {
    kernel.rows = ir::highest(kernel.rows);
    kernel.row_bytes = ir::highest(kernel.row_bytes);
  }
  std::optional<StripPlan> best;
  for (std::int64_t step = 1; step <= kMostStep; ++step) {
    const auto images = held_images(kernels, step);
    if (!images) break;
    StripPlan plan;
    plan.rows = kernels.back().rows;
    plan.step = step;
    plan.images = *images;
    for (const StripKernel& kernel : chain) plan.sizes.push_back({kernel.rows, kernel.row_bytes});
    for (const gcrt::StripImage& image : *images) plan.whole_bytes += image.rows * image.row_bytes;
    if (machine.smallest_scratch) {
      if (plan.saved_bytes() > 0) return plan;
      break;
    }
    // Threads work on parts, so that a few have to fit the memory of whole images at least twice.
    constexpr std::int64_t kLeastParts = 4;
    const std::int64_t parts = gcrt::most_parts(images->data(), static_cast<int>(images->size()),
                                                static_cast<int>(plan.rows), static_cast<int>(machine.cores));
    plan.parts = std::min(parts, plan.whole_bytes / 2 / plan.part_bytes()) / 2 * 2;
    plan.saved_picoseconds = saved_time(kernels, plan, machine);
    if (plan.parts < kLeastParts || plan.saved_picoseconds <= 0) continue;
    if (!best || plan.saved_picoseconds > best->saved_picoseconds) best = std::move(plan);
  }
  return best;
}

namespace {

/// What lives while a group runs, without its strips: what it reads and makes, and what others read later.
std::int64_t bytes_beside(std::span<const StripKernel> chain, std::size_t first, std::size_t length) {
  std::map<int, std::int64_t> buffers;
  if (first > 0) buffers[chain[first - 1].result] = chain[first - 1].bytes();
  for (const StripKernel& kernel : chain.subspan(first))
    buffers.insert(kernel.reads.begin(), kernel.reads.end());
  const StripKernel& last = chain[first + length - 1];
  buffers.emplace(last.result, last.bytes());
  buffers.erase(-1);
  std::int64_t sum = 0;
  for (const auto& [buffer, bytes] : buffers) sum += bytes;
  return sum;
}

}  // namespace

std::vector<StripGroup> cut_into_groups(
    std::span<const StripKernel> chain, const Machine& machine,
    const std::function<bool(std::size_t, std::size_t, const StripPlan&)>& may_run) {
  struct Cut {
    StripGroup group;
    std::int64_t peak = 0, sum = 0;  // of it and of those behind it; for time, the sum is negative
  };
  std::vector<Cut> cuts(chain.size() + 1);  // of the chain from each kernel on
  for (std::size_t first = chain.size(); first-- > 0;) {
    std::optional<Cut> best;
    for (std::size_t length = 1; first + length <= chain.size(); ++length) {
      Cut cut;
      cut.group.length = length;
      if (length > 1) {
        cut.group.plan = plan_strips(chain.subspan(first, length), machine);
        if (!cut.group.plan || !may_run(first, length, *cut.group.plan)) continue;
      }
      const Cut& rest = cuts[first + length];
      if (machine.smallest_scratch) {
        const std::int64_t held = cut.group.plan ? cut.group.plan->part_bytes() : 0;
        const std::int64_t bytes = held + bytes_beside(chain, first, length);
        cut.peak = std::max(bytes, rest.peak);
        cut.sum = bytes + rest.sum;
      } else {
        cut.sum = rest.sum - (cut.group.plan ? cut.group.plan->saved_picoseconds : 0);
      }
      if (!best || std::tie(cut.peak, cut.sum) < std::tie(best->peak, best->sum)) best = std::move(cut);
    }
    cuts[first] = std::move(*best);
  }
  std::vector<StripGroup> groups;
  for (std::size_t first = 0; first < chain.size(); first += groups.back().length) {
    groups.push_back(std::move(cuts[first].group));
  }
  return groups;
}

std::string to_string(const StripPlan& plan) {
  return fmt::format("{} rows, {} at a time, in {} part{}: {} bytes in place of {}", plan.rows, plan.step,
                     plan.parts, plan.parts == 1 ? "" : "s", plan.parts * plan.part_bytes(),
                     plan.whole_bytes);
}

}  // namespace gcompile
