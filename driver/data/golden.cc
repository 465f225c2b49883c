#include "driver/data/golden.h"

#include <algorithm>
#include <map>

#include "driver/data/random_inputs.h"
#include "ir/graph/operator.h"

namespace gcompile {
namespace {

constexpr int kRuns = 2;

void put_number(std::string& bytes, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
}

void put_tensor(std::string& bytes, const ir::Tensor& tensor) {
  bytes.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
}

}  // namespace

std::string golden_vectors(const ir::Graph& graph, const std::vector<StateTensor>& states) {
  std::map<std::string, ir::Tensor> state;  // by model input
  std::map<std::string, const StateTensor*> fed_by;
  for (const StateTensor& s : states) {
    fed_by[s.output_name] = &s;
    for (const ir::ValueId id : graph.inputs()) {
      if (graph.value(id).name == s.input_name) state[s.input_name] = ir::Tensor(graph.value(id).type);
    }
  }
  std::string bytes = "GCGOLDEN";
  put_number(bytes, 1);
  put_number(bytes, kRuns);
  for (int run = 0; run < kRuns; ++run) {
    RandomInputs random(static_cast<std::uint64_t>(run) + 1);
    std::vector<ir::Tensor> inputs = random.inputs_of(graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto held = state.find(graph.value(graph.inputs()[i]).name);
      if (held != state.end()) {
        inputs[i] = held->second;
      } else {
        put_tensor(bytes, inputs[i]);
      }
    }
    const std::vector<ir::Tensor> outputs = ir::evaluate_graph(graph, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto feeds = fed_by.find(graph.output_names()[i]);
      if (feeds == fed_by.end()) {
        put_tensor(bytes, outputs[i]);
      } else if (!feeds->second->grows()) {
        state[feeds->second->input_name] = outputs[i];
      }
    }
  }
  return bytes;
}

}  // namespace gcompile
