#include "codegen/calls/call_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "codegen/calls/kernel_name.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/cuda/cuda_loop_printer.h"
#include "codegen/loops/loop_printer.h"
#include "codegen/loops/region_form.h"
#include "ir/forms/expression_words.h"

namespace gcompile {

using ir::ValueId;

namespace {

/// The alignment of the memory blocks that the caller gives on CUDA, and of inputs and outputs there.
constexpr std::int64_t kBlockAlignment = 16;

/// Proven alignment in bytes, at most kBlockAlignment, of element `offset` of a block.
std::int64_t alignment_of(ir::Dim offset, ir::ElementType element) {
  const std::int64_t bytes = content(offset) * (bits_of(element) / 8);
  std::int64_t alignment = kBlockAlignment;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

std::vector<CudaParameter> parameters_of(const KernelCall& call) {
  std::vector<CudaParameter> out;
  for (const CallArgument& a : call.arguments) {
    out.push_back(
        {fmt::format("{}{}* {}", a.writes ? "" : "const ", a.c_type, a.parameter), a.parameter, a.parameter});
  }
  return out;
}

}  // namespace

std::string parameter_list(const KernelCall& call) {
  std::string text;
  for (const CudaParameter& p : parameters_of(call)) text += (text.empty() ? "" : ", ") + p.declaration;
  for (std::size_t i = 0; i < call.sizes.sizes().size(); ++i) {
    text += fmt::format("{}std::ptrdiff_t {}", text.empty() ? "" : ", ", SizeParameters::name(i));
  }
  return text;
}

namespace {

void add_scratch(KernelCall& call, std::int64_t bytes, const std::string& parameter,
                 const std::string& c_type) {
  CallArgument argument;
  argument.kind = CallArgument::Kind::kScratch;
  argument.scratch_bytes = bytes;
  argument.c_type = c_type;
  argument.parameter = parameter;
  argument.writes = true;
  call.add(std::move(argument));
}

/// The variable that holds what the parameter of a number points to.
std::string number_of(const std::string& parameter) { return "of_" + parameter; }

const std::string& type_of(const KernelCall& call, const std::string& parameter) {
  const auto is_it = [&](const CallArgument& argument) { return argument.parameter == parameter; };
  return std::find_if(call.arguments.begin(), call.arguments.end(), is_it)->c_type;
}

}  // namespace

void add_headers_of_expressions(KernelCall& call, const ir::Dag& dag) {
  const auto has = [&](const auto& is_it) {
    return std::any_of(dag.nodes().begin(), dag.nodes().end(), is_it);
  };
  if (has([](const ir::ScalarNode& node) { return is_small_float(node.type); }))
    call.headers.push_back("gcrt/small_floats.h");
  if (has([](const ir::ScalarNode& node) { return node.op >= ir::ScalarOp::kPhiloxLow; }))
    call.headers.push_back("gcrt/scalar/philox.h");
}

namespace {

/// Body of a kernel that walks loops, for the target.
void print_body(KernelCall& call, const ir::LoopForm& form, const std::vector<KernelTensor>& operands,
                const KernelTensor& result, const Machine& machine) {
  if (machine.target == Target::kCuda) {
    CudaLoops loops = print_cuda_loops(form, operands, result, parameters_of(call), machine.gpu, call.sizes);
    call.headers = std::move(loops.headers);
    call.body = std::move(loops.launches);
    DeviceCall& device = *call.device;
    device.functions = std::move(loops.device);
    device.launches = loops.count;
    device.choice = std::move(loops.choice);
    device.time.blocks = loops.blocks;
    device.traps = !form.checks.empty();
    device.overlaps = true;
    device.reductions = static_cast<int>(form.stages.size());
    device.joins = loops.joins;
    device.rounds = loops.rounds;
    device.bytes_again = loops.bytes_again;
    device.counters = loops.counters;
    if (loops.workspace_bytes > 0) add_scratch(call, loops.workspace_bytes, "workspace", "float");
    add_headers_of_expressions(call, form.dag);
    return;
  }
  call.headers = {"gcrt/loops.h"};
  add_headers_of_expressions(call, form.dag);
  call.checked = !form.checks.empty();
  if (call.checked) call.body += print_checks(form, operands, 1, call.sizes);
  const PrintedLoops loops = print_loops(form, operands, result, 1, machine.least_threaded_work(), call.sizes,
                                         call.by_rows ? kRowsOfImage : -1);
  call.time_alone = machine.picoseconds_of_work(loops.work);
  call.headers.insert(call.headers.end(), loops.headers.begin(), loops.headers.end());
  call.body += loops.text;
  std::string numbers;  // are read once, before the loops
  for (const std::string& parameter : call.sizes.take_mentioned_numbers())
    numbers +=
        fmt::format("  const {} {} = {}[0];\n", type_of(call, parameter), number_of(parameter), parameter);
  call.body = numbers + call.body;
  call.threaded = loops.threaded;
  if (call.checked) call.body += "  return true;\n";
}

}  // namespace

CallWriter::CallWriter(const ir::Graph& graph, ir::NodeId id, const ir::Form& form, HomeOf home,
                       WeightBlob& weights, const Machine& machine)
    : view_(graph, id), form_(form), home_(std::move(home)), blob_(weights), machine_(machine) {
  call_.name = kernel_name(view_, form_);
  if (info_of(machine.target).has_device_memory) call_.device.emplace();
}

bool CallWriter::has_operand(int operand) const {
  const auto* contract = std::get_if<ir::ContractForm>(&form_);
  return (contract == nullptr || operand < contract->base_operands) && view_.has_operand(operand);
}

bool CallWriter::wants_result(int i) const {
  return view_.has_result(i) && view_.graph().use_count(view_.node().results[i]) > 0;
}

KernelTensor CallWriter::stored(ValueId id, bool writes, const std::string& parameter) {
  const ir::Value& value = view_.graph().value(id);
  const KernelTensor out = placed(home_(id), value.type, writes, parameter);
  call_.arguments.back().value = value.name;
  call_.arguments.back().layout = layout_text(value.name, value.type, out.strides);
  return out;
}

void CallWriter::join(JoinedOperands operands) { joined_ = std::move(operands); }

const JoinedOperand* CallWriter::joined(int i) const {
  const auto at = joined_.find(i);
  return at == joined_.end() ? nullptr : &at->second;
}

KernelTensor CallWriter::rows_of(int i, const Storage& place, ir::Dim rows, bool writes,
                                 const std::string& parameter) {
  ir::TensorType part = type(i);
  part.shape[part.shape.size() - 2] = rows;
  return placed(place, part, writes, parameter);
}

KernelTensor CallWriter::placed(const Storage& place, const ir::TensorType& type, bool writes,
                                const std::string& parameter) {
  CallArgument argument;
  argument.storage = place;
  argument.bytes = type.bytes();
  argument.element = type.element;
  argument.c_type = kernel_type(type.element);
  argument.parameter = parameter;
  argument.writes = writes;
  call_.add(argument);
  return {parameter, type.element, argument.storage.strides,
          alignment_of(argument.storage.offset, type.element)};
}

KernelTensor CallWriter::operand(int i, const std::string& parameter) {
  return parameter_for(view_.node().operands[i], parameter);
}

bool CallWriter::make_rows(ir::NodeId producer, const ir::LoopForm& loops, int threads) {
  const ir::Node& node = view_.graph().node(producer);
  std::vector<KernelTensor> operands(node.operands.size());
  std::string members, values;
  const auto nodes = loops.dag.nodes();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_read = std::any_of(nodes.begin(), nodes.end(), [&](const ir::ScalarNode& scalar) {
      return scalar.op == ir::ScalarOp::kLoad && scalar.operand == static_cast<int>(i);
    });
    if (!is_read) continue;
    const std::string name = fmt::format("r{}", i);
    operands[i] = parameter_for(node.operands[i], name);
    members += fmt::format("  const {}* {};\n", kernel_type(operands[i].element), name);
    values += (values.empty() ? "" : ", ") + name;
  }
  const ir::Shape& shape = view_.graph().value(node.results[0]).type.shape;
  const KernelTensor y{"y", ir::ElementType::kFloat32, ir::row_major_strides(shape), kBlockAlignment};
  const std::optional<CudaRows> rows = print_cuda_rows(loops, operands, y, machine_.gpu, threads);
  if (!rows) return false;
  const Text name = Text(Symbol::kKernel) + "_rows";
  call_.device->functions = Text("struct ") + name + " {\n" + members +
                            "  GCRT_DEVICE void operator()(float* y, std::ptrdiff_t scratch) const {\n" +
                            rows->body + "  }\n};\n";
  call_.headers.insert(call_.headers.end(), rows->headers.begin(), rows->headers.end());
  made_rows_ = name + "{" + values + "}";
  return true;
}

KernelTensor CallWriter::parameter_for(ValueId id, const std::string& parameter) {
  const ir::Tensor* tensor = view_.graph().constant(id);
  if (!tensor) return stored(id, false, parameter);
  const ir::Value& value = view_.graph().value(id);
  const ir::TensorType& operand_type = value.type;
  weights(blob_.add_tensor(*tensor, value.name), parameter, kernel_type(operand_type.element));
  KernelTensor out{parameter, operand_type.element, ir::row_major_strides(operand_type.shape),
                   kBlockAlignment};
  out.is_weight = true;
  if (is_float(operand_type.element)) out.bound = ir::bound_of(*tensor);
  return out;
}

KernelTensor CallWriter::result(int i, const std::string& parameter) {
  return stored(view_.node().results[i], true, parameter);
}

void CallWriter::weights(int entry, const std::string& parameter, const std::string& c_type) {
  CallArgument argument;
  argument.kind = CallArgument::Kind::kWeights;
  argument.weights = entry;
  argument.c_type = c_type;
  argument.parameter = parameter;
  call_.add(std::move(argument));
}

std::string CallWriter::number(const ir::Scalar& value, const std::string& word) {
  const std::optional<std::string> name = numbers_ == nullptr ? std::nullopt : numbers_->name_of(value);
  if (!name) return "";
  const bool is_float64 = value.type == ir::ElementType::kFloat64;
  std::string& parameter = number_parameters_[{is_float64, value.as_double()}];
  if (parameter.empty()) {
    parameter = unused_parameter(word);
    const std::string of_layer =
        fmt::format("{}_{}", view_.graph().value(view_.node().results[0]).name, word);
    const ir::ElementType element = is_float64 ? value.type : ir::ElementType::kFloat32;
    weights(blob_.add_number(ir::cast(value, element), name->empty() ? of_layer : *name), parameter,
            kernel_type(element));
  }
  return parameter;
}

std::string CallWriter::unused_parameter(const std::string& wanted) {
  for (; listed_ < call_.arguments.size(); ++listed_) parameters_.insert(call_.arguments[listed_].parameter);
  std::string name = wanted;
  int& number = counts_.try_emplace(wanted, 1).first->second;
  while (parameters_.count(name) > 0) name = fmt::format("{}_{}", wanted, ++number);
  return name;
}

void CallWriter::packed(int i, Packing packing, const std::string& format, const std::string& parameter,
                        const std::string& c_type) {
  weights(blob_.add(std::move(packing), name(i), fmt::format("{} {}", to_string(type(i)), format)), parameter,
          c_type);
}

void CallWriter::scratch(std::int64_t bytes, const std::string& parameter, const std::string& c_type) {
  add_scratch(call_, bytes, parameter, c_type);
}

ir::Shape CallWriter::strides_of(int i) const {
  return constant(i) ? ir::row_major_strides(type(i).shape) : home_(view_.node().operands[i]).strides;
}

/// A movement that reads a part of its operand reads all of one that begins there, so that parts of one shape, such as
/// the rows of a loop's trips, share a kernel. nullopt: it reads no part, or in another order.
static std::optional<ir::LoopForm> part_as_whole(const ir::LoopForm& form, KernelTensor& from,
                                                 Storage& place) {
  const std::optional<ir::ViewStrides> view = ir::view_strides(form, from.strides);
  if (!view || !view->offset.is_constant() || view->offset <= 0) return std::nullopt;
  const auto goes_on = [](ir::Dim stride) { return stride.is_constant() && stride >= 0; };
  if (!std::all_of(view->strides.begin(), view->strides.end(), goes_on)) return std::nullopt;
  place.offset = place.offset + view->offset;
  from.strides = view->strides;
  from.alignment = alignment_of(place.offset, from.element);
  ir::LoopForm whole = ir::LoopForm::over(form.extents);
  const int operand = ir::pure_load(form)->operand;
  whole.set_root(whole.dag.load(operand, from.element, whole.identity()));
  whole.regions[0].box = form.regions[0].box;
  return whole;
}

void CallWriter::loops(const ir::LoopForm& whole) {
  const std::optional<ir::LoopForm> less =
      form_without_idle_lookups(whole, [&](int i) { return strides_of(i); });
  const ir::LoopForm& form = less ? *less : whole;
  const std::size_t count = view_.node().operands.size();
  std::vector<int> loads(count, 0);
  std::vector<int> roots;
  for (const ir::Stage& stage : form.stages) roots.push_back(stage.root);
  for (const ir::Region& region : form.regions) roots.push_back(region.root);
  for (const ir::BoundsCheck& check : form.checks) roots.push_back(check.scalar);
  for (const int n : form.dag.reachable(roots)) {
    if (form.dag[n].op == ir::ScalarOp::kLoad) ++loads[form.dag[n].operand];
  }
  std::vector<KernelTensor> operands(count);
  const std::vector<std::string> words = ir::operand_words(form, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (loads[i] == 0) continue;
    operands[i] = operand(static_cast<int>(i), unused_parameter(words[i]));
    // A table that is looked up in counts for no more than each point of the loops reads.
    const ir::TensorType& operand_type = type(static_cast<int>(i));
    const std::int64_t bits = bits_of(operand_type.element);
    const ir::Dim all = ir::element_count(operand_type.shape), points = ir::element_count(form.extents);
    const std::int64_t most = std::min(ir::highest(all), loads[i] * ir::highest(points));
    const bool is_table = all.is_constant() || most < ir::highest(all);
    call_.arguments.back().bytes = figure(
        most * bits / 8, [&] { return (is_table ? ir::min(all, loads[i] * points) : all) * bits / 8; });
  }
  const std::vector<int> nodes = form.dag.reachable(roots);
  for (const int n : nodes) {
    if (form.dag[n].op != ir::ScalarOp::kConstant) continue;
    const std::string at = number(form.dag[n].constant, ir::constant_word(form.dag, nodes, n));
    if (at.empty()) continue;
    call_.sizes.name_number(form.dag[n].constant, at, on_device() ? at + "[0]" : number_of(at));
  }
  std::optional<ir::LoopForm> part;
  if (const ir::ScalarNode* load = ir::pure_load(form); load != nullptr && !constant(load->operand)) {
    part = part_as_whole(form, operands[load->operand], call_.arguments.back().storage);
  }
  const KernelTensor y = result(0, "y");
  const ir::LoopForm& printed = part ? *part : form;
  if (const ir::ScalarNode* load = ir::pure_load(printed); load != nullptr && printed.has_identity_store()) {
    const ir::Shape& from = operands[load->operand].strides;
    if (load->index == printed.identity()) call_.name = copy_name(printed.extents, from, y.strides);
  }
  print_body(call_, printed, operands, y, machine_);
}

KernelCall copy_call(const ir::TensorType& type, const Storage& from, const Storage& to,
                     const Machine& machine) {
  KernelCall call;
  call.family = "copy";
  if (info_of(machine.target).has_device_memory) call.device.emplace();
  CallArgument source;
  source.storage = from;
  source.bytes = type.bytes();
  source.element = type.element;
  source.c_type = kernel_type(type.element);
  source.parameter = "x";
  call.add(source);
  CallArgument target = source;
  target.storage = to;
  target.parameter = "y";
  target.writes = true;
  call.add(target);
  ir::LoopForm form = ir::LoopForm::over(type.shape);
  form.set_root(form.dag.load(0, type.element, form.identity()));
  call.name = copy_name(type.shape, from.strides, to.strides);
  print_body(call, form, {{"x", type.element, from.strides, alignment_of(from.offset, type.element)}},
             {"y", type.element, to.strides, alignment_of(to.offset, type.element)}, machine);
  return call;
}

const char* threads_argument(KernelCall& out) {
  if (out.is_short) return "nullptr";
  out.threaded = true;
  return "threads";
}

void call_with_threads(KernelCall& out, CodeText& code, const std::string& function, const Text& arguments) {
  const std::string first = out.by_rows ? "" : fmt::format("{}, ", threads_argument(out));
  code.line(Text(function) + "(" + first + arguments + (out.by_rows ? ", begin, end);" : ");"));
}

void call_in_parallel(KernelCall& out, CodeText& code, const std::string& work_items,
                      const std::string& call) {
  code.open(fmt::format("parallel_for({}, {}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{",
                        threads_argument(out), work_items));
  code.line(call + ";");
  code.close("});");
}

}  // namespace gcompile
