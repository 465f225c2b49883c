// What the programs that tests link with emitted libraries check.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "error: %s\n", what);
  std::exit(1);
}
