#include "driver/data/sizes_to_try.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "driver/data/random_inputs.h"
#include "ir/sizes/solve_sizes.h"

namespace gcompile {
namespace {

constexpr std::size_t kMostCorners = 16;
constexpr int kMostDraws = 1000;

std::int64_t value_of(ir::Dim formula, const Program& program, const std::vector<std::int64_t>& sizes) {
  return formula.at([&](int symbol) {
    const auto at = static_cast<std::size_t>(symbol);
    return sizes[at] / program.sizes[at].multiple;
  });
}

bool is_allowed(const Program& program, const Schedule& schedule, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!schedule.bounds[i].contains(sizes[i]) || sizes[i] % program.sizes[i].multiple != 0) return false;
  }
  return std::all_of(schedule.conditions.begin(), schedule.conditions.end(),
                     [&](const ir::SizeFact& condition) {
                       return condition.bounds.contains(value_of(condition.formula, program, sizes));
                     });
}

/// Whether every condition holds somewhere between the two, as far as formulas grow and shrink evenly.
bool may_be_allowed(const Program& program, const Schedule& schedule, const std::vector<std::int64_t>& low,
                    const std::vector<std::int64_t>& high) {
  return std::all_of(
      schedule.conditions.begin(), schedule.conditions.end(), [&](const ir::SizeFact& condition) {
        const auto [least, most] = std::minmax(
            {value_of(condition.formula, program, low), value_of(condition.formula, program, high)});
        return least <= condition.bounds.high && most >= condition.bounds.low;
      });
}

/// The largest sizes within bounds that the conditions allow, the first of them before the others.
std::vector<std::int64_t> largest_within(const Program& program, const Schedule& schedule,
                                         const std::vector<ir::Bounds>& bounds) {
  std::vector<std::int64_t> low, high;
  for (const ir::Bounds& each : bounds) {
    low.push_back(each.low);
    high.push_back(each.high);
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    low[i] = high[i];
    while (!may_be_allowed(program, schedule, low, high) && low[i] > bounds[i].low) {
      low[i] -= program.sizes[i].multiple;
      high[i] = low[i];
    }
  }
  return high;
}

/// The sizes at which the schedule's inputs have the shapes of the case; nullopt: `why` tells.
std::optional<std::vector<std::int64_t>> sizes_of_case(const Program& program, const Schedule& schedule,
                                                       const TestCase& test, std::string& why) {
  const ir::SizesScope scope(schedule.formulas.get());
  std::vector<ir::Dim> formulas;
  std::vector<std::int64_t> numbers;
  const auto add_shape = [&](const std::string& name, const ir::Shape& shape) {
    const auto given = test.inputs.find(name);
    if (given == test.inputs.end() || given->second.shape().size() != shape.size()) return;
    formulas.insert(formulas.end(), shape.begin(), shape.end());
    for (const ir::Dim size : given->second.shape()) numbers.push_back(size);
  };
  for (const Port& input : schedule.inputs) add_shape(input.model_name, input.type.shape);
  for (const StateTensor& state : program.states) add_shape(state.input_name, state.type.shape);
  const ir::SolvedSymbols symbols = ir::solve_symbols(formulas, static_cast<int>(program.sizes.size()));
  std::vector<std::int64_t> sizes(program.sizes.size(), 0);
  const auto fail = [&](std::string text) {
    why = std::move(text);
    return std::nullopt;
  };
  for (const int symbol : symbols.told) {
    const auto at = static_cast<std::size_t>(symbol);
    const ir::Bounds& bounds = schedule.bounds[at];
    if (bounds.low < bounds.high)
      return fail(fmt::format("no input tells '{}'", printable(program.sizes[at].name)));
    sizes[at] = bounds.low;
  }
  for (const ir::SolvedSymbol& solved : symbols.solved) {
    const auto at = static_cast<std::size_t>(solved.symbol);
    const std::int64_t rest = value_of(solved.rest, program, sizes);
    if (!solved.formula) {
      sizes[at] = rest * program.sizes[at].multiple;
      continue;
    }
    const std::int64_t factor = value_of(solved.factor, program, sizes);
    const std::int64_t left = numbers[*solved.formula] - rest;
    if (factor == 0 || left % factor != 0)
      return fail(
          fmt::format("its inputs are of no size that '{}' may have", printable(program.sizes[at].name)));
    sizes[at] = left / factor * program.sizes[at].multiple;
  }
  if (!is_allowed(program, schedule, sizes))
    return fail(fmt::format("the project does not run at {}", sizes_text(program, sizes)));
  // What is wrong with shapes of the only schedule is told by the name of the input.
  for (std::size_t i = 0; i < formulas.size() && program.schedules.size() > 1; ++i) {
    if (value_of(formulas[i], program, sizes) != numbers[i])
      return fail("no choice of --dim gives the inputs these shapes");
  }
  return sizes;
}

}  // namespace

