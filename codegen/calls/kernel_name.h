#pragma once
// What functions of emitted code are called: by what they compute, so that a layer more or less in a model
// leaves the names of all others as they are (DESIGN law 21).

#include <functional>
#include <string>
#include <vector>

#include "codegen/calls/kernel_call.h"
#include "ir/graph/operator.h"

namespace gcompile {

/// The name of a node's kernel, by its form, its operator's sizes, and nothing of the model's own names.
KernelName kernel_name(const ir::NodeView& node, const ir::Form& form);
/// The name of a copy of a tensor from strides to strides.
KernelName copy_name(const ir::Shape& shape, const ir::Shape& from, const ir::Shape& to);

/// What an expression does to its operands, in few words: {"add", "relu"}. The addition of a constant operand that
/// moves along one axis at most is "bias", where `is_constant` tells which operands are.
std::vector<std::string> expression_words(const ir::LoopForm& loops, int root,
                                          const std::function<bool(int operand)>& is_constant = nullptr);

/// "BiasRelu" of the words; "Store" of none.
std::string type_name(const std::vector<std::string>& words);

}  // namespace gcompile
