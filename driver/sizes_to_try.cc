#include "driver/sizes_to_try.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/random_inputs.h"
#include "ir/diagnostics.h"
#include "ir/solve_sizes.h"

namespace gcompile {
namespace {

constexpr std::size_t kMostCorners = 16;
constexpr int kMostDraws = 1000;

std::int64_t value_of(ir::Dim form, const Program& program, const std::vector<std::int64_t>& sizes) {
  return form.at([&](int symbol) {
    const auto at = static_cast<std::size_t>(symbol);
    return sizes[at] / program.sizes[at].multiple;
  });
}

bool is_allowed(const Program& program, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Size& size = program.sizes[i];
    if (!size.bounds.contains(sizes[i]) || sizes[i] % size.multiple != 0) return false;
  }
  return std::all_of(program.size_conditions.begin(), program.size_conditions.end(),
                     [&](const SizeCondition& condition) {
                       return condition.bounds.contains(value_of(condition.form, program, sizes));
                     });
}

/// Whether every condition holds somewhere between the two, as far as forms grow and shrink evenly.
bool may_be_allowed(const Program& program, const std::vector<std::int64_t>& low,
                    const std::vector<std::int64_t>& high) {
  return std::all_of(
      program.size_conditions.begin(), program.size_conditions.end(), [&](const SizeCondition& condition) {
        const auto [least, most] =
            std::minmax({value_of(condition.form, program, low), value_of(condition.form, program, high)});
        return least <= condition.bounds.high && most >= condition.bounds.low;
      });
}

}  // namespace

std::string sizes_text(const Program& program, const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += fmt::format("{}{}={}", i > 0 ? ", " : "", ir::printable(program.sizes[i].name), sizes[i]);
  }
  return text;
}

std::vector<std::int64_t> sizes_of_case(const Program& program, ir::Sizes& formulas, const TestCase& test) {
  const ir::SizesScope scope(&formulas);
  const auto fail = [&](const std::string& why) {
    throw ir::CompileError(ir::ExitCode::kInputOutput, fmt::format("{}: {}", test.name, why));
  };
  std::vector<ir::Dim> forms;
  std::vector<std::int64_t> numbers;
  const auto add_shape = [&](const std::string& name, const ir::Shape& shape) {
    const auto given = test.inputs.find(name);
    if (given == test.inputs.end() || given->second.shape().size() != shape.size()) return;
    forms.insert(forms.end(), shape.begin(), shape.end());
    for (const ir::Dim size : given->second.shape()) numbers.push_back(size);
  };
  for (const Port& input : program.schedules.front().inputs) add_shape(input.model_name, input.type.shape);
  for (const StateTensor& state : program.states) add_shape(state.input_name, state.type.shape);
  const ir::SolvedSymbols symbols = ir::solve_symbols(forms, static_cast<int>(program.sizes.size()));
  if (!symbols.open.empty()) {
    const Size& size = program.sizes[static_cast<std::size_t>(symbols.open.front())];
    fail(fmt::format("no input tells '{}'", ir::printable(size.name)));
  }
  std::vector<std::int64_t> sizes(program.sizes.size(), 0);
  for (const ir::SolvedSymbol& solved : symbols.solved) {
    const std::int64_t factor = value_of(solved.factor, program, sizes);
    const std::int64_t left = numbers[solved.form] - value_of(solved.rest, program, sizes);
    const auto at = static_cast<std::size_t>(solved.symbol);
    if (factor == 0 || left % factor != 0)
      fail(fmt::format("its inputs are of no '{}'", ir::printable(program.sizes[at].name)));
    sizes[at] = left / factor * program.sizes[at].multiple;
  }
  if (!is_allowed(program, sizes))
    fail(fmt::format("the project does not run at {}", sizes_text(program, sizes)));
  return sizes;
}

std::vector<std::vector<std::int64_t>> sizes_to_try(const Program& program, std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> out;
  const auto add = [&](std::vector<std::int64_t> sizes) {
    if (!is_allowed(program, sizes) || std::find(out.begin(), out.end(), sizes) != out.end()) return;
    out.push_back(std::move(sizes));
  };
  const std::size_t axes = program.sizes.size();
  for (std::size_t corner = 0; corner < std::min(kMostCorners, std::size_t{1} << axes); ++corner) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < axes; ++i) {
      const ir::Bounds& bounds = program.sizes[i].bounds;
      sizes.push_back(corner >> i & 1 ? bounds.high : bounds.low);
    }
    add(std::move(sizes));
  }
  RandomInputs random(seed);
  const std::size_t enough = 2 * std::max<std::size_t>(out.size(), 2);
  for (int draw = 0; draw < kMostDraws && out.size() < enough; ++draw) {
    std::vector<std::int64_t> sizes;
    for (const Size& size : program.sizes) {
      const std::uint64_t steps =
          static_cast<std::uint64_t>((size.bounds.high - size.bounds.low) / size.multiple) + 1;
      sizes.push_back(size.bounds.low + static_cast<std::int64_t>(random.next() % steps) * size.multiple);
    }
    add(std::move(sizes));
  }
  return out;
}

std::vector<std::int64_t> largest_sizes(const Program& program) {
  std::vector<std::int64_t> low, high;
  for (const Size& size : program.sizes) {
    low.push_back(size.bounds.low);
    high.push_back(size.bounds.high);
  }
  for (const HeldSize& held : program.held_sizes) {
    if (held.counts_rows()) high[held.size] = low[held.size];
  }
  for (std::size_t i = 0; i < program.sizes.size(); ++i) {
    low[i] = high[i];
    while (!may_be_allowed(program, low, high) && low[i] > program.sizes[i].bounds.low) {
      low[i] -= program.sizes[i].multiple;
      high[i] = low[i];
    }
  }
  return high;
}

}  // namespace gcompile
