#include "base/names.h"

#include <fmt/format.h>

#include <functional>
#include <set>

namespace gcompile {
bool is_reserved_word(std::string_view word) {
  static const std::set<std::string, std::less<>> kWords = {
      // Keywords of C89 to C23.
      "alignas", "alignof", "asm", "auto", "bool", "break", "case", "char", "const", "constexpr", "continue",
      "default", "do", "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline",
      "int", "long", "nullptr", "register", "restrict", "return", "short", "signed", "sizeof", "static",
      "static_assert", "struct", "switch", "thread_local", "true", "typedef", "typeof", "typeof_unqual",
      "union", "unsigned", "void", "volatile", "while",
      // Keywords of C++98 to C++26 and of its technical specifications.
      "atomic_cancel", "atomic_commit", "atomic_noexcept", "catch", "char16_t", "char32_t", "char8_t",
      "class", "co_await", "co_return", "co_yield", "concept", "const_cast", "consteval", "constinit",
      "contract_assert", "decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable",
      "namespace", "new", "noexcept", "operator", "private", "protected", "public", "reflexpr",
      "reinterpret_cast", "requires", "static_cast", "synchronized", "template", "this", "throw", "try",
      "typeid", "typename", "using", "virtual", "wchar_t",
      // Alternative tokens.
      "and", "and_eq", "bitand", "bitor", "compl", "not", "not_eq", "or", "or_eq", "xor", "xor_eq",
      // Macros of the standard libraries, and of compilers outside of strict modes.
      "assert", "complex", "errno", "fortran", "i386", "imaginary", "kill_dependency", "linux",
      "math_errhandling", "mips", "noreturn", "offsetof", "setjmp", "sparc", "stderr", "stdin", "stdout",
      "sun", "unix", "unreachable", "va_arg", "va_copy", "va_end", "va_start",
      // Types in the header: in C++ a member of that name changes what the next one means.
      "int16_t", "int32_t", "int64_t", "int8_t", "ptrdiff_t", "size_t", "uint16_t", "uint32_t", "uint64_t",
      "uint8_t"};
  return kWords.count(word) != 0;
}

std::string identifier_words(std::string_view text, std::size_t limit) {
  std::string out;
  char previous = 0;
  for (const char c : text) {
    if (out.size() > limit) break;
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
  if (out.size() > limit) {
    // At a word, unless the first is too long.
    std::size_t end = limit;
    while (end > 0 && out[end] != '_') --end;
    out.resize(end > 0 ? end : limit);
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.empty() ? "value" : out;
}

namespace {

constexpr std::size_t kLongestName = 40;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The first words, where they are short and end with a number:
/// "blocks_13_" of "blocks_13_mobile_inverted_conv_...".
std::string numbered_head(const std::string& identifier) {
  constexpr std::size_t kLongestHead = 16;
  for (std::size_t i = 1; i < kLongestHead; ++i) {
    if (is_digit(identifier[i - 1]) && identifier[i] == '_') return identifier.substr(0, i + 1);
  }
  return "";
}

/// The number of the block, and the last words that fit, from a letter on: models write scopes in front, and
/// what tells two names apart behind. What exporters append to every name goes first: "_output_0".
std::string words_that_fit(std::string identifier) {
  if (identifier.size() <= kLongestName) return identifier;
  constexpr std::string_view kOfEveryName = "_output_0";
  if (identifier.ends_with(kOfEveryName)) identifier.resize(identifier.size() - kOfEveryName.size());
  if (identifier.size() <= kLongestName) return identifier;
  const std::string head = numbered_head(identifier);
  const std::size_t earliest = identifier.size() - (kLongestName - head.size());
  std::size_t begin = earliest;
  while (begin < identifier.size() && (identifier[begin - 1] != '_' || is_digit(identifier[begin]))) ++begin;
  return head + identifier.substr(begin < identifier.size() ? begin : earliest);
}

}  // namespace

std::string Names::operator()(std::string_view wanted, std::string_view prefix) {
  std::string base = std::string(prefix) + words_that_fit(identifier_words(wanted, std::string::npos));
  if (base[0] >= '0' && base[0] <= '9') base = "t_" + base;
  const auto [at, is_free] = taken_.try_emplace(base, 2);
  if (is_free && !is_reserved_word(base)) return base;
  // Numbers below the one noted are taken, so many names alike cost no search.
  std::string name;
  do {
    name = fmt::format("{}_{}", base, at->second++);
  } while (!taken_.try_emplace(name, 2).second || is_reserved_word(name));
  return name;
}

}  // namespace gcompile
