#include <fmt/format.h>

#include <cstdio>

#include "codegen/emit/program_json.h"
#include "codegen/emit/quantities.h"
#include "driver/commands.h"
#include "template/text.h"

namespace gcompile {

int run_check(const Options& options, Terminal& terminal) {
  const Compilation compilation = compile_model(options, terminal);
  terminal.finish();
  const Program& program = compilation.program;
  const Statistics& statistics = program.schedules.back().statistics;
  const std::string text = fmt::format("{}: supported; {} nodes, {} calls of {} kernels", program.name,
                                       grouped(statistics.nodes_imported),
                                       program.schedules.back().layers.size(), program.kernels.size());
  if (options.json) {
    const nlohmann::ordered_json out = {{"name", program.name},
                                        {"supported", true},
                                        {"nodes", statistics.nodes_imported},
                                        {"arena_bytes", arena_bytes(program)},
                                        {"weights_bytes", weights_file_bytes(program)}};
    std::fputs(json_text(out).c_str(), stdout);
  } else {
    std::puts(text.c_str());
  }
  return static_cast<int>(ir::ExitCode::kOk);
}

}  // namespace gcompile
