#pragma once
// Identifiers of emitted code made from names in models, which may hold anything.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

/// Whether no standard of C or C++ lets `word` name a member, a namespace or a parameter of a header that
/// includes what ours does.
bool is_reserved_word(std::string_view word);

/// Lower-case words of a name joined by `_`, at most `limit` characters; never empty.
std::string identifier_words(std::string_view text, std::size_t limit);

/// A name of what several named things have become together: what they share stands once, and queries, keys and values are
/// letters. "layer.0.qkv.weight" of "layer.0.query.weight" and so on, "mlp.gate_up" of "mlp.gate" and "mlp.up".
std::string joined_name(const std::vector<std::string>& names);

/// Distinct identifiers for a list of names, in order.
class Names {
 public:
  std::string operator()(std::string_view wanted, std::string_view prefix);

 private:
  std::map<std::string, int> taken_;
};

}  // namespace gcompile
