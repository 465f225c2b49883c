#include "tests/conformance/expectations.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace gcompile::conformance {
namespace {

constexpr const char* kHead =
    "# What every official case of ONNX does when it is compiled, built and run at -O0 and -O3.\n"
    "# Written by conformance_cases --bless; a line that does not hold any more fails the test, also a "
    "better one.\n"
    "# \"constant\": these inputs had to be known at compile time.\n";
constexpr const char* kExceptionsHead =
    "# What differs with --target cuda; see the list that it goes with.\n";

bool starts_with(const std::string& text, const std::string& head) { return text.rfind(head, 0) == 0; }

}  // namespace

Expectations read_expectations(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  Expectations out;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string status = space == std::string::npos ? "" : line.substr(space + 1);
    if (!starts_with(status, "pass") && !starts_with(status, "unsupported: ") &&
        !starts_with(status, "wrong: ")) {
      throw std::runtime_error(fmt::format("{}:{}: no status", path, number));
    }
    if (!out.emplace(line.substr(0, space), status).second) {
      throw std::runtime_error(fmt::format("{}:{}: '{}' twice", path, number, line.substr(0, space)));
    }
  }
  return out;
}

void write_expectations(const std::string& path, const Expectations& expectations, List list) {
  std::ofstream file(path);
  file << (list == List::kAll ? kHead : kExceptionsHead);
  for (const auto& [name, status] : expectations) file << name << ' ' << status << '\n';
  if (!file.flush()) throw std::runtime_error(fmt::format("{}: cannot be written", path));
}

bool agrees(const std::string& expected, const std::string& result) {
  if (starts_with(expected, "wrong: ")) return starts_with(result, "wrong: ");
  return expected == result;
}

}  // namespace gcompile::conformance
