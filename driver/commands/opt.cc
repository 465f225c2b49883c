#include <cstdio>

#include "driver/commands/commands.h"
#include "ir/graph/print.h"
#include "nlohmann/json.hpp"

namespace gcompile {

Answer run_opt(const Options& options, Terminal& terminal) {
  check_early(options, terminal);
  frontend::ImportedModel model = import_model(options, terminal);
  const ir::SizesScope scope(model.sizes.get());
  const passes::Prepared prepared = prepare_graph(model.graph, options, terminal);
  const passes::Report report = optimise_graph(model.graph, options, terminal, prepared.report);
  terminal.finish();
  if (!options.json) {
    ir::PrintOptions print_options;
    print_options.forms = options.verbosity == Verbosity::kVerbose;
    std::fputs(ir::print(model.graph, print_options).c_str(), stdout);
    return {};
  }
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const ir::PassStatistics& pass : report.passes) {
    passes.push_back(
        {{"name", pass.name}, {"runs", pass.runs}, {"changes", pass.changes}, {"seconds", pass.seconds}});
  }
  nlohmann::ordered_json remarks = nlohmann::ordered_json::array();
  for (const passes::Remark& remark : report.remarks) {
    remarks.push_back({{"pass", remark.pass},
                       {"subject", remark.subject},
                       {"text", remark.text},
                       {"refused", remark.refused}});
  }
  Answer answer;
  answer.result = {{"graph", ir::print(model.graph)},
                   {"passes", passes},
                   {"rules", report.rule_counts},
                   {"remarks", remarks}};
  return answer;
}

}  // namespace gcompile
