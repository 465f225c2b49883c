#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gcompile {

/// A place in a template; both count from 1, columns in bytes.
struct TemplatePosition {
  int line = 1;
  int column = 1;
};

/// Throws CompileError(ExitCode::kInternal) with "name:line:column: message".
[[noreturn]] void throw_template_error(const std::string& name, TemplatePosition position,
                                       const std::string& message);

struct TemplateExpression {
  enum class Kind { kString, kInteger, kBoolean, kName, kFilter, kNot, kAnd, kOr };

  Kind kind = Kind::kString;
  TemplatePosition position;
  std::string text;                          ///< the string, the dotted name as written, or the filter's name
  std::int64_t integer = 0;                  ///< the integer, or 0 and 1 for a boolean
  std::vector<std::string> path;             ///< the parts of a dotted name
  std::vector<TemplateExpression> operands;  ///< a filter: its input, then its arguments
};

struct TemplateNode;
using TemplateBody = std::vector<TemplateNode>;

struct TemplateText {
  std::string text;
};

struct TemplateOutput {
  TemplateExpression value;
  std::string indentation;  ///< put before the second and further lines of the value
};

struct TemplateFor {
  std::string variable;
  TemplateExpression list;
  TemplateBody body;
};

struct TemplateBranch {
  std::vector<TemplateExpression> condition;  ///< one, or none for else
  TemplateBody body;
};

struct TemplateIf {
  std::vector<TemplateBranch> branches;
};

struct TemplateInclude {
  std::string name;
};

struct TemplateNode {
  TemplatePosition position;
  std::variant<TemplateText, TemplateOutput, TemplateFor, TemplateIf, TemplateInclude> content;
};

struct Template {
  std::string name;
  TemplateBody body;
  std::vector<std::pair<std::string, TemplatePosition>> includes;  ///< every include, in order of appearance
};

}  // namespace gcompile
