#include "driver/command_line/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/nearest_name.h"
#include "codegen/choice/family.h"
#include "driver/command_line/option_table.h"
#include "frontend/sizes/dims.h"

namespace gcompile {
namespace {

[[noreturn]] void given_twice(const char* option, const std::string& name) {
  usage_error(fmt::format("{} is given twice for '{}'", option, printable(name)), "leave one of them out");
}

template <class List, class Name>
void expect_new(const List& list, const char* option, const std::string& name, Name name_of) {
  const auto is_it = [&](const auto& item) { return name_of(item) == name; };
  if (std::any_of(list.begin(), list.end(), is_it)) given_twice(option, name);
}

}  // namespace

std::int64_t number_of(const char* option, const std::string& text, std::int64_t lowest,
                       std::int64_t highest) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
    usage_error(fmt::format("{} '{}': that is no whole number from {} to {}", option, printable(text), lowest,
                            highest),
                fmt::format("for example {} {}", option, std::max<std::int64_t>(lowest, 1)));
  }
  return value;
}

std::int64_t bytes_of(const char* option, const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const bool has_unit = !text.empty() && (text.back() == 'K' || text.back() == 'M');
  const int shift = !has_unit ? 0 : text.back() == 'K' ? 10 : 20;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size() - (has_unit ? 1 : 0);
  const auto [parsed, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || parsed != end || value < 0 || value > kMost >> shift) {
    usage_error(fmt::format("{} '{}': that is no number of bytes", option, printable(text)),
                fmt::format("for example {0} 65536, {0} 64K or {0} 2M", option));
  }
  return value << shift;
}

void add_dim(Options& options, const std::string& text) {
  if (auto bounds = frontend::parse_dim_bounds(text)) {
    options.import.bindings.bounds.push_back(std::move(*bounds));
    options.dims.push_back(text);
    return;
  }
  if (auto sum = frontend::parse_dim_sum_binding(text)) {
    expect_new(options.import.bindings.sums, "--dim", sum->name,
               [](const auto& other) { return other.name; });
    options.import.bindings.sums.push_back(*std::move(sum));
    options.dims.push_back(text);
    return;
  }
  frontend::DimList list = frontend::parse_dim_list(text);
  const auto name_of = [](const auto& dim) { return dim.name; };
  expect_new(options.size_lists, "--dim", list.name, name_of);
  expect_new(options.import.bindings.dims, "--dim", list.name, name_of);
  options.dims.push_back(text);
  if (list.sizes.size() == 1) {
    options.import.bindings.dims.push_back({std::move(list.name), list.sizes.front()});
  } else {
    list.bounds_before = options.import.bindings.bounds.size();
    options.size_lists.push_back(std::move(list));
  }
}

void add_shape(Options& options, const std::string& text) {
  frontend::ShapeBinding shape = frontend::parse_shape_binding(text);
  expect_new(options.import.bindings.shapes, "--shape", shape.input,
             [](const auto& other) { return other.input; });
  options.shapes.push_back(text);
  options.import.bindings.shapes.push_back(std::move(shape));
}

void add_set(Options& options, const std::string& text) {
  frontend::SetBinding set = frontend::parse_set_binding(text);
  expect_new(options.import.bindings.sets, "--set", set.input, [](const auto& other) { return other.input; });
  options.sets.push_back(text);
  options.import.bindings.sets.push_back(std::move(set));
}

void add_elements(Options& options, const std::string& text) {
  frontend::ElementsBinding elements = frontend::parse_elements_binding(text);
  expect_new(options.import.bindings.elements, "--elements", elements.input,
             [](const auto& other) { return other.input; });
  options.import.bindings.elements.push_back(std::move(elements));
}

void add_state(Options& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    usage_error(fmt::format("--state '{}' is not of the form INPUT=OUTPUT", printable(text)),
                "for example --state h_in=h_out");
  }
  const std::string input = text.substr(0, equals), output = text.substr(equals + 1);
  expect_new(options.import.states, "--state", input, [](const auto& state) { return state.first; });
  expect_new(options.import.states, "--state", output, [](const auto& state) { return state.second; });
  options.import.states.emplace_back(input, output);
}

/// The last equals sign counts, for names of nodes may hold any.
void add_forced_kernel(Options& options, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    usage_error(fmt::format("--kernel '{}' is not of the form NODE=FAMILY", printable(text)),
                "for example --kernel conv1=conv.direct; --explain NODE lists the families");
  }
  const std::string node = text.substr(0, equals), name = text.substr(equals + 1);
  if (!find_family(name)) {
    std::vector<std::string> known;
    for (const KernelFamily* family : families()) known.emplace_back(family->name);
    const std::string nearest = did_you_mean(name, known);
    usage_error(fmt::format("--kernel '{}': there is no family '{}'", printable(text), printable(name)),
                nearest.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : nearest);
  }
  expect_new(options.forced_kernels, "--kernel", node, [](const auto& forced) { return forced.first; });
  options.forced_kernels.emplace_back(node, name);
}

void add_most_growth(Options& options, const std::string& text) {
  const auto wrong = [&](std::string_view part) {
    usage_error(fmt::format("--max-regression '{}': '{}' is not of the form FIGURE=MOST", printable(text),
                            printable(std::string(part))),
                "for example --max-regression ram=0,weights=2%,time=5%");
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) wrong(part);
    MostGrowth growth{part.substr(0, equals)};
    std::string_view amount = std::string_view(part).substr(equals + 1);
    growth.is_percent = amount.ends_with('%');
    if (growth.is_percent) amount.remove_suffix(1);
    const auto [rest, failure] = std::from_chars(amount.data(), amount.data() + amount.size(), growth.amount);
    if (failure != std::errc() || rest != amount.data() + amount.size() || !(growth.amount >= 0) ||
        growth.amount > 1e18)
      wrong(part);
    expect_new(options.max_regression, "--max-regression", growth.figure,
               [](const auto& other) { return other.figure; });
    options.max_regression.push_back(std::move(growth));
    at = end + 1;
  }
}

void set_cpu(Options& options, const std::string& text) {
  const auto is_of_a_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.+").find(c) != std::string_view::npos;
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_of_a_name)) {
    usage_error(fmt::format("--cpu '{}' is not a name that -march= takes", printable(text)),
                "for example --cpu x86-64-v3 or --cpu cortex-a53");
  }
  options.cpu = text;
}

void set_weights(Options& options, const std::string& text) {
  for (const WeightsMode mode :
       {WeightsMode::kIncbin, WeightsMode::kArray, WeightsMode::kFile, WeightsMode::kExtern}) {
    if (text == weights_mode_name(mode)) options.weights = mode;
  }
}

}  // namespace gcompile
