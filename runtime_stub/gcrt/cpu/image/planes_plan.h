// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the compiler shares with cpu/image/conv_planes.h: the tiles of convolutions over planes, and what
// their copies have room for.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Channels of a tile, at most: they divide the output channels of a group.
constexpr int kMostPlaneChannels = 4;
// Vectors of output columns of a tile, at most, and its rows. What these hold for all channels are as many
// sums as fill the latency of an FMA without spilling.
constexpr int kPlaneVectors = 3;
constexpr int plane_rows(int channels) { return channels == 1 ? 4 : channels == 2 ? 2 : 1; }
// Columns between the first and the last tap of a kernel row, at most.
constexpr int kPlaneReach = 64;
// Elements of the copy with zeros around it, at most.
constexpr int kPlanePatch = 3072;

// Positions of the input along an axis that the windows of `outputs` neighbouring results reach.
constexpr std::ptrdiff_t plane_inputs(std::ptrdiff_t outputs, std::ptrdiff_t stride, std::ptrdiff_t kernel,
                                      std::ptrdiff_t dilation) {
  return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

}  // namespace GCRT_NAMESPACE
