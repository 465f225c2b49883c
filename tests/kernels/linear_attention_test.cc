// Linear attention against its recurrence in double.
#include "gcrt/cpu/linear_attention.h"

#include "kernel_test.h"
#include "linear_attention_reference.h"

namespace kernel_test {
namespace {

TEST(LinearAttention, IsItsRecurrence) {
  for (const linear_attention_reference::Case& c : linear_attention_reference::kCases) {
    const linear_attention_reference::Data data(c);
    std::vector<float> state(data.state.size(), 9.0f), y(data.y.size(), 9.0f);
    const std::ptrdiff_t heads = c.shape.batch * c.shape.heads;
    // In two parts, as threads would.
    for (const auto& [begin, end] : {std::pair{heads / 2, heads}, std::pair{std::ptrdiff_t{0}, heads / 2}}) {
      linear_attention(c.shape, data.tensors(c, state.data(), y.data()), begin, end);
    }
    data.expect(state, y);
  }
}

TEST(LinearAttention, MayOverwriteThePast) {
  const linear_attention_reference::Case& c = linear_attention_reference::kCases[0];
  const linear_attention_reference::Data data(c);
  std::vector<float> state = data.past, y(data.y.size());
  auto tensors = data.tensors(c, state.data(), y.data());
  tensors.past = state.data();
  linear_attention(c.shape, tensors, 0, c.shape.batch * c.shape.heads);
  data.expect(state, y);
}

}  // namespace
}  // namespace kernel_test
