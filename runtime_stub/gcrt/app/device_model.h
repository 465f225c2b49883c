// A model with all device memory that it needs and a stream, as its programs use it. Host code.
//
// What T, the traits of a model, must have: kName; kBlocks; Memory, Inputs, Outputs; describe, status_text,
// init, run, finish, release, device_error, the functions of its C header; inputs(addresses) and
// outputs(addresses), which make Inputs and Outputs of one address for each tensor.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "gcrt/app/block.h"
#include "gcrt/memory_check.h"

namespace GCRT_NAMESPACE {

inline void require_cuda(cudaError_t error, const char* function) {
  if (error != cudaSuccess) fail(std::string(function) + ": " + cudaGetErrorString(error));
}

class DeviceBlock {
 public:
  explicit DeviceBlock(std::size_t bytes) : data_(nullptr) {
    require_cuda(cudaMalloc(&data_, bytes > 0 ? bytes : 1), "cudaMalloc");
    require_cuda(cudaMemset(data_, 0xff, bytes), "cudaMemset");
  }
  ~DeviceBlock() { cudaFree(data_); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  DeviceBlock(DeviceBlock&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  void* data() const { return data_; }

 private:
  void* data_;
};

inline void upload(void* to, const void* from, std::size_t bytes) {
  require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}
inline void download(void* to, const void* from, std::size_t bytes) {
  require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

template <class T>
class DeviceModel {
 public:
  using Traits = T;

  // `weights_path`: empty where they are linked in. A GPU needs no threads of the host.
  DeviceModel(const std::string& weights_path, int /*threads*/)
      : arena_(T::kBlocks.arena),
        state_(T::kBlocks.state),
        weights_(T::kBlocks.weights),
        instance_(T::kBlocks.instance, T::kBlocks.alignment) {
    // Not one that passes the default stream by: blocks are filled there, and neither cudaMemset nor a copy
    // from pageable memory has reached the device when it returns.
    require_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate");
    memory_.arena = arena_.data();
    memory_.state = state_.data();
    memory_.instance = instance_.data();
    memory_.weights = weights_.data();
    memory_.stream = stream_;
    if (!weights_path.empty()) {
      const Block host(T::kBlocks.weights, T::kBlocks.alignment);
      read_file(weights_path, host);
      upload(weights_.data(), host.data(), host.bytes());
    }
    require(T::init(&memory_), "init");
    const auto& model = *T::describe();
    for (int i = 0; i < model.input_count; ++i) inputs_.emplace_back(model.inputs[i].bytes);
    for (int i = 0; i < model.output_count; ++i) outputs_.emplace_back(model.outputs[i].bytes);
  }
  ~DeviceModel() {
    T::release(&memory_);
    cudaStreamDestroy(stream_);
  }
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  void set_state(const Tensor& tensor) const { upload(place_of(tensor), tensor.bytes.data(), tensor.size); }
  void get_state(Tensor* tensor) const { download(tensor->bytes.data(), place_of(*tensor), tensor->size); }

  void run(Tensors* tensors) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      upload(inputs_[i].data(), tensors->inputs[i].bytes.data(), tensors->inputs[i].size);
    }
    run_again(tensors);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      download(tensors->outputs[i].bytes.data(), outputs_[i].data(), tensors->outputs[i].size);
    }
  }

  // Without the copies, on the inputs of the last run.
  void run_again(Tensors* /*tensors*/) const {
    start();
    require(T::finish(&memory_), "run");
  }

  // Milliseconds on the device of runs that follow each other without a pause.
  std::vector<double> device_times(int repeat) const {
    std::vector<cudaEvent_t> ends(static_cast<std::size_t>(repeat) + 1);
    for (cudaEvent_t& end : ends) {
      require_cuda(cudaEventCreate(&end), "cudaEventCreate");
      start();
      require_cuda(cudaEventRecord(end, stream_), "cudaEventRecord");
    }
    require(T::finish(&memory_), "finish");
    std::vector<double> times;
    for (std::size_t i = 1; i < ends.size(); ++i) {
      float milliseconds = 0;
      require_cuda(cudaEventElapsedTime(&milliseconds, ends[i - 1], ends[i]), "cudaEventElapsedTime");
      times.push_back(static_cast<double>(milliseconds));
    }
    for (const cudaEvent_t end : ends) cudaEventDestroy(end);
    return times;
  }

 protected:
  template <class Status>
  void require(Status status, const char* function) const {
    if (status == Status{}) return;
    const bool is_of_the_device = status == T::kDeviceError;
    fail(std::string(T::kName) + "_" + function + ": " +
         (is_of_the_device ? T::device_error(&memory_) : T::status_text(status)));
  }

  typename T::Memory memory_{};

 private:
  char* place_of(const Tensor& state) const { return static_cast<char*>(memory_.state) + state.offset; }

  static std::vector<void*> addresses_of(const std::vector<DeviceBlock>& blocks) {
    std::vector<void*> addresses;
    for (const DeviceBlock& block : blocks) addresses.push_back(block.data());
    return addresses;
  }

  void start() const {
    const typename T::Inputs inputs = T::inputs(addresses_of(inputs_).data());
    const typename T::Outputs outputs = T::outputs(addresses_of(outputs_).data());
    require(T::run(&memory_, &inputs, &outputs), "run");
  }

  DeviceBlock arena_, state_, weights_;
  Block instance_;
  std::vector<DeviceBlock> inputs_, outputs_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace GCRT_NAMESPACE
