#include "codegen/program/kernel_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/names.h"
#include "codegen/calls/kernel_name.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/identifiers.h"
#include "jinja/text.h"

namespace gcompile {
namespace {

constexpr std::size_t kLineWidth = 110;   // of emitted code
constexpr std::size_t kMostComments = 3;  // of the calls that share a kernel
constexpr int kNewFunctor = -2;           // a type of a call that no kernel has yet

/// Elements that a struct of gcrt holds: floats of 16 and 8 bits.
bool is_struct(const std::string& c_type) {
  for (int i = 0; i < ir::kElementTypeCount; ++i) {
    const auto type = static_cast<ir::ElementType>(i);
    if (bits_of(type) >= 8 && compute_type(type) != type && c_type == kernel_type(type)) return true;
  }
  return c_type == "Tf32";
}

bool takes_structs(const KernelCall& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(),
                     [](const CallArgument& a) { return is_struct(a.c_type); });
}

}  // namespace

Text KernelTable::signature(const KernelCall& call) const {
  const LastParameter& last = target_.last_parameter;
  std::string parameters = parameter_list(call);
  if (!call.on_host && (last.is_for_every_call || call.threaded)) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(last.declaration);
  }
  if (call.by_rows) parameters += ", std::ptrdiff_t begin, std::ptrdiff_t end";
  return Text(call.on_host ? "GCRT_HOST_STEP " : "") + (call.checked ? "bool " : "void ") + Symbol::kKernel +
         "(" + parameters + ")";
}

/// The shortest of what the name may be that is not taken yet.
std::string KernelTable::unused(const KernelName& name, const std::string& owner) {
  std::string text = name.base;
  for (const std::string& detail : name.details) {
    if (names_.insert(text).second) return text;
    text += "_" + detail;
  }
  if (names_.insert(text).second) return text;
  text += "_of_" + owner;
  for (std::string numbered = text;; numbered = fmt::format("{}_{}", text, ++repeats_[text])) {
    if (names_.insert(numbered).second) return numbered;
  }
}

namespace {

/// What tells functor types apart: their text, and the names of those that gcrt has.
Text functor_key(const KernelCall& call) {
  return call.functor.empty() ? Text(call.functor_name) : call.functor;
}

}  // namespace

int KernelTable::add_functor(const KernelCall& call, const std::string& kernel) {
  const bool is_of_gcrt = call.functor.empty();
  const std::string name = is_of_gcrt ? call.functor_name : unused({call.functor_name, {}}, kernel);
  const int functor = static_cast<int>(functors_.size());
  functors_.push_back({name, wrap_signatures(call.functor.spelled({"", name}), kLineWidth)});
  functor_by_text_[functor_key(call)] = functor;
  return functor;
}

std::string KernelTable::name_of(const LoweredStep& step) {
  constexpr std::size_t kLongestOwner = 24;
  const KernelCall& call = step.call;
  const auto known = functor_by_text_.find(functor_key(call));
  int functor = call.functor_name.empty()         ? -1
                : known != functor_by_text_.end() ? known->second
                                                  : kNewFunctor;
  Text text = call.device ? call.device->functions : Text();
  if (!text.empty()) text += "\n";
  text += signature(call) + " {\n" + call.shape + call.body + "}\n";
  auto at = kernel_by_text_.find({functor, text});
  if (at == kernel_by_text_.end()) {
    const std::string owner = step.origins.empty() ? "" : step.origins[0].name.value_or("");
    Kernel kernel;
    kernel.name = unused(call.name, identifier_words(owner, kLongestOwner));
    kernel.family = call.family;
    if (functor == kNewFunctor) functor = add_functor(call, kernel.name);
    if (functor >= 0) kernel.functors = {functors_[static_cast<std::size_t>(functor)].name};
    kernel.headers = call.headers;
    kernel.takes_structs = takes_structs(call);
    const std::string header = target_.last_parameter.header;
    if (call.threaded && !header.empty()) kernel.headers.push_back(header);
    Draft draft{signature(call), text, {}, {}};
    for (const ir::Dim size : call.sizes.sizes()) draft.names.push_back(size_name(size));
    draft.sizes.resize(draft.names.size());
    drafts_.push_back(std::move(draft));
    at = kernel_by_text_.emplace(std::pair(functor, std::move(text)), kernels_.size()).first;
    kernels_.push_back(std::move(kernel));
  }
  Kernel& kernel = kernels_[at->second];
  for (std::size_t i = 0; i < call.sizes.sizes().size(); ++i) {
    drafts_[at->second].sizes[i].insert(ir::to_string(call.sizes.sizes()[i]));
  }
  ++kernel.calls;
  if (kernel.comments.size() < kMostComments) {
    kernel.comments.push_back(fmt::format("{} -> {}", step.comment, step.result));
  }
  return kernel.name;
}

void KernelTable::settle(Kernel& kernel, const Draft& draft) {
  SymbolNames names{kernel.name, kernel.functors.empty() ? "" : kernel.functors[0], {}};
  std::set<std::string> taken = identifiers_of(draft.text.spelled(names));
  for (std::size_t i = 0; i < draft.sizes.size(); ++i) {
    const bool is_one = draft.sizes[i].size() == 1;
    std::string name = is_one ? draft.names[i] : "";
    if (!name.empty() && (is_reserved_word(name) || taken.count(name) > 0)) name += "_size";
    if (!name.empty() && !taken.insert(name).second) name.clear();
    if (name.empty()) kernel.sizes.push_back(fmt::format("n{}: {}", i, fmt::join(draft.sizes[i], ", or ")));
    names.sizes.push_back(std::move(name));
  }
  kernel.declaration = wrap_signatures(draft.signature.spelled(names) + ";", kLineWidth);
  kernel.text = wrap_signatures(draft.text.spelled(names), kLineWidth);
}

void KernelTable::finish(Program& program) {
  for (std::size_t i = 0; i < kernels_.size(); ++i) settle(kernels_[i], drafts_[i]);
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
