#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace gcompile {

struct Template;

/// Fills templates written in a subset of Jinja2. It names, repeats and includes; it never computes or
/// compares, for decisions are made in C++ (docs/design.md, "verbatim, rendered, decided").
///
///     {{ layer.name | comment }}            a value: a string or an integer; nothing else prints
///     {% for layer in layers %} ... {% endfor %}   with loop.first, loop.last, loop.index, loop.index0
///     {% if a and not b %} ... {% elif c %} ... {% else %} ... {% endif %}   on booleans only
///     {% include "part.j2" %}               sees the same names, except `loop`
///     {# comment #}
///
/// Literals are "strings", 'strings', decimal integers, true and false. Filters: see template_filters.h.
///
/// White space is that of jinja2 with trim_blocks, lstrip_blocks and keep_trailing_newline: the newline after
/// `%}` and `#}` goes, blanks between the start of a line and `{%` or `{#` go; `-` inside a delimiter takes
/// all white space on its side, `+` keeps it all.
///
/// Beyond jinja2: when nothing but blanks stands before `{{` on its line, the further lines of a value of
/// several lines get the same blanks (empty lines stay empty). A value whose last filter is `indent` is left
/// as it is.
///
/// Strict: an unknown name, a value of the wrong type, or any other mistake throws CompileError
/// (ExitCode::kInternal) with "template:line:column: reason"; columns count bytes from 1.
class TemplateEngine {
 public:
  using Json = nlohmann::ordered_json;
  /// The text of a template by name, or nothing.
  using Loader = std::function<std::optional<std::string>(const std::string& name)>;

  explicit TemplateEngine(Loader loader);
  ~TemplateEngine();

  /// Parses `name` and everything it includes, also where a condition would keep it from being rendered.
  void load(const std::string& name);

  /// The text of template `name` filled from the members of the object `data`.
  std::string render(const std::string& name, const Json& data);

 private:
  Loader loader_;
  std::map<std::string, std::unique_ptr<Template>> templates_;
};

}  // namespace gcompile
