#include "frontend/sizes/dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/nearest_name.h"
#include "frontend/sizes/suggested_sizes.h"

namespace gcompile::frontend {
namespace {

/// One dimension of one input while sizes are gathered; `source` says where its size came from.
struct Slot {
  std::optional<ir::Dim> size;
  std::string name;
  std::string source;
};

struct Pending {
  const DeclaredInput* input = nullptr;
  std::optional<std::vector<Slot>> dims;
};

/// Quoted where a shell would read more than letters into it.
std::string for_shell(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:,+-").find(c) != std::string_view::npos;
  });
  return plain || name.find('\'') != std::string::npos ? name : "'" + name + "'";
}

class Resolver {
 public:
  Resolver(const std::vector<DeclaredInput>& inputs, const InputBindings& bindings, const Limits& limits,
           const SuggestedSizes& suggested, Diagnostics& diagnostics)
      : inputs_(inputs),
        bindings_(bindings),
        limits_(limits),
        suggested_(suggested),
        diagnostics_(diagnostics) {
    for (const DeclaredInput& input : inputs) {
      Pending& pending = pending_.emplace_back();
      pending.input = &input;
      if (!input.dims) continue;
      pending.dims.emplace();
      for (const DeclaredDim& dim : *input.dims) pending.dims->push_back({dim.size, dim.name, "the model"});
    }
  }

  std::vector<ResolvedInput> run() {
    bind();
    report_open();
    return finish();
  }

  /// The bindings, and the suggested sizes for what they leave open.
  InputBindings filled() {
    bind();
    InputBindings out = bindings_;
    std::map<std::string, ir::Dim> chosen;  // what is suggested for a name is so for all dimensions of it
    for (const Pending& pending : pending_) {
      if (!pending.dims) continue;
      ShapeBinding& shape = out.shapes.emplace_back();
      shape.input = pending.input->name;
      for (std::size_t axis = 0; axis < pending.dims->size(); ++axis) {
        const auto& [given, name, source] = (*pending.dims)[axis];
        ir::Dim size = given.value_or(suggested_.of(axis));
        if (!given && is_dim_identifier(name)) size = chosen.emplace(name, size).first->second;
        shape.dims.push_back({size.as_constant(), ""});
      }
    }
    return out;
  }

 private:
  void bind() {
    for (const ShapeBinding& shape : bindings_.shapes) name_dims(shape);
    for (const DimBinding& dim : bindings_.dims) bind_name(dim.name, dim.size);
    int symbol = 0;
    for (const DimBounds& given : bindings_.bounds) {
      if (given.names.size() > 1) continue;
      bind_name(given.names[0],
                ir::SizesScope::in_force()->resolved(ir::Dim::symbol(symbol++)) * given.multiple);
    }
    for (const ShapeBinding& shape : bindings_.shapes) {
      for (Pending* pending : find(shape.input, "--shape")) bind_shape(*pending, shape.dims, "--shape");
    }
    for (const auto& [name, shape] : bindings_.data_shapes) {
      const auto at = std::find_if(pending_.begin(), pending_.end(),
                                   [&, &wanted = name](const Pending& p) { return p.input->name == wanted; });
      if (at == pending_.end()) continue;
      std::vector<DeclaredDim> dims;
      for (const std::int64_t size : shape) dims.push_back({size, ""});
      bind_shape(*at, dims, "the data");
    }
    for (const SetBinding& set : bindings_.sets) bind_list_length(set);
    spread_names();
    bind_sums();
  }

  void error(std::string code, std::string message, std::string help = {},
             std::vector<std::string> details = {}) {
    diagnostics_.add(
        {Severity::kError, std::move(code), std::move(message), {}, std::move(details), std::move(help)});
  }

  bool is_meant(const Pending& pending, const std::string& name) const {
    if (name.empty()) return pending_.size() == 1;
    return pending.input->name == name || pending.input->sequence == name;
  }

