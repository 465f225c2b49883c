#include "frontend/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/sha256.h"
#include "frontend/files/file_bytes.h"
#include "frontend/files/model_file.h"
#include "frontend/files/tensor_import.h"
#include "frontend/import/importer.h"
#include "frontend/sizes/narrowed_sizes.h"

namespace gcompile::frontend {

namespace {

/// Before version 3 of the format a model could not say its opset, which was the first.
OpsetTable::Imports opset_imports(const onnx::ModelProto& model) {
  OpsetTable::Imports imports = model.opset_import();
  if (imports.empty() && model.ir_version() < 3) imports.Add()->set_version(kOldestOpset);
  return imports;
}

}  // namespace

Importer::Importer(const onnx::ModelProto& model, const std::string& folder, const ImportOptions& options,
                   Diagnostics& diagnostics, std::shared_ptr<const FileBytes> file)
    : model_(model),
      options_(options),
      diagnostics_(diagnostics),
      folder_(folder),
      file_(file),
      external_(folder, options.allow_symlinks, options.limits, std::move(file)),
      opsets_(opset_imports(model), "the model", nullptr, diagnostics),
      ports_(ports_of(model.graph())) {}

ImportedModel Importer::run() {
  ImportedModel imported;
  imported.info = {{},
                   {},
                   model_.ir_version(),
                   model_.model_version(),
                   model_.producer_name(),
                   model_.producer_version(),
                   model_.domain(),
                   model_.graph().name(),
                   opsets_.all()};
  imported.graph.name = model_.graph().name();
  if (model_.training_info_size() > 0) warning("W0115", "the model's training information is ignored");
  import_functions();
  Scope scope;
  scope.graph = &imported.graph;
  scope.opsets = &opsets_;
  scope.findings = &diagnostics_;
  scope.graph_name = model_.graph().name();
  const ir::DeclaredShapes declared = declared_shapes(model_.graph());
  scope.declared = &declared;
  import_initializers(model_.graph(), scope);
  import_inputs(model_.graph(), scope);
  if (places_ && ir::SizesScope::in_force())
    places_->resize(std::max(places_->size(), ir::SizesScope::in_force()->checks().size()));
  import_nodes(model_.graph().node(), scope);
  import_outputs(model_.graph(), scope);
  unsupported_.report(diagnostics_);
  report_attribute_errors();
  diagnostics_.throw_if_errors();
  imported.graph.erase_unused_constants();
  imported.counted = std::move(counted_outputs_);
  return imported;
}

void Importer::import_functions() {
  for (const onnx::FunctionProto& function : model_.functions()) {
    const std::string shown = printable(function.name());
    const auto [at, added] =
        functions_.emplace(FunctionKey{canonical_domain(function.domain()), function.name()}, Function());
    if (!added) {
      error("E0121", fmt::format("the function '{}' is defined twice", shown));
      continue;
    }
    at->second.proto = &function;
    at->second.opsets =
        OpsetTable(function.opset_import(), fmt::format("function '{}'", shown), &opsets_, diagnostics_);
    at->second.defaults = attribute_defaults(function);
  }
}

/// The types of the inputs; empty after errors.
std::vector<ResolvedInput> Importer::resolve_sizes(const std::vector<DeclaredInput>& declared) {
  Diagnostics findings;
  std::vector<ResolvedInput> resolved =
      resolve_inputs(declared, options_.bindings, options_.limits, findings);
  if (findings.has_errors() && !is_trial_) {
    const SuggestedSizes sizes = legal_sizes(declared);
    findings = {};
    resolve_inputs(declared, options_.bindings, options_.limits, sizes, findings);
  }
  for (const Diagnostic& finding : findings.all()) diagnostics_.add(finding);
  if (findings.has_errors()) resolved.clear();
  return resolved;
}

namespace {

/// Whether a node's result has no elements: a window that is larger than its image, for one. No error, but
/// nobody wants such sizes.
bool makes_nothing(const ir::Graph& graph) {
  const std::vector<ir::ValueId> values = graph.values();
  return std::any_of(values.begin(), values.end(), [&](ir::ValueId id) {
    const ir::Value& value = graph.value(id);
    const ir::Shape& shape = value.type.shape;
    return value.producer.valid() && !value.constant &&
           std::any_of(shape.begin(), shape.end(), [](ir::Dim size) { return ir::highest(size) == 0; });
  });
}

}  // namespace

/// Whether the model can be imported with these sizes; nullopt: something else is wrong that no size mends.
std::optional<bool> Importer::fits(const InputBindings& bindings) {
  ImportOptions options = options_;
  options.bindings = bindings;
  options.limits.nodes = std::min(options_.limits.nodes, options_.limits.nodes_of_trials - looked_at_);
  Diagnostics ignored;
  std::optional<ir::Sizes> sizes;
  Importer trial(model_, folder_, options, ignored, file_);
  trial.is_trial_ = true;
  try {
    if (!bindings.bounds.empty()) sizes = size_symbols(bindings);
    const ir::SizesScope scope(sizes ? &*sizes : nullptr);
    const ImportedModel imported = trial.run();
    looked_at_ += trial.nodes_;
    if (!unsupported_anyway_) unsupported_anyway_.emplace();
    return !makes_nothing(imported.graph) && (!sizes || sizes->checks().empty());
  } catch (const CompileError& error) {
    looked_at_ += trial.nodes_;
    // Sizes mend errors of types and shapes only. What is not supported has an error of its own, beside which sizes are
    // proposed for the rest of the model.
    std::set<std::pair<std::string, std::string>> unsupported;
    bool is_mendable = false;
    for (const Diagnostic& found : error.diagnostics()) {
      if (found.severity != Severity::kError) continue;
      const std::string kind = found.code.substr(0, 3);
      if (kind != "E01" && kind != "E02") return std::nullopt;
      if (kind == "E01") unsupported.emplace(found.code, found.location);
      is_mendable = is_mendable || kind == "E02";
    }
    if (!unsupported_anyway_) unsupported_anyway_ = unsupported;
    const bool is_new = !std::includes(unsupported_anyway_->begin(), unsupported_anyway_->end(),
                                       unsupported.begin(), unsupported.end());
    return !is_mendable && !is_new && !unsupported.empty() && (!sizes || sizes->checks().empty());
  }
}

/// The smallest of a few sizes with which the model can be imported, found by importing it; 1 where looking
/// would take long, or something else is wrong.
SuggestedSizes Importer::legal_sizes(const std::vector<DeclaredInput>& declared) {
  constexpr std::size_t kLongestLook = std::size_t{1} << 26;  // bytes of the model
  constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 224, 256, 384, 512};
  const auto has_no_rank = [](const DeclaredInput& input) { return !input.dims; };
  if (std::any_of(declared.begin(), declared.end(), has_no_rank)) return {};
  if (model_.ByteSizeLong() > kLongestLook) return {};
  for (const bool with_first : {false, true}) {
    for (const std::int64_t size : kSizes) {
      SuggestedSizes sizes{with_first ? size : 1, size};
      const auto fit = fits(with_sizes(declared, options_.bindings, options_.limits, sizes));
      if (!fit) return {};
      if (!*fit) continue;
      suggest_choices(declared, sizes);
      return sizes;
    }
  }
  SuggestedSizes none;
  none.fail = true;
  return none;
}

