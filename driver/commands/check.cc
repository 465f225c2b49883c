#include "driver/commands/commands.h"
#include "nlohmann/json.hpp"

namespace gcompile {

Answer run_check(const Options& options, Terminal& terminal) {
  const Compilation compilation = compile_model(options, terminal);
  terminal.finish();
  terminal.note("supported: " + figures_text(compilation.program));
  Answer answer;
  answer.result = figures_of(compilation.program);
  return answer;
}

}  // namespace gcompile
