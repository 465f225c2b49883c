// Prints what one core of this machine does at most, as JSON; compare_peers.py shows it beside its tables.
#include <cstdio>

#include "gcrt/app/peak.h"

int main() {
  const gcrt::PeakLoop floats = gcrt::float_peak(), bytes = gcrt::byte_peak();
  std::printf(
      "{\"float_gflops\": %.1f, \"float_instructions\": \"%s\", \"byte_gops\": %.1f, \"byte_instructions\": "
      "\"%s\", "
      "\"memory_gbytes\": %.1f}\n",
      gcrt::peak_rate(floats, nullptr), floats.run != nullptr ? floats.instructions : "none",
      gcrt::peak_rate(bytes, nullptr), bytes.run != nullptr ? bytes.instructions : "none",
      gcrt::read_rate(std::size_t{256} << 20, nullptr, 2));
  return 0;
}
