#include "ir/forms/expression_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gcompile::ir {

namespace {

constexpr std::size_t kMostWords = 3;

bool is_constant_of(const Dag& dag, int id, double value) {
  return dag[id].op == ScalarOp::kConstant && dag[id].constant.as_double() == value;
}

/// What an operator of the expression is called where it is no part of something with a name of its own;
/// empty: it says nothing.
std::string word_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::kLoad:
    case ScalarOp::kConstant:
    case ScalarOp::kIota:
    case ScalarOp::kAccumulator:
    case ScalarOp::kCast:
    case ScalarOp::kBits:
    case ScalarOp::kRound:
      return "";
    case ScalarOp::kPhiloxLow:
    case ScalarOp::kPhiloxHigh:
      return "random";
    case ScalarOp::kRoundHalfEven:
      return "round";
    case ScalarOp::kSelect:
      return "where";
    case ScalarOp::kLogicalAnd:
      return "and";
    case ScalarOp::kLogicalOr:
      return "or";
    case ScalarOp::kLogicalXor:
      return "xor";
    case ScalarOp::kLogicalNot:
      return "not";
    default:
      return std::string(row_of(op).name);
  }
}

/// Names the operators of an expression one by one; what has a name as a whole takes its parts with it.
class ExpressionWords {
 public:
  ExpressionWords(const LoopForm& loops, const std::function<bool(int)>& is_constant)
      : loops_(loops), dag_(loops.dag), is_constant_(is_constant) {}

