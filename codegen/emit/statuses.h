#pragma once
// What the functions of an emitted library return.

#include <nlohmann/json.hpp>
#include <string>

namespace gcompile {

/// Which statuses a project has, beside those that all have.
struct StatusNeeds {
  bool has_device = false;
  bool has_sizes = false;
};

/// An entry for each, by number: `name` without the model's prefix, `number`, and `meaning`, a comment that
/// names functions of `model`. `space` brings the comments into one column.
nlohmann::ordered_json statuses_json(const std::string& model, const StatusNeeds& needs);

}  // namespace gcompile