/// Several sizes, and bounds, of the first open dimension that has a name.
void Importer::suggest_choices(const std::vector<DeclaredInput>& declared, SuggestedSizes& sizes) {
  const InputBindings& given = options_.bindings;
  const auto is_given = [&](const std::string& name) {
    const auto is_named = [&](const auto& dim) { return dim.name == name; };
    return std::any_of(given.dims.begin(), given.dims.end(), is_named) ||
           std::any_of(given.sums.begin(), given.sums.end(), is_named) ||
           std::any_of(given.bounds.begin(), given.bounds.end(), [&](const DimBounds& bounded) {
             return std::count(bounded.names.begin(), bounded.names.end(), name) > 0;
           });
  };
  InputBindings filled = with_sizes(declared, given, options_.limits, sizes);
  std::set<std::string> names;
  std::map<std::string, std::int64_t> size_of;
  for (const DeclaredInput& input : declared) {
    for (std::size_t axis = 0; axis < input.dims->size(); ++axis) {
      const DeclaredDim& dim = (*input.dims)[axis];
      if (dim.size || !is_dim_identifier(dim.name) || is_given(dim.name)) continue;
      names.insert(dim.name);
      size_of.emplace(dim.name, sizes.of(axis));
    }
  }
  if (names.empty()) return;
  sizes.name = *names.begin();
  const std::int64_t size = size_of[sizes.name];
  for (ShapeBinding& shape : filled.shapes) {
    const auto input = std::find_if(declared.begin(), declared.end(),
                                    [&](const DeclaredInput& each) { return each.name == shape.input; });
    if (input == declared.end() || input->dims->size() != shape.dims.size()) continue;
    for (std::size_t axis = 0; axis < shape.dims.size(); ++axis) {
      if ((*input->dims)[axis].name == sizes.name) shape.dims[axis] = {std::nullopt, sizes.name};
    }
  }
  const auto fits_at = [&](std::int64_t number) {
    InputBindings bindings = filled;
    bindings.dims.push_back({sizes.name, number});
    return fits(bindings).value_or(false);
  };
  const auto fits_within = [&](std::int64_t low, std::int64_t high, std::int64_t multiple) {
    InputBindings bindings = filled;
    bindings.bounds.push_back({{sizes.name}, {low, high}, multiple, high});
    return fits(bindings).value_or(false);
  };
  if (fits_at(2 * size) && fits_at(4 * size)) {
    sizes.choices = fmt::format("{},{},{}", size, 2 * size, 4 * size);
  }
  if (fits_within(size, 4 * size, 1)) {
    sizes.bounds = fmt::format("{}..{}", size, 4 * size);
  } else if (size > 1 && fits_within(size, 4 * size, size)) {
    sizes.bounds = fmt::format("{0}..{1}:{0}", size, 4 * size);
  }
}

