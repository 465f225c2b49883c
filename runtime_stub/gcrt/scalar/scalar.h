// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Every element-wise function of the runtime.
#pragma once

#include "gcrt/scalar/arithmetic.h"
#include "gcrt/scalar/cast.h"
#include "gcrt/scalar/math.h"
#include "gcrt/scalar/power.h"
#include "gcrt/scalar/trigonometry.h"
