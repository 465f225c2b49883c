#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/loop_printer.h"

namespace gcompile {

using ir::ElementType;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

const char* infix(ScalarOp op, ElementType type) {
  if (type != ElementType::kFloat32 && type != ElementType::kFloat64) return nullptr;
  switch (op) {
    case ScalarOp::kAdd:
      return "+";
    case ScalarOp::kSub:
      return "-";
    case ScalarOp::kMul:
      return "*";
    case ScalarOp::kDiv:
      return "/";
    default:
      return nullptr;
  }
}

const char* comparison(ScalarOp op) {
  switch (op) {
    case ScalarOp::kLess:
      return "<";
    case ScalarOp::kLessEqual:
      return "<=";
    case ScalarOp::kGreater:
      return ">";
    case ScalarOp::kGreaterEqual:
      return ">=";
    case ScalarOp::kEqual:
      return "==";
    case ScalarOp::kNotEqual:
      return "!=";
    default:
      return nullptr;
  }
}

/// `b op a` for `a op b`.
ScalarOp turned_round(ScalarOp op) {
  switch (op) {
    case ScalarOp::kLess:
      return ScalarOp::kGreater;
    case ScalarOp::kLessEqual:
      return ScalarOp::kGreaterEqual;
    case ScalarOp::kGreater:
      return ScalarOp::kLess;
    case ScalarOp::kGreaterEqual:
      return ScalarOp::kLessEqual;
    default:
      return op;
  }
}

/// Whether the text must be parenthesised inside another operator.
bool is_compound(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '{' || text[i] == '[';
    depth -= text[i] == ')' || text[i] == '}' || text[i] == ']';
    if (depth == 0 && text[i] == ' ') return true;
  }
  return !text.empty() && text[0] == '-';
}

std::string enclosed(const std::string& text) { return is_compound(text) ? "(" + text + ")" : text; }

}  // namespace

std::optional<ir::Saturation> KnownNumbers::saturation(const ir::Dag& dag, int id) const {
  return facts.empty() ? std::nullopt : ir::saturation_of(dag, facts, id, saturates_products);
}

ir::Arguments printed_arguments(const ir::Dag& dag, const KnownNumbers& known, int id) {
  const auto saturation = known.saturation(dag, id);
  return saturation ? saturation->arguments() : dag[id].arguments;
}

int stored_root(const ir::Dag& dag, int root) {
  const ScalarNode& node = dag[root];
  const bool rounds = node.op == ScalarOp::kCast && compute_type(node.type) != node.type;
  return rounds && dag.type(node.arguments[0]) == ElementType::kFloat32 ? node.arguments[0] : root;
}

ExpressionPrinter::Comparison ExpressionPrinter::compared(int id, bool vector) const {
  constexpr int kPositionBits = 32;
  const ScalarNode& node = dag_[id];
  const int a = node.arguments[0], b = node.arguments[1];
  if (is_position(a)) return {node.op, text(a, true), text(b, false), kPositionBits};
  if (is_position(b)) return {turned_round(node.op), text(b, true), text(a, false), kPositionBits};
  return {node.op, text(a, vector), text(b, vector), bits_of(compute_type(dag_.type(a)))};
}

std::string ExpressionPrinter::apply(int id, bool vector) const {
  const ScalarNode& node = dag_[id];
  const auto argument = [&](std::size_t i) { return text(node.arguments[i], vector); };
  const ElementType operand = dag_.type(node.arguments[0]);
  switch (node.op) {
    case ScalarOp::kRound:
      return argument(0);
    case ScalarOp::kCast: {
      const std::string lane = vector ? "lane" : "Lanes<1>{}";
      if (const auto saturation = known_.saturation(dag_, id)) {
        const std::string shift = saturation->shift ? ", " + text(*saturation->shift, false) : "";
        if (const auto& product = saturation->product) {
          return fmt::format("saturate_product<{}>({}, {}, {}{})", kernel_type(node.type), lane,
                             text(product->word, vector), text(product->factor, vector), shift);
        }
        return fmt::format("{}<{}>({}, {}{})", saturation->fits ? "saturate_word" : "saturate",
                           kernel_type(node.type), lane, text(saturation->value, vector), shift);
      }
      const bool from_half = compute_type(operand) != operand;
      if (compute_type(node.type) != node.type) {
        const std::string source = operand == ElementType::kFloat32 || from_half ? argument(0)
                                   : operand == ElementType::kFloat64
                                       ? fmt::format("round_to_odd({})", argument(0))
                                       : fmt::format("cast<float>({}, {})", lane, argument(0));
        return fmt::format("round_to<{}>({})", kernel_type(node.type), source);
      }
      if (from_half && node.type == ElementType::kFloat32) return argument(0);
      if (node.type == ElementType::kBool) return fmt::format("cast_bool({}, {})", lane, argument(0));
      return fmt::format("cast<{}>({}, {})", kernel_type(node.type), lane, argument(0));
    }
    case ScalarOp::kBits:
      return fmt::format("bit_cast<{}>({})", kernel_type(node.type), argument(0));
    case ScalarOp::kIsPositiveInf:
      return fmt::format("is_inf({}, false, true)", argument(0));
    case ScalarOp::kIsNegativeInf:
      return fmt::format("is_inf({}, true, false)", argument(0));
    default:
      break;
  }
  if (node.op == ScalarOp::kSelect) {
    // A comparison in place keeps its mask in the width of its operands instead of going through bytes.
    if (is_comparison(dag_[node.arguments[0]].op) && scope_.count(node.arguments[0]) == 0) {
      const Comparison condition = compared(node.arguments[0], vector);
      if (condition.bits == bits_of(node.type)) {
        return fmt::format("blend({} {} {}, {}, {})", enclosed(condition.left), comparison(condition.op),
                           enclosed(condition.right), argument(1), argument(2));
      }
    }
  }
  if (is_comparison(node.op)) {
    const Comparison sides = compared(id, vector);
    return fmt::format("{}({}, {})", row_of(sides.op).name, sides.left, sides.right);
  }
  if (const char* symbol = infix(node.op, node.type)) {
    // A pack and a scalar mix freely around an arithmetic sign; at least one side must be a pack.
    const bool left = vector && (is_vector(node.arguments[0]) || !is_vector(node.arguments[1]));
    const bool right = vector && (is_vector(node.arguments[1]) || !is_vector(node.arguments[0]));
    return fmt::format("{} {} {}", enclosed(text(node.arguments[0], left)), symbol,
                       enclosed(text(node.arguments[1], right)));
  }
  if (node.op == ScalarOp::kNeg && infix(ScalarOp::kAdd, node.type)) return "-" + enclosed(argument(0));
  const bool picks = (node.op == ScalarOp::kMin || node.op == ScalarOp::kMax) && is_float(node.type);
  const bool numbers = picks && is_number(node.arguments[0]) && is_number(node.arguments[1]);
  const std::string_view function = !numbers                    ? row_of(node.op).name
                                    : node.op == ScalarOp::kMin ? "at_most"
                                                                : "at_least";
  std::string call = std::string(function) + "(";
  for (std::size_t i = 0; i < node.arguments.size(); ++i) call += (i ? ", " : "") + argument(i);
  return call + ")";
}

