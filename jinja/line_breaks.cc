#include "jinja/line_breaks.h"

#include <algorithm>
#include <vector>

#include "base/interrupt.h"

namespace gcompile {

namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// Where a long line may end and what begins the next one.
struct Break {
  std::size_t end = kNone;
  std::size_t next = kNone;
};

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

enum class Words { kWhole, kMayBreak };

/// Between words; where a word alone is too long and may break, behind a mark that names have between their
/// parts, and where there is none anywhere.
Break break_of_words(std::string_view line, std::size_t begin, Words words) {
  std::size_t space = line.rfind(' ', kMostColumns);
  // The end of a comment goes to the next line with the word before it, not alone.
  if (space != kNone && space > 0 && line.substr(space) == " */") space = line.rfind(' ', space - 1);
  if (space != kNone && space > begin) return {line.find_last_not_of(' ', space) + 1, space + 1};
  if (words == Words::kWhole) return {};
  for (const char* marks : {";/,:", "_."}) {
    const std::size_t mark = line.find_last_of(marks, kMostColumns - 1);
    if (mark != kNone && mark > begin) return {mark + 1, mark + 1};
  }
  return {kMostColumns, kMostColumns};
}

/// Its text begins at `begin`, and behind `further` in every line of its rest.
void add_words(std::string& out, std::string_view line, std::size_t begin, std::string_view further,
               Words words = Words::kMayBreak) {
  std::string rest(line);
  while (rest.size() > kMostColumns) {
    const Break at = break_of_words(rest, begin, words);
    if (at.end == kNone) break;
    out.append(rest, 0, at.end) += '\n';
    rest.replace(0, at.next, further);
    begin = further.size();
  }
  out += rest;
}

/// The end of the string or character constant, or of the comment, that begins at `at`; `at` where none does.
std::size_t end_of_opaque(std::string_view line, std::size_t at) {
  if (line.substr(at, 2) == "//") return line.size();
  if (line.substr(at, 2) == "/*") {
    const std::size_t end = line.find("*/", at + 2);
    return end == kNone ? line.size() : end + 2;
  }
  const bool is_digit_mark = line[at] == '\'' && at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9';
  if (line[at] != '"' && (line[at] != '\'' || is_digit_mark)) return at;
  std::size_t end = at + 1;
  while (end < line.size() && line[end] != line[at]) end += line[end] == '\\' ? 2 : 1;
  return std::min(end + 1, line.size());
}

/// What comes before the comment that ends a line of code; the whole line where none does.
std::string_view code_of(std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t end = end_of_opaque(line, i);
    if (end == line.size() && line[i] == '/' && end != i) return line.substr(0, i);
    i = std::max(end, i + 1);
  }
  return line;
}

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> candidates) {
  return std::find(candidates.begin(), candidates.end(), text) != candidates.end();
}

/// The last place outside of most brackets that leaves a line short enough.
Break break_of_code(std::string_view line) {
  const std::size_t first = indent_of(line) + 20;  // less would leave a stub
  const bool is_condition = line.substr(indent_of(line), 4) == "if (";
  Break best;
  int depth = 0, least = 0, templates = 0;
  for (std::size_t i = 0; i < std::min(line.size(), kMostColumns);) {
    const std::size_t end = end_of_opaque(line, i);
    if (end != i) {
      i = end;
      continue;
    }
    const char c = line[i];
    if (c == ')' || c == ']' || c == '}') --depth;
    const std::string_view before = line.substr(i, 4);
    const bool is_behind = is_any_of(before.substr(0, 2), {", ", "; ", "{ ", "= "}) ||
                           (is_condition && depth == 0 && before.substr(0, 2) == ") ");
    const bool is_before = is_any_of(before, {" && ", " || ", " == ", " != ", " << "}) ||
                           is_any_of(before.substr(0, 3), {" ? ", " : ", " + "});
    if (i >= first && templates == 0 && (is_behind || is_before) && (best.end == kNone || depth <= least)) {
      best = is_behind ? Break{i + 1, i + 2} : Break{i, i + 1};
      least = depth;
    }
    // Whether the bracket is that of a template: comparisons have blanks around them.
    const bool is_template = (c == '<' && i > 0 && line[i - 1] != ' ' && before.substr(1, 1) != " ") ||
                             (c == '>' && templates > 0);
    if (is_template) templates += c == '<' ? 1 : -1;
    if (c == '(' || c == '[' || c == '{') ++depth;
    ++i;
  }
  return best;
}