  std::vector<std::string> of(int root) {
    const int roots[] = {root};
    std::vector<int> nodes = dag_.reachable(roots);
    // Where elements lie is computed as well, but is not what is done to them.
    std::set<int> of_elements = {root};
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      if (of_elements.count(*at)) of_elements.insert(dag_[*at].arguments.begin(), dag_[*at].arguments.end());
    }
    std::erase_if(nodes, [&](int id) { return of_elements.count(id) == 0; });
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) name(*at);
    std::vector<std::string> words;
    for (const int id : nodes) {
      const auto found = words_.find(id);
      const std::string word = found != words_.end() ? found->second
                               : taken_.count(id)    ? std::string()
                               : is_lookup(dag_[id]) ? "gather"
                                                     : word_of(dag_[id].op);
      if (!word.empty() && (words.empty() || words.back() != word)) words.push_back(word);
    }
    return words;
  }

 private:
  static bool is_lookup(const ScalarNode& node) {
    return std::any_of(node.index.begin(), node.index.end(),
                       [](const Index& index) { return index.has_loaded(); });
  }

  /// Notes what the node and others below it are together.
  void name(int id) {
    if (taken_.count(id)) return;
    const ScalarNode& node = dag_[id];
    switch (node.op) {
      case ScalarOp::kMax:
        if (is_constant_of(dag_, node.arguments[0], 0) || is_constant_of(dag_, node.arguments[1], 0)) {
          words_[id] = "relu";
        } else if (clips(node, ScalarOp::kMin)) {
          words_[id] = "clip";
        }
        return;
      case ScalarOp::kMin:
        if (clips(node, ScalarOp::kMax)) words_[id] = "clip";
        return;
      case ScalarOp::kMul:
        name_product(id);
        return;
      case ScalarOp::kAdd:
        if (is_constant_ && (is_bias(node.arguments[0]) || is_bias(node.arguments[1]))) words_[id] = "bias";
        return;
      case ScalarOp::kSelect:
        name_choice(id);
        return;
      default:
        return;
    }
  }

  /// Whether one argument is the other extremum of a value and a constant, which is then taken.
  bool clips(const ScalarNode& node, ScalarOp other) {
    for (const int argument : node.arguments) {
      const ScalarNode& inner = dag_[argument];
      if (inner.op != other) continue;
      for (const int limit : inner.arguments) {
        if (dag_[limit].op != ScalarOp::kConstant) continue;
        taken_.insert(argument);
        return true;
      }
    }
    return false;
  }

  void name_product(int id) {
    const ScalarNode& node = dag_[id];
    for (std::size_t i = 0; i < 2; ++i) {
      const int function = node.arguments[i], value = node.arguments[1 - i];
      if (dag_[function].op == ScalarOp::kSigmoid && dag_[function].arguments[0] == value) {
        words_[id] = "silu";
        taken_.insert(function);
        return;
      }
      if (is_gate(function)) {
        words_[id] = "gelu";
        take_gate(function, scaled_by_number(value).value_or(value));
        if (scaled_by_number(value)) taken_.insert(value);
        return;
      }
      // 0.5 times that.
      const std::optional<int> inner = scaled_by_number(id);
      if (inner && dag_[*inner].op == ScalarOp::kMul && !taken_.count(*inner)) {
        name_product(*inner);
        if (words_.count(*inner)) {
          words_[id] = std::exchange(words_[*inner], "");
          taken_.insert(*inner);
        }
        return;
      }
    }
  }

  /// 1 + erf(...), or 1 + tanh(...).
  bool is_gate(int id) const {
    const ScalarNode& node = dag_[id];
    if (node.op != ScalarOp::kAdd) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const ScalarOp op = dag_[node.arguments[i]].op;
      if ((op == ScalarOp::kErf || op == ScalarOp::kTanh) && is_constant_of(dag_, node.arguments[1 - i], 1))
        return true;
    }
    return false;
  }

  /// What the node multiplies by a number, or divides by one.
  std::optional<int> scaled_by_number(int id) const {
    const ScalarNode& node = dag_[id];
    if (node.op != ScalarOp::kMul && node.op != ScalarOp::kDiv) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      if (dag_[node.arguments[1 - i]].op == ScalarOp::kConstant) return node.arguments[i];
    }
    return std::nullopt;
  }

  /// Takes what a gate is computed by from `value` on.
  void take_gate(int id, int value) {
    if (id == value || dag_[id].arguments.empty()) return;
    taken_.insert(id);
    for (const int argument : dag_[id].arguments) take_gate(argument, value);
  }

  /// x < 0 ? a * x : x.
  void name_choice(int id) {
    const ScalarNode& node = dag_[id];
    const int condition = node.arguments[0];
    const ScalarNode& test = dag_[condition];
    const bool compares = test.op == ScalarOp::kLess || test.op == ScalarOp::kLessEqual;
    if (!compares || !is_constant_of(dag_, test.arguments[1], 0)) return;
    const int value = test.arguments[0], scaled = node.arguments[1];
    if (node.arguments[2] != value || dag_[scaled].op != ScalarOp::kMul) return;
    words_[id] = "leaky_relu";
    taken_.insert(condition);
    taken_.insert(scaled);
  }

  /// A constant that one axis at most moves.
  bool is_bias(int id) const {
    if (dag_[id].op == ScalarOp::kCast) return is_bias(dag_[id].arguments[0]);
    if (dag_[id].op != ScalarOp::kLoad || !is_constant_(dag_[id].operand)) return false;
    int axes = 0;
    for (int axis = 0; axis < static_cast<int>(loops_.extents.size()); ++axis) {
      const bool is_wide = loops_.extents[axis] != 1;
      axes += is_wide && dag_.depends_on_axis(id, axis) ? 1 : 0;
    }
    return axes <= 1;
  }

  const LoopForm& loops_;
  const Dag& dag_;
  const std::function<bool(int)>& is_constant_;
  std::map<int, std::string> words_;
  std::set<int> taken_;  // parts of what has a name as a whole
};

