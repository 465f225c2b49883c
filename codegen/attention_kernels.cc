// Calls of fused attention.

#include <fmt/format.h>

#include <cctype>

#include "codegen/c_types.h"
#include "codegen/kernel_call.h"
#include "codegen/loop_printer.h"
#include "ir/ops/fused_attention.h"

namespace gcompile {

using ir::Shape;

namespace {

/// gcrt/cpu/attention.h, kAttentionValueSize.
constexpr std::int64_t kLargestValue = 256;

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
  scratch_parameter(call, key_heads * panels * 4, "packed", "float");
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
  code.line(fmt::format("threads, shape, /*heads of K and V*/ {}, /*query heads for each*/ {}, packed,",
                        key_heads, shape.group));
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
  const std::string functor =
      fmt::format("const {} epilogue{};", KernelCall::kFunctor,
                  epilogue.construction().substr(std::string(KernelCall::kFunctor).size()));
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

}  // namespace gcompile
