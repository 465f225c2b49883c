#include "codegen/calls/instances.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace gcompile {
namespace {

CallArgument* argument_named(std::vector<CallArgument>& arguments, const std::string& parameter) {
  const auto at = std::find_if(arguments.begin(), arguments.end(),
                               [&](const CallArgument& a) { return a.parameter == parameter; });
  return at == arguments.end() ? nullptr : &*at;
}

bool is_same(const CallArgument& a, const CallArgument& b) {
  return a.kind == b.kind && a.storage.buffer == b.storage.buffer && a.storage.offset == b.storage.offset &&
         a.weights == b.weights && a.bytes == b.bytes && a.writes == b.writes && a.c_type == b.c_type;
}

}  // namespace

Execution execution_of(const KernelCall& call) {
  Execution execution = *call.device;
  execution.family = call.family;
  return execution;
}

Instances::Instances(KernelCall oldest, std::string gpu) : call_(std::move(oldest)) {
  device().executions = {execution_of(call_)};
  instances_ = {{call_.body, {std::move(gpu)}}};
}

bool Instances::can_join(const KernelCall& other) const {
  if (other.functor_name != call_.functor_name || other.functor != call_.functor ||
      other.device->functions != call_.device->functions || other.shape != call_.shape)
    return false;
  std::vector<CallArgument> own = call_.arguments;
  return std::all_of(other.arguments.begin(), other.arguments.end(), [&](const CallArgument& a) {
    const CallArgument* const same = argument_named(own, a.parameter);
    return same ? is_same(*same, a) : a.kind == CallArgument::Kind::kScratch;
  });
}

bool Instances::add(const KernelCall& call, const std::string& gpu) {
  if (!can_join(call)) return false;
  for (const CallArgument& argument : call.arguments) {
    CallArgument* const same = argument_named(call_.arguments, argument.parameter);
    if (!same) {
      call_.add(argument);
    } else {
      same->scratch_bytes = std::max(same->scratch_bytes, argument.scratch_bytes);
    }
  }
  call_.sizes = call.sizes;
  device().counters = std::max(device().counters, call.device->counters);
  for (const std::string& header : call.headers) {
    if (std::find(call_.headers.begin(), call_.headers.end(), header) == call_.headers.end())
      call_.headers.push_back(header);
  }
  device().executions.push_back(execution_of(call));
  const auto same = std::find_if(instances_.begin(), instances_.end(),
                                 [&](const Instance& i) { return i.body == call.body; });
  if (same == instances_.end()) {
    instances_.push_back({call.body, {gpu}});
  } else {
    same->gpus.push_back(gpu);
  }
  return true;
}

void Instances::add_oldest(const gcrt::KernelTime& time, const std::string& gpu) {
  std::vector<Execution>& executions = device().executions;
  executions.push_back(executions.front());
  executions.back().time = time;
  instances_.front().gpus.push_back(gpu);
}

KernelCall Instances::finish() {
  for (const Execution& execution : device().executions)
    device().launches = std::max(device().launches, execution.launches);
  if (instances_.size() == 1) return std::move(call_);
  device().has_instances = true;
  CodeText code(1);
  code.line("switch (queue.architecture) {");
  for (const Instance& instance : instances_) {
    for (std::size_t i = 0; i < instance.gpus.size(); ++i) {
      const bool is_last = i + 1 == instance.gpus.size();
      code.line(fmt::format("  case {}:{}", instance.gpus[i], is_last ? " {" : ""));
    }
    const std::string set = fmt::format("{}", fmt::join(instance.gpus, " | "));
    code.append(instance.body.around(Symbol::kFunctor, fmt::format("OnlyOn<{}, ", set), ">"), 2);
    code.line("    break;");
    code.line("  }");
  }
  code.line("}");
  call_.body = code.text();
  return std::move(call_);
}

}  // namespace gcompile
