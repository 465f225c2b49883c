#include "jinja/text.h"

#include <cmath>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

constexpr std::size_t kMaxStemBytes = 40;
constexpr std::size_t kMaxCommentBytes = 200;
constexpr std::size_t kMaxHtmlBytes = 1000;
constexpr std::string_view kEllipsis = "...";
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

bool is_printable(unsigned char byte) { return byte >= 0x20 && byte < 0x7F; }

unsigned char to_byte(char character) { return static_cast<unsigned char>(character); }

bool is_continuation(char character) { return (to_byte(character) & 0xC0) == 0x80; }

/// Bytes of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none (The Unicode Standard,
/// table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_sequence_length(std::string_view text) {
  const unsigned char lead = to_byte(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const unsigned char second = to_byte(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string with_decimal_point(std::string digits) {
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

}  // namespace

std::string c_identifier_stem(std::string_view name) {
  std::string stem;
  bool gap = false;
  for (const char character : name) {
    const bool upper = character >= 'A' && character <= 'Z';
    const bool keep =
        upper || (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
    if (!keep) {
      gap = !stem.empty();
      continue;
    }
    if (stem.size() + (gap ? 2 : 1) > kMaxStemBytes) break;
    if (gap) stem += '_';
    gap = false;
    stem += upper ? static_cast<char>(character - 'A' + 'a') : character;
  }
  return stem;
}

std::string c_identifier(std::string_view name, std::size_t index, std::string_view prefix) {
  const std::string stem = c_identifier_stem(name);
  return stem.empty() ? fmt::format("{}{}", prefix, index) : fmt::format("{}{}_{}", prefix, index, stem);
}

std::string comment_escape(std::string_view name) {
  std::string text;
  std::size_t size_before_ellipsis = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char character = name[i];
    const bool last_slash = character == '/' && i + 1 == name.size();
    const bool keep = is_printable(to_byte(character)) &&
                      std::string_view("*\\?%").find(character) == std::string_view::npos && !last_slash;
    if (keep) {
      text += character;
    } else {
      text += fmt::format("%{:02X}", to_byte(character));
    }
    if (text.size() + kEllipsis.size() <= kMaxCommentBytes) size_before_ellipsis = text.size();
    if (text.size() > kMaxCommentBytes) return text.substr(0, size_before_ellipsis).append(kEllipsis);
  }
  return text;
}

std::string c_string_escape(std::string_view bytes) {
  std::string text;
  for (const char character : bytes) {
    if (is_printable(to_byte(character)) &&
        std::string_view("\"\\?").find(character) == std::string_view::npos) {
      text += character;
    } else if (character == '"' || character == '\\') {
      text += '\\';
      text += character;
    } else {
      text += fmt::format("\\{:03o}", to_byte(character));
    }
  }
  return text;
}

std::string shell_word(std::string_view bytes) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:,@=";
  std::string escaped;
  bool needs_escapes = false;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = utf8_sequence_length(bytes.substr(i));
    const bool second_control = length == 2 && to_byte(bytes[i]) == 0xC2 && to_byte(bytes[i + 1]) < 0xA0;
    const bool is_shown = length > 1 ? !second_control : length == 1 && is_printable(to_byte(bytes[i]));
    if (!is_shown) {
      needs_escapes = true;
      escaped += fmt::format("\\{:03o}", to_byte(bytes[i]));
      ++i;
      continue;
    }
    if (bytes[i] == '\'' || bytes[i] == '\\') escaped += '\\';
    escaped += bytes.substr(i, length);
    i += length;
  }
  if (needs_escapes) return fmt::format("$'{}'", escaped);
  const bool is_plain = !bytes.empty() && bytes.find_first_not_of(kPlain) == std::string_view::npos;
  if (is_plain) return std::string(bytes);
  return fmt::format("'{}'", replace_all(std::string(bytes), "'", "'\\''"));
}

