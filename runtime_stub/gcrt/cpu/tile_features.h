// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What a library asks of a processor, and of its system, whose kernels multiply in tiles (isa/tiles.h).
// Sources: Intel SDM volume 1, 18.3; Linux, Documentation/arch/x86/xstate.rst.
#pragma once

#include "gcrt/cpu/features.h"
#include "gcrt/isa/tiles.h"

namespace GCRT_NAMESPACE {

// Beyond kFeatures: no compiler uses the tile unit by itself, so who does not multiply in tiles needs none.
constexpr Features kTileFeature = Features{1} << 63;
static_assert(sizeof(kFeatures) / sizeof(kFeatures[0]) < 64, "features fill the set");

// What the source that includes this is compiled to use.
constexpr Features compiled_tile_feature() { return kInTiles ? kTileFeature : 0; }

#if defined(GCRT_EMULATE_TILES)

inline Features machine_tile_feature() { return kTileFeature; }

#elif defined(__x86_64__) && defined(__linux__) && defined(__LP64__)

// Linux saves the registers of tiles for processes that have asked for it, once for all of their threads; it
// refuses where alternate signal stacks are too small for them.
inline Features machine_tile_feature() {
  unsigned unused = 0, c = 0, d = 0;
  __get_cpuid_count(1, 0, &unused, &unused, &c, &unused);
  __get_cpuid_count(7, 0, &unused, &unused, &unused, &d);
  // Registers, products of bytes and of bfloat16; no processor has but some of them.
  constexpr unsigned kHasXgetbv = 1u << 27, kTiles = 1u << 24 | 1u << 25 | 1u << 22;
  if ((c & kHasXgetbv) == 0 || (d & kTiles) != kTiles) return 0;
  unsigned saved = 0;
  asm volatile("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
  constexpr unsigned kTileState = 1u << 17 | 1u << 18;
  if ((saved & kTileState) != kTileState) return 0;
  constexpr long kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
  long result = kArchPrctl;
  asm volatile("syscall" : "+a"(result) : "D"(kRequestPermission), "S"(kTileData) : "rcx", "r11", "memory");
  return result == 0 ? kTileFeature : 0;
}

#else

inline Features machine_tile_feature() { return 0; }

#endif

}  // namespace GCRT_NAMESPACE
