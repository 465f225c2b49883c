// Linear attention on the emulator against its recurrence in double.
#include "gcrt/cuda/attention/linear_attention.h"

#include "../kernels/linear_attention_reference.h"
#include "cuda_kernel_test.h"

namespace cuda_kernel_test {
namespace {

TEST(CudaLinearAttention, IsItsRecurrence) {
  for (const linear_attention_reference::Case& c : linear_attention_reference::kCases) {
    const linear_attention_reference::Data data(c);
    const DeviceArray<float> q(data.q), k(data.k), v(data.v), past(data.past), factors(data.factors),
        rates(data.rates);
    DeviceArray<float> state(data.state.size()), y(data.y.size());
    Queue queue;
    linear_attention(
        queue, c.shape,
        LinearAttentionTensors<float>{q.data(), k.data(), v.data(), c.has_past ? past.data() : nullptr,
                                      c.has_factors ? factors.data() : nullptr,
                                      c.has_rates ? rates.data() : nullptr, state.data(), y.data()});
    expect_no_error(queue);
    data.expect(state.read(), y.read());
  }
}

}  // namespace
}  // namespace cuda_kernel_test
