// DepthToSpace and SpaceToDepth: blocks of channels become blocks of pixels and back.

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

std::int64_t block_of(const NodeView& node) {
  const std::int64_t block = node.attributes().int_of("blocksize");
  if (block < 1 || block > 1 << 15) operator_error(fmt::format("blocksize is {}", block));
  if (node.shape(0).size() != 4) operator_error("input 0 must be (N, C, H, W)");
  return block;
}

/// Whether a pixel's channels are the blocks' pixels, each with all channels, or the other way round.
bool is_depth_first(const NodeView& node) {
  const std::string& mode = node.attributes().string_of("mode");
  if (mode != "DCR" && mode != "CRD") operator_error("attribute 'mode' must be 'DCR' or 'CRD'");
  return mode == "DCR";
}

void infer_depth_to_space(InferContext& context) {
  const std::int64_t block = block_of(context);
  is_depth_first(context);
  const Shape& x = context.shape(0);
  if (!assume_multiple(x[1], block * block)) {
    operator_error(
        fmt::format("{} channels are no multiple of blocksize squared, {}", to_string(x[1]), block * block));
  }
  const Dim channels = floor_div(x[1], block * block);
  context.set_result(0, context.element(0), {x[0], channels, x[2] * block, x[3] * block});
}

Form lower_depth_to_space(const LowerContext& context) {
  const std::int64_t block = block_of(context);
  const Shape& out = context.result(0).shape;
  LoopForm form = LoopForm::over(out);
  const std::vector<Index> axes = form.identity();
  const std::vector<Range> ranges = form.ranges();
  const Index inside = modulo(axes[2], block, ranges) * block + modulo(axes[3], block, ranges);
  const Index channel =
      is_depth_first(context) ? inside * out[1] + axes[1] : axes[1] * (block * block) + inside;
  form.set_root(form.dag.load(
      0, context.element(0),
      {axes[0], channel, floor_div(axes[2], block, ranges), floor_div(axes[3], block, ranges)}));
  return form;
}

void infer_space_to_depth(InferContext& context) {
  const std::int64_t block = block_of(context);
  is_depth_first(context);
  const Shape& x = context.shape(0);
  if (!assume_multiple(x[2], block) || !assume_multiple(x[3], block)) {
    operator_error(fmt::format("{} x {} pixels are no multiple of blocksize {}", to_string(x[2]),
                               to_string(x[3]), block));
  }
  context.set_result(0, context.element(0),
                     {x[0], x[1] * block * block, floor_div(x[2], block), floor_div(x[3], block)});
}

Form lower_space_to_depth(const LowerContext& context) {
  const std::int64_t block = block_of(context);
  const Dim channels = max(context.shape(0)[1], 1);
  LoopForm form = LoopForm::over(context.result(0).shape);
  const std::vector<Index> axes = form.identity();
  const std::vector<Range> ranges = form.ranges();
  const bool depth_first = is_depth_first(context);
  const Index outer = floor_div(axes[1], depth_first ? channels : Dim(block * block), ranges);
  const Index inner = modulo(axes[1], depth_first ? channels : Dim(block * block), ranges);
  const Index& inside = depth_first ? outer : inner;
  form.set_root(
      form.dag.load(0, context.element(0),
                    {axes[0], depth_first ? inner : outer, axes[2] * block + floor_div(inside, block, ranges),
                     axes[3] * block + modulo(inside, block, ranges)}));
  return form;
}

}  // namespace

const Operator& operator_DepthToSpace() {
  static const Operator op = {
      .name = "DepthToSpace",
      .versions = {1, 11, 13, 28},
      .attributes = {{"blocksize", AttributeKind::kInt, std::nullopt, true},
                     {"mode", AttributeKind::kString, std::string("DCR")}},
      .summary = "channels to blocks of pixels",
      .infer = infer_depth_to_space,
      .lower = lower_depth_to_space,
  };
  return op;
}

const Operator& operator_SpaceToDepth() {
  static const Operator op = {
      .name = "SpaceToDepth",
      .versions = {1, 13, 28},
      .attributes = {{"blocksize", AttributeKind::kInt, std::nullopt, true},
                     {"mode", AttributeKind::kString, std::string("DCR")}},
      .summary = "blocks of pixels to channels",
      .infer = infer_space_to_depth,
      .lower = lower_space_to_depth,
  };
  return op;
}

}  // namespace gcompile::ir
