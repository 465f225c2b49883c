// Runs a decoder of growing_state.py over the same words always, in steps of the given numbers of rows, and
// writes the logits of all rows:
//
//     choices_of_rows FILE ROWS...
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "net/net.hpp"
#include "require.h"

int main(int argc, char** argv) {
  constexpr std::int64_t kWords = 50;
  net::Model model;
  require(model.status() == NET_OK, "init");
  std::ofstream file(argv[1], std::ios::binary);
  std::int64_t past = 0;
  for (int i = 2; i < argc; ++i) {
    const std::int64_t rows = std::strtoll(argv[i], nullptr, 10);
    std::vector<std::int64_t> ids, positions, mask(static_cast<std::size_t>(past + rows), 1);
    for (std::int64_t row = past; row < past + rows; ++row) {
      ids.push_back(row * 7 % kWords);
      positions.push_back(row);
    }
    const net::Result outputs = model.run(net::Inputs{ids, mask, positions});
    require(model.status() == NET_OK, "run");
    past += rows;
    require(model.state()->held.past == past, "what the state holds");
    file.write(reinterpret_cast<const char*>(outputs->logits.data()),
               static_cast<std::streamsize>(outputs->logits.size() * sizeof(float)));
  }
  const std::vector<std::int64_t> two(2, 0), mask(static_cast<std::size_t>(past + 2), 1);
  static_cast<void>(model.run(net::Inputs{two, mask, two}));
  require(model.status() == NET_INVALID_SIZES, "rows that are no choice, or behind the last");
  require(model.state()->held.past == past, "a refused run changes nothing");
  return 0;
}
