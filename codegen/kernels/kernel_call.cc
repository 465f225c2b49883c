#include "codegen/kernels/kernel_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "codegen/loops/cuda_loop_printer.h"
#include "codegen/loops/loop_printer.h"
#include "ir/diagnostics.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

namespace {

/// Of the memory blocks that the caller gives on CUDA, and of inputs and outputs there.
constexpr std::int64_t kBlockAlignment = 16;

/// Proven alignment in bytes, at most kBlockAlignment, of element `offset` of a block.
std::int64_t alignment_of(std::int64_t offset, ir::ElementType element) {
  const std::int64_t bytes = offset * (bits_of(element) / 8);
  std::int64_t alignment = kBlockAlignment;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

}  // namespace

std::vector<CudaParameter> parameters_of(const KernelCall& call) {
  std::vector<CudaParameter> out;
  for (const CallArgument& a : call.arguments) {
    out.push_back(
        {fmt::format("{}{}* {}", a.writes ? "" : "const ", a.c_type, a.parameter), a.parameter, a.parameter});
  }
  return out;
}

std::string parameter_list(const KernelCall& call) {
  std::string text;
  for (const CudaParameter& p : parameters_of(call)) text += (text.empty() ? "" : ", ") + p.declaration;
  return text;
}

void KernelBuilder::require_float32(NodeId id) const {
  const ir::ElementType type = graph_.value(node(id).operands[0]).type.element;
  if (type != ir::ElementType::kFloat32) {
    ir::operator_error(fmt::format("{} has no kernel for {} yet", node(id).op->name, name_of(type)));
  }
}

const ir::Tensor& KernelBuilder::constant_weights(NodeId id) const {
  const ir::Tensor* weights = graph_.constant(node(id).operands[1]);
  if (!weights) ir::operator_error("convolution weights must be constants");
  return *weights;
}

KernelTensor KernelBuilder::operand_parameter(KernelCall& call, NodeId id, int i,
                                              const std::string& parameter) {
  const ValueId value = node(id).operands[static_cast<std::size_t>(i)];
  const ir::TensorType& type = graph_.value(value).type;
  if (const ir::Tensor* constant = graph_.constant(value)) {
    weights_parameter(call, weights_.add_tensor(*constant, graph_.value(value).name), parameter,
                      kernel_type(type.element));
    return {parameter, type.element, ir::row_major_strides(type.shape), kBlockAlignment};
  }
  CallArgument argument;
  argument.storage = stored(value);
  argument.bytes = type.bytes();
  argument.element = type.element;
  argument.c_type = kernel_type(type.element);
  argument.parameter = parameter;
  call.add(argument);
  return {parameter, type.element, argument.storage.strides,
          alignment_of(argument.storage.offset, type.element)};
}

KernelTensor KernelBuilder::result_parameter(KernelCall& call, NodeId id, int i,
                                             const std::string& parameter) {
  const ValueId value = node(id).results[static_cast<std::size_t>(i)];
  const ir::TensorType& type = graph_.value(value).type;
  CallArgument argument;
  argument.storage = stored(value);
  argument.bytes = type.bytes();
  argument.element = type.element;
  argument.c_type = kernel_type(type.element);
  argument.parameter = parameter;
  argument.writes = true;
  call.add(argument);
  return {parameter, type.element, argument.storage.strides,
          alignment_of(argument.storage.offset, type.element)};
}

void KernelBuilder::weights_parameter(KernelCall& call, int entry, const std::string& parameter,
                                      const std::string& c_type) {
  CallArgument argument;
  argument.kind = CallArgument::Kind::kWeights;
  argument.weights = entry;
  argument.c_type = c_type;
  argument.parameter = parameter;
  call.add(std::move(argument));
}

void KernelBuilder::scratch_parameter(KernelCall& call, std::int64_t bytes, const std::string& parameter,
                                      const std::string& c_type) {
  CallArgument argument;
  argument.kind = CallArgument::Kind::kScratch;
  argument.scratch_bytes = bytes;
  argument.c_type = c_type;
  argument.parameter = parameter;
  argument.writes = true;
  call.add(std::move(argument));
}

KernelCall KernelBuilder::loops(NodeId id, const ir::LoopForm& form) {
  KernelCall call;
  call.family = form.is_map() ? "map" : "reduce";
  std::vector<int> loads(node(id).operands.size(), 0);
  std::vector<int> roots;
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  for (const ir::Region& region : form.regions) roots.push_back(region.root);
  for (const ir::BoundsCheck& check : form.checks) roots.push_back(check.scalar);
  for (const int n : form.dag.reachable(roots)) {
    if (form.dag[n].op == ir::ScalarOp::kLoad) ++loads[static_cast<std::size_t>(form.dag[n].operand)];
  }
  std::vector<KernelTensor> operands(loads.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] == 0) continue;
    operands[i] = operand_parameter(call, id, static_cast<int>(i), fmt::format("x{}", i));
    // Of a table that is looked up in, no more than each point of the loops reads.
    const ir::TensorType& type = graph_.value(node(id).operands[i]).type;
    const std::int64_t elements =
        std::min(ir::element_count(type.shape), loads[i] * ir::element_count(form.extents));
    call.arguments.back().bytes = elements * bits_of(type.element) / 8;
  }
  const KernelTensor result = result_parameter(call, id, 0, "y");
  print_body(call, form, operands, result);
  return call;
}

