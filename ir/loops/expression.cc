#include "ir/loops/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile::ir {
namespace {

/// Mixes words into a hash; only for finding what == then compares, so it never shows in the output.
class Hash {
 public:
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
  }
  void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  void add(Dim size) { add(static_cast<std::uint64_t>(size.word())); }
  void add(int word) { add(static_cast<std::uint64_t>(word)); }
  void add(const Index& index) {
    add(index.constant());
    for (const Index::Term& t : index.terms()) {
      add(t.coefficient);
      add(static_cast<int>(t.atom.kind));
      add(t.atom.axis);
      add(t.atom.divisor);
      if (t.atom.inner) add(*t.atom.inner);
    }
  }
  std::size_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

std::size_t hash_of(const ScalarNode& node) {
  Hash hash;
  hash.add(static_cast<int>(node.op));
  hash.add(static_cast<int>(node.type));
  hash.add(node.operand);
  for (const int argument : node.arguments) hash.add(argument);
  for (const Index& index : node.index) hash.add(index);
  if (node.op == ScalarOp::kConstant) {
    hash.add(std::bit_cast<std::uint64_t>(node.constant.real));
    hash.add(node.constant.integer);
  }
  return hash.value();
}

/// Constants are equal when their bits are: -0.0 is not 0.0, and a NaN is itself.
int compare_constants(const Scalar& a, const Scalar& b) {
  const auto key = [](const Scalar& s) {
    return std::pair(std::bit_cast<std::uint64_t>(s.real), static_cast<std::int64_t>(s.integer));
  };
  return key(a) < key(b) ? -1 : key(b) < key(a) ? 1 : 0;
}

/// Whether equal indices are also known to stay below the same bounds where they are loaded.
bool same_ranges(const Index& a, const Index& b) {
  return std::equal(
      a.terms().begin(), a.terms().end(), b.terms().begin(), [](const Index::Term& s, const Index::Term& t) {
        return s.atom.range == t.atom.range && (!s.atom.inner || same_ranges(*s.atom.inner, *t.atom.inner));
      });
}

bool same_node(const ScalarNode& a, const ScalarNode& b) {
  return a.op == b.op && a.type == b.type && a.operand == b.operand && a.arguments == b.arguments &&
         a.index == b.index &&
         (a.op != ScalarOp::kConstant || compare_constants(a.constant, b.constant) == 0);
}

/// Operators whose result is the same to the bit when the arguments change places, NaN payloads aside. Not
/// Min and Max of floats: which zero min(0, -0) is, is not stated (gcrt/scalar/arithmetic.h).
bool commutes(ScalarOp op, ElementType type) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMul:
    case ScalarOp::kBitAnd:
    case ScalarOp::kBitOr:
    case ScalarOp::kBitXor:
    case ScalarOp::kEqual:
    case ScalarOp::kNotEqual:
    case ScalarOp::kLogicalAnd:
    case ScalarOp::kLogicalOr:
    case ScalarOp::kLogicalXor:
      return true;
    case ScalarOp::kMin:
    case ScalarOp::kMax:
      return !is_float(type);
    default:
      return false;
  }
}

/// Accumulators first, what is computed next, then what is read, constants last: as one writes it by hand.
int rank_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAccumulator:
      return 0;
    case ScalarOp::kIota:
      return 2;
    case ScalarOp::kLoad:
      return 3;
    case ScalarOp::kConstant:
      return 4;
    default:
      return 1;
  }
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

void collect_loaded(const Index& index, std::vector<int>& out) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == IndexAtom::Kind::kLoaded) out.push_back(t.atom.axis);
    if (t.atom.inner) collect_loaded(*t.atom.inner, out);
  }
}

}  // namespace

ElementType compute_type(ElementType type) {
  if (is_small_float(type) || type == ElementType::kFloat16 || type == ElementType::kBFloat16) {
    return ElementType::kFloat32;
  }
  if (bits_of(type) >= 8) return type;
  return is_signed(type) ? ElementType::kInt8 : ElementType::kUInt8;
}

void Arguments::push_back(int id) {
  GC_CHECK(size_ < kMost);
  ids_[size_++] = id;
}

