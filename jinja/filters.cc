#include "jinja/filters.h"

#include <algorithm>
#include <stdexcept>

#include "fmt/format.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<Json>;

constexpr std::int64_t kMaxWidth = 200;

const std::string& string_of(const Json& value) {
  if (!value.is_string()) throw std::invalid_argument("expected a string, found " + describe_type(value));
  return value.get_ref<const std::string&>();
}

std::size_t width_of(const Json& value) {
  if (!value.is_number_integer())
    throw std::invalid_argument("expected an integer, found " + describe_type(value));
  const auto width = value.get<std::int64_t>();
  if (width < 0 || width > kMaxWidth)
    throw std::invalid_argument(fmt::format("width {} is not in 0..{}", width, kMaxWidth));
  return static_cast<std::size_t>(width);
}

std::string join(const Json& input, const Arguments& arguments) {
  if (!input.is_array()) throw std::invalid_argument("expected a list, found " + describe_type(input));
  const std::string separator = arguments.empty() ? "" : string_of(arguments[0]);
  std::string text;
  bool first = true;
  for (const Json& element : input) {
    if (!first) text += separator;
    first = false;
    text += template_text_of(element);
  }
  return text;
}

std::string indent(const Json& input, const Arguments& arguments) {
  const std::string blanks(arguments.empty() ? 4 : width_of(arguments[0]), ' ');
  const bool has_first = arguments.size() > 1;
  if (has_first && !arguments[1].is_boolean()) {
    throw std::invalid_argument("expected a boolean, found " + describe_type(arguments[1]));
  }
  const std::string text = indent_lines(string_of(input), blanks);
  return has_first && arguments[1].get<bool>() ? blanks + text : text;
}

std::string upper(const Json& input, const Arguments&) {
  std::string text = string_of(input);
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string lower(const Json& input, const Arguments&) {
  std::string text = string_of(input);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string hex(const Json& input, const Arguments& arguments) {
  if (!input.is_number_integer())
    throw std::invalid_argument("expected an integer, found " + describe_type(input));
  if (!input.is_number_unsigned() && input.get<std::int64_t>() < 0) {
    throw std::invalid_argument("expected an integer that is not negative");
  }
  return fmt::format("0x{:0{}x}", input.get<std::uint64_t>(), arguments.empty() ? 1 : width_of(arguments[0]));
}

std::string c_ident(const Json& input, const Arguments&) { return c_identifier_stem(string_of(input)); }
std::string c_string(const Json& input, const Arguments&) {
  return "\"" + c_string_escape(string_of(input)) + "\"";
}
std::string comment(const Json& input, const Arguments&) { return comment_escape(string_of(input)); }
std::string html(const Json& input, const Arguments&) { return html_escape(string_of(input)); }

constexpr TemplateFilter kFilters[] = {
    {"c_ident", 0, 0, c_ident}, {"c_string", 0, 0, c_string}, {"comment", 0, 0, comment},
    {"hex", 0, 1, hex},         {"html", 0, 0, html},         {"indent", 0, 2, indent},
    {"join", 0, 1, join},       {"lower", 0, 0, lower},       {"upper", 0, 0, upper},
};

}  // namespace

const TemplateFilter* find_template_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [&](const TemplateFilter& filter) { return filter.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

std::string template_text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return fmt::format("{}", value.get<std::uint64_t>());
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  throw std::invalid_argument("expected a string or an integer, found " + describe_type(value));
}

std::string describe_type(const Json& value) {
  switch (value.type()) {
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a floating-point number";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "null";
  }
}

std::string indent_lines(std::string_view text, std::string_view indentation) {
  std::string indented;
  for (std::size_t i = 0; i < text.size(); ++i) {
    indented += text[i];
    const bool line_follows = text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n';
    if (line_follows) indented += indentation;
  }
  return indented;
}

}  // namespace gcompile