  /// The input of that name, or the elements of the sequence; none after an error.
  std::vector<Pending*> find(const std::string& name, std::string_view flag) {
    std::vector<std::string> names;
    std::vector<Pending*> found;
    for (Pending& pending : pending_) {
      if (is_meant(pending, name)) found.push_back(&pending);
      names.push_back(pending.input->name);
    }
    if (!found.empty()) return found;
    std::vector<std::string> shown;
    for (const std::string& n : names) shown.push_back(printable(n));
    error("E0402", fmt::format("{}: the model has no input '{}'", flag, printable(name)),
          did_you_mean(name, names), {fmt::format("inputs: {}", fmt::join(shown, ", "))});
    return {};
  }

  static std::vector<std::string> shown_dims(const Pending& pending) {
    std::vector<std::string> shown;
    for (const Slot& slot : *pending.dims) shown.push_back(slot.size ? to_string(*slot.size) : "?");
    return shown;
  }

  void bind_slot(Pending& pending, std::size_t axis, ir::Dim size, const std::string& source) {
    Slot& slot = (*pending.dims)[axis];
    if (slot.size && *slot.size != size) {
      error("E0403",
            fmt::format("input '{}', axis {}: {} says {}, but {} says {}", printable(pending.input->name),
                        axis, source, to_string(size), slot.source, to_string(*slot.size)));
      return;
    }
    if (!slot.size) slot.source = source;
    slot.size = size;
  }

  void bind_name(const std::string& name, ir::Dim size) {
    const std::string source = fmt::format("--dim {}", printable(name));
    if (!is_dim_identifier(name)) {
      error("E0404",
            fmt::format("{}: only dimensions whose name is an identifier can be bound by name", source),
            "use --shape INPUT:SIZExSIZEx...");
      return;
    }
    bool found = false;
    std::vector<std::string> names;
    for (Pending& pending : pending_) {
      for (std::size_t axis = 0; pending.dims && axis < pending.dims->size(); ++axis) {
        const Slot& slot = (*pending.dims)[axis];
        for (const DimPart& part : summands_of(slot).value_or(std::vector<DimPart>())) {
          found = found || part.name == name;
          if (!part.name.empty()) names.push_back(part.name);
        }
        if (is_dim_identifier(slot.name)) names.push_back(slot.name);
        if (slot.name != name) continue;
        found = true;
        bind_slot(pending, axis, size, source);
      }
    }
    given_[name] = size;
    if (found) return;
    error("E0404", fmt::format("{}: no input has a dimension of that name", source),
          did_you_mean(name, names),
          {names.empty() ? "no dimension of the inputs has a name"
                         : fmt::format("dimensions: {}",
                                       fmt::join(std::set<std::string>(names.begin(), names.end()), ", "))});
  }

  /// Names that a shape gives to dimensions that are open, before sizes are bound by name. What is wrong with
  /// the shape is told when it is bound.
  void name_dims(const ShapeBinding& shape) {
    for (Pending& pending : pending_) {
      if (!is_meant(pending, shape.input)) continue;
      if (!pending.dims) pending.dims.emplace(shape.dims.size());
      if (pending.dims->size() != shape.dims.size()) continue;
      for (std::size_t axis = 0; axis < shape.dims.size(); ++axis) {
        Slot& slot = (*pending.dims)[axis];
        if (!slot.size && !shape.dims[axis].name.empty()) slot.name = shape.dims[axis].name;
      }
    }
  }

