#include "ir/forms/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace gcompile::ir {
namespace {

constexpr std::array<std::string_view, 12> kKindNames = {
    "conv",    "conv_transpose", "product",          "pool",  "attention", "recurrent", "topk",
    "scatter", "scan",           "linear_attention", "trees", "suppress"};
static_assert(std::variant_size_v<Work> == kKindNames.size());

std::string text_of(const Window& window) {
  std::string text = fmt::format("{}", fmt::join(window.kernel, "x"));
  const auto differs = [](const std::vector<std::int64_t>& values, std::int64_t usual) {
    for (const std::int64_t v : values) {
      if (v != usual) return true;
    }
    return false;
  };
  if (differs(window.strides, 1)) text += fmt::format(", stride {}", fmt::join(window.strides, "x"));
  if (differs(window.dilations, 1)) text += fmt::format(", dilation {}", fmt::join(window.dilations, "x"));
  if (differs(window.pads, 0)) text += fmt::format(", pads {}", fmt::join(window.pads, ","));
  return text;
}

std::string groups_of(std::int64_t groups) { return groups == 1 ? "" : fmt::format(", {} groups", groups); }

struct Texts {
  std::string operator()(const ConvWork& w) const { return " " + text_of(w.window) + groups_of(w.groups); }
  std::string operator()(const ConvTransposeWork& w) const {
    return " " + text_of(w.window) + groups_of(w.groups);
  }
  std::string operator()(const ProductWork& w) const {
    if (w.block == 0) return "";
    constexpr std::string_view kRoundings[] = {"", ", left side may be rounded to int8",
                                               ", left side rounded to int8"};
    return fmt::format(", scales of {} rows{}", w.block, kRoundings[static_cast<std::size_t>(w.rounding)]);
  }
  std::string operator()(const PoolWork& w) const {
    return fmt::format(" {} {}{}", w.is_max ? "maximum" : "mean", text_of(w.window),
                       w.count_include_pad ? ", padding counts" : "");
  }
  std::string operator()(const AttentionWork& w) const {
    return fmt::format(" heads {}, {}x{} scores, sizes {} and {}{}{}", to_string(w.heads), to_string(w.rows),
                       to_string(w.columns), w.size, w.value_size, w.causal ? ", causal" : "",
                       w.adds_behind ? ", masked twice"
                       : w.has_mask  ? ", masked"
                                     : "");
  }
  std::string operator()(const RecurrentWork& w) const {
    const char* cell = w.cell == RecurrentCell::kRnn ? "rnn" : w.cell == RecurrentCell::kGru ? "gru" : "lstm";
    return fmt::format(" {} of {} units, {} inputs, {} steps, batch {}, {} directions", cell, w.hidden,
                       w.inputs, to_string(w.steps), to_string(w.batch), w.directions);
  }
  std::string operator()(const TopKWork& w) const {
    return fmt::format(" {} {} along axis {}", to_string(w.k), w.largest ? "largest" : "smallest", w.axis);
  }
  std::string operator()(const ScatterWork& w) const {
    constexpr std::array<std::string_view, 5> kNames = {"replace", "add", "mul", "max", "min"};
    return fmt::format(" {}, {}", w.by_tuples ? "by tuples" : fmt::format("along axis {}", w.axis),
                       kNames[static_cast<std::size_t>(w.combine)]);
  }
  std::string operator()(const ScanWork& w) const {
    return fmt::format("{} along axis {}{}{}", w.is_product ? " of products" : "", w.axis,
                       w.exclusive ? ", exclusive" : "", w.reverse ? ", reverse" : "");
  }
  std::string operator()(const LinearAttentionWork& w) const {
    return fmt::format(" {} steps, {} query heads, {} heads of {}x{}, batch {}", to_string(w.steps),
                       w.query_heads, w.heads, w.size, w.value_size, to_string(w.batch));
  }
  std::string operator()(const TreesWork& w) const {
    constexpr std::array<std::string_view, 3> kNames = {"sum", "least", "largest"};
    return fmt::format(" {} in {} groups, {} of {} nodes, {} levels, at most {} leaves", w.trees, w.groups,
                       kNames[static_cast<std::size_t>(w.combine)], w.nodes, w.levels, w.most_leaves);
  }
  std::string operator()(const SuppressWork& w) const {
    return fmt::format(" all but {} of a class by {}", to_string(w.most),
                       w.is_centered ? "centres and sizes" : "corners");
  }
};

}  // namespace

std::int64_t Window::taps() const {
  std::int64_t taps = 1;
  for (const std::int64_t k : kernel) taps *= k;
  return taps;
}

Shape AttentionWork::scores() const {
  Shape shape = heads;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

int gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::kRnn ? 1 : cell == RecurrentCell::kGru ? 3 : 4;
}

int functions_of(RecurrentCell cell) {
  return cell == RecurrentCell::kRnn ? 1 : cell == RecurrentCell::kGru ? 2 : 3;
}

Kind kind_of(const Work& work) { return static_cast<Kind>(work.index()); }

std::string_view name_of(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::string to_string(const Work& work) {
  return std::string(name_of(kind_of(work))) + std::visit(Texts{}, work);
}

}  // namespace gcompile::ir
