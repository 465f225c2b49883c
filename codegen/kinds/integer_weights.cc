#include "codegen/kinds/integer_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/choice/refusals.h"
#include "codegen/loops/c_types.h"

namespace gcompile {

ZeroPoints zero_points(const CallWriter& writer) {
  ZeroPoints zero;
  zero.w = {0};
  if (writer.has_operand(2)) zero.x = writer.constant(2)->int_at(0);
  if (writer.has_operand(3)) zero.w = writer.constant(3)->ints();
  return zero;
}

IntegerWeights depthwise_weights(const ir::Tensor& weights, const ZeroPoints& zero, ir::ElementType x) {
  IntegerWeights out;
  out.narrow = false;
  MatrixView channels = depthwise_rows(weights.shape());
  out.packing = pack_integer_depthwise(weights, channels, zero.w);
  std::swap(channels.columns, channels.inner);
  std::swap(channels.column_step, channels.inner_step);
  out.add_panel_offsets(zero.x, integer_facts(weights, channels, zero.w).sums, x);
  return out;
}

namespace {

/// Whether so many words would be split that widening all of them is no slower, or that what multiplies four
/// bytes at once would pay for it.
bool too_many_are_split(const SplitTable& table) {
  return 7 * static_cast<std::int64_t>(table.words.size()) > table.whole;
}

}  // namespace

IntegerWeights integer_panels(const ir::Tensor& weights, const MatrixView& view, const ZeroPoints& zero,
                              ir::ElementType x) {
  const IntegerFacts facts = integer_facts(weights, view, zero.w);
  IntegerWeights out;
  out.narrow = facts.narrow;
  const bool widened = ir::bits_of(x) == 16;
  if (facts.narrow && !widened) {
    out.split = split_words(weights, view, zero.w);
    if (too_many_are_split(*out.split)) out.split.reset();
  }
  out.packing = pack_integer_panels(weights, view, zero.w, facts.narrow, out.split.has_value(), widened);
  out.add_panel_offsets(zero.x, facts.sums, x);
  return out;
}

IntegerWeights integer_rows(const ir::Tensor& weights, const MatrixView& view, const ZeroPoints& zero,
                            std::int64_t stride) {
  const IntegerFacts facts = integer_facts(weights, view, zero.w);
  IntegerWeights out;
  out.narrow = facts.narrow;
  out.packing = pack_integer_rows(weights, view, zero.w, facts.narrow, stride);
  out.add_offsets(zero.x, facts.sums);
  return out;
}

namespace {

/// Little-endian.
std::vector<std::uint8_t> as_bytes(const std::vector<std::int32_t>& values) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * values.size());
  for (const std::int32_t v : values) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(v) >> shift & 255u));
    }
  }
  return bytes;
}

}  // namespace

std::string split_parameter(CallWriter& writer, const IntegerWeights& packed) {
  if (!packed.split) return "nullptr";
  std::vector<std::int32_t> table = packed.split->starts;
  table.insert(table.end(), packed.split->words.begin(), packed.split->words.end());
  std::vector<std::uint8_t> bytes = as_bytes(table);
  for (const std::int8_t rest : packed.split->rests) bytes.push_back(static_cast<std::uint8_t>(rest));
  writer.weights(writer.blob().add(bytes, writer.name(1), "parts of words that pairs cannot hold"), "split",
                 "std::int32_t");
  return "split";
}

void column_offsets(CallWriter& writer, const ir::Tensor& weights, const MatrixView& view,
                    const ZeroPoints& zero) {
  IntegerWeights out;
  out.add_offsets(zero.x, integer_facts(weights, view, zero.w).sums);
  out.offsets.resize((out.offsets.size() + 15) / 16 * 16);
  writer.weights(writer.blob().add(as_bytes(out.offsets), writer.name(1), "zero point times column sums"),
                 "offsets", "std::int32_t");
}

void border_row(CallWriter& writer, const ir::Problem& problem, std::int64_t channels,
                const ZeroPoints& zero) {
  const std::int64_t bytes = bits_of(problem.operands[0].element) / 8;
  std::vector<std::uint8_t> border(static_cast<std::size_t>((channels + 64) * bytes));
  for (std::size_t i = 0; i < border.size(); ++i) {
    const bool is_upper = bytes == 2 && i % 2 == 1;  // little-endian
    border[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(zero.x) >> (is_upper ? 8 : 0) & 255u);
  }
  writer.weights(writer.blob().add(border, "zero_point", "read at image borders"), "border",
                 kernel_type(problem.operands[0].element));
}

void integer_parameters(CallWriter& writer, const IntegerWeights& packed, const std::string& kernel,
                        const std::string& parameter, const std::string& offsets) {
  writer.packed(1, packed.packing, "packed for " + kernel, parameter,
                packed.narrow ? "std::int8_t" : "std::int16_t");
  writer.weights(writer.blob().add(as_bytes(packed.offsets), writer.name(1), offsets), "offsets",
                 "std::int32_t");
}

Refusal refuse_unless_bytes_by_constants(const ir::Problem& problem) {
  if (Refusal integer = refuse_unless_integer(problem)) return integer;
  return are_bytes(problem) ? std::nullopt : Refusal("an operand of 16 bits");
}

std::int64_t scalar_picoseconds(const ir::Problem& problem, const Machine& machine, double efficiency,
                                std::int64_t tiles) {
  const double lanes = static_cast<double>(machine.level.vector_bytes) / 4;
  const std::int64_t products =
      machine.picoseconds(problem.multiply_adds(), problem.bytes(), efficiency / lanes);
  // What a register tile costs, as of conv.integer, whose tiles are larger; the sums of a core without vectors
  // are counted in its efficiency.
  constexpr std::int64_t kTile = 24'000;
  return !machine.level.has_vectors() ? products : products + tiles * kTile;
}

void scalar_weights(CallWriter& writer, const MatrixView& view) {
  const std::int64_t row = (view.depth() + 3) / 4 * 4;
  const IntegerWeights packed = integer_rows(*writer.constant(1), view, zero_points(writer), row);
  writer.packed(1, packed.packing, "in rows of words", "w", packed.narrow ? "std::int8_t" : "std::int16_t");
}

void scalar_taps(CallWriter& writer) {
  const ir::Tensor& weights = *writer.constant(1);
  const std::vector<std::int64_t> zero = zero_points(writer).w;
  const MatrixView taps = depthwise_rows(weights.shape());
  MatrixView channels = taps;
  std::swap(channels.columns, channels.inner);
  std::swap(channels.column_step, channels.inner_step);
  const bool narrow = integer_facts(weights, channels, zero).narrow;
  writer.packed(1, pack_integer_depthwise(weights, taps, zero, narrow), "of each tap", "w",
                narrow ? "std::int8_t" : "std::int16_t");
}

std::string zero_of_left(const ir::Problem& problem, const CallWriter& writer) {
  return fmt::format("{}{{{}}}", kernel_type(problem.operands[0].element), zero_points(writer).x);
}

}  // namespace gcompile
