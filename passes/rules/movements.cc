// Movements that meet: parts that are put together again, parts of what was put together, paddings of
// paddings, and parts of what was padded.

#include <algorithm>
#include <array>
#include <bit>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

const Shape& shape_of(const Match& match, ValueId id) { return match.graph().value(id).type.shape; }

std::size_t concat_axis(const Match& match) {
  return axis_of(match.attributes("concat"), match.type("concat").rank());
}

// Concat(x[a:b], x[b:c]) -> x[a:c] --------------------------------------------------------------------------

/// What an operand of a Concat is: elements of another value along the axis, or, with no count, a value.
struct Part {
  ValueId of;
  std::int64_t start = 0;
  std::optional<std::int64_t> count = std::nullopt;
};

Part part_of(const Match& match, ValueId operand, std::size_t axis) {
  const ir::NodeId producer = match.graph().value(operand).producer;
  if (!producer.valid() || !is_operator(match.graph().node(producer), "Slice")) return {operand};
  const ir::Node& slice = match.graph().node(producer);
  const std::optional<Strided> strided = passes::strided(match.graph(), slice);
  if (!strided || strided->step[axis] != 1) return {operand};
  Shape rest = shape_of(match, operand), whole = shape_of(match, slice.operands[0]);
  if (!rest[axis].is_constant()) return {operand};
  const Part part{slice.operands[0], strided->start[axis], rest[axis]};
  rest[axis] = whole[axis] = 1;
  return rest == whole ? part : Part{operand};
}

/// The operands, neighbouring parts of one value as one.
std::vector<Part> joined(const Match& match) {
  std::vector<Part> parts;
  for (const ValueId operand : match.node("concat").operands) {
    const Part part = part_of(match, operand, concat_axis(match));
    const bool joins = !parts.empty() && part.count && parts.back().count && parts.back().of == part.of &&
                       parts.back().start + *parts.back().count == part.start;
    if (joins) {
      *parts.back().count += *part.count;
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

std::string guard_joined(const Match& match) {
  return joined(match).size() < match.node("concat").operands.size() ? "" : "no neighbours are of one value";
}

ValueId build_joined(Rewriter& rewriter) {
  const std::size_t axis = concat_axis(rewriter);
  std::vector<ValueId> values;
  for (const Part& part : joined(rewriter)) {
    Shape counts = rewriter.type_of(part.of).shape;
    Strided slice{Ints(counts.size(), 0), Ints(counts.size(), 1)};
    slice.start[axis] = part.start;
    if (part.count) counts[axis] = *part.count;
    values.push_back(emit_slice(rewriter, part.of, slice, counts));
  }
  if (values.size() == 1) return values[0];
  return rewriter.emit("Concat", values, rewriter.attributes("concat"));
}

// Concat(Concat(a, b), c) -> Concat(a, b, c) ----------------------------------------------------------------

/// The Concat along the same axis that computes an operand for this reader alone.
const ir::Node* nested(const Match& match, ValueId operand) {
  const ir::NodeId producer = match.graph().value(operand).producer;
  if (!producer.valid() || match.graph().use_count(operand) != 1) return nullptr;
  const ir::Node& node = match.graph().node(producer);
  if (!is_operator(node, "Concat") || node.form) return nullptr;
  return axis_of(node.attributes, match.type("concat").rank()) == concat_axis(match) ? &node : nullptr;
}

std::string guard_nested(const Match& match) {
  const std::vector<ValueId>& operands = match.node("concat").operands;
  const bool any = std::any_of(operands.begin(), operands.end(),
                               [&](ValueId operand) { return nested(match, operand) != nullptr; });
  return any ? "" : "no operand is a Concat of its own";
}

ValueId build_nested(Rewriter& rewriter) {
  std::vector<ValueId> all;
  for (const ValueId operand : rewriter.node("concat").operands) {
    const ir::Node* inner = nested(rewriter, operand);
    if (inner) all.insert(all.end(), inner->operands.begin(), inner->operands.end());
    if (!inner) all.push_back(operand);
  }
  return rewriter.emit("Concat", std::move(all), rewriter.attributes("concat"));
}

// Concat(a, b)[within b] -> b[...] --------------------------------------------------------------------------

/// The operand of the Concat that all elements of a slice lie in, and what they are of it.
struct Inside {
  ValueId operand;
  Strided slice;
};

std::optional<Inside> inside(const Match& match) {
  const std::size_t axis = concat_axis(match);
  std::optional<Strided> slice = strided(match.graph(), match.node("slice"));
  const Dim count = match.result_type().shape[axis];
  if (!slice || !count.is_constant() || count == 0) return std::nullopt;
  const std::int64_t first = slice->start[axis], last = first + (count - 1) * slice->step[axis];
  std::int64_t begin = 0;
  for (const ValueId operand : match.node("concat").operands) {
    const Dim size = shape_of(match, operand)[axis];
    if (!size.is_constant()) return std::nullopt;
    if (begin <= first && last < begin + size) {
      slice->start[axis] -= begin;
      return Inside{operand, *slice};
    }
    begin += size;
  }
  return std::nullopt;
}

std::string guard_inside(const Match& match) {
  return inside(match) ? "" : "elements of several operands, or sizes that are not known";
}

ValueId build_inside(Rewriter& rewriter) {
  const Inside part = *inside(rewriter);
  return emit_slice(rewriter, part.operand, part.slice, rewriter.result_type().shape);
}

// Pad -------------------------------------------------------------------------------------------------------

struct Padding {
  Ints begin, end;
};

/// Nothing where it is no padding with a constant, or where it removes elements.
std::optional<Padding> padding_of(const Match& match, std::string_view node, std::string_view pads,
                                  std::string_view axes) {
  if (match.attributes(node).string_of("mode") != "constant") return std::nullopt;
  const auto rank = static_cast<std::size_t>(match.type(node).rank());
  Ints at;
  for (std::size_t i = 0; i < rank; ++i) at.push_back(static_cast<std::int64_t>(i));
  if (match.has(axes)) at = normalised(ints_of(match, axes), static_cast<int>(rank));
  const Ints given = ints_of(match, pads);
  Padding out{Ints(rank, 0), Ints(rank, 0)};
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] < 0) return std::nullopt;
    (i < at.size() ? out.begin : out.end)[static_cast<std::size_t>(at[i % at.size()])] = given[i];
  }
  return out;
}