void add_code(std::string& out, std::string_view line) {
  const std::string indent(indent_of(line), ' ');
  std::string rest(line);
  bool is_body = false, has_brace = false;
  while (rest.size() > kMostColumns) {
    const Break at = break_of_code(rest);
    if (at.end == kNone) break;
    has_brace = has_brace || rest[at.end - 1] == '{';
    is_body = has_brace || rest[at.end - 1] == ')';
    out.append(rest, 0, at.end) += '\n';
    rest.replace(0, at.next, indent + (is_body ? "  " : "    "));
  }
  // The body of a function, which now has lines of its own.
  if (has_brace && rest.size() > 2 && rest.compare(rest.size() - 2, 2, " }") == 0) {
    rest.replace(rest.size() - 2, 2, "\n" + indent + "}");
  }
  out += rest;
}

/// Where the entry of a line of a table begins, "model     of PyTorch"; 0: it is prose.
std::size_t column_of_entry(std::string_view text) {
  const std::size_t blanks = text.find("  ");
  const bool is_word = blanks != kNone && blanks > 0 && text.find(' ') == blanks;
  return is_word ? std::min(text.find_first_not_of(' ', blanks), text.size()) : 0;
}

void add_c_line(std::string& out, std::string_view line) {
  const std::string indent(indent_of(line), ' ');
  const std::string_view text = line.substr(indent.size());
  if (text.empty() || text[0] == '#') {
    out += line;
    return;
  }
  if (text.substr(0, 2) == "//") {
    add_words(out, line, indent.size() + 3, indent + "// ");
    return;
  }
  if (text.substr(0, 2) == "/*") {
    add_words(out, line, indent.size() + 3, indent + (text.substr(0, 3) == "/**" ? " * " : "   "));
    return;
  }
  if (text.substr(0, 2) == "* ") {
    add_words(out, line, indent.size() + 2,
              indent + "* " + std::string(column_of_entry(text.substr(2)), ' '));
    return;
  }
  const std::string_view code = code_of(line);
  if (code.size() == line.size()) {
    add_code(out, line);
    return;
  }
  std::string comment(line.substr(code.size()));
  if (comment.substr(0, 4) == "/**<") comment.erase(3, 1);  // what it is about comes behind it now
  add_c_line(out, indent + comment);
  out += '\n';
  add_code(out, code.substr(0, code.find_last_not_of(' ') + 1));
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) {
    return path.size() >= end.size() && path.substr(path.size() - end.size()) == end;
  });
}

/// Lines of comments in files whose comments begin with a hash.
void add_hash_line(std::string& out, std::string_view line) {
  const std::string indent(indent_of(line), ' ');
  if (line.substr(indent.size(), 2) == "# ") {
    add_words(out, line, indent.size() + 2, indent + "# ");
  } else {
    out += line;
  }
}

/// Prose of Markdown by paragraphs, and code in C and C++ between its fences.
class Markdown {
 public:
  void add_line(std::string& out, std::string_view line) {
    const bool is_fence = line.substr(0, 3) == "```";
    const bool is_prose =
        fence_.empty() && !is_fence && !line.empty() && !is_any_of(line.substr(0, 1), {"|", "#", "<"});
    const bool is_item = is_any_of(line.substr(0, 2), {"- ", "* "});
    if (!is_prose || is_item) end_paragraph(out);
    if (is_prose) {
      paragraph_.push_back(line);
      return;
    }
    if (is_fence) fence_ = fence_.empty() ? line : std::string_view();
    if (line.size() > kMostColumns && (fence_ == "```c" || fence_ == "```cpp")) {
      add_c_line(out, line);
    } else {
      out += line;
    }
    out += '\n';
  }