std::string sizes_text(const Program& program, const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += fmt::format("{}{}={}", i > 0 ? ", " : "", printable(program.sizes[i].name), sizes[i]);
  }
  return text;
}

SizedRun run_of_case(const Program& program, const TestCase& test) {
  std::string why;
  for (std::size_t i = 0; i < program.schedules.size(); ++i) {
    const auto sizes = sizes_of_case(program, program.schedules[i], test, why);
    if (sizes) return {i, *sizes};
  }
  throw CompileError(ExitCode::kInputOutput, fmt::format("{}: {}", test.name, why),
                     "give --dim the sizes that the data has, or bounds around them");
}

/// The sizes to try for one schedule.
static std::vector<std::vector<std::int64_t>> sizes_to_try(const Program& program, const Schedule& schedule,
                                                           std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> out;
  const auto add = [&](std::vector<std::int64_t> sizes) {
    if (!is_allowed(program, schedule, sizes) || std::find(out.begin(), out.end(), sizes) != out.end())
      return;
    out.push_back(std::move(sizes));
  };
  const std::size_t axes = program.sizes.size();
  for (std::size_t corner = 0; corner < std::min(kMostCorners, std::size_t{1} << axes); ++corner) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < axes; ++i) {
      const ir::Bounds& bounds = schedule.bounds[i];
      sizes.push_back(corner >> i & 1 ? bounds.high : bounds.low);
    }
    add(std::move(sizes));
  }
  RandomInputs random(seed);
  const std::size_t enough = 2 * std::max<std::size_t>(out.size(), 2);
  for (int draw = 0; draw < kMostDraws && out.size() < enough; ++draw) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < axes; ++i) {
      const ir::Bounds& bounds = schedule.bounds[i];
      const std::int64_t multiple = program.sizes[i].multiple;
      const std::uint64_t steps = static_cast<std::uint64_t>((bounds.high - bounds.low) / multiple) + 1;
      sizes.push_back(bounds.low + static_cast<std::int64_t>(random.next() % steps) * multiple);
    }
    add(std::move(sizes));
  }
  return out;
}

std::vector<SizedRun> runs_to_try(const Program& program, std::uint64_t seed) {
  std::vector<SizedRun> runs;
  for (std::size_t i = 0; i < program.schedules.size(); ++i) {
    for (std::vector<std::int64_t>& sizes : sizes_to_try(program, program.schedules[i], seed))
      runs.push_back({i, std::move(sizes)});
  }
  return runs;
}

std::vector<std::pair<SizedRun, SizedRun>> continuations(const Program& program) {
  std::vector<std::pair<SizedRun, SizedRun>> out;
  const std::size_t count = program.schedules.size();
  for (std::size_t from = 0; from < count; ++from) {
    const SizedRun first{from, program.schedules[from].sizes};
    for (std::size_t to = 0; to < count; ++to) {
      const Schedule& schedule = program.schedules[to];
      std::vector<ir::Bounds> bounds = schedule.bounds;
      bool counts_rows = false;
      for (const HeldSize& held : program.held_sizes) {
        const std::int64_t size =
            held.counts_rows() ? value_of(held.after[from], program, first.sizes) : first.sizes[held.size];
        bounds[held.size] = {size, size};
        counts_rows |= held.counts_rows();
      }
      const SizedRun second{to, largest_within(program, schedule, bounds)};
      if (to != from && counts_rows && is_allowed(program, schedule, second.sizes))
        out.push_back({first, second});
    }
  }
  return out;
}

std::vector<std::int64_t> largest_sizes(const Program& program, const Schedule& schedule) {
  std::vector<ir::Bounds> bounds = schedule.bounds;
  for (const HeldSize& held : program.held_sizes) {
    if (held.counts_rows()) bounds[held.size].high = bounds[held.size].low;
  }
  return largest_within(program, schedule, bounds);
}

}  // namespace gcompile