void KernelBuilder::print_body(KernelCall& call, const ir::LoopForm& form,
                               const std::vector<KernelTensor>& operands, const KernelTensor& result) const {
  if (target_ == Target::kCuda) {
    CudaLoops loops = print_cuda_loops(form, operands, result, parameters_of(call), device_);
    call.headers = std::move(loops.headers);
    call.device = std::move(loops.device);
    call.body = std::move(loops.launches);
    call.launches = loops.count;
    call.choice = std::move(loops.choice);
    call.traps = !form.checks.empty();
    return;
  }
  call.headers = {"gcrt/loops.h"};
  call.checked = !form.checks.empty();
  if (call.checked) {
    std::string checks = print_checks(form, operands, 1);
    checks.resize(checks.size() - std::string("  return true;\n").size());
    call.body += checks;
  }
  call.body += print_loops(form, operands, result, 1);
  if (call.checked) call.body += "  return true;\n";
}

KernelCall KernelBuilder::copy(const ir::TensorType& type, const Storage& from, const Storage& to) {
  KernelCall call;
  call.family = "copy";
  CallArgument source;
  source.storage = from;
  source.bytes = type.bytes();
  source.element = type.element;
  source.c_type = kernel_type(type.element);
  source.parameter = "x0";
  call.add(source);
  CallArgument target = source;
  target.storage = to;
  target.parameter = "y";
  target.writes = true;
  call.add(target);
  ir::LoopForm form = ir::LoopForm::over(type.shape);
  form.set_root(form.dag.load(0, type.element, form.identity()));
  print_body(call, form, {{"x0", type.element, from.strides, alignment_of(from.offset, type.element)}},
             {"y", type.element, to.strides, alignment_of(to.offset, type.element)});
  return call;
}

KernelCall KernelBuilder::contract(NodeId id, const ir::ContractForm& form) {
  const std::string_view name = node(id).op->name;
  if (target_ == Target::kCuda) return cuda_contract(id, form);
  if (name == "Conv") return conv(id, form);
  if (name == "ConvTranspose") return conv_transpose(id, form);
  if (name == "MatMul") return matmul(id, form);
  if (name == "FusedAttention") return attention(id, form);
  if (name == "MaxPool" || name == "AveragePool") return pool(id, form);
  if (name == "ConvInteger") return conv_integer(id, form);
  if (name == "MatMulInteger") return matmul_integer(id, form);
  ir::operator_error(fmt::format("{} has no kernel for --target cpp", name));
}

KernelCall KernelBuilder::library(NodeId id, const ir::LibraryForm& form) {
  if (target_ == Target::kCuda) return cuda_library(id, form);
  if (form.kernel == "lstm" || form.kernel == "gru" || form.kernel == "rnn") return recurrent(id);
  if (form.kernel == "topk") return top_k(id);
  if (form.kernel == "scatter_nd" || form.kernel == "scatter_elements") return scatter(id);
  if (form.kernel == "cumsum") return cumulative_sum(id);
  ir::operator_error(fmt::format("{} has no kernel for --target cpp", node(id).op->name));
}

}  // namespace gcompile
