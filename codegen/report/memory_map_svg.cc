#include "codegen/report/memory_map_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/report/charts.h"
#include "codegen/report/quantities.h"
#include "codegen/report/report_parts.h"

namespace gcompile {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 420;
constexpr double kLeft = 84;
constexpr double kRight = 12;
constexpr double kTop = 44;
constexpr double kBottom = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr size_t kKindCount = 5;

size_t kind_index(const Buffer& buffer) { return static_cast<size_t>(buffer.kind); }

/// Steps and bytes to units of the picture.
class Scale {
 public:
  Scale(const std::vector<Buffer>& buffers, const MemoryPlan& plan) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      first_ = i == 0 ? buffers[i].begin_step : std::min(first_, buffers[i].begin_step);
      last_ = i == 0 ? buffers[i].end_step : std::max(last_, buffers[i].end_step);
    }
    bytes_ = std::max<int64_t>({plan.arena_bytes, plan.lower_bound, 1});
  }
  double x(int64_t step) const {
    return kLeft + kPlotWidth * static_cast<double>(step - first_) / static_cast<double>(last_ - first_);
  }
  double y(int64_t bytes) const {
    return kTop + kPlotHeight * (1.0 - static_cast<double>(bytes) / static_cast<double>(bytes_));
  }
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t first_ = 0;
  int64_t last_ = 1;
  int64_t bytes_ = 1;
};

/// 1, 2 or 5 times a power of ten that cuts the range into at most ten.
int64_t step_between_ticks(int64_t range) {
  for (int64_t power = 1;; power *= 10) {
    for (int64_t factor : {1, 2, 5}) {
      if (range / (factor * power) <= 10) return factor * power;
    }
  }
}

/// A power of two that cuts the range into at most eight: round in KiB and MiB.
int64_t bytes_between_ticks(int64_t range) {
  int64_t step = 1;
  while (range / step > 8) step *= 2;
  return step;
}

void draw_axes(const Scale& scale, std::string& svg) {
  auto out = std::back_inserter(svg);
  const int64_t bytes_step = bytes_between_ticks(scale.bytes());
  for (int64_t bytes = 0; bytes <= scale.bytes(); bytes += bytes_step) {
    fmt::format_to(out, "<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"axis\"/>\n", kLeft, scale.y(bytes),
                   kWidth - kRight);
    fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
                   scale.y(bytes) + 4, human_bytes(bytes));
  }
  const int64_t step = step_between_ticks(scale.last() - scale.first());
  // From the first multiple on; the remainder of a negative first step is negative.
  const int64_t remainder = ((scale.first() % step) + step) % step;
  for (int64_t at = scale.first() + (step - remainder) % step; at <= scale.last(); at += step) {
    fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", scale.x(at),
                   kHeight - kBottom + 16, at);
  }
  fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">schedule step</text>\n",
                 kLeft + kPlotWidth / 2, kHeight - 6);
}

void draw_buffer(const Buffer& buffer, int64_t offset, const Scale& scale, std::string& svg) {
  const double top = scale.y(offset + buffer.size);
  const double height = std::max(scale.y(offset) - top, 0.5);
  const double x = scale.x(buffer.begin_step);
  const double width = std::max(scale.x(buffer.end_step) - x, 0.5);
  fmt::format_to(
      std::back_inserter(svg),
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" class=\"k{}\"><title>{}\n"
      "{}, {} ({} bytes)\noffset {}, steps {} to {}</title></rect>\n",
      x, top, width, height, kind_index(buffer), svg_text(shown_name(buffer)), buffer_kind_name(buffer.kind),
      human_bytes(buffer.size), buffer.size, offset, buffer.begin_step, buffer.end_step - 1);
}

/// The sum of the sizes of what lives, as a line of stairs.
void draw_live_bytes(const std::vector<Buffer>& buffers, const Scale& scale, std::string& svg) {
  std::map<int64_t, int64_t> change;
  for (const Buffer& buffer : buffers) {
    const int64_t size = (buffer.size + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
    change[buffer.begin_step] += size;
    change[buffer.end_step] -= size;
  }
  auto out = std::back_inserter(svg);
  fmt::format_to(out, "<path d=\"M{:.2f} {:.2f}", scale.x(scale.first()), scale.y(0));
  int64_t live = 0;
  for (const auto& [step, bytes] : change) {
    if (bytes == 0) continue;
    live += bytes;
    fmt::format_to(out, "H{:.2f}V{:.2f}", scale.x(step), scale.y(live));
  }
  fmt::format_to(out, "\" class=\"live\"><title>live bytes</title></path>\n");
}

void draw_legend(const std::vector<Buffer>& buffers, std::string& svg) {
  std::array<int64_t, kKindCount> count{};
  for (const Buffer& buffer : buffers) ++count[kind_index(buffer)];
  auto out = std::back_inserter(svg);
  double x = kLeft;
  auto label = [&](const std::string& text) {
    fmt::format_to(out, "<text x=\"{:.1f}\" y=\"34\">{}</text>\n", x + 18, text);
    x += 34 + 7 * static_cast<double>(text.size());
  };
  for (size_t kind = 0; kind < kKindCount; ++kind) {
    if (count[kind] == 0) continue;
    fmt::format_to(out, "<rect x=\"{:.1f}\" y=\"25\" width=\"12\" height=\"10\" class=\"k{}\"/>\n", x, kind);
    label(fmt::format("{} ({})", buffer_kind_name(static_cast<BufferKind>(kind)), count[kind]));
  }
  fmt::format_to(out, "<path d=\"M{:.1f} 30h12\" class=\"live\"/>\n", x);
  label("live bytes");
  fmt::format_to(out, "<path d=\"M{:.1f} 30h12\" class=\"bound\"/>\n", x);
  label("lower bound");
}

}  // namespace

std::string memory_map_svg(const std::vector<Buffer>& buffers, const MemoryPlan& plan) {
  GC_CHECK(plan.offsets.size() == buffers.size());
  const Scale scale(buffers, plan);
  std::string svg;
  auto out = std::back_inserter(svg);
  fmt::format_to(out, "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"group\" aria-label=\"memory plan\">\n",
                 kWidth, kHeight);
  fmt::format_to(out, "<text x=\"{:.1f}\" y=\"15\" font-weight=\"bold\">arena {}, lower bound {}{}</text>\n",
                 kLeft, human_bytes(plan.arena_bytes), human_bytes(plan.lower_bound),
                 plan.arena_bytes == plan.lower_bound ? ": no plan is smaller"
                 : plan.proven_optimal                ? ", out of reach: no plan is smaller"
                                                      : "");
  draw_legend(buffers, svg);
  draw_axes(scale, svg);
  // Large ones first, so that the small stay on top for the pointer.
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].size > buffers[b].size; });
  svg += "<g class=\"buffers\">\n";
  for (size_t i : order) {
    poll_interrupt();
    if (buffers[i].size > 0) draw_buffer(buffers[i], plan.offsets[i], scale, svg);
  }
  svg += "</g>\n";
  draw_live_bytes(buffers, scale, svg);
  fmt::format_to(out, "<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"bound\"/>\n", kLeft,
                 scale.y(plan.lower_bound), kWidth - kRight);
  svg += "</svg>\n";
  return svg;
}

}  // namespace gcompile
