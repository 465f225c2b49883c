// Calls of fused attention.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "codegen/kernels/cuda_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/loop_printer.h"
#include "gcrt/cuda/attention_plan.h"
#include "ir/ops/fused_attention.h"

namespace gcompile {

using ir::Shape;

namespace {

constexpr std::int64_t kLargestValue = ir::FusedAttention::kLargestHead;

/// Key heads are packed for so many blocks of rows at a time: work for that many threads.
constexpr std::int64_t kBlocksTogether = 16;
constexpr std::int64_t kBlockRows = 24;  // of the widest vectors

std::int64_t whole_panels(std::int64_t columns) { return (columns + 15) / 16 * 16; }

/// " + 64 * b1": elements from the first head to the one that the variables b<axis> name.
std::string moved(const std::vector<std::int64_t>& strides, const Shape& heads) {
  std::string text;
  for (std::size_t axis = 0; axis < heads.size(); ++axis) {
    if (heads[axis] != 1 && strides[axis] != 0) text += fmt::format(" + {} * b{}", strides[axis], axis);
  }
  return text;
}

/// Declares the coordinates of `head` that `text` uses. Returns whether there are any.
bool declare_coordinates(CodeText& code, const std::string& text, const Shape& heads) {
  std::vector<std::string> lines;
  std::int64_t below = 1;
  const std::int64_t count = ir::element_count(heads);
  for (std::size_t axis = heads.size(); axis-- > 0; below *= heads[axis]) {
    const std::string use = fmt::format("* b{}", axis);
    bool used = false;
    for (std::size_t at = text.find(use); at != std::string::npos; at = text.find(use, at + 1)) {
      const std::size_t end = at + use.size();
      used |= end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0;
    }
    if (!used) continue;
    std::string value = below == 1 ? "head" : fmt::format("head / {}", below);
    if (below * heads[axis] < count) value += fmt::format(" % {}", heads[axis]);
    lines.push_back(fmt::format("const std::ptrdiff_t b{} = {};", axis, value));
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) code.line(*line);
  return !lines.empty();
}

/// Strides of a mask along (heads..., rows, columns), 0 where it broadcasts.
std::vector<std::int64_t> mask_strides(const Shape& shape, const std::vector<std::int64_t>& strides,
                                       std::size_t rank) {
  std::vector<std::int64_t> out(rank, 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) out[rank - shape.size() + i] = strides[i];
  }
  return out;
}

}  // namespace