/// The node's id, or -1 after its place in the table was given to the next id.
int Dag::find_or_claim(const ScalarNode& node) {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash_of(node) & mask;
  while (table_[at] >= 0) {
    if (same_node((*this)[table_[at]], node)) return table_[at];
    at = (at + 1) & mask;
  }
  table_[at] = static_cast<int>(nodes_.size());
  return -1;
}

void Dag::hash_all() {
  std::size_t size = 4 * kSearched;
  while (size < 2 * (nodes_.size() + 1)) size *= 2;
  table_.assign(size, -1);
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    std::size_t at = hash_of(nodes_[id]) & (size - 1);
    while (table_[at] >= 0) at = (at + 1) & (size - 1);
    table_[at] = static_cast<int>(id);
  }
}

int Dag::intern(ScalarNode node) {
  if (nodes_.size() < kSearched) {
    for (std::size_t id = 0; id < nodes_.size(); ++id) {
      if (same_node(nodes_[id], node)) return static_cast<int>(id);
    }
  } else {
    if (2 * (nodes_.size() + 1) > table_.size()) hash_all();
    if (const int known = find_or_claim(node); known >= 0) return known;
  }
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

bool Dag::operator==(const Dag& other) const {
  return std::equal(nodes_.begin(), nodes_.end(), other.nodes_.begin(), other.nodes_.end(),
                    [](const ScalarNode& a, const ScalarNode& b) {
                      return same_node(a, b) &&
                             std::equal(a.index.begin(), a.index.end(), b.index.begin(), same_ranges);
                    });
}

std::uint64_t Dag::hash() const {
  Hash hash;
  for (const ScalarNode& node : nodes_) hash.add(hash_of(node));
  return hash.value();
}

bool Dag::renumber_operands(std::span<const int> numbers) {
  int before = -1;
  for (const int number : numbers) {
    if (number < 0) continue;
    if (number <= before) return false;
    before = number;
  }
  for (ScalarNode& node : nodes_) {
    if (node.op == ScalarOp::kLoad) node.operand = numbers[node.operand];
  }
  if (!table_.empty()) hash_all();
  return true;
}

/// An order of nodes by structure: 0 for the same one only. Of two different nodes the first pair of
/// arguments with different ids decides, so the walk is a path.
int Dag::compare(int a, int b) const {
  while (a != b) {
    const ScalarNode& x = (*this)[a];
    const ScalarNode& y = (*this)[b];
    if (const int order = three_way(std::tuple(rank_of(x.op), x.op, x.type, x.operand, x.arguments.size()),
                                    std::tuple(rank_of(y.op), y.op, y.type, y.operand, y.arguments.size()))) {
      return order;
    }
    if (x.op == ScalarOp::kConstant) return compare_constants(x.constant, y.constant);
    const auto [i, j] = std::mismatch(x.arguments.begin(), x.arguments.end(), y.arguments.begin());
    if (i == x.arguments.end()) return three_way(x.index, y.index);
    a = *i;
    b = *j;
  }
  return 0;
}

int Dag::load(int operand, ElementType type, std::vector<Index> index) {
  ScalarNode node;
  node.op = ScalarOp::kLoad;
  node.type = type;
  node.operand = operand;
  node.index = std::move(index);
  return intern(std::move(node));
}

int Dag::constant(const Scalar& value) {
  ScalarNode node;
  node.type = value.type;
  node.constant = value;
  return intern(std::move(node));
}

int Dag::constant(ElementType type, double value) {
  return constant(ir::cast(Scalar::of_real(ElementType::kFloat64, value), type));
}

int Dag::size(Dim size) {
  return size.is_constant() ? constant(Scalar::of_integer(ElementType::kInt64, size)) : iota(Index(size));
}

int Dag::size(ElementType type, Dim number) {
  return number.is_constant() ? constant(type, static_cast<double>(number)) : cast(size(number), type);
}

int Dag::iota(const Index& index) {
  ScalarNode node;
  node.op = ScalarOp::kIota;
  node.type = ElementType::kInt64;
  node.index = {index};
  return intern(std::move(node));
}

int Dag::accumulator(int which, ElementType type) {
  ScalarNode node;
  node.op = ScalarOp::kAccumulator;
  node.type = type;
  node.operand = which;
  return intern(std::move(node));
}

int Dag::cast(int argument, ElementType to) {
  if (type(argument) == to) return argument;
  const ScalarNode& from = (*this)[argument];
  if (from.op == ScalarOp::kConstant) return constant(ir::cast(from.constant, to));
  // What was narrow before it was widened is that again.
  const bool is_widened = from.op == ScalarOp::kCast && from.type == compute_type(to);
  if (is_widened && compute_type(to) != to && type(from.arguments[0]) == to) return from.arguments[0];
  ScalarNode node;
  node.op = ScalarOp::kCast;
  node.type = to;
  node.arguments = {argument};
  return intern(std::move(node));
}

int Dag::bits(int argument, ElementType to) {
  const ElementType from = type(argument);
  if (from == to) return argument;
  GC_CHECK(bits_of(from) == bits_of(to) && compute_type(from) == from && compute_type(to) == to);
  if ((*this)[argument].op == ScalarOp::kConstant) return constant(bits_as((*this)[argument].constant, to));
  ScalarNode node;
  node.op = ScalarOp::kBits;
  node.type = to;
  node.arguments = {argument};
  return intern(std::move(node));
}

int Dag::round(int argument) {
  const ScalarNode& node = (*this)[argument];
  const bool exact = !is_float(node.type) || node.op == ScalarOp::kLoad || node.op == ScalarOp::kConstant ||
                     node.op == ScalarOp::kRound || node.op == ScalarOp::kCast ||
                     node.op == ScalarOp::kBits || node.op == ScalarOp::kNeg || node.op == ScalarOp::kAbs;
  if (exact) return argument;
  ScalarNode rounded;
  rounded.op = ScalarOp::kRound;
  rounded.type = node.type;
  rounded.arguments = {argument};
  return intern(std::move(rounded));
}

int Dag::apply(ScalarOp op, Arguments arguments) {
  const ScalarOpRow& row = row_of(op);
  GC_CHECK(op > ScalarOp::kRound && static_cast<int>(arguments.size()) == row.arity);
  const std::size_t first = op == ScalarOp::kSelect ? 1 : 0;
  for (std::size_t i = first; i < arguments.size(); ++i)
    GC_CHECK(type(arguments[i]) == type(arguments[first]));
  const ElementType operand_type = type(arguments[first]);
  GC_CHECK(compute_type(operand_type) == operand_type);
  ScalarNode node;
  node.op = op;
  node.type = row.bool_result ? ElementType::kBool : operand_type;
  bool constants = true;
  for (const int argument : arguments) constants &= (*this)[argument].op == ScalarOp::kConstant;
  if (constants) {
    std::vector<Scalar> values;
    for (const int argument : arguments) values.push_back((*this)[argument].constant);
    const Scalar value = evaluate(op, values);
    return constant(is_float(value.type) ? Scalar::of_real(value.type, value.real) : value);
  }
  if (const auto same = neutral(op, arguments)) return *same;
  if (commutes(op, operand_type) && compare(arguments[1], arguments[0]) < 0) {
    std::swap(arguments[0], arguments[1]);
  }
  node.arguments = arguments;
  return intern(std::move(node));
}

/// x * 1, x / 1 and x - 0 are x; for integers x + 0 too (for floats -0.0 + 0 is not -0.0).
std::optional<int> Dag::neutral(ScalarOp op, const Arguments& arguments) const {
  if (arguments.size() != 2) return std::nullopt;
  const auto is = [&](int id, double value) {
    const ScalarNode& node = (*this)[id];
    return node.op == ScalarOp::kConstant && node.constant.as_double() == value &&
           !std::signbit(node.constant.as_double());
  };
  const bool exact_sum = !is_float(type(arguments[0]));
  const int x = arguments[0], y = arguments[1];
  if ((op == ScalarOp::kMul || op == ScalarOp::kDiv) && is(y, 1)) return x;
  if (op == ScalarOp::kMul && is(x, 1)) return y;
  if (op == ScalarOp::kSub && is(y, 0)) return x;
  if (op == ScalarOp::kAdd && exact_sum && is(y, 0)) return x;
  if (op == ScalarOp::kAdd && exact_sum && is(x, 0)) return y;
  return std::nullopt;
}

int Dag::import(const Dag& other, int root, std::span<const Index> axes, std::span<const Range> ranges,
                const std::function<int(const ScalarNode&)>& leaf) {
  const int roots[] = {root};
  const std::vector<int> order = other.reachable(roots);
  std::vector<int> new_ids(order.size(), -1);
  const auto moved = [&](int id) -> int& {
    return new_ids[static_cast<std::size_t>(std::lower_bound(order.begin(), order.end(), id) -
                                            order.begin())];
  };
  for (const int id : order) {
    ScalarNode node = other[id];
    for (Index& index : node.index) index = substitute(index, axes, ranges, moved);
    for (int& argument : node.arguments) argument = moved(argument);
    if (node.op == ScalarOp::kLoad || node.op == ScalarOp::kAccumulator) {
      moved(id) = leaf(node);
    } else if (node.op == ScalarOp::kRound) {
      moved(id) = round(node.arguments[0]);
    } else if (node.op == ScalarOp::kCast) {
      moved(id) = cast(node.arguments[0], node.type);
    } else if (node.op == ScalarOp::kBits) {
      moved(id) = bits(node.arguments[0], node.type);
    } else if (node.op > ScalarOp::kRound) {
      moved(id) = apply(node.op, node.arguments);
    } else {
      moved(id) = intern(std::move(node));
    }
  }
  return moved(root);
}

std::vector<int> Dag::reachable(std::span<const int> roots) const {
  std::vector<bool> seen(nodes_.size());
  std::vector<int> found;
  const auto visit = [&](int id) {
    if (seen[id]) return;
    seen[id] = true;
    found.push_back(id);
  };
  for (const int root : roots) visit(root);
  std::vector<int> loaded;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ScalarNode& node = (*this)[found[i]];
    for (const int argument : node.arguments) visit(argument);
    loaded.clear();
    for (const Index& index : node.index) collect_loaded(index, loaded);
    for (const int scalar : loaded) visit(scalar);
  }
  std::reverse(found.begin(), found.end());  // that sorts a chain
  if (!std::is_sorted(found.begin(), found.end())) std::sort(found.begin(), found.end());
  return found;
}

