#pragma once
// What an operator does not take, before anybody has said which node of the model it is.

#include <string>

namespace gcompile {

/// An operand, an attribute or a size that does not fit. Whoever knows the node turns it into a Diagnostic
/// with the node's name, operator and operands.
struct OperatorError {
  std::string message;
  std::string help;
};

/// Throws OperatorError.
[[noreturn]] void operator_error(std::string message, std::string help = {});

}  // namespace gcompile