  /// The paragraph as it is, or filled anew where a line is too long.
  void end_paragraph(std::string& out) {
    const bool is_long = std::any_of(paragraph_.begin(), paragraph_.end(),
                                     [](std::string_view line) { return line.size() > kMostColumns; });
    std::string whole;
    for (const std::string_view line : paragraph_) {
      if (!is_long) {
        out.append(line) += '\n';
      } else {
        whole.append(whole.empty() ? "" : " ").append(whole.empty() ? line : line.substr(indent_of(line)));
      }
    }
    if (is_long) {
      const std::size_t mark =
          is_any_of(std::string_view(whole).substr(0, 2), {"- ", "* "}) ? 2 : indent_of(whole);
      add_words(out, whole, mark + 1, std::string(mark, ' '), Words::kWhole);
      out += '\n';
    }
    paragraph_.clear();
  }

 private:
  std::string_view fence_;                   // empty: in prose
  std::vector<std::string_view> paragraph_;  // so far
};

/// What further lines begin with of a comment that begins in this line, "  /** ", and goes on in the next one; empty:
/// none does.
std::string prefix_of_block(std::string_view line, std::string_view next) {
  const std::size_t indent = indent_of(line);
  if (line.substr(indent, 4) != "/** " || line.find("*/") != kNone) return {};
  const std::string prefix = std::string(indent, ' ') + " * ";
  return next.substr(0, prefix.size()) == prefix ? prefix : "";
}

/// What a line of nothing but a comment begins with, blanks and all; empty: it is none.
std::string_view comment_prefix(std::string_view line, bool is_c) {
  const std::size_t indent = indent_of(line);
  for (const std::string_view mark : {"// ", "* ", "# "}) {
    if (line.substr(indent, mark.size()) == mark && is_c == (mark != "# "))
      return line.substr(0, indent + mark.size());
  }
  return {};
}

/// Whether a line with that prefix goes on with the sentence of the one before it.
bool goes_on(std::string_view line, std::string_view prefix) {
  if (line.size() <= prefix.size() || line.substr(0, prefix.size()) != prefix) return false;
  const char first = line[prefix.size()];
  return first >= 'a' && first <= 'z';
}

/// `text` with the words of a comment that its line has no room for in front of the next line, where the comment
/// goes on there.
std::string with_filled_comments(std::string text, bool is_c) {
  std::string out, carried;  // with its prefix
  out.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    poll_interrupt();
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = std::move(carried);
    carried.clear();
    const std::string_view next(text.data() + begin, end - begin);
    std::string prefix(comment_prefix(next, is_c));
    if (line.empty()) {
      line = next;
    } else {
      line.append(" ").append(next.substr(prefix.size()));
    }
    begin = end + 1;
    const std::string_view behind =
        begin < text.size() ? std::string_view(text).substr(begin, text.find('\n', begin) - begin) : "";
    if (is_c && prefix.empty()) prefix = prefix_of_block(next, behind);
    if (line.size() > kMostColumns && !prefix.empty() && goes_on(behind, prefix)) {
      const Break at = break_of_words(line, prefix.size() + 1, Words::kWhole);
      if (at.end != kNone && line.size() - at.next + prefix.size() < kMostColumns) {
        carried = prefix + line.substr(at.next);
        line.resize(at.end);
      }
    }
    out += line;
    if (end < text.size()) out += '\n';
  }
  return out;
}

}  // namespace

std::string with_short_lines(std::string_view path, std::string text) {
  const bool is_c = ends_with_any(path, {".h", ".hpp", ".c", ".cpp", ".cu"});
  const bool is_hashed = ends_with_any(path, {"CMakeLists.txt", "Makefile"});
  const bool is_prose = ends_with_any(path, {".md"});
  if (!is_c && !is_hashed && !is_prose) return text;
  if (!is_prose) text = with_filled_comments(std::move(text), is_c);
  std::string out;
  out.reserve(text.size());
  Markdown markdown;
  for (std::size_t begin = 0; begin < text.size();) {
    poll_interrupt();
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (is_prose) {
      markdown.add_line(out, line);
      continue;
    }
    if (line.size() <= kMostColumns) {
      out += line;
    } else if (is_c) {
      add_c_line(out, line);
    } else {
      add_hash_line(out, line);
    }
    if (end < text.size()) out += '\n';
  }
  if (is_prose) markdown.end_paragraph(out);
  return out;
}

}  // namespace gcompile
