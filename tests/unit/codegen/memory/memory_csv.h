#pragma once
// Memory-planning instances as CSV, the format of google/minimalloc: a header line with the columns id,
// lower, upper, size and perhaps offset in any order; one buffer per line; life half-open [lower, upper).

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile::memory_csv {

struct Instance {
  std::vector<Buffer> buffers;
  /// Empty, or one for each buffer.
  std::vector<int64_t> offsets;
};

inline std::vector<std::string> split_cells(const std::string& line) {
  std::vector<std::string> cells{""};
  for (char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

inline bool read_number(const std::string& cell, int64_t& value) {
  if (cell.empty() || cell.size() > 18 || cell.find_first_not_of("0123456789") != std::string::npos)
    return false;
  value = std::stoll(cell);
  return true;
}

/// Alignment 1. Nothing if a column is missing or a cell is no number.
inline std::optional<Instance> read(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line)) return std::nullopt;
  std::map<std::string, size_t> column;
  for (const std::string& name : split_cells(line)) column.emplace(name, column.size());
  for (const char* name : {"id", "lower", "upper", "size"}) {
    if (column.count(name) == 0) return std::nullopt;
  }
  Instance instance;
  while (std::getline(lines, line)) {
    if (line.empty() || line == "\r") continue;
    const std::vector<std::string> cells = split_cells(line);
    if (cells.size() != column.size()) return std::nullopt;
    Buffer buffer;
    buffer.name = cells[column["id"]];
    buffer.alignment = 1;
    if (!read_number(cells[column["lower"]], buffer.begin_step) ||
        !read_number(cells[column["upper"]], buffer.end_step) ||
        !read_number(cells[column["size"]], buffer.size)) {
      return std::nullopt;
    }
    if (column.count("offset") != 0) {
      if (!read_number(cells[column["offset"]], instance.offsets.emplace_back())) return std::nullopt;
    }
    instance.buffers.push_back(std::move(buffer));
  }
  return instance;
}

inline std::string write(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets) {
  std::ostringstream text;
  text << "id,lower,upper,size" << (offsets.empty() ? "" : ",offset") << "\n";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    text << buffer.name << ',' << buffer.begin_step << ',' << buffer.end_step << ',' << buffer.size;
    if (!offsets.empty()) text << ',' << offsets[i];
    text << "\n";
  }
  return text.str();
}

}  // namespace gcompile::memory_csv