/// The sizes of a shape that are all numbers, of a tensor within the limits.
static std::optional<ir::Numbers> sizes_in(const onnx::TensorShapeProto& shape, const Limits& limits) {
  if (shape.dim_size() > limits.rank) return std::nullopt;
  ir::Numbers sizes;
  std::int64_t count = 1;
  for (const auto& dim : shape.dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0 || dim.dim_value() > limits.tensor_elements / count)
      return std::nullopt;
    sizes.push_back(dim.dim_value());
    count *= std::max<std::int64_t>(1, dim.dim_value());
  }
  return sizes;
}

/// The shapes of results and values of which all sizes are numbers, and guesses at those of what is before them.
ir::DeclaredShapes Importer::declared_shapes(const onnx::GraphProto& graph) const {
  ir::DeclaredShapes shapes;
  for (const auto* infos : {&graph.output(), &graph.value_info()}) {
    for (const onnx::ValueInfoProto& info : *infos) {
      if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) continue;
      if (auto sizes = sizes_in(info.type().tensor_type().shape(), options_.limits))
        shapes[info.name()] = std::move(*sizes);
    }
  }
  std::map<std::pair<std::string_view, std::string_view>, bool> keeps_shape;
  // From the last node to the first, in the order that most files have.
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph.node(i);
    if (node.output_size() != 1 || shapes.count(node.output(0)) == 0) continue;
    const ir::Operator* op = ir::find_operator(canonical_domain(node.domain()), node.op_type());
    if (!op) continue;
    const auto [keeps, is_new] = keeps_shape.try_emplace({op->domain, op->name}, false);
    if (is_new) keeps->second = ir::keeps_shape(*op);
    if (!keeps->second) continue;
    const ir::Numbers shape = shapes.at(node.output(0));
    for (const std::string& name : node.input()) shapes.emplace(name, shape);
  }
  return shapes;
}

