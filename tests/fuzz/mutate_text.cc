#include <cctype>
#include <string_view>

#include "tests/fuzz/mutate.h"

namespace gcompile::fuzz {
namespace {

/// What the grammar gives a meaning to, what ends numbers and names, and what neither expects.
constexpr const char* kTokens[] = {"",
                                   "<",
                                   ">",
                                   "{",
                                   "}",
                                   "(",
                                   ")",
                                   "[",
                                   "]",
                                   "=",
                                   "=>",
                                   ",",
                                   ":",
                                   ".",
                                   "-",
                                   "?",
                                   "\"",
                                   "\"a\\\"",
                                   "# ",
                                   "\n",
                                   "0",
                                   "-1",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "1e999",
                                   "1e",
                                   "0x",
                                   "float[4]",
                                   "int64[2] {1, 2}",
                                   "float[1000000000] {}",
                                   "seq(float[])",
                                   "optional(float)",
                                   "If",
                                   "Loop",
                                   "Scan",
                                   "SequenceConstruct",
                                   "SequenceInsert",
                                   "SplitToSequence",
                                   "ConcatFromSequence",
                                   "SequenceMap",
                                   "g () => (float y) { y = Identity (x) }",
                                   "<then_branch = ",
                                   "@attribute",
                                   "<a: graph = ",
                                   "\xff"};

struct Piece {
  std::size_t at, size;
};

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A word, a number or a single character.
Piece some_token(const std::string& text, Choice& choice) {
  std::size_t at = choice.pick(text.size());
  if (!is_of_word(text[at])) return {at, 1};
  while (at > 0 && is_of_word(text[at - 1])) --at;
  std::size_t end = at;
  while (end < text.size() && is_of_word(text[end])) ++end;
  return {at, end - at};
}

}  // namespace

void mutate(std::string& text, Choice& choice) {
  constexpr std::size_t kLargest = std::size_t{1} << 16;
  for (std::size_t left = 1 + choice.pick(4); left > 0 && !text.empty(); --left) {
    const Piece piece = some_token(text, choice);
    const Piece other = some_token(text, choice);
    const std::string held = text.substr(other.at, other.size);
    switch (choice.pick(7)) {
      case 0:
        text.erase(piece.at, piece.size);
        break;
      case 1:
        text.replace(piece.at, piece.size, choice.one_of(kTokens));
        break;
      case 2:
        text.insert(piece.at, choice.one_of(kTokens));
        break;
      case 3:
        text.replace(piece.at, piece.size, held);
        break;
      case 4:
        text.insert(piece.at, held);
        break;
      case 5:  // a stretch, once more or not at all
        if (choice.pick(2) == 0) {
          text.erase(piece.at, choice.pick(60));
        } else {
          text.insert(piece.at, text.substr(piece.at, choice.pick(200)));
        }
        break;
      default:  // very deep, or very long
        for (std::size_t i = choice.pick(2) == 0 ? 300 : 3; i > 0 && text.size() < kLargest; --i)
          text.insert(piece.at, held);
    }
  }
}

std::vector<std::string> smaller_texts(const std::string& text) {
  std::vector<std::string> smaller;
  for (std::size_t size = text.size() / 2; size > 0; size /= 2) {
    for (std::size_t at = 0; at + size <= text.size() && smaller.size() < 400; at += size) {
      smaller.push_back(text);
      smaller.back().erase(at, size);
    }
  }
  return smaller;
}

}  // namespace gcompile::fuzz
