#include "driver/verify/counted_outputs.h"

#include <algorithm>

namespace gcompile {
namespace {

/// Calls visit(position in the front, position in the whole) for all elements of the front.
template <class Visit>
void each_of_front(const ir::Shape& front, const ir::Shape& whole, std::size_t axis, const Visit& visit) {
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= whole[i].constant();
  for (std::size_t i = axis + 1; i < whole.size(); ++i) inner *= whole[i].constant();
  const std::int64_t rows = front[axis].constant() * inner, all = whole[axis].constant() * inner;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (std::int64_t k = 0; k < rows; ++k) visit(i * rows + k, i * all + k);
  }
}

}  // namespace

std::optional<CountedPort> counted_port(const Schedule& schedule, const std::string& name) {
  for (const Port& port : schedule.outputs) {
    if (port.model_name == name) return port.counted;
  }
  return std::nullopt;
}

bool is_count(const Schedule& schedule, const std::string& name) {
  const std::vector<Port>& outputs = schedule.outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Port& port) {
    return port.counted && outputs[static_cast<std::size_t>(port.counted->count)].model_name == name;
  });
}

ir::Tensor front_of(const ir::Tensor& whole, int axis, std::int64_t count) {
  const auto at = static_cast<std::size_t>(axis);
  ir::Shape shape = whole.shape();
  shape[at] = std::clamp<std::int64_t>(count, 0, shape[at].constant());
  ir::Tensor front({whole.element(), shape});
  each_of_front(shape, whole.shape(), at,
                [&](std::int64_t to, std::int64_t from) { front.set(to, whole.at(from)); });
  return front;
}

ir::Tensor with_front(const ir::Tensor& whole, const ir::Tensor& front, int axis) {
  const auto at = static_cast<std::size_t>(axis);
  ir::Shape shape = whole.shape();
  if (front.shape().size() != shape.size() || front.element() != whole.element()) return front;
  const std::int64_t room = shape[at].constant();
  shape[at] = front.shape()[at];
  if (shape != front.shape() || shape[at].constant() > room) return front;
  ir::Tensor out = whole;
  each_of_front(shape, whole.shape(), at,
                [&](std::int64_t from, std::int64_t to) { out.set(to, front.at(from)); });
  return out;
}

}  // namespace gcompile
