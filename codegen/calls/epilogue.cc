#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/diagnostics.h"
#include "codegen/calls/call_writer.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/identifiers.h"
#include "codegen/loops/loop_printer.h"
#include "ir/forms/expression_words.h"

namespace gcompile {

using ir::Index;
using ir::ScalarNode;
using ir::ScalarOp;

namespace {

/// Work up to which an epilogue runs on every register of a tile;
/// beyond, its code is kept once (gcrt/cpu/product/tile.h).
constexpr int kLightEpilogue = 6;

/// Constants that say what an operation is rather than how much: they stay literals. All others are fields of
/// the functor, so that layers which differ only in scales and zero points share one type (DESIGN law 3).
bool is_plain(const ir::Scalar& value) {
  const double v = value.as_double();
  return v == 0 || v == 1 || v == -1 || !std::isfinite(v);
}

}  // namespace

int EpilogueWriter::aligned_lanes(const Index& address, const KernelTensor& tensor, int lanes) const {
  if (address.coefficient_of(column_) != 1) return lanes;
  const std::int64_t bytes = bits_of(tensor.element) / 8;
  const auto fits = [&](std::int64_t l) {
    if (l * bytes > 16 || tensor.alignment % (l * bytes) != 0 || content(address.constant()) % l != 0)
      return false;
    return std::all_of(address.terms().begin(), address.terms().end(), [&](const Index::Term& t) {
      return t.atom.axis == column_ || content(t.coefficient) % l == 0;
    });
  };
  while (lanes > 1 && !fits(lanes)) lanes /= 2;
  return lanes;
}

EpilogueWriter::Access EpilogueWriter::access(const Index& address, const KernelTensor& tensor,
                                              const std::string& field) {
  GC_CHECK(address.is_affine());
  lanes_ = aligned_lanes(address, tensor, lanes_);
  Access out;
  out.field = field;
  out.column = address.coefficient_of(column_);
  // Batch axes move the pointer; row axes must walk as one, or are recovered from m by division.
  std::string base = tensor.pointer;
  BatchStep step{field, "", {}};
  for (std::size_t axis = 0; axis < loops_.extents.size(); ++axis) {
    const int a = static_cast<int>(axis);
    const ir::Dim stride = address.coefficient_of(a);
    if (a == column_ || stride == 0 || loops_.extents[axis] == 1) continue;
    if (std::find(grid_axes_.begin(), grid_axes_.end(), a) != grid_axes_.end()) {
      step.elements +=
          fmt::format("{}{} * b{}", step.axes.empty() ? "" : " + ", in_functor(stride, field), a);
      step.axes.push_back(a);
    } else if (std::find(rows_.begin(), rows_.end(), a) == rows_.end()) {
      base += fmt::format(" + {} * b{}", sizes_(stride), a);
      named_axes_.push_back(a);
    }
  }
  if (!step.axes.empty()) batch_steps_.push_back(std::move(step));
  if (address.constant() != 0) base += fmt::format(" + {}", sizes_(address.constant()));
  members_.push_back({field, base});
  std::string position = row_position(address, field);
  if (out.column == 1) {
    position += " + n";
  } else if (out.column != 0) {
    out.column_step = in_functor(out.column, field);
    position += fmt::format(" + n * {}", out.column_step);
  }
  out.position = field + position;
  return out;
}

std::string EpilogueWriter::row_position(const Index& address, const std::string& field) {
  bool collapses = true;
  std::optional<ir::Dim> row;
  ir::Dim inner = 1;
  for (auto at = rows_.rbegin(); at != rows_.rend(); ++at) {
    const ir::Dim extent = loops_.extents[*at];
    if (extent == 1) continue;
    const ir::Dim step = address.coefficient_of(*at);
    if (!row) row = step;
    collapses = collapses && step == *row * inner;
    inner *= extent;
  }
  if (collapses) {
    if (!row || *row == 0) return "";
    members_.push_back({field + "_row", sizes_(*row)});
    return fmt::format(" + m * {}_row", field);
  }
  std::string position;
  ir::Dim below = 1;
  for (auto at = rows_.rbegin(); at != rows_.rend(); ++at) {
    const ir::Dim extent = loops_.extents[*at];
    const ir::Dim step = address.coefficient_of(*at);
    if (extent != 1 && step != 0) {
      std::string coordinate = below == 1 ? "m" : fmt::format("m / {}", in_functor(below, field));
      if (below * extent != inner)
        coordinate = fmt::format("({}) % {}", coordinate, in_functor(extent, field));
      position += fmt::format(" + {} * ({})", in_functor(step, field), coordinate);
    }
    below *= extent;
  }
  return position;
}

std::string EpilogueWriter::in_functor(ir::Dim size, const std::string& field) {
  if (size.is_constant()) return sizes_(size);
  const std::string value = sizes_(size), member = fmt::format("{}_{}", field, value);
  const std::pair<std::string, std::string> entry{member, value};
  if (std::find(members_.begin(), members_.end(), entry) == members_.end()) members_.push_back(entry);
  return member;
}

/// Definitions of the coordinates of an entry of the batch that the grid walks.
std::vector<std::string> EpilogueWriter::batch_coordinates() {
  std::vector<std::string> lines;
  ir::Dim below = 1, count = 1;
  for (const int a : grid_axes_) count *= loops_.extents[static_cast<std::size_t>(a)];
  for (auto at = grid_axes_.rbegin(); at != grid_axes_.rend(); ++at) {
    const ir::Dim extent = loops_.extents[*at];
    const bool used = std::any_of(batch_steps_.begin(), batch_steps_.end(), [&](const BatchStep& step) {
      return std::find(step.axes.begin(), step.axes.end(), *at) != step.axes.end();
    });
    if (used) {
      std::string text = below == 1 ? "z" : fmt::format("z / {}", in_functor(below, "batch"));
      if (below * extent != count) text += fmt::format(" % {}", in_functor(extent, "batch"));
      lines.push_back(fmt::format("const std::ptrdiff_t b{} = {};", *at, text));
    }
    below *= extent;
  }
  return lines;
}

/// What makes the functor that of one entry of the batch that the grid walks.
void EpilogueWriter::write_move_to_batch(CodeText& code, const std::vector<std::string>& coordinates) const {
  if (batch_steps_.empty()) return;
  code.open("GCRT_INLINE void move_to_batch(std::ptrdiff_t z) {");
  for (const std::string& line : coordinates) code.line(line);
  for (const BatchStep& step : batch_steps_) {
    code.line(fmt::format("{} += {};", step.field, step.elements));
  }
  code.close();
}

EpilogueWriter::EpilogueWriter(CallWriter& writer, std::vector<int> rows, int column,
                               std::vector<int> grid_axes)
    : loops_(writer.epilogue()),
      sizes_(writer.call().sizes),
      rows_(std::move(rows)),
      column_(column),
      grid_axes_(std::move(grid_axes)) {
  write(writer);
}

std::string EpilogueWriter::role_of(int load, const Index& address, bool is_constant) const {
  const auto moves = [&](int axis) { return loops_.extents[axis] != 1 && address.coefficient_of(axis) != 0; };
  const bool by_rows = std::any_of(rows_.begin(), rows_.end(), moves);
  bool is_added = false, is_multiplied = false;
  std::set<int> values = {load};  // and the same widened
  const int roots[] = {loops_.regions[0].root};
  for (const int n : loops_.dag.reachable(roots)) {
    const ScalarNode& node = loops_.dag[n];
    const auto is_value = [&](int argument) { return values.count(argument) != 0; };
    if (std::none_of(node.arguments.begin(), node.arguments.end(), is_value)) continue;
    if (node.op == ScalarOp::kCast) values.insert(n);
    is_added = is_added || node.op == ScalarOp::kAdd || node.op == ScalarOp::kSub;
    is_multiplied = is_multiplied || node.op == ScalarOp::kMul;
  }
  if (is_added == is_multiplied) return "operand";
  if (is_added) return !is_constant ? "residual" : by_rows ? "addend" : "bias";
  return is_constant && !by_rows ? "scale" : "factor";
}

/// What the functor reads, computes and stores, as it is found out.
struct EpilogueWriter::Parts {
  int whole = 0;           // the expression
  int root = 0;            // as much of it as one store writes
  bool on_device = false;  // what a thread reads for several elements, it reads before it stores
  std::map<int, Access> loads;
  std::map<int, KernelTensor> tensors;       // by operand
  std::map<std::string, std::string> types;  // of members
  std::map<int, std::string> constants;
  std::vector<std::uint64_t> dependence;
  KnownNumbers known;
  bool has_product = false;    // that a saturation makes itself
  std::vector<bool> is_shift;  // by node: what only the saturation of products adds
  KernelTensor result;
  Access store;
};

namespace {

bool is_half(ir::ElementType type) { return compute_type(type) != type; }

}  // namespace

/// The operands of the call, by the roles that their loads have.
void EpilogueWriter::add_operands(CallWriter& writer, Parts& parts) const {
  const int roots[] = {parts.root};
  for (const int n : loops_.dag.reachable(roots)) {
    const ScalarNode& node = loops_.dag[n];
    if (node.op != ScalarOp::kLoad || parts.tensors.count(node.operand)) continue;
    const Index address = ir::address_of(node.index, ir::row_major_strides(writer.type(node.operand).shape));
    const std::string role = role_of(n, address, writer.constant(node.operand) != nullptr);
    parts.tensors[node.operand] = writer.operand(node.operand, writer.unused_parameter(role));
  }
  std::vector<KernelTensor> operands;
  for (const auto& [operand, tensor] : parts.tensors) {
    operands.resize(static_cast<std::size_t>(operand) + 1);
    operands.back() = tensor;
  }
  const Machine& machine = writer.machine();
  parts.known = {number_facts(loops_.dag, operands),
                 machine.target == Target::kCpp && !machine.level.has_vectors()};
}

void EpilogueWriter::add_constant(CallWriter& writer, int node, const std::string& field, Parts& parts) {
  const ir::Scalar& value = loops_.dag[node].constant;
  parts.constants[node] = field;
  const std::string at = writer.number(value, field);
  parts.types[field] = kernel_type(compute_type(loops_.dag[node].type));
  if (parts.is_shift[node]) {
    parts.types[field] = "int";
    const std::string number = fmt::format("{}", static_cast<int>(value.as_double()));
    members_.push_back({field, at.empty() ? number : fmt::format("static_cast<int>({}[0])", at)});
  } else if (at.empty()) {
    members_.push_back({field, literal(value)});
  } else if (parts.on_device) {  // whose memory the host does not read
    parts.types[field] = "const float*";
    parts.constants[node] = field + "[0]";
    members_.push_back({field, at});
  } else {
    members_.push_back({field, at + "[0]"});
  }
}

/// The members of the functor: constants and operands in the order of the expression, and the result.
void EpilogueWriter::add_members(CallWriter& writer, Parts& parts) {
  const int roots[] = {parts.root};
  const std::vector<ir::Range> ranges = loops_.ranges();
  std::vector<bool> is_printed(loops_.dag.nodes().size(), false);
  is_printed[parts.root] = true;
  parts.is_shift.assign(loops_.dag.nodes().size(), false);
  for (int n = parts.root; n >= 0; --n) {
    if (!is_printed[n]) continue;
    const auto saturation = parts.known.saturation(loops_.dag, n);
    const bool has_product = saturation && saturation->product;
    parts.has_product |= has_product;
    for (const int argument : printed_arguments(loops_.dag, parts.known, n)) {
      const bool is_shift = has_product && argument == saturation->shift;
      parts.is_shift[argument] = is_shift && (!is_printed[argument] || parts.is_shift[argument]);
      is_printed[argument] = true;
    }
  }
  std::map<std::string, int> roles;  // of members so far
  const auto unused = [&](const std::string& role) {
    const int count = ++roles[role];
    return count > 1 ? fmt::format("{}_{}", role, count) : role;
  };
  parts.dependence.assign(loops_.dag.nodes().size(), 0);
  const std::vector<int> nodes = loops_.dag.reachable(roots);
  for (const int n : nodes) {
    const ScalarNode& node = loops_.dag[n];
    std::uint64_t& mask = parts.dependence[n];
    for (const int argument : node.arguments) mask |= parts.dependence[argument];
    if (node.op == ScalarOp::kConstant && !is_plain(node.constant) && is_printed[n])
      add_constant(writer, n, unused(ir::constant_word(loops_.dag, nodes, n)), parts);
    if (node.op == ScalarOp::kAccumulator) mask = 1;
    GC_CHECK(node.op != ScalarOp::kIota);
    if (node.op != ScalarOp::kLoad) continue;
    const KernelTensor& tensor = parts.tensors.at(node.operand);
    const Index address = ir::recombine(ir::address_of(node.index, tensor.strides), ranges);
    const std::string field = unused(role_of(n, address, writer.constant(node.operand) != nullptr));
    Access a = access(address, tensor, field);
    parts.types[field] = fmt::format("const {}*", kernel_type(node.type));
    mask = a.column != 0 ? 1 : 0;
    parts.loads[n] = std::move(a);
  }
  parts.result = writer.result(0, "y");
  parts.store =
      access(ir::recombine(ir::address_of(loops_.store, parts.result.strides), ranges), parts.result, "y");
  if (parts.store.position == "y + n") {  // one row, as those of many rows are stored
    members_.push_back({"y_row", "0"});
    parts.store.position = "y + m * y_row + n";
  }
  parts.types["y"] = kernel_type(parts.result.element) + "*";
}

/// Writes the lines before the value, which it returns.
std::string EpilogueWriter::write_value(CodeText& code, const Parts& parts) const {
  ExpressionPrinter printer(loops_.dag, parts.dependence, [&](int n, bool vector) -> std::string {
    const ScalarNode& node = loops_.dag[n];
    if (node.op == ScalarOp::kAccumulator) return "sum";
    const Access& a = parts.loads.at(n);
    const char* function = is_half(node.type) ? "load_as_float" : "load";
    if (!vector) return fmt::format("{}(Lanes<1>{{}}, {})", function, a.position);
    return a.column == 1 ? fmt::format("{}(lane, {})", function, a.position)
                         : fmt::format("{}_strided(lane, {}, {})", function, a.position, a.column_step);
  });
  printer.know(parts.known);
  printer.name_constants(parts.constants);
  printer.set_vector_mask(1);
  printer.declare(code, {parts.root}, 1);
  return printer.text(parts.root, true);
}

/// What stores a value.
std::string EpilogueWriter::store_text(const Parts& parts, const std::string& value) const {
  const char* function = is_half(parts.result.element) ? "store_from_float" : "store";
  const Access& store = parts.store;
  return store.column == 1 || loops_.extents[static_cast<std::size_t>(column_)] == 1
             ? fmt::format("{}(lane, {}, {});", function, store.position, value)
             : fmt::format("{}_strided(lane, {}, {}, {});", function, store.position, store.column_step,
                           value);
}

/// Whether row m begins at y + m * y_row, and elements of a row lie one behind the other.
bool EpilogueWriter::stores_rows(const Parts& parts) { return parts.store.position == "y + m * y_row + n"; }

/// A function of the functor. Parameters that its body does not mention have no name.
void EpilogueWriter::write_function(CodeText& code, const std::string& head, const std::string& input,
                                    const CodeText& body) {
  const std::set<std::string> used = identifiers_of(body.plain());
  const auto named = [&](const char* type, const char* name) {
    return used.count(name) > 0 ? fmt::format("{} {}", type, name) : std::string(type);
  };
  code.line("template <class L, class V>");
  code.open(fmt::format("GCRT_INLINE {}({}, {}, {}, {}) const {{", head, named("L", "lane"),
                        named("V", input.c_str()), named("std::ptrdiff_t", "m"),
                        named("std::ptrdiff_t", "n")));
  code.append(body.text(), 2);
  code.close();
}

/// On the CPU one function computes and stores. On a device value() computes, and gcrt stores rows; put()
/// stores what lies otherwise.
void EpilogueWriter::write_functions(CodeText& code, const Parts& parts) const {
  CodeText body;
  const std::string value = write_value(body, parts);
  if (!parts.on_device) {
    body.line(store_text(parts, value));
    write_function(code, "void operator()", "sum", body);
    return;
  }
  body.line(fmt::format("return {};", value));
  write_function(code, "auto value", "sum", body);
  if (stores_rows(parts)) return;
  CodeText put;
  put.line(store_text(parts, "result"));
  write_function(code, "void put", "result", put);
}

Text EpilogueWriter::functor_text(const Parts& parts) {
  const int roots[] = {parts.root};
  const std::vector<std::string> coordinates = batch_coordinates();
  CodeText code;
  code.open(Text("struct ") + Symbol::kFunctor + " {");
  for (const auto& [member, value] : members_) {
    const auto type = parts.types.find(member);
    code.line(type != parts.types.end() ? fmt::format("{} {};", type->second, member)
                                        : fmt::format("std::ptrdiff_t {};", member));
  }
  int work = 0;
  for (const int n : loops_.dag.reachable(roots)) work += row_of(loops_.dag[n].op).cost;
  if (parts.on_device) {
    write_move_to_batch(code, coordinates);
  } else if (work > kLightEpilogue) {
    code.line("static constexpr bool kIsHeavy = true;");
  }
  write_functions(code, parts);
  code.close("};");
  return code.text();
}

void EpilogueWriter::write(CallWriter& writer) {
  GC_CHECK(loops_.is_map() && loops_.regions.size() == 1);
  Parts parts;
  parts.on_device = writer.on_device();
  parts.whole = loops_.regions[0].root;
  parts.root = parts.on_device ? stored_root(loops_.dag, parts.whole) : parts.whole;
  add_operands(writer, parts);
  add_members(writer, parts);
  writer.call().functor = functor_text(parts);
  writer.call().functor_name = ir::type_name(ir::expression_words(
      loops_, parts.whole, [&](int operand) { return writer.constant(operand) != nullptr; }));
  // Loads, stores and plain arithmetic come with every kernel's own header.
  const auto has_own_header = [&](int n) {
    const ScalarOp op = loops_.dag[n].op;
    return op != ScalarOp::kAccumulator && op != ScalarOp::kLoad && op != ScalarOp::kConstant &&
           op != ScalarOp::kAdd && op != ScalarOp::kMul;
  };
  const int roots[] = {parts.root};
  const std::vector<int> nodes = loops_.dag.reachable(roots);
  if (std::any_of(nodes.begin(), nodes.end(), has_own_header))
    writer.call().headers.push_back("gcrt/scalar/scalar.h");
  if (parts.has_product) writer.call().headers.push_back("gcrt/isa/saturate_product.h");
  add_headers_of_expressions(writer.call(), loops_.dag);
  if (loops_.dag[parts.root].op == ScalarOp::kAccumulator && stores_rows(parts) && batch_steps_.empty() &&
      (parts.on_device || !is_half(parts.result.element))) {  // which gcrt has
    const std::string type = kernel_type(parts.result.element);
    writer.call().functor = Text();
    writer.call().functor_name = fmt::format("{}<{}>", parts.on_device ? "Sums" : "StoreRows", type);
  }
  std::string fields;
  for (const auto& [member, value] : members_) fields += (fields.empty() ? "" : ", ") + value;
  Text type = Symbol::kFunctor;
  if (parts.on_device) {
    type = "Epilogue<" + type + fmt::format(", {}>", lanes_);
    writer.call().headers.push_back("gcrt/cuda/product/epilogue.h");
  }
  value_ = type + "{" + fields + "}";
  declaration_ = "const " + type + " epilogue{" + fields + "};";
}

}  // namespace gcompile
