#include "ir/ops/words.h"

#include <algorithm>
#include <iterator>

namespace gcompile::ir {

std::int64_t Words::position_of(const std::string& word) {
  const auto [at, is_new] = positions_.emplace(word, static_cast<std::int64_t>(words_.size()));
  if (is_new) words_.push_back(word);
  return at->second;
}

std::vector<std::string> words_of(const Attributes& attributes) {
  struct List {
    const char* name;
    bool has_default;
  };
  constexpr List kLists[] = {{"classlabels_strings", false},
                             {"values_strings", true},
                             {"classes_strings", true},
                             {"cats_strings", true}};
  for (const List& list : kLists) {
    if (!attributes.has(list.name) || attributes.strings_of(list.name).empty()) continue;
    if (!list.has_default) return attributes.strings_of(list.name);
    Words words;
    for (const std::string& word : attributes.strings_of(list.name)) words.position_of(word);
    words.position_of(attributes.has("default_string") ? attributes.string_of("default_string") : "_Unused");
    return words.all();
  }
  return {};
}

bool moves_words(const Operator& op) {
  constexpr std::string_view kChoosers[] = {"ArrayFeatureExtractor", "Gather", "Slice", "Transpose"};
  const bool converts = std::any_of(op.attributes.begin(), op.attributes.end(),
                                    [](const AttributeSpec& attribute) { return attribute.name == "to"; });
  const bool is_of_onnx = op.domain.empty() || op.domain == "ai.onnx.ml";
  const bool chooses =
      is_of_onnx && std::find(std::begin(kChoosers), std::end(kChoosers), op.name) != std::end(kChoosers);
  return (op.traits.keeps_elements && !converts) || chooses;
}

}  // namespace gcompile::ir
