#include "driver/commands.h"
namespace gcompile {
int run_verify(const Options&, Terminal&) {
  throw ir::CompileError(ir::ExitCode::kUsage, "gcompile verify is not available yet");
}
}  // namespace gcompile