namespace {

/// A digest of the model's own digest, and of those of the files its tensors lie in.
std::string digest_with(const std::string& model_digest, const ExternalData& external) {
  if (external.files().empty()) return model_digest;
  std::string lines = fmt::format("{}  model\n", model_digest);
  for (const auto& [location, file] : external.files()) {
    lines += fmt::format("{}  {}\n", sha256_of(*file), location);
  }
  return sha256_hex(lines);
}

/// A model whose outputs are all empty is rarely what somebody wanted who typed --dim batch=0.
void warn_of_nothing(const ir::Graph& graph, Diagnostics& diagnostics) {
  const auto is_empty = [&](ir::ValueId id) {
    const ir::Shape& shape = graph.value(id).type.shape;
    return std::any_of(shape.begin(), shape.end(), [](ir::Dim size) { return ir::highest(size) == 0; });
  };
  const std::vector<ir::ValueId>& outputs = graph.outputs();
  if (outputs.empty() || !std::all_of(outputs.begin(), outputs.end(), is_empty)) return;
  Diagnostic warning;
  warning.severity = Severity::kWarning;
  warning.code = "W0407";
  warning.message = "no output has an element at these sizes, so that the project computes nothing";
  warning.help = "give sizes of 1 or more by --dim or --shape";
  diagnostics.add(std::move(warning));
}

ImportedModel import_proto(const onnx::ModelProto& model, const std::string& digest,
                           const std::string& folder, const ImportOptions& options, Diagnostics& diagnostics,
                           std::shared_ptr<const FileBytes> file = nullptr) {
  // An equality that gives a size makes formulas of what had been found before it.
  std::shared_ptr<ir::Sizes> sizes;
  if (!options.bindings.bounds.empty()) sizes = std::make_shared<ir::Sizes>(size_symbols(options.bindings));
  const ir::SizesScope scope(sizes.get());
  std::vector<std::string> places;
  for (std::size_t solved = 0; sizes; solved = sizes->solved_count()) {
    Diagnostics ignored;
    Importer trial(model, folder, options, ignored, file);
    trial.note_places(places);
    try {
      trial.run();
    } catch (const CompileError&) {  // what is wrong then is told below
    }
    if (sizes->solved_count() == solved) break;
  }
  Importer importer(model, folder, options, diagnostics, std::move(file));
  importer.note_places(places);
  ImportedModel imported = importer.run();
  warn_of_nothing(imported.graph, diagnostics);
  if (sizes) {
    if (auto narrowed = narrowed_sizes(size_symbols(options.bindings), *sizes, places))
      diagnostics.add(*narrowed);
  }
  imported.sizes = std::move(sizes);
  imported.info.sha256 = digest_with(digest, importer.external_data());
  imported.info.numbers = importer.numbers();
  for (const auto& [location, held] : importer.external_data().files())
    imported.info.data_files.push_back(location);
  return imported;
}

}  // namespace

ImportedModel import_model_file(const std::string& path, const ImportOptions& options,
                                Diagnostics& diagnostics) {
  const auto file = std::make_shared<const FileBytes>(open_file(path), path, options.limits.file_bytes);
  const onnx::ModelProto model = is_text_name(path)
                                     ? parse_model_text(std::string(file->text()), options.limits)
                                     : parse_model_bytes(file->text(), options.limits, RawData::kLeft);
  return import_proto(model, sha256_of(*file), folder_of(path), options, diagnostics, file);
}

ImportedModel import_model_bytes(std::string_view bytes, const std::string& folder,
                                 const ImportOptions& options, Diagnostics& diagnostics) {
  return import_proto(parse_model_bytes(bytes, options.limits), sha256_hex(bytes), folder, options,
                      diagnostics);
}

ImportedModel import_model_text(const std::string& text, const ImportOptions& options,
                                Diagnostics& diagnostics) {
  return import_proto(parse_model_text(text, options.limits), sha256_hex(text), "", options, diagnostics);
}

}  // namespace gcompile::frontend
