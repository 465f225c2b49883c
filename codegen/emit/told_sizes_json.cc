#include "codegen/emit/told_sizes_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/emit/size_text.h"
#include "ir/solve_sizes.h"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

ir::SolvedSymbols solve_sizes(const Program& program) {
  std::vector<ir::Dim> counts;
  for (const Port& input : program.schedules.back().inputs) counts.push_back(input.type.count());
  return ir::solve_symbols(counts, static_cast<int>(program.sizes.size()));
}

/// C++ of a size that is told: outside its bounds it has no value, lest products of it overflow.
Json told_json(const Size& size) {
  return {{"c_name", size.c_name}, {"low", size.bounds.low}, {"high", size.bounds.high}};
}

Json found_json(const Program& program, const ir::SolvedSymbol& solved) {
  const Size& size = program.sizes[static_cast<std::size_t>(solved.symbol)];
  const std::string input = program.schedules.back().inputs[solved.form].c_name;
  const std::string times =
      fmt::format("times_in(inputs.{}.count, {}, {}, {})", input, size_text(program, solved.factor, "sizes."),
                  size_text(program, solved.rest, "sizes."), size.bounds.high / size.multiple);
  return {{"c_name", size.c_name},
          {"text", size.multiple > 1 ? fmt::format("{} * {}", size.multiple, times) : times}};
}

}  // namespace

void add_told_sizes(Json& out, const Program& program) {
  const std::vector<std::int64_t>& largest = program.schedules.back().sizes;
  Json told = Json::array(), found = Json::array();
  std::vector<std::int64_t> example;  // of the sizes that are told
  if (program.has_ranges) {
    const ir::SolvedSymbols symbols = solve_sizes(program);
    for (const int symbol : symbols.open) {
      told.push_back(told_json(program.sizes[static_cast<std::size_t>(symbol)]));
      example.push_back(largest[static_cast<std::size_t>(symbol)]);
    }
    for (const ir::SolvedSymbol& solved : symbols.solved) found.push_back(found_json(program, solved));
  }
  const std::vector<Port>& inputs = program.schedules.back().inputs;
  const bool has_choices = !program.sizes.empty() && !program.has_ranges;
  const bool finds_sizes = has_choices ? !inputs.empty() : !found.empty();
  const bool is_told = finds_sizes && !told.empty();
  out["finds_sizes"] = finds_sizes;
  out["is_told_sizes"] = is_told;
  out["no_sizes"] = fmt::format("{}", fmt::join(std::vector<int>(program.sizes.size(), -1), ", "));
  out["has_found_sizes"] = !found.empty();
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
