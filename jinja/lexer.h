#pragma once

#include <string>
#include <vector>

#include "jinja/ast.h"

namespace gcompile {

struct TemplateToken {
  enum class Kind {
    kText,
    kOutputBegin,
    kOutputEnd,
    kTagBegin,
    kTagEnd,
    kName,
    kString,
    kInteger,
    kSymbol,
    kEnd
  };

  Kind kind = Kind::kEnd;
  TemplatePosition position;
  /// Text with white space already trimmed; the decoded string; the name, digits or symbol as written;
  /// of kOutputBegin the blanks before it when it is the first thing on its line.
  std::string text;
};

/// Cuts a template into tokens, ending in one kEnd. Line ends of all kinds become "\n", as in jinja2.
std::vector<TemplateToken> lex_template(const std::string& name, const std::string& source);

}  // namespace gcompile
