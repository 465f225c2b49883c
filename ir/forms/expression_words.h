#pragma once
// Expressions in few words, for names of functions and of epilogues.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/forms/form.h"

namespace gcompile::ir {

/// What an expression does to its operands, in few words: {"add", "relu"}. The addition of a constant operand that
/// moves along one axis at most is "bias", where `is_constant` tells which operands are.
std::vector<std::string> expression_words(const LoopForm& loops, int root,
                                          const std::function<bool(int operand)>& is_constant = nullptr);

/// What each of `count` operands is to the loops: "x", "bias", "indices". Operands that are alike have one word.
std::vector<std::string> operand_words(const LoopForm& loops, std::size_t count);
/// What a constant of an expression of these nodes is to the rest: "scale", "least"; "number" where no word says it.
std::string constant_word(const Dag& dag, const std::vector<int>& nodes, int constant);
/// What each stage leaves: "highest", "sum", "at_highest". Stages that are alike have one word.
std::vector<std::string> stage_words(const LoopForm& loops);

/// Whether nothing is computed but whose turn it is, as of parts that lie interleaved: positions alone are compared.
bool interleaves(const LoopForm& loops);

/// "BiasRelu" of the words; "Store" of none.
std::string type_name(const std::vector<std::string>& words);

bool has_word(const std::vector<std::string>& words, std::string_view word);
/// Scaling, rounding, a zero point and a range are one word, "quantize", behind those of what they are done to.
std::vector<std::string> with_quantization(std::vector<std::string> words);
/// "add_relu": the words that say most.
std::string joined_words(std::vector<std::string> words);

}  // namespace gcompile::ir
