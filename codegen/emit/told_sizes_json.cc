#include "codegen/emit/told_sizes_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "codegen/emit/size_text.h"
#include "ir/sizes/solve_sizes.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// C++ of a size that is told: outside its bounds it has no value, lest products of it overflow.
Json told_json(const Size& size) {
  return {{"c_name", size.c_name}, {"low", size.bounds.low}, {"high", size.bounds.high}};
}

/// C++ of what the inputs tell in a run of one schedule.
class SizesOfSchedule {
 public:
  SizesOfSchedule(const Program& program, const Schedule& schedule) : program_(program), schedule_(schedule) {
    const ir::SizesScope scope(schedule.formulas.get());
    std::vector<ir::Dim> counts;
    for (const Port& input : schedule.inputs) counts.push_back(input.type.count());
    const auto symbols = ir::solve_symbols(counts, static_cast<int>(program.sizes.size()));
    for (const int symbol : symbols.told) {
      const auto at = static_cast<std::size_t>(symbol);
      const ir::Bounds& bounds = schedule.bounds[at];
      if (bounds.low < bounds.high) {
        told.insert(at);
      } else {
        found.push_back({{"c_name", program.sizes[at].c_name}, {"text", std::to_string(bounds.low)}});
      }
    }
    for (const ir::SolvedSymbol& solved : symbols.solved) {
      found.push_back(found_json(solved));
      counts_elements |= solved.formula.has_value();
    }
  }

  std::set<std::size_t> told;
  Json found = Json::array();
  bool counts_elements = false;

 private:
  Json found_json(const ir::SolvedSymbol& solved) const {
    const auto at = static_cast<std::size_t>(solved.symbol);
    const Size& size = program_.sizes[at];
    const std::string rest = size_text(program_, solved.rest, "sizes.");
    if (!solved.formula) {
      return {{"c_name", size.c_name},
              {"text", size.multiple > 1 ? fmt::format("{} * ({})", size.multiple, rest) : rest}};
    }
    const std::string times = fmt::format(
        "times_in(inputs.{}.count, {}, {}, {})", schedule_.inputs[*solved.formula].c_name,
        size_text(program_, solved.factor, "sizes."), rest, schedule_.bounds[at].high / size.multiple);
    return {{"c_name", size.c_name},
            {"text", size.multiple > 1 ? fmt::format("{} * {}", size.multiple, times) : times}};
  }

  const Program& program_;
  const Schedule& schedule_;
};

/// C++ of what the shapes of files tell in a run of one schedule; what they do not tell stays as it is.
Json candidate_json(const Program& program, const Schedule& schedule, std::size_t index) {
  Json sizes = Json::array();
  const auto add = [&](std::size_t at, std::string text) {
    sizes.push_back({{"index", at}, {"c_name", program.sizes[at].c_name}, {"text", std::move(text)}});
  };
  if (!program.has_bounds) {
    for (std::size_t at = 0; at < schedule.sizes.size(); ++at) add(at, std::to_string(schedule.sizes[at]));
    return {{"index", index}, {"sizes", std::move(sizes)}};
  }
  const ir::SizesScope scope(schedule.formulas.get());
  std::vector<ir::Dim> axes;
  std::vector<std::string> places;
  const auto add_axes = [&](const ir::Shape& shape, const char* kind, std::size_t tensor) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      axes.push_back(shape[axis]);
      places.push_back(fmt::format("shapes.{}({}, {})", kind, tensor, axis));
    }
  };
  for (std::size_t i = 0; i < schedule.inputs.size(); ++i)
    add_axes(schedule.inputs[i].type.shape, "input", i);
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (program.states[i].grows()) add_axes(program.states[i].type.shape, "state", i);
  }
  const auto symbols = ir::solve_symbols(axes, static_cast<int>(program.sizes.size()));
  for (const int symbol : symbols.told) {
    const auto at = static_cast<std::size_t>(symbol);
    const ir::Bounds& bounds = schedule.bounds[at];
    if (bounds.low == bounds.high) add(at, std::to_string(bounds.low));
  }
  for (const ir::SolvedSymbol& solved : symbols.solved) {
    const auto at = static_cast<std::size_t>(solved.symbol);
    const Size& size = program.sizes[at];
    std::string text = size_text(program, solved.rest, "found.");
    const std::string times = size.multiple > 1 ? fmt::format("{} * ", size.multiple) : "";
    if (solved.formula) {
      const std::string now = size.multiple > 1 ? fmt::format("found.{} / {}", size.c_name, size.multiple)
                                                : "found." + size.c_name;
      text = fmt::format("GCRT_NAMESPACE::size_in({}, {}, {}, {}, {})", places[*solved.formula],
                         size_text(program, solved.factor, "found."), text,
                         schedule.bounds[at].high / size.multiple, now);
    }
    add(at, times + (solved.formula || times.empty() ? text : "(" + text + ")"));
  }
  return {{"index", index}, {"sizes", std::move(sizes)}};
}

}  // namespace