  void bind_shape(Pending& pending, const std::vector<DeclaredDim>& dims, const std::string& source) {
    if (!pending.dims) pending.dims.emplace(dims.size());
    if (pending.dims->size() != dims.size()) {
      error("E0403",
            fmt::format("input '{}' has {} dimensions, but {} gives {}", printable(pending.input->name),
                        pending.dims->size(), source, dims.size()),
            fmt::format("its sizes are [{}], where ? is open", fmt::join(shown_dims(pending), ", ")));
      return;
    }
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis].size) bind_slot(pending, axis, *dims[axis].size, source);
    }
  }

  /// A list given by --set also tells the length of a vector.
  void bind_list_length(const SetBinding& set) {
    for (Pending* pending : find(set.input, "--set")) {
      if (!pending->dims) pending->dims.emplace(set.values.size() == 1 ? 0 : 1);
      if (pending->dims->size() == 1 && !pending->dims->front().size) {
        bind_slot(*pending, 0, static_cast<std::int64_t>(set.values.size()), "--set");
      }
    }
  }

  struct InOrderOfText {
    bool operator()(ir::Dim a, ir::Dim b) const { return ir::Dim::compare(a, b) < 0; }
  };

  std::map<std::string, std::set<ir::Dim, InOrderOfText>> sizes_of_names() const {
    std::map<std::string, std::set<ir::Dim, InOrderOfText>> sizes;
    for (const auto& [name, size] : given_) sizes[name].insert(size);
    for (const Pending& pending : pending_) {
      for (std::size_t axis = 0; pending.dims && axis < pending.dims->size(); ++axis) {
        const Slot& slot = (*pending.dims)[axis];
        if (slot.size && is_dim_identifier(slot.name)) sizes[slot.name].insert(*slot.size);
      }
    }
    return sizes;
  }

  /// One size of an identifier is the size of all dimensions of that name;
  /// two sizes say nothing about a third.
  void spread_names() {
    const std::map<std::string, std::set<ir::Dim, InOrderOfText>> sizes = sizes_of_names();
    for (Pending& pending : pending_) {
      if (!pending.dims) continue;
      for (Slot& slot : *pending.dims) {
        const auto at = sizes.find(slot.name);
        if (!slot.size && at != sizes.end() && at->second.size() == 1) slot.size = *at->second.begin();
      }
    }
    for (const auto& [name, found] : sizes) {
      if (found.size() < 2) continue;
      std::vector<std::string> shown;
      for (const ir::Dim size : found) shown.push_back(to_string(size));
      Diagnostic warning;
      warning.severity = Severity::kWarning;
      warning.code = "W0405";
      warning.message =
          fmt::format("dimensions named '{}' have different sizes: {}", name, fmt::join(shown, ", "));
      diagnostics_.add(std::move(warning));
    }
  }

  /// What a dimension is the sum of, by --dim or by its name.
  std::optional<std::vector<DimPart>> summands_of(const Slot& slot) const {
    for (const DimSum& sum : bindings_.sums) {
      if (sum.name == slot.name) return sum.parts;
    }
    return slot.size ? std::nullopt : parse_dim_sum(slot.name);
  }

  /// "past + 1" and "8*height" have the sizes of their names.
  void bind_sums() {
    const std::map<std::string, std::set<ir::Dim, InOrderOfText>> sizes = sizes_of_names();
    std::set<std::string> found;
    for (Pending& pending : pending_) {
      for (std::size_t axis = 0; pending.dims && axis < pending.dims->size(); ++axis) {
        found.insert((*pending.dims)[axis].name);
        const auto parts = summands_of((*pending.dims)[axis]);
        if (!parts) continue;
        std::optional<ir::Dim> sum = 0;
        for (const DimPart& part : *parts) {
          const auto at = sizes.find(part.name);
          if (!part.name.empty() && (at == sizes.end() || at->second.size() != 1)) sum.reset();
          if (sum) *sum += part.name.empty() ? ir::Dim(part.number) : part.number * *at->second.begin();
        }
        if (sum) bind_slot(pending, axis, *sum, "its name");
      }
    }
    for (const DimSum& sum : bindings_.sums) {
      for (const DimPart& part : sum.parts) {
        if (part.name.empty() || sizes.count(part.name) > 0) continue;
        error("E0404", fmt::format("--dim {}: nothing gives '{}' a size", printable(sum.name), part.name),
              did_you_mean(part.name, {found.begin(), found.end()}));
      }
      if (found.count(sum.name) > 0) continue;
      error("E0404", fmt::format("--dim {}: no input has a dimension of that name", printable(sum.name)),
            did_you_mean(sum.name, {found.begin(), found.end()}));
    }
  }

  void report_open() {
    std::vector<std::string> details, flags;
    std::map<std::string, std::int64_t> sizes_of_names;
    const auto add_flag = [&](const std::string& flag) {
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
    };
    for (const Pending& pending : pending_) {
      const std::string name = printable(pending.input->name);
      const std::string& sequence = pending.input->sequence;
      const std::string named = sequence.empty() ? name : printable(sequence);
      if (!pending.dims) {
        details.push_back(fmt::format("input '{}': the model declares no shape", name));
        add_flag(fmt::format("--shape {}:SIZExSIZEx...", named));
        continue;
      }
      std::vector<std::string> shown;
      bool unnamed = false;
      for (std::size_t axis = 0; axis < pending.dims->size(); ++axis) {
        const Slot& slot = (*pending.dims)[axis];
        shown.push_back(fmt::format("{}", slot.size ? ir::highest(*slot.size) : suggested_.of(axis)));
        if (slot.size) continue;
        std::optional<std::vector<DimPart>> parts = summands_of(slot);
        if (!parts && is_dim_identifier(slot.name)) parts = {{1, slot.name}};
        unnamed |= !parts;
        const std::string axis_name =
            slot.name.empty() ? "no name" : fmt::format("'{}'", printable(slot.name));
        details.push_back(fmt::format("input '{}', axis {}: {}", name, axis, axis_name));
        std::int64_t sum = 0;
        for (const DimPart& part : parts.value_or(std::vector<DimPart>())) {
          if (part.name.empty()) continue;
          const auto [at, added] = sizes_of_names.emplace(part.name, suggested_.of(axis));
          sum += part.number * at->second;
          if (added) flags.push_back(fmt::format("--dim {}={}", part.name, at->second));
        }
        if (parts) shown.back() = fmt::format("{}", sum);
      }
      if (unnamed) add_flag(fmt::format("--shape {}:{}", for_shell(named), fmt::join(shown, "x")));
    }
    if (details.empty()) return;
    const std::string message =
        fmt::format("{} of the inputs {} open; a project is compiled for given sizes, one or several",
                    details.size() == 1 ? "one dimension" : fmt::format("{} dimensions", details.size()),
                    details.size() == 1 ? "is" : "are");
    std::string help = fmt::format("give sizes, {} {}",
                                   suggested_.fail ? "but none that were tried fit; not" : "for example",
                                   fmt::join(flags, " "));
    const std::string dim = fmt::format("--dim {}=", printable(suggested_.name));
    const bool several = !suggested_.choices.empty(), bounded = !suggested_.bounds.empty();
    if (several) help += fmt::format("; with several, as {}{}", dim, suggested_.choices);
    if (bounded)
      help += fmt::format("{} bounds, as {}{}", several ? ", or" : "; with", dim, suggested_.bounds);
    if (several || bounded) help += ", the caller chooses";
    error("E0401", message, std::move(help), std::move(details));
  }

  std::vector<ResolvedInput> finish() {
    std::vector<ResolvedInput> resolved;
    for (const Pending& pending : pending_) {
      ResolvedInput& input = resolved.emplace_back();
      input.type.element = pending.input->element;
      std::int64_t count = 1;
      bool too_large = pending.dims && pending.dims->size() > static_cast<std::size_t>(limits_.rank);
      for (std::size_t axis = 0; pending.dims && axis < pending.dims->size(); ++axis) {
        const ir::Dim size = (*pending.dims)[axis].size.value_or(ir::Dim(1));
        input.type.shape.push_back(size);
        const std::int64_t factor = std::max<std::int64_t>(ir::highest(size), 1);
        too_large = too_large || factor > limits_.tensor_elements / count;
        if (!too_large) count *= factor;
      }
      if (too_large) {
        error("E0303",
              fmt::format("input '{}' of shape {} is larger than the limit of {} elements and {} dimensions",
                          printable(pending.input->name), ir::to_string(input.type.shape),
                          limits_.tensor_elements, limits_.rank));
        input.type.shape.clear();
      }
    }
    if (diagnostics_.has_errors()) return resolved;
    for (const SetBinding& set : bindings_.sets) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (is_meant(pending_[i], set.input)) make_constant(resolved[i], set);
      }
    }
    return resolved;
  }

  void make_constant(ResolvedInput& input, const SetBinding& set) {
    const std::int64_t count = input.type.count();
    const auto given = static_cast<std::int64_t>(set.values.size());
    if (given != count && given != 1) {
      error("E0406", fmt::format("--set {}: {} values given, {} has {}", printable(set.input), given,
                                 ir::to_string(input.type), count));
      return;
    }
    ir::Tensor tensor(input.type);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string& text = set.values[given == 1 ? 0 : i];
      const auto value = parse_value(input.type.element, text);
      if (!value) {
        error("E0406",
              fmt::format("--set {}: '{}' is not a value of {}", printable(set.input), printable(text),
                          ir::name_of(input.type.element)),
              fmt::format("for example --set {}={}", printable(set.input), example_of(input.type.element)));
        return;
      }
      tensor.set(i, *value);
    }
    input.constant = std::move(tensor);
  }

  static const char* example_of(ir::ElementType type) {
    return type == ir::ElementType::kBool ? "true" : ir::is_float(type) ? "0.5" : "1";
  }

  static std::optional<ir::Scalar> parse_value(ir::ElementType type, const std::string& text) {
    if (type == ir::ElementType::kBool) {
      if (text == "true" || text == "1") return ir::Scalar::of_integer(type, 1);
      if (text == "false" || text == "0") return ir::Scalar::of_integer(type, 0);
      return std::nullopt;
    }
    if (!ir::is_computable(type)) return std::nullopt;
    const char* const last = text.data() + text.size();
    if (ir::is_float(type)) {
      double value = 0;
      const auto [end, failure] = std::from_chars(text.data(), last, value);
      if (failure != std::errc() || end != last) return std::nullopt;
      return ir::Scalar::of_real(type, value);
    }
    if (ir::is_signed(type)) {
      std::int64_t value = 0;
      const auto [end, failure] = std::from_chars(text.data(), last, value);
      const bool good = failure == std::errc() && end == last && value >= ir::integer_lowest(type) &&
                        (value < 0 || static_cast<std::uint64_t>(value) <= ir::integer_highest(type));
      return good ? std::optional(ir::Scalar::of_integer(type, value)) : std::nullopt;
    }
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), last, value);
    const bool good = failure == std::errc() && end == last && value <= ir::integer_highest(type);
    return good ? std::optional(ir::Scalar::of_integer(type, static_cast<std::int64_t>(value)))
                : std::nullopt;
  }

  const std::vector<DeclaredInput>& inputs_;
  const InputBindings& bindings_;
  const Limits& limits_;
  const SuggestedSizes suggested_;
  Diagnostics& diagnostics_;
  std::map<std::string, ir::Dim> given_;  // by --dim
  std::vector<Pending> pending_;
};

}  // namespace

