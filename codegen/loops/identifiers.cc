#include "codegen/loops/identifiers.h"

#include <algorithm>

namespace gcompile {

std::set<std::string> identifiers_of(const std::string& text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "/*") == 0) i = std::min(text.find("*/", i), text.size());
    std::size_t end = i;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > i) out.insert(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

}  // namespace gcompile