KernelCall KernelBuilder::attention(ir::NodeId id, const ir::ContractForm& form) {
  const ir::FusedAttention shape = ir::fused_attention_of(ir::NodeView(graph_, id));
  if (shape.value_size > kLargestValue) {
    ir::operator_error(
        fmt::format("values of more than {} elements have no attention kernel", kLargestValue));
  }
  KernelCall call;
  call.family = "attention";
  call.headers = {"gcrt/cpu/attention.h"};
  call.threaded = true;
  call.multiply_adds = ir::element_count(shape.scores()) * (shape.size + shape.value_size);
  const KernelTensor q = operand_parameter(call, id, 0, "q");
  const KernelTensor k = operand_parameter(call, id, 1, "k");
  const KernelTensor v = operand_parameter(call, id, 2, "v");
  const std::size_t batch = shape.heads.size();
  std::string mask = "NoMask{}";
  if (shape.has_mask) {
    const KernelTensor operand = operand_parameter(call, id, ir::FusedAttention::kMask, "mask");
    const Shape& own = graph_.value(node(id).operands[ir::FusedAttention::kMask]).type.shape;
    const std::vector<std::int64_t> strides = mask_strides(own, operand.strides, batch + 2);
    const bool kept = operand.element == ir::ElementType::kBool;
    const std::string fill =
        kept ? ", " + literal(ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(shape.fill)))
             : "";
    mask = fmt::format("{}{{mask{}, {}, {}{}}}", kept ? "KeptMask" : "AddedMask", moved(strides, shape.heads),
                       strides[batch], strides[batch + 1], fill);
  }
  const std::int64_t key_heads = ir::element_count(shape.key_heads);
  const std::int64_t panels =
      shape.size * whole_panels(shape.columns) + shape.columns * whole_panels(shape.value_size);
  const std::int64_t blocks = shape.group * ((shape.rows + kBlockRows - 1) / kBlockRows);
  // Work for all threads, but no more scratch than the result has, where one head does not need more.
  const std::int64_t results = ir::element_count(form.epilogue.extents);
  const std::int64_t most = smallest_scratch_ ? 1 : std::max<std::int64_t>(1, results / panels);
  const std::int64_t slots = std::min({key_heads, most, (kBlocksTogether + blocks - 1) / blocks});
  scratch_parameter(call, slots * panels * 4, "packed", "float");
  const EpilogueWriter epilogue(*this, call, id, form, {static_cast<int>(batch)},
                                static_cast<int>(batch) + 1);

  const auto real = [](float x) {
    return literal(ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(x)));
  };
  CodeText code(1);
  code.line(fmt::format(
      "constexpr AttentionShape shape = {{/*rows*/ {}, /*columns*/ {}, /*sizes*/ {}, {}, /*scale*/ {},",
      shape.rows, shape.columns, shape.size, shape.value_size, real(shape.scale)));
  code.line(
      fmt::format("                                  /*causal*/ {}, /*past*/ {}, /*zero if empty*/ {}}};",
                  shape.causal, shape.past, shape.zero_if_empty));
  code.open("attention(");
  code.line(
      fmt::format("threads, shape, /*heads of K and V*/ {}, /*query heads for each*/ {}, /*packed at a "
                  "time*/ {}, packed,",
                  key_heads, shape.group, slots));
  const auto strides = [&](const KernelTensor& tensor) {
    return fmt::format("{{{}, {}}}", tensor.strides[batch], tensor.strides[batch + 1]);
  };
  const std::string pack =
      fmt::format("pack_attention(shape, k{}, {}, v{}, {}, panels);", moved(k.strides, shape.key_heads),
                  strides(k), moved(v.strides, shape.key_heads), strides(v));
  CodeText scratch;
  code.open(fmt::format("[&](std::ptrdiff_t{}, float* panels) {{",
                        declare_coordinates(scratch, pack, shape.key_heads) ? " head" : ""));
  declare_coordinates(code, pack, shape.key_heads);
  code.line(pack);
  code.close("},");
  const std::string& functor = epilogue.declaration();
  const std::string run =
      fmt::format("task(q{}, {}, {}, epilogue);", moved(q.strides, shape.heads), q.strides[batch], mask);
  const std::string used = functor + run;
  code.open(fmt::format("[&](std::ptrdiff_t{}, const AttentionTask& task) {{",
                        declare_coordinates(scratch, used, shape.heads) ? " head" : ""));
  declare_coordinates(code, used, shape.heads);
  code.line(functor);
  code.line(run);
  code.close("});");
  call.body = code.text();
  return call;
}

namespace {

/// The two axes of heads that the kernel of CUDA knows: the last one, and the only other one longer than 1.
struct HeadAxes {
  std::optional<std::size_t> batch, head;
  explicit HeadAxes(const Shape& heads) {
    if (heads.empty()) return;
    head = heads.size() - 1;
    for (std::size_t axis = 0; axis + 1 < heads.size(); ++axis) {
      if (heads[axis] == 1) continue;
      if (batch) ir::operator_error("heads along more than two axes have no attention kernel");
      batch = axis;
    }
  }
  static std::int64_t of(const std::vector<std::int64_t>& list, std::optional<std::size_t> axis,
                         std::int64_t absent) {
    return axis ? list[*axis] : absent;
  }
};

}  // namespace

