#pragma once
// Emitted text while it grows. Names that are settled later (a kernel's, a functor's, its sizes') are symbols in it,
// not spellings to be searched for (DESIGN law 12).

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

/// From kFirstSize on: the parameters of a kernel that are sizes, in their order.
enum class Symbol : std::uint8_t { kKernel, kFunctor, kFirstSize };

/// What stands for the name of a size in strings that become texts.
std::string size_symbol(std::size_t index);

/// What symbols are called once it is known.
struct SymbolNames {
  std::string kernel, functor;
  std::vector<std::string> sizes = {};  // those behind its last, and empty ones: n0, n1...
};

/// Characters with symbols between them. Equal texts are equal for all names.
class Text {
 public:
  Text() = default;
  Text(std::string characters);
  Text(const char* characters) : characters_(characters) {}
  Text(Symbol symbol) : marks_{{0, symbol}} {}

  Text& operator+=(const Text& more) {
    insert(characters_.size(), more);
    return *this;
  }
  friend Text operator+(Text a, const Text& b) { return std::move(a += b); }
  /// Before the character at `position`, behind the symbols there.
  void insert(std::size_t position, const Text& more);
  /// With characters before and behind every such symbol.
  Text around(Symbol symbol, const std::string& before, const std::string& behind) const;
  /// Every line with `margin` in front.
  Text indented(std::string_view margin) const;

  bool empty() const { return characters_.empty() && marks_.empty(); }
  /// In characters; symbols have no length.
  std::size_t size() const { return characters_.size(); }
  std::string spelled(const SymbolNames& names) const;
  /// A string that becomes this text again; it has no symbols but those of sizes.
  std::string with_size_symbols() const;

  bool operator==(const Text&) const = default;
  std::strong_ordering operator<=>(const Text&) const = default;

 private:
  struct Mark {
    std::size_t at;  // the symbol stands before this character
    Symbol symbol;
    bool operator==(const Mark&) const = default;
    std::strong_ordering operator<=>(const Mark&) const = default;
  };
  std::string spelled_by(const std::function<std::string(Symbol)>& name) const;

  std::string characters_;
  std::vector<Mark> marks_;  // ascending
};

/// A growing text with indentation.
class CodeText {
 public:
  explicit CodeText(int depth = 0) : depth_(depth) {}
  void line(const Text& text);
  void open(const Text& text);         // text, then one level deeper
  void close(const Text& text = "}");  // one level back, then text
  void reopen(const Text& text);       // text, one level back
  /// Text that is indented already, some levels deeper.
  void append(const Text& text, int deeper = 0);
  /// A place to which lines may be added later.
  std::size_t mark() const { return text_.size(); }
  /// A line at an earlier place, as deep as the current one.
  void line_at(std::size_t mark, const Text& text);
  const Text& text() const { return text_; }
  /// The text, which has no symbols but those of sizes.
  std::string plain() const { return text_.with_size_symbols(); }

 private:
  Text as_line(const Text& text) const;

  int depth_;
  Text text_;
};

}  // namespace gcompile
