#include "jinja/lexer.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace gcompile {
namespace {

using Kind = TemplateToken::Kind;

bool is_space(char c) { return c != '\0' && std::strchr(" \t\n\r\v\f", c) != nullptr; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// The character that a backslash and `letter` stand for in a string, NUL if none.
char decode_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case '\\':
    case '"':
    case '\'':
      return letter;
    default:
      return '\0';
  }
}

std::string with_unix_newlines(const std::string& source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  return text;
}

class Lexer {
 public:
  Lexer(const std::string& name, std::string source) : name_(name), source_(std::move(source)) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < source_.size(); ++i) {
      if (source_[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  std::vector<TemplateToken> run() {
    while (offset_ < source_.size()) {
      const std::size_t begin = find_delimiter();
      if (begin == std::string::npos) {
        add(Kind::kText, offset_, source_.substr(offset_));
        break;
      }
      lex_delimited(begin);
    }
    add(Kind::kEnd, source_.size(), "");
    return std::move(tokens_);
  }

 private:
  TemplatePosition position_of(std::size_t offset) const {
    const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
    const std::size_t line = static_cast<std::size_t>(next - line_starts_.begin());
    return {static_cast<int>(line), static_cast<int>(offset - line_starts_[line - 1] + 1)};
  }

  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    throw_template_error(name_, position_of(offset), message);
  }

  void add(Kind kind, std::size_t offset, std::string text) {
    if (kind == Kind::kText && text.empty()) return;
    tokens_.push_back({kind, position_of(offset), std::move(text)});
  }

  bool at(std::string_view text) const {
    return std::string_view(source_).substr(offset_, text.size()) == text;
  }

  std::size_t find_delimiter() const {
    for (std::size_t i = source_.find('{', offset_); i != std::string::npos; i = source_.find('{', i + 1)) {
      if (i + 1 < source_.size() && std::strchr("{%#", source_[i + 1]) != nullptr && source_[i + 1] != '\0')
        return i;
    }
    return std::string::npos;
  }

  /// The text before a delimiter, then everything up to and with its end.
  void lex_delimited(std::size_t begin) {
    const char opener = source_[begin + 1];
    const char sign = begin + 2 < source_.size() ? source_[begin + 2] : '\0';
    const std::size_t text_begin = offset_;
    std::string text = source_.substr(offset_, begin - offset_);
    const std::string blanks = blanks_before_delimiter(text);
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (sign != '+' && opener != '{') {
      text.resize(text.size() - blanks.size());
    }
    add(Kind::kText, text_begin, std::move(text));

    offset_ = begin + (sign == '-' || sign == '+' ? 3 : 2);
    if (opener == '#') {
      skip_comment(begin);
    } else if (opener == '{') {
      add(Kind::kOutputBegin, begin, sign == '-' ? "" : blanks);
      lex_expression(begin, '}', Kind::kOutputEnd);
    } else {
      add(Kind::kTagBegin, begin, "");
      lex_expression(begin, '%', Kind::kTagEnd);
    }
  }

  /// The white space at the end of `text` if it reaches back to the start of a line, else nothing.
  std::string blanks_before_delimiter(const std::string& text) const {
    const std::size_t newline = text.rfind('\n');
    if (newline == std::string::npos && !line_starting_) return "";
    const std::string tail = text.substr(newline + 1);
    return std::all_of(tail.begin(), tail.end(), is_space) ? tail : "";
  }

  /// Steps over a closing delimiter of `size` bytes and the white space that goes with it.
  void close(std::size_t size, char sign, bool is_output) {
    offset_ += size;
    if (sign == '-') {
      while (offset_ < source_.size() && is_space(source_[offset_])) ++offset_;
    } else if (sign != '+' && !is_output && at("\n")) {
      ++offset_;
    }
    line_starting_ = source_[offset_ - 1] == '\n';
  }

  void skip_comment(std::size_t begin) {
    const std::size_t content = offset_;
    const std::size_t end = source_.find("#}", content);
    if (end == std::string::npos) fail(begin, "this comment is never closed");
    const char sign =
        end > content && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    offset_ = end;
    close(2, sign, false);
  }

  void lex_expression(std::size_t begin, char closer, Kind end_kind) {
    const bool is_output = closer == '}';
    const std::string plain{closer, '}'};
    while (true) {
      while (offset_ < source_.size() && is_space(source_[offset_])) ++offset_;
      if (offset_ >= source_.size())
        fail(begin, std::string("this '{") + (is_output ? '{' : '%') + "' is never closed");
      const char sign = at("-" + plain) ? '-' : !is_output && at("+" + plain) ? '+' : '\0';
      if (sign != '\0' || at(plain)) {
        add(end_kind, offset_, "");
        close(sign != '\0' ? 3 : 2, sign, is_output);
        return;
      }
      lex_word();
    }
  }

  void lex_word() {
    const std::size_t begin = offset_;
    const char first = source_[offset_];
    if (is_name_start(first)) {
      while (offset_ < source_.size() && (is_name_start(source_[offset_]) || is_digit(source_[offset_])))
        ++offset_;
      add(Kind::kName, begin, source_.substr(begin, offset_ - begin));
    } else if (is_digit(first)) {
      while (offset_ < source_.size() && is_digit(source_[offset_])) ++offset_;
      if (offset_ < source_.size() && is_name_start(source_[offset_])) fail(begin, "malformed number");
      if (first == '0' && offset_ - begin > 1) fail(begin, "numbers have no leading zeros");
      if (offset_ - begin > 18) fail(begin, "number too large");
      add(Kind::kInteger, begin, source_.substr(begin, offset_ - begin));
    } else if (first == '"' || first == '\'') {
      lex_string(first);
    } else if (std::strchr(".|(),", first) != nullptr && first != '\0') {
      ++offset_;
      add(Kind::kSymbol, begin, std::string(1, first));
    } else {
      fail(begin, std::string("unexpected character '") + first + "'; templates neither compute nor compare");
    }
  }

  void lex_string(char quote) {
    const std::size_t begin = offset_++;
    std::string text;
    while (offset_ < source_.size() && source_[offset_] != quote && source_[offset_] != '\n') {
      char character = source_[offset_];
      if (character == '\\') {
        ++offset_;
        character = offset_ < source_.size() ? decode_escape(source_[offset_]) : '\0';
        if (character == '\0') fail(offset_ - 1, "unknown escape in string");
      }
      text += character;
      ++offset_;
    }
    if (offset_ >= source_.size() || source_[offset_] == '\n') fail(begin, "this string is never closed");
    ++offset_;
    add(Kind::kString, begin, std::move(text));
  }

  const std::string& name_;
  const std::string source_;
  std::vector<std::size_t> line_starts_;
  std::vector<TemplateToken> tokens_;
  std::size_t offset_ = 0;
  bool line_starting_ = true;  ///< whether offset_ is at the start of a line of the template
};

}  // namespace

std::vector<TemplateToken> lex_template(const std::string& name, const std::string& source) {
  return Lexer(name, with_unix_newlines(source)).run();
}

}  // namespace gcompile
