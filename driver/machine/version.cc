#include "driver/machine/version.h"

namespace gcompile {

const char* tool_version() { return GCOMPILE_VERSION; }

}  // namespace gcompile
