#pragma once

#include <memory>
#include <string>

#include "jinja/ast.h"

namespace gcompile {

/// Parses one template; included templates are named in `includes`, not read. Throws as throw_template_error.
std::unique_ptr<Template> parse_template(const std::string& name, const std::string& source);

}  // namespace gcompile
