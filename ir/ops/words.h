#pragma once
// Strings that numbers stand for. No tensor of a run holds strings: where a model makes them, a run has their positions.

#include <map>
#include <string>
#include <vector>

#include "ir/graph/operator.h"

namespace gcompile::ir {

/// Different strings, and the position of each.
class Words {
 public:
  std::int64_t position_of(const std::string& word);
  const std::vector<std::string>& all() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t> positions_;
};

/// What the integers of result 0 stand for where a node of ai.onnx.ml has such attributes: labels of classes, values of an
/// encoder, and what it gives for all else. Nothing where it has none.
std::vector<std::string> words_of(const Attributes& attributes);

/// Whether the elements of result 0 are those of operand 0, chosen or in another place, but none of another kind.
bool moves_words(const Operator& op);

}  // namespace gcompile::ir