/// What an argument of an operation is to the others.
std::string partner_word(ScalarOp op, std::size_t argument, bool is_everywhere) {
  switch (op) {
    case ScalarOp::kAdd:
      return is_everywhere ? "residual" : "bias";
    case ScalarOp::kSub:
      return argument == 1 && !is_everywhere ? "offset" : "";
    case ScalarOp::kMul:
      return is_everywhere ? "factor" : "scale";
    case ScalarOp::kDiv:
      return argument == 1 ? "divisor" : "";
    case ScalarOp::kPow:
      return argument == 1 ? "exponent" : "";
    case ScalarOp::kMax:
    case ScalarOp::kMin:
      return is_everywhere ? "" : "bound";
    default:
      return "";
  }
}

/// Words for operands of loops, by what becomes of their elements.
class OperandWords {
 public:
  OperandWords(const LoopForm& loops, std::size_t count) : loops_(loops), dag_(loops.dag), words_(count) {
    std::vector<int> roots;
    for (const Stage& stage : loops.stages) roots.push_back(stage.root);
    for (const Region& region : loops.regions) roots.push_back(region.root);
    for (const BoundsCheck& check : loops.checks) roots.push_back(check.scalar);
    nodes_ = dag_.reachable(roots);
  }

  std::vector<std::string> take() {
    for (const int id : nodes_) name_lookups(id);
    const std::optional<int> main = main_operand();
    if (main) words_[static_cast<std::size_t>(*main)] = loops_.regions.size() > 1 ? "input" : "x";
    for (const int id : nodes_) name_partners(id);
    for (std::string& word : words_) {
      if (word.empty()) word = loops_.regions.size() > 1 ? "input" : "other";
    }
    return std::move(words_);
  }

 private:
  std::string& word_of_operand(int load) { return words_[static_cast<std::size_t>(dag_[load].operand)]; }
  bool is_load(int id) const { return dag_[id].op == ScalarOp::kLoad; }
  /// The load that a scalar is, as some type.
  std::optional<int> load_of(int id) const {
    while (dag_[id].op == ScalarOp::kCast) id = dag_[id].arguments[0];
    return is_load(id) ? std::optional<int>(id) : std::nullopt;
  }

  static void add_loaded(const Index& index, std::vector<int>& out) {
    for (const Index::Term& term : index.terms()) {
      if (term.atom.kind == IndexAtom::Kind::kLoaded) out.push_back(term.atom.axis);
      if (term.atom.inner) add_loaded(*term.atom.inner, out);
    }
  }

  /// What is looked up where the run says so, what says where, and what says which.
  void name_lookups(int id) {
    const ScalarNode& node = dag_[id];
    std::vector<int> positions;
    for (const Index& index : node.index) add_loaded(index, positions);
    for (const int below : dag_.reachable(positions)) {
      if (is_load(below)) word_of_operand(below) = "indices";
    }
    if (is_load(id) && !positions.empty()) word_of_operand(id) = "table";
    if (node.op != ScalarOp::kSelect) return;
    if (const std::optional<int> load = load_of(node.arguments[0])) word_of_operand(*load) = "condition";
  }

  /// Whether the element differs at every point of the loops.
  bool is_everywhere(int load) const {
    for (int axis = 0; axis < static_cast<int>(loops_.extents.size()); ++axis) {
      if (loops_.extents[static_cast<std::size_t>(axis)] != 1 && !dag_.depends_on_axis(load, axis))
        return false;
    }
    return true;
  }

  /// The operand that the loops are about: of those without a word the first that is everywhere, or the first.
  std::optional<int> main_operand() {
    std::optional<int> first, whole;
    for (const int id : nodes_) {
      if (!is_load(id) || !word_of_operand(id).empty()) continue;
      const int operand = dag_[id].operand;
      if (!first || operand < *first) first = operand;
      if (is_everywhere(id) && (!whole || operand < *whole)) whole = operand;
    }
    return whole ? whole : first;
  }

  void name_partners(int id) {
    const ScalarNode& node = dag_[id];
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const std::optional<int> load = load_of(node.arguments[i]);
      if (!load || !word_of_operand(*load).empty()) continue;
      word_of_operand(*load) = partner_word(node.op, i, is_everywhere(*load));
    }
  }

  const LoopForm& loops_;
  const Dag& dag_;
  std::vector<std::string> words_;
  std::vector<int> nodes_;
};

