#include "codegen/program/names.h"

#include <fmt/format.h>

#include <set>

namespace gcompile {
namespace {

/// Words that C99 or C++17 reserve, or that emitted code uses for itself.
bool is_reserved_word(const std::string& word) {
  static const std::set<std::string> kWords = {
      "alignas",       "alignof",     "and",       "and_eq",   "asm",       "auto",
      "bitand",        "bitor",       "bool",      "break",    "case",      "catch",
      "char",          "class",       "compl",     "const",    "constexpr", "const_cast",
      "continue",      "decltype",    "default",   "delete",   "do",        "double",
      "dynamic_cast",  "else",        "enum",      "explicit", "export",    "extern",
      "false",         "float",       "for",       "friend",   "goto",      "if",
      "inline",        "int",         "long",      "mutable",  "namespace", "new",
      "noexcept",      "not",         "not_eq",    "nullptr",  "operator",  "or",
      "or_eq",         "private",     "protected", "public",   "register",  "reinterpret_cast",
      "restrict",      "return",      "short",     "signed",   "sizeof",    "static",
      "static_assert", "static_cast", "struct",    "switch",   "template",  "this",
      "thread_local",  "throw",       "true",      "try",      "typedef",   "typeid",
      "typename",      "union",       "unsigned",  "using",    "virtual",   "void",
      "volatile",      "wchar_t",     "while",     "xor",      "xor_eq",    "linux",
      "unix",          "errno",       "stdin",     "stdout",   "stderr"};
  return kWords.count(word) != 0;
}

}  // namespace

std::string identifier_words(std::string_view text, std::size_t limit) {
  std::string out;
  char previous = 0;
  for (const char c : text) {
    if (out.size() >= limit) break;
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += c;
    } else if (c >= 'A' && c <= 'Z') {
      // "LeakyRelu" -> "leaky_relu", "QLinearAdd" -> "qlinear_add"
      if (!out.empty() && out.back() != '_' && previous >= 'a' && previous <= 'z') out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
    previous = c;
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.empty() ? "value" : out;
}

std::string Names::operator()(std::string_view wanted, std::string_view prefix) {
  std::string base = std::string(prefix) + identifier_words(wanted, 40);
  if (base[0] >= '0' && base[0] <= '9') base = "t_" + base;
  const auto [at, is_free] = taken_.try_emplace(base, 2);
  if (is_free && !is_reserved_word(base)) return base;
  // Of the numbers from 2 on, those below the one noted are taken: many names alike cost no search.
  std::string name;
  do {
    name = fmt::format("{}_{}", base, at->second++);
  } while (!taken_.try_emplace(name, 2).second || is_reserved_word(name));
  return name;
}

}  // namespace gcompile