bool is_dim_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  // Parts between dots, as PaddlePaddle's DynamicDimension.0.
  bool is_first = true, follows_dot = false;
  for (const char c : name) {
    if (is_first ? !letter(c) : !letter(c) && !digit(c) && (c != '.' || follows_dot)) return false;
    is_first = false, follows_dot = c == '.';
  }
  return !is_first && !follows_dot;
}

std::vector<ResolvedInput> resolve_inputs(const std::vector<DeclaredInput>& inputs,
                                          const InputBindings& bindings, const Limits& limits,
                                          Diagnostics& diagnostics) {
  return Resolver(inputs, bindings, limits, {}, diagnostics).run();
}

std::vector<ResolvedInput> resolve_inputs(const std::vector<DeclaredInput>& inputs,
                                          const InputBindings& bindings, const Limits& limits,
                                          const SuggestedSizes& suggested, Diagnostics& diagnostics) {
  return Resolver(inputs, bindings, limits, suggested, diagnostics).run();
}

InputBindings with_sizes(const std::vector<DeclaredInput>& inputs, const InputBindings& bindings,
                         const Limits& limits, const SuggestedSizes& sizes) {
  Diagnostics ignored;
  return Resolver(inputs, bindings, limits, sizes, ignored).filled();
}

}  // namespace gcompile::frontend