/// Adding, multiplying and the like say less than what stands beside them.
bool is_plain(const std::string& word) {
  static constexpr std::string_view kPlain[] = {"add", "sub", "mul", "div", "neg", "bias"};
  return std::find(std::begin(kPlain), std::end(kPlain), word) != std::end(kPlain);
}

}  // namespace

std::vector<std::string> expression_words(const LoopForm& loops, int root,
                                          const std::function<bool(int)>& is_constant) {
  return ExpressionWords(loops, is_constant).of(root);
}

std::vector<std::string> operand_words(const LoopForm& loops, std::size_t count) {
  return OperandWords(loops, count).take();
}

std::string constant_word(const Dag& dag, const std::vector<int>& nodes, int constant) {
  for (const int id : nodes) {
    const ScalarNode& node = dag[id];
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      if (node.arguments[i] != constant) continue;
      if (node.op == ScalarOp::kMax) return "least";
      if (node.op == ScalarOp::kMin) return "most";
      if (std::string word = partner_word(node.op, i, false); !word.empty()) return word;
    }
  }
  return "number";
}

std::vector<std::string> stage_words(const LoopForm& loops) {
  std::vector<std::string> words;
  for (const Stage& stage : loops.stages) {
    switch (stage.combine) {
      case Combine::kSum: {
        const ScalarNode& root = loops.dag[stage.root];
        const bool squares = root.op == ScalarOp::kMul && root.arguments[0] == root.arguments[1];
        words.push_back(squares ? "squares" : "sum");
        break;
      }
      case Combine::kProduct:
        words.push_back("product");
        break;
      case Combine::kMax:
        words.push_back("highest");
        break;
      case Combine::kMin:
        words.push_back("lowest");
        break;
      case Combine::kArgMax:
        words.push_back("at_highest");
        break;
      case Combine::kArgMin:
        words.push_back("at_lowest");
        break;
    }
  }
  return words;
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> with_quantization(std::vector<std::string> words) {
  if (!has_word(words, "round")) return words;
  std::erase_if(words,
                [](const std::string& word) { return is_plain(word) || word == "round" || word == "clip"; });
  words.push_back("quantize");
  return words;
}

std::string joined_words(std::vector<std::string> words) {
  words = with_quantization(std::move(words));
  for (auto at = words.begin(); words.size() > kMostWords && at != words.end();)
    at = is_plain(*at) ? words.erase(at) : at + 1;
  if (words.size() > kMostWords) words.erase(words.begin() + 1, words.end() - (kMostWords - 1));
  return fmt::format("{}", fmt::join(words, "_"));
}

std::string type_name(const std::vector<std::string>& words) {
  if (words.empty()) return "Store";
  std::vector<std::string> kept = words;
  std::string name;
  bool begins = true;
  for (const char c : joined_words(std::move(kept))) {
    if (c == '_') {
      begins = true;
      continue;
    }
    name += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = false;
  }
  return name;
}

bool interleaves(const LoopForm& loops) {
  bool chooses = false;
  if (loops.regions.size() != 1) return false;
  const int roots[] = {loops.regions[0].root};
  for (const int id : loops.dag.reachable(roots)) {
    const ScalarOp op = loops.dag[id].op;
    const Arguments& sides = loops.dag[id].arguments;
    const bool compares = op == ScalarOp::kEqual && (loops.dag[sides[0]].op == ScalarOp::kIota ||
                                                     loops.dag[sides[1]].op == ScalarOp::kIota);
    chooses = chooses || compares;
    if (op >= ScalarOp::kCast && op != ScalarOp::kSelect && !compares) return false;
  }
  return chooses && loops.dag[roots[0]].op == ScalarOp::kSelect;
}

}  // namespace gcompile::ir
