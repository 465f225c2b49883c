// Operators of ai.onnx.ml in every mode and option against what ONNX Runtime made of them
// (machine_learning_values.txt, which tests/bench/machine_learning_values.py writes).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "frontend/import/import.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Tensor;

struct ValuesCase {
  std::string text;
  std::vector<std::vector<double>> tensors;  // inputs, then results
};

std::vector<double> numbers_in(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

std::vector<ValuesCase> all_cases() {
  std::ifstream file(GCOMPILE_SOURCE_DIR "/tests/unit/frontend/machine_learning_values.txt");
  std::vector<ValuesCase> cases;
  bool is_open = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) {
      is_open = false;
    } else if (!is_open) {
      const std::size_t space = line.find(' ');
      const std::string head =
          "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : " + line.substr(0, space) + "]>\n";
      cases.push_back({head + line.substr(space + 1), {}});
      is_open = true;
    } else {
      cases.back().tensors.push_back(numbers_in(line));
    }
  }
  return cases;
}

Tensor tensor_of(const ir::TensorType& type, const std::vector<double>& numbers) {
  Tensor tensor(type);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i),
               is_float(type.element)
                   ? ir::Scalar::of_real(type.element, numbers[i])
                   : ir::Scalar::of_integer(type.element, static_cast<std::int64_t>(numbers[i])));
  }
  return tensor;
}

TEST(MachineLearning, IsWhatOnnxRuntimeMakesOfIt) {
  const std::vector<ValuesCase> cases = all_cases();
  ASSERT_GT(cases.size(), 300u);
  for (const char* op : {"Binarizer", "FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier",
                         "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor",
                         "Scaler", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}) {
    const auto names = [&](const ValuesCase& each) {
      return each.text.find(std::string(".") + op + "<") != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), names)) << op;
  }
  for (const ValuesCase& each : cases) {
    SCOPED_TRACE(each.text);
    Diagnostics diagnostics;
    ir::Graph graph = frontend::import_model_text(each.text, {}, diagnostics).graph;
    decompose_all(graph);
    std::vector<Tensor> inputs;
    for (const ir::ValueId input : graph.inputs()) {
      inputs.push_back(tensor_of(graph.value(input).type, each.tensors[inputs.size()]));
    }
    const std::vector<Tensor> results = ir::evaluate_graph(graph, inputs);
    ASSERT_EQ(each.tensors.size(), inputs.size() + results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::vector<double>& expected = each.tensors[inputs.size() + i];
      const std::vector<double> found = reals(results[i]);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        if (found[k] == expected[k] || (std::isnan(found[k]) && std::isnan(expected[k]))) continue;
        EXPECT_LE(std::fabs(found[k] - expected[k]), 2e-5 * (1 + std::fabs(expected[k])))
            << "result " << i << ", element " << k << ": " << found[k] << " for " << expected[k];
      }
    }
  }
}

}  // namespace
}  // namespace gcompile::testing
