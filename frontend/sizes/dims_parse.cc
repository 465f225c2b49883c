// The texts of --dim, --shape and --set.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "frontend/files/limits.h"
#include "frontend/sizes/dims.h"

namespace gcompile::frontend {
namespace {

[[noreturn]] void usage(std::string_view flag, std::string_view text, std::string_view form,
                        std::string_view example) {
  throw CompileError(ExitCode::kUsage,
                     fmt::format("{} '{}' is not of the form {}", flag, printable(text), form),
                     fmt::format("for example {} {}", flag, example));
}

/// The largest multiple of a dimension in the name of another; far from where sums overflow.
constexpr std::int64_t kMostMultiple = std::int64_t{1} << 31;

/// The form is right, and no tensor can be as large.
[[noreturn]] void too_large(std::string_view number) {
  throw CompileError(ExitCode::kUsage,
                     fmt::format("--dim or --shape: {} is larger than any size", printable(number)),
                     fmt::format("a tensor has at most {} elements", Limits().tensor_elements));
}

/// A size of 0 or more.
std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = end == text.data() + text.size();
  if (is_all && error == std::errc::result_out_of_range && text[0] != '-') too_large(text);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (separators.find(c) != std::string_view::npos) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The texts of a shape's dimensions. Between commas a name may have an `x`.
std::vector<std::string> split_dims(std::string_view text) {
  if (text.find(',') == std::string_view::npos) return split(text, "x");
  std::vector<std::string> parts;
  for (std::string& part : split(text, ",")) {
    while (!part.empty() && part.front() == ' ') part.erase(part.begin());
    if (is_dim_identifier(part)) {
      parts.push_back(std::move(part));
    } else {
      for (std::string& piece : split(part, "x")) parts.push_back(std::move(piece));
    }
  }
  return parts;
}

/// The sizes and names of a shape text, or nothing.
std::optional<std::vector<DeclaredDim>> parse_dims(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<DeclaredDim> dims;
  if (text.empty()) return dims;
  for (std::string& part : split_dims(text)) {
    if (part == "?") {
      dims.emplace_back();
      continue;
    }
    const auto size = parse_size(part);
    if (!size && !is_dim_identifier(part)) return std::nullopt;
    dims.push_back({size, size ? "" : part});
  }
  return dims;
}

}  // namespace

DimList parse_dim_list(std::string_view text) {
  constexpr std::string_view kForm = "NAME=SIZE or NAME=SIZE,SIZE,...", kExample = "batch=1,4";
  const std::size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0) usage("--dim", text, kForm, kExample);
  DimList list{std::string(text.substr(0, at)), {}};
  for (const std::string& part : split(text.substr(at + 1), ",")) {
    const auto size = parse_size(part);
    if (!size) usage("--dim", text, kForm, kExample);
    list.sizes.push_back(*size);
  }
  std::sort(list.sizes.begin(), list.sizes.end());
  if (std::adjacent_find(list.sizes.begin(), list.sizes.end()) != list.sizes.end()) {
    usage("--dim", text, "NAME=SIZE,SIZE,... with each size once", kExample);
  }
  return list;
}

