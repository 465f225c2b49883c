#include "codegen/program/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loops/c_types.h"
#include "codegen/program/names.h"
#include "jinja/text.h"

namespace gcompile {
namespace {

constexpr std::size_t kLineWidth = 110;   // of emitted code
constexpr std::size_t kMostComments = 3;  // of the calls that share a kernel

bool takes_halves(const KernelCall& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(), [](const CallArgument& a) {
    return a.c_type == kernel_type(ir::ElementType::kFloat16) ||
           a.c_type == kernel_type(ir::ElementType::kBFloat16) || a.c_type == "Tf32";
  });
}

}  // namespace

Text KernelTable::signature(const KernelCall& call) const {
  const LastParameter& last = target_.last_parameter;
  std::string parameters = parameter_list(call);
  if (!call.on_host && (last.is_for_every_call || call.threaded)) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(last.declaration);
  }
  if (call.by_rows) parameters += ", std::ptrdiff_t begin, std::ptrdiff_t end";
  return Text(call.checked ? "bool " : "void ") + Symbol::kKernel + "(" + parameters + ")";
}

/// "com.microsoft.MatMulNBits" -> "MatMulNBits".
static std::string_view without_domain(const std::string& what) {
  const auto dot = std::find(what.rbegin(), what.rend(), '.');
  const auto begin = static_cast<std::size_t>(what.rend() - dot);
  return {what.data() + begin, what.size() - begin};
}

/// Names of the operators, shortened: "conv_relu_12".
std::string KernelTable::new_name(const LoweredStep& step) const {
  constexpr std::size_t kMostWords = 3;
  std::string words;
  for (std::size_t i = 0; i < std::min(kMostWords, step.origins.size()); ++i) {
    words += (words.empty() ? "" : "_") + identifier_words(without_domain(step.origins[i].what), 20);
  }
  if (words.empty()) words = identifier_words(step.call.family, 20);
  return fmt::format("{}_{}", words, kernels_.size());
}

int KernelTable::functor_of(const LoweredStep& step, const std::string& kernel) {
  const KernelCall& call = step.call;
  if (call.functor.empty()) return -1;
  const auto [at, inserted] = functor_by_text_.try_emplace(call.functor, static_cast<int>(functors_.size()));
  if (inserted) {
    // Profilers of a device show kernels of gcrt by the types that they are made for.
    const std::string name = target_.has_device_memory ? fmt::format("Epilogue_of_{}", kernel)
                                                       : fmt::format("Epilogue{}", functors_.size());
    functors_.push_back({name, wrap_signatures(call.functor.spelled({"", name}), kLineWidth)});
  }
  return at->second;
}

std::string KernelTable::name_of(const LoweredStep& step) {
  const KernelCall& call = step.call;
  const std::string name = new_name(step);
  const int functor = functor_of(step, name);
  Text text = call.device;
  if (!text.empty()) text += "\n";
  text += signature(call) + " {\n" + call.shape + call.body + "}\n";
  const auto [at, inserted] = kernel_by_text_.try_emplace({functor, text}, kernels_.size());
  if (inserted) {
    Kernel kernel;
    kernel.name = name;
    kernel.family = call.family;
    if (functor >= 0) kernel.functors = {functors_[static_cast<std::size_t>(functor)].name};
    const SymbolNames names{kernel.name, functor >= 0 ? kernel.functors[0] : ""};
    kernel.declaration = wrap_signatures(signature(call).spelled(names) + ";", kLineWidth);
    kernel.text = wrap_signatures(text.spelled(names), kLineWidth);
    kernel.headers = call.headers;
    kernel.takes_halves = takes_halves(call);
    const std::string header = target_.last_parameter.header;
    if (call.threaded && !header.empty()) kernel.headers.push_back(header);
    kernels_.push_back(std::move(kernel));
  }
  Kernel& kernel = kernels_[at->second];
  ++kernel.calls;
  if (kernel.comments.size() < kMostComments) {
    kernel.comments.push_back(fmt::format("{} -> {}", step.comment, step.result));
  }
  return kernel.name;
}

void KernelTable::finish(Program& program) {
  std::vector<std::string>& headers = program.headers;
  for (const Kernel& kernel : kernels_) {
    headers.insert(headers.end(), kernel.headers.begin(), kernel.headers.end());
  }
  std::sort(headers.begin(), headers.end());
  headers.erase(std::unique(headers.begin(), headers.end()), headers.end());
  program.kernels = std::move(kernels_);
  program.functors = std::move(functors_);
}

}  // namespace gcompile