std::string html_escape(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    if (i >= kMaxHtmlBytes) return escaped.append(kEllipsis);
    const std::size_t length = utf8_sequence_length(text.substr(i));
    const char character = text[i];
    const bool control =
        length == 1 && !is_printable(to_byte(character)) && character != '\n' && character != '\t';
    // U+0080 to U+009F.
    const bool second_control = length == 2 && to_byte(character) == 0xC2 && to_byte(text[i + 1]) < 0xA0;
    if (length == 0 || control || second_control) {
      escaped += kReplacementCharacter;
    } else if (character == '&') {
      escaped += "&amp;";
    } else if (character == '<') {
      escaped += "&lt;";
    } else if (character == '>') {
      escaped += "&gt;";
    } else if (character == '"') {
      escaped += "&quot;";
    } else if (character == '\'') {
      escaped += "&#39;";
    } else {
      escaped += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return escaped;
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string float_literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  return with_decimal_point(fmt::format("{}", value)) + "f";
}

std::string double_literal(double value) {
  if (std::isnan(value)) return "static_cast<double>(NAN)";
  if (std::isinf(value))
    return value < 0 ? "static_cast<double>(-INFINITY)" : "static_cast<double>(INFINITY)";
  return with_decimal_point(fmt::format("{}", value));
}

namespace {

/// The last ", " of the text that lies in the fewest brackets of templates.
std::size_t last_comma(std::string_view text) {
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::size_t found = std::string_view::npos;
  int depth = 0, least = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '<' && i > 0 && is_name(text[i - 1])) ++depth;
    if (text[i] == '>' && depth > 0) --depth;
    if (text[i] != ',' || text[i + 1] != ' ') continue;
    if (found == std::string_view::npos || depth <= least) found = i, least = depth;
  }
  return found;
}

/// A line that is indented.
std::string wrapped_statement(std::string_view line, std::size_t width) {
  const std::size_t begin = line.find_first_not_of(' ');
  std::string out;
  std::string margin;
  while (margin.size() + line.size() > width) {
    const std::size_t room = width - margin.size();
    const std::size_t comma = last_comma(line.substr(0, room));
    const std::size_t plus = line.substr(0, room).rfind(" + ");
    const std::size_t at = comma != std::string_view::npos && comma > begin ? comma + 1 : plus;
    if (at == std::string_view::npos || at <= begin) break;
    out += margin + std::string(line.substr(0, at)) + "\n";
    line.remove_prefix(at + 1);
    margin.assign(begin + 4, ' ');
  }
  return out + margin + std::string(line);
}

}  // namespace

std::string wrap_signatures(std::string_view text, std::size_t width) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    // The parameter list opens behind the name: the last opening parenthesis.
    const std::size_t open = line.rfind('(');
    if (line.size() > width && line[0] == ' ') {
      out += wrapped_statement(line, width);
    } else if (line.size() <= width || open == std::string_view::npos) {
      out += line;
    } else {
      std::string_view rest = line.substr(open + 1);
      out += line.substr(0, open + 1);
      for (std::size_t comma; open + 1 + rest.size() > width; rest.remove_prefix(comma + 2)) {
        comma = last_comma(rest.substr(0, std::max(width - std::min(width, open + 1), std::size_t{40})));
        if (comma == std::string_view::npos) break;
        out += std::string(rest.substr(0, comma + 1)) + "\n" + std::string(open + 1, ' ');
      }
      out += rest;
    }
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> comment_lines(std::string_view text, std::size_t width) {
  const std::string escaped = comment_escape(text);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < escaped.size();) {
    const std::size_t end = std::min(escaped.find(' ', begin), escaped.size());
    const std::string word = escaped.substr(begin, end - begin);
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> c_string_lines(std::string_view bytes, std::size_t width) {
  std::vector<std::string> lines = {""};
  std::size_t blank = 0;  // behind the last one of the line
  for (const char c : bytes) {
    const std::string escaped = c_string_escape({&c, 1});
    if (lines.back().size() + escaped.size() > width) {
      std::string rest = blank > 0 ? lines.back().substr(blank) : "";
      if (blank > 0) lines.back().resize(blank);
      lines.push_back(std::move(rest));
      blank = 0;
    }
    lines.back() += escaped;
    if (c == ' ') blank = lines.back().size();
  }
  for (std::string& line : lines) line = "\"" + line + "\"";
  return lines;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace gcompile
