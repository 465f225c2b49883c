#include "base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

constexpr std::size_t kLongestName = 48;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The numbered words of the first `end` characters, or their numbers alone where that is long: "layer_1_", of
/// "encoder_layer_1_attention_...". What has another number is another thing.
std::string numbered_words(const std::string& identifier, std::size_t end) {
  constexpr std::size_t kLongestHead = 20;
  std::string words, numbers, before;
  for (std::size_t begin = 0; begin < end;) {
    const std::size_t next = std::min(identifier.find('_', begin), identifier.size()) + 1;
    const std::string word = identifier.substr(begin, next - 1 - begin);
    begin = next;
    const bool is_number = !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
    if (is_number) {
      words += before + word + "_";
      numbers += word + "_";
    } else if (!word.empty() && is_digit(word.back())) {
      words += word + "_";
      numbers += word + "_";
    }
    before = is_number ? "" : word + "_";
  }
  return words.size() <= kLongestHead ? words : numbers.size() <= kLongestHead ? numbers : "";
}

/// The numbers of what it lies in, and the last words that fit, from a letter on: models write scopes in front, and
/// what tells two names apart behind. What exporters append to every name goes first: "_output_0".
std::string words_that_fit(std::string identifier) {
  if (identifier.size() <= kLongestName) return identifier;
  constexpr std::string_view kOfEveryName = "_output_0";
  if (identifier.ends_with(kOfEveryName)) identifier.resize(identifier.size() - kOfEveryName.size());
  if (identifier.size() <= kLongestName) return identifier;
  const std::size_t longest_head = numbered_words(identifier, identifier.size() - kLongestName / 2).size();
  const std::size_t earliest = identifier.size() - (kLongestName - longest_head);
  std::size_t begin = earliest;
  while (begin < identifier.size() && (identifier[begin - 1] != '_' || is_digit(identifier[begin]))) ++begin;
  if (begin == identifier.size()) begin = earliest;
  return numbered_words(identifier, begin) + identifier.substr(begin);
}

}  // namespace

namespace {

bool is_of_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// "qkv" of queries, keys and values, each a word or its letter; empty where one is something else.
std::string letters_of(const std::vector<std::string>& parts) {
  std::string letters;
  for (const std::string& part : parts) {
    const bool is_known =
        part == "query" || part == "key" || part == "value" || part == "q" || part == "k" || part == "v";
    if (!is_known) return "";
    letters += part[0];
  }
  return letters;
}

}  // namespace

std::string joined_name(const std::vector<std::string>& names) {
  std::size_t before = names[0].size(), behind = names[0].size();
  std::size_t shortest = names[0].size();
  for (const std::string& name : names) {
    shortest = std::min(shortest, name.size());
    before = std::min(
        before,
        static_cast<std::size_t>(
            std::mismatch(name.begin(), name.end(), names[0].begin(), names[0].end()).first - name.begin()));
    behind = std::min(
        behind, static_cast<std::size_t>(
                    std::mismatch(name.rbegin(), name.rend(), names[0].rbegin(), names[0].rend()).first -
                    name.rbegin()));
  }
  // What is shared ends and begins between words.
  while (before > 0 && is_of_word(names[0][before - 1])) --before;
  behind = std::min(behind, shortest - std::min(shortest, before));
  while (behind > 0 && is_of_word(names[0][names[0].size() - behind])) --behind;
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(name.substr(before, name.size() - before - behind));
  const std::string letters = letters_of(parts);
  return names[0].substr(0, before) + (letters.empty() ? fmt::format("{}", fmt::join(parts, "_")) : letters) +
         names[0].substr(names[0].size() - behind);
}

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
