#include "codegen/program/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/program/names.h"
#include "template/text.h"

namespace gcompile {
namespace {

constexpr std::size_t kLineWidth = 110;  // of emitted code

}  // namespace

std::string KernelTable::signature(const KernelCall& call) const {
  const LastParameter& last = target_.last_parameter;
  std::string parameters = parameter_list(call);
  if (!call.on_host && (last.is_for_every_call || call.threaded)) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(last.declaration);
  }
  return fmt::format("{} {}({})", call.checked ? "bool" : "void", KernelCall::kName, parameters);
}

/// Operator names of the origins, shortened: "conv_relu_12".
std::string KernelTable::new_name(const LoweredStep& step) const {
  std::string words;
  std::string_view rest = step.comment;
  int count = 0;
  while (!rest.empty() && count < 3) {
    const std::size_t end = rest.find_first_of(" ,");
    const std::string word = identifier_words(rest.substr(0, end), 20);
    words += (words.empty() ? "" : "_") + word;
    ++count;
    const std::size_t next = rest.find("', ");
    if (next == std::string_view::npos) break;
    rest = rest.substr(next + 3);
  }
  if (words.empty()) words = step.call.family;
  return fmt::format("{}_{}", words, kernels_.size());
}

/// The name of the call's functor type; empty where it has none.
std::string KernelTable::functor_of(const KernelCall& call) {
  if (call.functor.empty()) return {};
  const auto [at, inserted] = functor_by_text_.try_emplace(call.functor, functors_.size());
  if (inserted) {
    Functor functor;
    functor.name = fmt::format("Epilogue{}", functors_.size());
    functor.text = replace_all(call.functor, KernelCall::kFunctor, functor.name);
    functors_.push_back(std::move(functor));
  }
  return functors_[at->second].name;
}

std::string KernelTable::name_of(const LoweredStep& step) {
  const KernelCall& call = step.call;
  const std::string functor = functor_of(call);
  const std::string body = replace_all(call.body, KernelCall::kFunctor, functor);
  const std::string device = replace_all(call.device, KernelCall::kFunctor, functor);
  const std::string text = device + (device.empty() ? "" : "\n") + signature(call) + " {\n" + body + "}\n";
  const auto [at, inserted] = kernel_by_text_.try_emplace(text, kernels_.size());
  if (inserted) {
    Kernel kernel;
    kernel.name = new_name(step);
    kernel.family = call.family;
    const auto named = [&](const std::string& with_placeholder) {
      return wrap_signatures(replace_all(with_placeholder, KernelCall::kName, kernel.name), kLineWidth);
    };
    kernel.declaration = named(signature(call) + ";");
    kernel.text = named(text);
    kernel.headers = call.headers;
    const std::string header = target_.last_parameter.header;
    if (call.threaded && !header.empty()) kernel.headers.push_back(header);
    if (!functor.empty()) kernel.functors = {functor};
    kernels_.push_back(std::move(kernel));
  }
  Kernel& kernel = kernels_[at->second];
  ++kernel.calls;
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