std::string ExpressionPrinter::compute(int id, bool vector) const {
  const ScalarNode& node = dag_[id];
  switch (node.op) {
    case ScalarOp::kConstant: {
      if (leaves_.count(id) > 0) return leaf_(id, vector);
      const auto named = constants_.find(id);
      return named != constants_.end() ? named->second : literal(node.constant);
    }
    case ScalarOp::kLoad:
    case ScalarOp::kIota:
    case ScalarOp::kAccumulator:
      return leaf_(id, vector);
    default:
      return apply(id, vector);
  }
}

std::string ExpressionPrinter::text(int id, bool vector) const {
  const auto bound = scope_.find(id);
  const bool have_vector = bound != scope_.end() ? bound->second.vector : is_vector(id);
  std::string out = bound != scope_.end() ? bound->second.name : compute(id, have_vector);
  GC_CHECK(vector || !have_vector);
  return vector && !have_vector ? fmt::format("splat(lane, {})", out) : out;
}

void ExpressionPrinter::declare(CodeText& code, const std::vector<int>& roots, std::uint64_t bound) {
  const std::vector<int> needed = dag_.reachable(roots);
  std::map<int, int> uses;
  std::map<int, bool> used_deeper;
  // Nodes behind a binding that is already in scope are not needed again.
  std::vector<bool> live(dag_.nodes().size(), false);
  for (const int root : roots) live[root] = true;
  const auto settled = [&](int id) { return (dependence_[id] & ~bound) == 0; };
  const std::function<void(const ir::Index&, const std::function<void(int)>&)> loaded =
      [&](const ir::Index& index, const std::function<void(int)>& visit) {
        for (const ir::Index::Term& t : index.terms()) {
          if (t.atom.kind == ir::IndexAtom::Kind::kLoaded) visit(t.atom.axis);
          if (t.atom.inner) loaded(*t.atom.inner, visit);
        }
      };
  for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
    if (!live[*at] || scope_.count(*at)) continue;
    const auto use = [&, user = *at](int id, bool in_index) {
      live[id] = true;
      uses[id] += in_index ? 2 : 1;  // an index part is named, so that addresses stay readable
      if (!settled(user)) used_deeper[id] = true;
    };
    for (const int argument : printed_arguments(dag_, known_, *at)) use(argument, false);
    const auto use_in_index = [&](const ir::Index& index) { loaded(index, [&](int id) { use(id, true); }); };
    if (addresses_ != nullptr) {
      use_in_index((*addresses_)[*at]);
    } else {
      for (const ir::Index& index : dag_[*at].index) use_in_index(index);
    }
  }
  for (const int id : needed) {
    if (!live[id] || !settled(id) || scope_.count(id)) continue;
    const ScalarNode& node = dag_[id];
    if (node.op == ScalarOp::kConstant || node.op == ScalarOp::kAccumulator) continue;
    const bool root = std::find(roots.begin(), roots.end(), id) != roots.end();
    std::string value = compute(id, is_vector(id));
    const bool short_enough = value.size() <= 56;
    if (!used_deeper[id] && (root || uses[id] <= 1) && short_enough) continue;
    if (root && uses[id] == 0) continue;
    const std::string name = fmt::format("v{}", next_++);
    code.line(fmt::format("const auto {} = {};", name, value));
    bind(id, name, is_vector(id));
  }
}

}  // namespace gcompile