std::optional<DimBounds> parse_dim_bounds(std::string_view text) {
  constexpr std::string_view kForm = "NAME=LOW..HIGH, NAME=LOW..HIGH:MULTIPLE or NAME=LOW..HIGH@TYPICAL";
  constexpr std::string_view kExample = "length=1..512";
  constexpr std::int64_t kHighest = std::int64_t{1} << 40;
  const std::size_t equals = text.rfind('='), dots = text.rfind("..");
  if (equals == std::string_view::npos || dots == std::string_view::npos || dots < equals)
    return std::nullopt;
  std::string_view high = text.substr(dots + 2);
  const auto cut = [&](char mark) -> std::optional<std::int64_t> {
    const std::size_t at = high.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const auto value = parse_size(high.substr(at + 1));
    if (!value) usage("--dim", text, kForm, kExample);
    high = high.substr(0, at);
    return value;
  };
  DimBounds given;
  const std::optional<std::int64_t> typical = cut('@');
  given.multiple = cut(':').value_or(1);
  const auto lowest = parse_size(text.substr(equals + 1, dots - equals - 1)), highest = parse_size(high);
  if (lowest && highest && *highest > kHighest) too_large(high);
  if (lowest && highest && *lowest > *highest) {
    usage("--dim", text, "NAME=LOW..HIGH with a HIGH that is not below LOW", kExample);
  }
  const bool are_bounds = lowest && highest;
  if (!are_bounds || given.multiple < 1 || given.multiple > kHighest) usage("--dim", text, kForm, kExample);
  given.bounds = {(*lowest + given.multiple - 1) / given.multiple * given.multiple,
                  *highest / given.multiple * given.multiple};
  if (given.bounds.low > given.bounds.high) {
    usage("--dim", text, "NAME=LOW..HIGH:MULTIPLE with a multiple between the bounds", "height=32..960:32");
  }
  given.typical = typical.value_or(given.bounds.high);
  if (!given.bounds.contains(given.typical) || given.typical % given.multiple != 0) {
    usage("--dim", text, "NAME=LOW..HIGH@TYPICAL with a typical size that the bounds allow",
          "length=1..512@64");
  }
  given.names = split(text.substr(0, equals), "+");
  for (const std::string& name : given.names) {
    if (!is_dim_identifier(name)) usage("--dim", text, kForm, kExample);
  }
  return given;
}

std::optional<std::vector<DimPart>> parse_dim_sum(std::string_view text) {
  std::vector<DimPart> parts;
  for (const std::string& summand : split(text, "+")) {
    DimPart part;
    for (std::string& factor : split(summand, "*")) {
      while (!factor.empty() && factor.front() == ' ') factor.erase(factor.begin());
      while (!factor.empty() && factor.back() == ' ') factor.pop_back();
      const auto number = parse_size(factor);
      const bool is_name = is_dim_identifier(factor) && part.name.empty();
      if (!is_name && (!number || part.number != 1 || *number > kMostMultiple)) return std::nullopt;
      if (is_name) part.name = std::move(factor);
      if (!is_name) part.number = *number;
    }
    parts.push_back(std::move(part));
  }
  const bool is_multiple = parts[0].number != 1 && !parts[0].name.empty();
  return parts.size() > 1 || is_multiple ? std::optional(std::move(parts)) : std::nullopt;
}

std::optional<DimSum> parse_dim_sum_binding(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  auto parts = parse_dim_sum(text.substr(equals + 1));
  if (!parts) return std::nullopt;
  return DimSum{std::string(text.substr(0, equals)), *std::move(parts)};
}

ShapeBinding parse_shape_binding(std::string_view text) {
  // The last separator before which a name and after which sizes stand.
  const std::size_t at = text.find_last_of(":=");
  const bool named = at != std::string_view::npos;
  const auto dims = parse_dims(named ? text.substr(at + 1) : text);
  if (!dims || (named && at == 0) || text.empty()) {
    usage("--shape", text, "INPUT:SIZExSIZEx...", "input:1x3x224x224");
  }
  return {std::string(named ? text.substr(0, at) : std::string_view()), *dims};
}

SetBinding parse_set_binding(std::string_view text) {
  const std::size_t at = text.find('=');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) {
    usage("--set", text, "INPUT=VALUE or INPUT=VALUE,VALUE,...", "sr=16000");
  }
  return {std::string(text.substr(0, at)), split(text.substr(at + 1), ",")};
}

ElementsBinding parse_elements_binding(std::string_view text) {
  const std::size_t at = text.rfind('=');
  const std::string_view number = at == std::string_view::npos ? "" : text.substr(at + 1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool is_count = !number.empty() && error == std::errc() && end == number.data() + number.size() &&
                        count >= 0 && count <= Limits().nodes_of_calls;
  if (at == 0 || (!is_count && number != "none")) {
    usage("--elements", text,
          fmt::format("INPUT=COUNT, of 0 to {} tensors, or INPUT=none", Limits().nodes_of_calls), "frames=3");
  }
  return {std::string(text.substr(0, at)), is_count ? std::optional(count) : std::nullopt};
}

}  // namespace gcompile::frontend
