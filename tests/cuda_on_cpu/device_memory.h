// Device memory of tests: exact-size buffers that are filled from and read back to vectors.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace cuda_test {

template <class T>
class Device {
 public:
  // Poisoned, or a copy of `values`.
  explicit Device(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess);
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Device() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace cuda_test