void add_told_sizes(Json& out, const Program& program) {
  std::set<std::size_t> open;  // in some schedule
  Json told = Json::array(), found = Json::array();
  bool counts_elements = false;
  for (const Schedule& schedule : program.schedules) {
    if (!program.has_bounds) continue;
    SizesOfSchedule sizes(program, schedule);
    open.insert(sizes.told.begin(), sizes.told.end());
    found.push_back(std::move(sizes.found));
    counts_elements |= sizes.counts_elements;
  }
  out["size_candidates"] = Json::array();
  for (std::size_t i = 0; i < program.schedules.size() && !program.sizes.empty(); ++i)
    out["size_candidates"].push_back(candidate_json(program, program.schedules[i], i));
  out["size_candidate_count"] = out["size_candidates"].size();
  std::vector<std::int64_t> example;  // of the sizes that are told
  for (const std::size_t size : open) {
    told.push_back(told_json(program.sizes[size]));
    example.push_back(program.schedules.back().sizes[size]);
  }
  const std::vector<Port>& inputs = program.schedules.back().inputs;
  const bool finds_sizes = program.schedules.size() > 1 ? !inputs.empty() : counts_elements;
  const bool is_told = finds_sizes && !told.empty();
  out["finds_sizes"] = finds_sizes;
  out["is_told_sizes"] = is_told;
  out["no_sizes"] = fmt::format("{}", fmt::join(std::vector<int>(program.sizes.size(), -1), ", "));
  out["has_found_sizes"] = counts_elements;
  out["told_sizes"] = std::move(told);
  out["found_sizes"] = std::move(found);
  // Within lists of parameters and arguments.
  out["told_parameter"] = is_told ? "const Told& told, " : "";
  out["told_argument"] = is_told ? "told, " : "";
  out["all_sizes_parameter"] =
      program.sizes.empty() ? std::string() : fmt::format("const {}_sizes& sizes,\n      ", program.name);
  out["all_sizes_argument"] = program.sizes.empty() ? "" : "sizes, ";
  std::vector<std::string> spans;
  for (const Port& input : inputs) spans.push_back("from." + input.c_name);
  out["spans_as_inputs"] = fmt::format("{}", fmt::join(spans, ", "));
  // At the end of a sentence about inputs.
  out["inputs_tell"] = !finds_sizes ? ""
                       : is_told    ? ", which tell the sizes of the run but those in `Told`"
                                    : ", which tell the sizes of the run";
  const std::string names = out["example_inputs"], sizes = fmt::format("{}", fmt::join(example, ", "));
  if (is_told) {
    out["example_run"] = fmt::format("{0}::Told{{{1}}}, {{{2}}}", program.name, sizes, names);
  } else if (!program.sizes.empty() && !finds_sizes) {
    out["example_run"] = fmt::format("{0}_sizes{{{1}}}, {{{2}}}", program.name, sizes, names);
  } else {
    out["example_run"] = fmt::format("{{{}}}", names);
  }
}

}  // namespace gcompile
