// Every element-wise function of the runtime.
#pragma once

#include "gcrt/scalar_arithmetic.h"
