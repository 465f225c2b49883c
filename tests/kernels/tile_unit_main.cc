// The tests of the tile unit by its instructions, for which a process asks its system first.
#include <gtest/gtest.h>

#include <cstdio>

#include "gcrt/cpu/tile_features.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (GCRT_NAMESPACE::machine_tile_feature() == 0) {
    std::fprintf(stderr, "this processor, or its system, has no tile unit\n");
    return 1;
  }
  return RUN_ALL_TESTS();
}
