#pragma once
// A model's bytes through every stage, in memory: imported, optimised, lowered, emitted.

#include <string>

namespace gcompile::fuzz {

struct Setting {
  bool cuda = false;
  int level = 3;  // -O0 ... -O3
};
/// "cpp -O3"
std::string to_string(const Setting& setting);

/// Empty when the model was compiled or refused by an error of the model; else what went wrong in us.
std::string defect_of(const std::string& model, const Setting& setting);

}  // namespace gcompile::fuzz
