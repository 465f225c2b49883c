#pragma once
// What functions of emitted code are called: by what they compute, so that a layer more or less in a model
// leaves the names of all others as they are (DESIGN law 21).

#include <string>
#include <vector>

#include "codegen/calls/kernel_call.h"
#include "ir/graph/operator.h"

namespace gcompile {

/// The name of a node's kernel, by its form, its operator's sizes, and nothing of the model's own names.
KernelName kernel_name(const ir::NodeView& node, const ir::Form& form);
/// What a parameter may be called that is this size in every call: the name of a size that a run chooses, or few words
/// of a formula ("past_plus_rows"); empty where they would be many.
std::string size_name(ir::Dim size);
/// The name of a copy of a tensor from strides to strides.
KernelName copy_name(const ir::Shape& shape, const ir::Shape& from, const ir::Shape& to);

}  // namespace gcompile
