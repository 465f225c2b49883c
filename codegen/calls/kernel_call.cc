#include "codegen/calls/kernel_call.h"

#include <utility>

namespace gcompile {

KernelCall::KernelCall() = default;
KernelCall::KernelCall(const KernelCall&) = default;
KernelCall::KernelCall(KernelCall&&) noexcept = default;
KernelCall& KernelCall::operator=(const KernelCall&) = default;
KernelCall& KernelCall::operator=(KernelCall&&) noexcept = default;
KernelCall::~KernelCall() = default;

CallArgument& KernelCall::add(CallArgument argument) {
  arguments.push_back(std::move(argument));
  return arguments.back();
}

}  // namespace gcompile
