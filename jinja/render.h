#pragma once

#include <map>
#include <memory>
#include <string>

#include "jinja/ast.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// The text of `root` filled from the members of `data`. `templates` holds everything that may be included.
std::string render_template(const std::map<std::string, std::unique_ptr<Template>>& templates,
                            const Template& root, const nlohmann::ordered_json& data);

}  // namespace gcompile
