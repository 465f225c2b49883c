#include "tests/conformance/rotation.h"

#include <cstdlib>

#include "driver/machine/process.h"

namespace gcompile::conformance {

Rotation rotation() {
  if (const char* given = std::getenv("GCOMPILE_ROTATION")) {
    return {std::stoul(given), "GCOMPILE_ROTATION"};
  }
  const ProcessResult commit =
      run_process({"git", "-C", GCOMPILE_SOURCE_DIR, "rev-parse", "--short=7", "HEAD"});
  if (commit.status != 0) return {0, "no commit"};
  const std::string id = commit.output.substr(0, 7);
  return {std::stoul(id, nullptr, 16), "commit " + id};
}

}  // namespace gcompile::conformance
