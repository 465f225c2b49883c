#include "codegen/loops/code_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile {

namespace {

constexpr char kSizeMark = '\x1f';  // no name and no code has it
constexpr char kFirstIndex = ' ';

std::size_t index_of(Symbol size) {
  return static_cast<std::size_t>(size) - static_cast<std::size_t>(Symbol::kFirstSize);
}

}  // namespace

std::string size_symbol(std::size_t index) { return {kSizeMark, static_cast<char>(kFirstIndex + index)}; }

Text::Text(std::string characters) {
  if (characters.find(kSizeMark) == std::string::npos) {
    characters_ = std::move(characters);
    return;
  }
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (characters[i] != kSizeMark) {
      characters_ += characters[i];
      continue;
    }
    const auto size = static_cast<std::size_t>(characters[++i] - kFirstIndex);
    marks_.push_back(
        {characters_.size(), static_cast<Symbol>(static_cast<std::size_t>(Symbol::kFirstSize) + size)});
  }
}

void Text::insert(std::size_t position, const Text& more) {
  const auto behind =
      std::find_if(marks_.begin(), marks_.end(), [&](const Mark& m) { return m.at > position; });
  const auto index = behind - marks_.begin();
  for (auto m = behind; m != marks_.end(); ++m) m->at += more.characters_.size();
  std::vector<Mark> inserted = more.marks_;
  for (Mark& m : inserted) m.at += position;
  marks_.insert(marks_.begin() + index, inserted.begin(), inserted.end());
  characters_.insert(position, more.characters_);
}

Text Text::around(Symbol symbol, const std::string& before, const std::string& behind) const {
  Text out;
  std::size_t done = 0;
  for (const Mark& m : marks_) {
    out.characters_.append(characters_, done, m.at - done);
    if (m.symbol == symbol) out.characters_ += before;
    out.marks_.push_back({out.characters_.size(), m.symbol});
    if (m.symbol == symbol) out.characters_ += behind;
    done = m.at;
  }
  out.characters_.append(characters_, done);
  return out;
}

Text Text::indented(std::string_view margin) const {
  Text out;
  std::size_t mark = 0;
  bool at_start = true;
  for (std::size_t i = 0; i <= characters_.size(); ++i) {
    const bool has_mark = mark < marks_.size() && marks_[mark].at == i;
    if (at_start && (has_mark || i < characters_.size())) out.characters_ += margin;
    if (has_mark || i < characters_.size()) at_start = false;
    for (; mark < marks_.size() && marks_[mark].at == i; ++mark) {
      out.marks_.push_back({out.characters_.size(), marks_[mark].symbol});
    }
    if (i == characters_.size()) break;
    out.characters_ += characters_[i];
    at_start = characters_[i] == '\n';
  }
  return out;
}

std::string Text::spelled_by(const std::function<std::string(Symbol)>& name) const {
  std::string out;
  std::size_t done = 0;
  for (const Mark& m : marks_) {
    out.append(characters_, done, m.at - done);
    out += name(m.symbol);
    done = m.at;
  }
  return out.append(characters_, done);
}

std::string Text::spelled(const SymbolNames& names) const {
  return spelled_by([&](Symbol symbol) {
    if (symbol == Symbol::kKernel) return names.kernel;
    if (symbol == Symbol::kFunctor) return names.functor;
    const std::size_t size = index_of(symbol);
    return size < names.sizes.size() && !names.sizes[size].empty() ? names.sizes[size]
                                                                   : fmt::format("n{}", size);
  });
}

std::string Text::with_size_symbols() const {
  return spelled_by([](Symbol symbol) {
    return symbol < Symbol::kFirstSize ? std::string() : size_symbol(index_of(symbol));
  });
}

Text CodeText::as_line(const Text& text) const {
  return Text(std::string(static_cast<std::size_t>(2 * depth_), ' ')) + text + "\n";
}

void CodeText::line(const Text& text) { text_ += as_line(text); }

void CodeText::line_at(std::size_t mark, const Text& text) { text_.insert(mark, as_line(text)); }

void CodeText::open(const Text& text) {
  line(text);
  ++depth_;
}

void CodeText::close(const Text& text) {
  --depth_;
  line(text);
}

void CodeText::reopen(const Text& text) {
  --depth_;
  open(text);
}

void CodeText::append(const Text& text, int deeper) {
  text_ += text.indented(std::string(static_cast<std::size_t>(2 * deeper), ' '));
}

}  // namespace gcompile