KernelCall KernelBuilder::cuda_attention(ir::NodeId id, const ir::ContractForm& form) {
  const ir::FusedAttention shape = ir::fused_attention_of(ir::NodeView(graph_, id));
  const HeadAxes axes(shape.heads);
  const std::size_t rank = shape.heads.size() + 2;
  KernelCall call;
  call.family = "attention";
  call.headers = {"gcrt/cuda/attention.h"};
  call.multiply_adds = ir::element_count(shape.scores()) * (shape.size + shape.value_size);
  gcrt::AttentionShape sizes{};
  sizes.batch = narrow(HeadAxes::of(shape.heads, axes.batch, 1));
  sizes.heads = narrow(HeadAxes::of(shape.heads, axes.head, 1));
  sizes.kv_heads = narrow(HeadAxes::of(shape.key_heads, axes.head, 1));
  if (std::int64_t{sizes.batch} * sizes.kv_heads > UINT16_MAX)
    ir::operator_error("attention of that many heads has no CUDA kernel");
  sizes.queries = narrow(shape.rows);
  sizes.keys = narrow(shape.columns);
  sizes.head_size = narrow(shape.size);
  sizes.value_size = narrow(shape.value_size);
  const gcrt::AttentionPlan plan = gcrt::plan_attention(device_, sizes);

  const auto strides = [&](const std::vector<std::int64_t>& all) {
    return fmt::format("{}, {}, {}, {}", HeadAxes::of(all, axes.batch, 0), HeadAxes::of(all, axes.head, 0),
                       all[rank - 2], all[rank - 1]);
  };
  const KernelTensor q = operand_parameter(call, id, 0, "q");
  const KernelTensor k = operand_parameter(call, id, 1, "k");
  const KernelTensor v = operand_parameter(call, id, 2, "v");
  std::string mask = "AttentionMask{}";
  const char* kind = "kNone";
  if (shape.has_mask) {
    const KernelTensor operand = operand_parameter(call, id, ir::FusedAttention::kMask, "mask");
    const Shape& own = graph_.value(node(id).operands[ir::FusedAttention::kMask]).type.shape;
    const bool kept = operand.element == ir::ElementType::kBool;
    if (kept && std::isfinite(shape.fill)) {
      ir::operator_error("a mask that leaves a finite score has no CUDA kernel");
    }
    kind = kept ? "kBoolean" : "kAdditive";
    mask = fmt::format("AttentionMask{{mask, {}}}", strides(mask_strides(own, operand.strides, rank)));
  }
  const std::string split =
      split_argument(call, plan.splits, gcrt::attention_workspace_size(sizes, plan.splits));
  call.launches = plan.splits > 1 ? 2 : 1;
  const Precision precision = precision_of(call, id, 3);
  call.products_per_clock = gcrt::products_per_clock(device_, precision);
  std::vector<int> grid_axes;
  if (axes.batch) grid_axes.push_back(static_cast<int>(*axes.batch));
  if (axes.head && sizes.heads > 1) grid_axes.push_back(static_cast<int>(*axes.head));
  const EpilogueWriter epilogue(*this, call, id, form, {static_cast<int>(rank) - 2},
                                static_cast<int>(rank) - 1, grid_axes);
  CodeText code(1);
  code.line(fmt::format("const AttentionShape shape = {{/*batch, heads, heads of K and V*/ {}, {}, {},",
                        sizes.batch, sizes.heads, sizes.kv_heads));
  code.line(
      fmt::format("    /*queries, keys*/ {}, {}, /*sizes*/ {}, {}, /*scale*/ {}, /*causal, past, zero if "
                  "empty*/ {}, {}, {},",
                  sizes.queries, sizes.keys, sizes.head_size, sizes.value_size,
                  literal(ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(shape.scale))),
                  shape.causal, shape.past, shape.zero_if_empty));
  code.line(fmt::format("    /*strides of q, k, v*/ {{{}}}, {{{}}}, {{{}}}}};", strides(q.strides),
                        strides(k.strides), strides(v.strides)));
  code.line(epilogue.declaration());
  code.line(fmt::format("attention<{}, AttentionTile::{}, {}, {}, AttentionMaskKind::{}>(",
                        precision_argument(precision), plan.tile == gcrt::AttentionTile::k16 ? "k16" : "k64",
                        gcrt::attention_padded(sizes.head_size), gcrt::attention_padded(sizes.value_size),
                        kind));
  code.line(fmt::format("    queue, shape, q, k, v, {}, {}, epilogue);", mask, split));
  call.body = code.text();
  return call;
}

}  // namespace gcompile
