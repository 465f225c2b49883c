// Runs the model of cuda.py, case memory_of_the_caller, with inputs and outputs in all kinds of memory.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "m/m.h"

namespace {

constexpr int kCount = 100;
constexpr std::size_t kBytes = kCount * sizeof(float);

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "error: %s\n", what);
  std::exit(1);
}

enum class Kind { kDevice, kHost };

// Room for one tensor, some bytes behind an aligned address.
class Tensor {
 public:
  explicit Tensor(Kind kind, std::size_t shift = 0) {
    void* base = nullptr;
    const std::size_t bytes = kBytes + shift;
    require((kind == Kind::kDevice ? cudaMalloc(&base, bytes) : cudaMallocHost(&base, bytes)) == cudaSuccess,
            "cudaMalloc");
    data_ = reinterpret_cast<float*>(static_cast<char*>(base) + shift);
  }
  float* data() const { return data_; }
  void fill(float first, float step) const {
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i)
      values[static_cast<std::size_t>(i)] = first + step * static_cast<float>(i);
    require(cudaMemcpy(data_, values.data(), kBytes, cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
  }
  std::vector<float> read() const {
    std::vector<float> values(kCount);
    require(cudaMemcpy(values.data(), data_, kBytes, cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
    return values;
  }

 private:
  float* data_;
};

int g_right = 0;

// By the graph, then by single launches. y may be x.
void run(const m_memory& memory, const Tensor& x, const Tensor& bias, const Tensor& y, const Tensor& z) {
  for (const bool by_graph : {true, false}) {
    const float first = static_cast<float>(g_right);
    x.fill(first, 1);
    bias.fill(2, -3);
    const m_inputs inputs = {x.data(), bias.data()};
    const m_outputs outputs = {y.data(), z.data()};
    require((by_graph ? m_run : m_enqueue)(&memory, &inputs, &outputs) == M_OK, "run");
    require(m_finish(&memory) == M_OK, m_device_error(&memory));
    const std::vector<float> sums = y.read(), products = z.read();
    for (std::size_t i = 0; i < kCount; ++i) {
      const float n = static_cast<float>(i), a = first + n, sum = a + (2 - 3 * n);
      require(sums[i] == sum && products[i] == a * sum, "a wrong result");
    }
    ++g_right;
  }
}

}  // namespace

int main() {
  m_memory memory = {};
  const auto device = [](std::size_t bytes) {
    void* data = nullptr;
    require(cudaMalloc(&data, bytes > 0 ? bytes : 1) == cudaSuccess, "cudaMalloc");
    return data;
  };
  alignas(M_ALIGN) static unsigned char instance[M_INSTANCE_BYTES];
  memory.arena = device(M_ARENA_BYTES);
  memory.weights = device(M_WEIGHTS_BYTES);
  memory.instance = instance;
  require(m_init(&memory) == M_OK, "m_init");
  const Tensor x(Kind::kDevice), bias(Kind::kDevice), y(Kind::kDevice), z(Kind::kDevice);
  const Tensor other(Kind::kDevice), host(Kind::kHost), result(Kind::kHost), shifted(Kind::kDevice, 4);
  run(memory, x, bias, y, z);
  run(memory, other, bias, z, y);
  run(memory, host, bias, y, result);
  run(memory, x, bias, y, z);
  run(memory, shifted, bias, y, z);
  run(memory, x, bias, x, z);
  run(memory, x, bias, y, z);
  m_release(&memory);
  std::printf("right %d times\n", g_right);
  return 0;
}