ir::Scalar fill_of(const Match& match, std::string_view value) {
  if (match.has(value)) return match.constant(value).at(0);
  const ir::ElementType type = match.result_type().element;
  return ir::is_float(type) ? ir::Scalar::of_real(type, 0) : ir::Scalar::of_integer(type, 0);
}

ValueId emit_pad(Rewriter& rewriter, ValueId x, const Padding& padding, std::string_view value) {
  Ints pads = padding.begin;
  pads.insert(pads.end(), padding.end.begin(), padding.end.end());
  ir::Attributes attributes;
  attributes.set("mode", std::string("constant"));
  std::vector<ValueId> operands = {x, rewriter.add_ints(pads)};
  if (rewriter.has(value)) operands.push_back(rewriter.value(value));
  return rewriter.emit("Pad", std::move(operands), std::move(attributes));
}

std::string guard_pads(const Match& match) {
  if (!padding_of(match, "inner", "pads1", "axes1") || !padding_of(match, "outer", "pads2", "axes2"))
    return "a Pad does not fill with a constant, or removes elements";
  const ir::Scalar first = fill_of(match, "value1"), second = fill_of(match, "value2");
  const bool alike = first.integer == second.integer &&
                     std::bit_cast<std::uint64_t>(first.real) == std::bit_cast<std::uint64_t>(second.real);
  return alike ? "" : "the Pads fill with unlike numbers";
}

ValueId build_pads(Rewriter& rewriter) {
  Padding both = *padding_of(rewriter, "inner", "pads1", "axes1");
  const Padding outer = *padding_of(rewriter, "outer", "pads2", "axes2");
  for (std::size_t i = 0; i < both.begin.size(); ++i) {
    both.begin[i] += outer.begin[i];
    both.end[i] += outer.end[i];
  }
  return emit_pad(rewriter, rewriter.value("x"), both, "value1");
}

// Slice(Pad(x)) ---------------------------------------------------------------------------------------------

/// A part of a padded value as a part of the value, and what is still padded.
struct Kept {
  Strided slice;
  Shape counts;
  Padding padding;
  bool is_part = false, is_padded = false;
};