bool Dag::index_depends_on_axis(const Index& index, int axis) const {
  if (index.mentions(axis)) return true;
  std::vector<int> loaded;
  collect_loaded(index, loaded);
  for (const int scalar : loaded) {
    if (depends_on_axis(scalar, axis)) return true;
  }
  return false;
}

bool Dag::depends_on_axis(int root, int axis) const {
  const int roots[] = {root};
  for (const int id : reachable(roots)) {
    for (const Index& index : (*this)[id].index) {
      if (index.mentions(axis)) return true;
    }
  }
  return false;
}

std::string to_string(const Dag& dag, int root) {
  const ScalarNode& node = dag[root];
  switch (node.op) {
    case ScalarOp::kConstant:
      return is_float(node.type) ? fmt::format("{}", node.constant.real)
                                 : fmt::format("{}", node.constant.integer);
    case ScalarOp::kLoad: {
      std::string text = fmt::format("x{}[", node.operand);
      for (std::size_t i = 0; i < node.index.size(); ++i) text += (i ? ", " : "") + to_string(node.index[i]);
      return text + "]";
    }
    case ScalarOp::kIota:
      return fmt::format("iota({})", to_string(node.index[0]));
    case ScalarOp::kAccumulator:
      return fmt::format("acc{}", node.operand);
    default: {
      std::string text(row_of(node.op).name);
      if (node.op == ScalarOp::kCast || node.op == ScalarOp::kBits)
        text += fmt::format("<{}>", name_of(node.type));
      text += "(";
      for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        text += (i ? ", " : "") + fmt::format("%{}", node.arguments[i]);
      }
      return text + ")";
    }
  }
}

}  // namespace gcompile::ir
