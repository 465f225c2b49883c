#include "base/operator_error.h"

#include <utility>

namespace gcompile {

void operator_error(std::string message, std::string help) {
  throw OperatorError{std::move(message), std::move(help)};
}

}  // namespace gcompile
