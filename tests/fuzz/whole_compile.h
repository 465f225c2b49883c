#pragma once
// A model's bytes through every stage, in memory: imported, optimised, lowered, emitted.

#include <string>

namespace gcompile::fuzz {

struct Setting {
  bool cuda = false;
  int level = 3;         // -O0 ... -O3
  bool is_text = false;  // the model is ONNX text
};
/// "cpp -O3"
std::string to_string(const Setting& setting);

struct Outcome {
  bool compiled = false;  // neither refused by an error of the model nor a defect
  std::string defect;     // what went wrong in us; empty: nothing
};
Outcome compile_in_memory(const std::string& model, const Setting& setting);

}  // namespace gcompile::fuzz
