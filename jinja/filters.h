#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// What follows a `|` in a template. All give a string.
///
///     list | join(", ")        strings or integers, with a separator (none by default)
///     text | indent(4)         every line but the first (all with indent(4, true)) gets blanks, empty ones
///     stay text | upper, lower      ASCII letters number | hex, hex(8)     "0x1f", "0x0000001f"; not for
///     negative numbers name | c_ident           c_identifier_stem(): only part of an identifier, and not
///     unique bytes | c_string         a C string literal with its quotes, see c_string_escape() name |
///     comment           comment_escape() text | html              html_escape()
struct TemplateFilter {
  using Json = nlohmann::ordered_json;

  std::string_view name;
  std::size_t min_arguments;
  std::size_t max_arguments;
  /// Throws std::invalid_argument with the reason when input or arguments have the wrong type.
  std::string (*apply)(const Json& input, const std::vector<Json>& arguments);
};

/// The filter called `name`, or nullptr.
const TemplateFilter* find_template_filter(std::string_view name);

/// A string as it is, an integer in decimal. Throws std::invalid_argument for everything else.
std::string template_text_of(const nlohmann::ordered_json& value);

/// "a string", "a list", ... for messages.
std::string describe_type(const nlohmann::ordered_json& value);

/// `text` with `indentation` before its second and further lines, empty ones excepted.
std::string indent_lines(std::string_view text, std::string_view indentation);

}  // namespace gcompile
