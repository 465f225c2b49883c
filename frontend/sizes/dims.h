#pragma once
// Shapes of graph inputs: open dimensions keyed (input, axis), and what the user binds them to.
// Names of dimensions are merged only when they are identifiers: '?' and '' are used for unlike sizes (DESIGN
// law 9).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "frontend/files/limits.h"
#include "ir/tensors/tensor.h"

namespace gcompile::frontend {

/// `--dim N=4`.
struct DimBinding {
  std::string name;
  std::int64_t size = 0;
};

/// `--dim seq=1..512`, `--dim h=32..960:32@320`, `--dim past+seq=1..1024`: sizes known when the model runs.
struct DimBounds {
  std::vector<std::string> names;  // one; or several, of whose sum the bounds are
  ir::Bounds bounds;               // multiples of `multiple`
  std::int64_t multiple = 1;
  std::int64_t typical = 1;
};

/// A dimension so many times; without a name, the number alone.
struct DimPart {
  std::int64_t number = 1;
  std::string name = {};
};

/// `--dim joined=past+seq`: a dimension that is always the sum of others, or of multiples of them,
/// and of numbers.
struct DimSum {
  std::string name;
  std::vector<DimPart> parts;
};

/// `--dim N=1,2,4`: a list of sizes from which the caller of the model chooses, ascending.
struct DimList {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::size_t bounds_before = 0;  // on the command line
};

/// A dimension as the model or a binding declares it: a size, or open with a name that may be empty.
struct DeclaredDim {
  std::optional<std::int64_t> size;
  std::string name;
};

/// `--shape input:1x3x?xW`; an empty input name means the model's only input.
struct ShapeBinding {
  std::string input;
  std::vector<DeclaredDim> dims;
};

/// `--set input=16000` or `--set input=1,2,3`: the input becomes a constant of its declared type.
struct SetBinding {
  std::string input;
  std::vector<std::string> values;
};

/// `--elements frames=3`: of how many tensors an input consists that is a sequence or an optional;
/// `--elements mask=none`: the optional has no value.
struct ElementsBinding {
  std::string input;
  std::optional<std::int64_t> count;
};

// Each throws CompileError (kUsage) that shows the expected form.
DimList parse_dim_list(std::string_view text);
/// nullopt: the text gives no bounds.
std::optional<DimBounds> parse_dim_bounds(std::string_view text);
/// nullopt: the text gives no sum.
std::optional<DimSum> parse_dim_sum_binding(std::string_view text);
/// The parts of "past_sequence_length + 1" or "8*height", as exporters call axes; nullopt: it is neither a
/// sum nor a multiple.
std::optional<std::vector<DimPart>> parse_dim_sum(std::string_view text);
/// Separators `x` or `,` between sizes, `:` or `=` after the name; `?` leaves a dimension open, an identifier
/// names it; `input:` or `input:[]` is a scalar. The name may contain ':' itself ("input:0").
ShapeBinding parse_shape_binding(std::string_view text);
SetBinding parse_set_binding(std::string_view text);
ElementsBinding parse_elements_binding(std::string_view text);

struct InputBindings {
  std::vector<DimBinding> dims;
  std::vector<DimBounds> bounds;
  std::vector<DimSum> sums;
  std::vector<ShapeBinding> shapes;
  std::vector<SetBinding> sets;
  std::vector<ElementsBinding> elements;
  /// Shapes of test data by input name. They bind what is open; where they differ from a size that the model
  /// declares, or the user gave, that is an error.
  std::map<std::string, ir::Shape> data_shapes;
};

struct DeclaredInput {
  std::string name;
  ir::ElementType element = ir::ElementType::kFloat32;
  std::optional<std::vector<DeclaredDim>> dims;  // nullopt: not even the rank is declared
  std::string sequence = {};                     // of which it is an element; a shape of that is one of each
};

struct ResolvedInput {
  ir::TensorType type;
  std::optional<ir::Tensor> constant;  // by --set
};

/// Whether dimensions of this name are one dimension: [A-Za-z_][A-Za-z0-9_]*, also several with dots between.
bool is_dim_identifier(std::string_view name);

/// What bounds say, as symbols in their order and facts. Throws CompileError (kUsage) where a sum has a name
/// without a size of its own, or is never within its bounds.
ir::Sizes size_symbols(const InputBindings& bindings);

/// The type of every input, in order; formulas over the symbols of the sizes in force. Everything that is
/// wrong or still open goes to `diagnostics`: one error lists all open dimensions with the flags to type. The
/// result is only usable without errors.
std::vector<ResolvedInput> resolve_inputs(const std::vector<DeclaredInput>& inputs,
                                          const InputBindings& bindings, const Limits& limits,
                                          Diagnostics& diagnostics);

}  // namespace gcompile::frontend
