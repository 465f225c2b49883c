#include <fmt/format.h>
#include <fmt/ranges.h>

#include "driver/commands/commands.h"
#include "frontend/files/model_ports.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;

/// "float32[N, 3, 224, 224]"; what has no name is "?".
std::string type_text(const frontend::ModelPort& port) {
  std::string text = port.type.empty() ? "no tensor" : port.type;
  if (port.has_shape) {
    std::vector<std::string> dims;
    for (const frontend::PortDim& dim : port.dims)
      dims.push_back(dim.size >= 0 ? std::to_string(dim.size) : dim.name.empty() ? "?" : printable(dim.name));
    text += fmt::format("[{}]", fmt::join(dims, ", "));
  }
  if (port.is_sequence) text = "sequence of " + text;
  return port.is_optional ? "optional " + text : text;
}

Json ports_json(const std::vector<frontend::ModelPort>& ports) {
  Json list = Json::array();
  for (const frontend::ModelPort& port : ports) {
    Json shape = Json::array();
    for (const frontend::PortDim& dim : port.dims) {
      if (dim.size >= 0) {
        shape.push_back(dim.size);
      } else {
        shape.push_back(dim.name);
      }
    }
    list.push_back({{"name", port.name},
                    {"element", port.type},
                    {"shape", port.has_shape ? shape : Json()},
                    {"prefix", port.prefix},
                    {"optional", port.is_optional}});
  }
  return list;
}

/// What the model says of itself, whether or not it can be compiled.
Answer declared(const Options& options, Terminal& terminal) {
  const frontend::ModelDeclaration found = frontend::model_declaration(options.model, options.import.limits);
  for (const frontend::ModelPort& port : found.ports.inputs)
    terminal.note(fmt::format("input   {}: {}", printable(port.name), type_text(port)));
  for (const frontend::ModelPort& port : found.ports.outputs)
    terminal.note(fmt::format("output  {}: {}", printable(port.name), type_text(port)));
  Answer answer;
  answer.result = {{"inputs", ports_json(found.ports.inputs)},
                   {"outputs", ports_json(found.ports.outputs)},
                   {"producer", found.producer},
                   {"domain", found.domain},
                   {"description", found.description},
                   {"graph", found.graph},
                   {"graph_description", found.graph_description},
                   {"model_version", found.version},
                   {"metadata", found.metadata}};
  return answer;
}

}  // namespace

Answer run_check(const Options& options, Terminal& terminal) {
  if (options.ports_alone) return declared(options, terminal);
  const Compilation compilation = compile_model(options, terminal);
  terminal.finish();
  terminal.note("supported: " + figures_text(compilation.program));
  Answer answer;
  answer.result = figures_of(compilation.program);
  return answer;
}

}  // namespace gcompile