std::optional<Kept> kept_of_pad(const Match& match) {
  const auto padding = padding_of(match, "pad", "pads1", "axes1");
  const auto slice = strided(match.graph(), match.node("slice"));
  if (!padding || !slice) return std::nullopt;
  Kept out{*slice, match.result_type().shape, {Ints(slice->start.size(), 0), Ints(slice->start.size(), 0)}};
  for (std::size_t i = 0; i < slice->start.size(); ++i) {
    const std::int64_t before = padding->begin[i];
    if (before != 0 || padding->end[i] != 0) {
      const std::int64_t size = match.shape("x")[i], first = slice->start[i] - before;
      const std::int64_t behind = first + out.counts[i];
      if (slice->step[i] != 1 || std::max<std::int64_t>(first, 0) >= std::min(behind, size))
        return std::nullopt;
      out.padding.begin[i] = std::max<std::int64_t>(-first, 0);
      out.padding.end[i] = std::max<std::int64_t>(behind - size, 0);
      out.slice.start[i] = std::max<std::int64_t>(first, 0);
      out.counts[i] = std::min(behind, size) - out.slice.start[i];
      out.is_padded |= out.padding.begin[i] != 0 || out.padding.end[i] != 0;
    }
    out.is_part |= out.counts[i] != match.shape("x")[i] || out.slice.start[i] != 0;
  }
  return out;
}

std::string guard_part_of_pad(const Match& match) {
  const std::optional<Kept> kept = kept_of_pad(match);
  if (!kept) return "the padding is not known, or steps, or all that is taken";
  if (kept->is_part && kept->is_padded) return "what is taken is a part, and padded";
  const bool is_shared = match.graph().use_count(match.value("pad")) > 1;
  return kept->is_padded && is_shared ? "others read what is padded" : "";
}

ValueId build_part_of_pad(Rewriter& rewriter) {
  const Kept kept = *kept_of_pad(rewriter);
  const ValueId part = emit_slice(rewriter, rewriter.value("x"), kept.slice, kept.counts);
  return kept.is_padded ? emit_pad(rewriter, part, kept.padding, "value1") : part;
}

}  // namespace

Pattern slice_of(Pattern from, std::string_view bound, std::string_view suffix) {
  // Patterns keep their names by reference.
  using Names = std::array<std::string_view, 4>;
  static constexpr Names kPlain = {"starts", "ends", "axes", "steps"},
                         kFirst = {"starts1", "ends1", "axes1", "steps1"},
                         kSecond = {"starts2", "ends2", "axes2", "steps2"};
  const Names& name = suffix.empty() ? kPlain : suffix == "1" ? kFirst : kSecond;
  return op("Slice",
            {std::move(from), constant(name[0]), constant(name[1]), constant(name[2]).optional(),
             constant(name[3]).optional()},
            bound);
}

const RuleTable& movement_rules() {
  static const RuleTable rules = [] {
    const Tier exact = Tier::kExact;
    const Pattern inner =
        op("Pad", {any("x"), constant("pads1"), constant("value1").optional(), constant("axes1").optional()},
           "inner");
    const Pattern pad =
        op("Pad", {any("x"), constant("pads1"), constant("value1").optional(), constant("axes1").optional()},
           "pad");
    RuleTable table = {
        // Concat(x[a:b], x[b:c]) -> x[a:c]; Concat(Split(x)) -> x
        {"concat-of-slices", exact, op_of_any("Concat", "concat"), guard_joined, build_joined},
        // Concat(Concat(a, b), c) -> Concat(a, b, c)
        {"concat-of-concat", exact, op_of_any("Concat", "concat"), guard_nested, build_nested},
        // Concat(a, b)[within b] -> b[...]; Split(Concat(a, b)) -> a, b
        {"slice-of-concat", exact, slice_of(op_of_any("Concat", "concat").shared(), "slice"), guard_inside,
         build_inside},
        // Pad(Pad(x, p), q) -> Pad(x, p + q)
        {"pad-of-pad", exact,
         op("Pad", {inner, constant("pads2"), constant("value2").optional(), constant("axes2").optional()},
            "outer"),
         guard_pads, build_pads},
        // Pad(x, p)[of x] -> x; Pad(x, p)[but some padding] -> Pad(x, less)
        {"slice-of-pad", exact, slice_of(pad.shared(), "slice"), guard_part_of_pad, build_part_of_pad},
    };
    for (Rule& rule : table) rule.quiet = true;
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes
