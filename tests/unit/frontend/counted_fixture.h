#pragma once
// Models of which only data knows how many elements there are, and what a run fills.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile::frontend_test {

using ir::ElementType;
using ir::Tensor;
using Numbers = std::vector<double>;

inline ir::Scalar scalar(ElementType type, double value) {
  return ir::is_float(type) ? ir::Scalar::of_real(type, value)
                            : ir::Scalar::of_integer(type, static_cast<std::int64_t>(value));
}

inline Tensor tensor(ElementType type, const ir::Shape& shape, const Numbers& values) {
  Tensor out({type, shape});
  for (std::size_t i = 0; i < values.size(); ++i)
    out.set(static_cast<std::int64_t>(i), scalar(type, values[i]));
  return out;
}
inline Tensor floats(const ir::Shape& shape, const Numbers& values) {
  return tensor(ElementType::kFloat32, shape, values);
}
inline Tensor ints(const std::vector<std::int64_t>& values) {
  return Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())});
}
inline Tensor mask(const Numbers& values) {
  return tensor(ElementType::kBool, {static_cast<std::int64_t>(values.size())}, values);
}

/// What a run fills of output `index`, in row-major order.
inline Numbers filled(const Outcome& outcome, std::size_t index, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> outputs = ir::evaluate_graph(outcome.graph(), inputs);
  const std::vector<std::string>& names = outcome.graph().output_names();
  const Tensor& all = outputs.at(index);
  std::int64_t axis = 0, count = all.shape().empty() ? 1 : all.shape()[0].constant();
  for (const frontend::CountedOutput& counted : outcome.model->counted) {
    if (counted.name != names[index]) continue;
    axis = counted.axis;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == counted.count) count = outputs[i].int_at(0);
    }
  }
  Numbers out;
  const std::int64_t inner =
      all.shape().empty() ? 1 : ir::row_major_strides(all.shape())[static_cast<std::size_t>(axis)].constant();
  const std::int64_t room = all.shape().empty() ? 1 : all.shape()[static_cast<std::size_t>(axis)].constant();
  for (std::int64_t i = 0; i < all.count(); ++i) {
    if (i / inner % room < count) out.push_back(all.real_at(i));
  }
  return out;
}

inline Outcome model(const std::string& signature, const std::string& body) {
  Outcome outcome = import_text(model_text(signature, body));
  EXPECT_TRUE(outcome.model) << outcome.errors;
  return outcome;
}

inline const Numbers kNone = {0, 0, 0, 0}, kSome = {0, 1, 0, 1}, kAll = {1, 1, 1, 1};

}  // namespace gcompile::frontend_test
