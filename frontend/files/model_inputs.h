#pragma once

#include <string>
#include <vector>

#include "frontend/files/limits.h"

namespace gcompile::frontend {

/// Names of the inputs that a model expects at run time, in graph order: those without initializer. For test
/// data whose tensors carry no names, before the model can be imported. Throws as import_model_file.
std::vector<std::string> model_input_names(const std::string& path, const Limits& limits);

}  // namespace gcompile::frontend
