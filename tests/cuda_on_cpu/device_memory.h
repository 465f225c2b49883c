// Memory of tests of device code: exact-size buffers, filled from and read back to vectors. The same on the
// emulator and on a GPU, where the host cannot look into device memory.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cuda_test {

template <class T>
class Device {
 public:
  // Poisoned, or a copy of `values`.
  explicit Device(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, allocated_bytes(count * sizeof(T))), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0xff, count * sizeof(T)), cudaSuccess);
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) { write(values); }
  ~Device() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  void write(const std::vector<T>& values) const {
    ASSERT_EQ(values.size(), count_);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  // memcheck takes a copy of 16 bytes for a read of 16, however few of them exist (cp.async with a source size),
  // and ends the kernel: on a device the last 16 bytes are whole. The emulator knows better.
  static std::size_t allocated_bytes(std::size_t bytes) {
#if defined(__CUDACC__)
    return bytes / 16 * 16 + 16;
#else
    return bytes + (bytes == 0 ? 1 : 0);
#endif
  }
  T* data_ = nullptr;
  std::size_t count_;
};

// Page-locked memory of the host.
template <class T>
class Pinned {
 public:
  explicit Pinned(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMallocHost(&data_, count_ * sizeof(T)), cudaSuccess);
    write(values);
  }
  ~Pinned() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() const { return data_; }
  void write(const std::vector<T>& values) const {
    ASSERT_EQ(values.size(), count_);
    std::copy(values.begin(), values.end(), data_);
  }
  std::vector<T> read() const { return {data_, data_ + count_}; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace cuda_test
