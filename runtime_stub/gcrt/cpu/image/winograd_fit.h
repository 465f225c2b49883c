// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How the tiles of an image whose size only a run knows are taken, in the scratch that is planned for the
// largest (winograd_plan.h).
#pragma once

#include "gcrt/cpu/image/winograd_plan.h"

namespace GCRT_NAMESPACE {

constexpr int winograd_share(std::ptrdiff_t whole, std::ptrdiff_t most) {
  return static_cast<int>(ceil_div(whole, ceil_div(whole, most)));
}

// Strips and blocks of equal size, none larger than those of the plan, and no more blocks in a strip: so that
// scratch of the plan's size holds what they need.
constexpr WinogradPlan winograd_fit(int T, const ConvShape& s, const WinogradPlan& plan) {
  const std::ptrdiff_t tiles = winograd_tiles(T, s);
  if (tiles == 0) return plan;
  const int strip = winograd_share(tiles, plan.strip);
  return {strip, winograd_share(strip, plan.block), plan.parts};
}

}  // namespace GCRT_NAMESPACE
