// A server on one GPU: a line of text in, a line out that says whether its brackets balance. As many requests as there are
// lanes are on the GPU at the same time; answers come in the order of the requests.
//
// A lane is a stream with the memory of one run: arena, instance, and page-locked tensors. Weights are there once.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "brackets/brackets.h"

namespace {

constexpr char kLetters[] = " ()abcdef";  // token 0, 1, ...
constexpr const char* kAnswers[] = {"balanced", "unclosed", "unexpected"};
constexpr std::size_t kTokens = BRACKETS_INPUT_TOKENS_ELEMENTS;
constexpr std::size_t kClasses = BRACKETS_OUTPUT_PROBABILITIES_ELEMENTS;

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "error: " << what << "\n";
  std::exit(1);
}

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}

void require(brackets_status status, const brackets_memory* memory, const char* what) {
  if (status == BRACKETS_OK) return;
  fail(std::string(what) + ": " +
       (status == BRACKETS_DEVICE_ERROR ? brackets_device_error(memory) : brackets_status_text(status)));
}

void* device_block(std::size_t bytes) {
  void* block = nullptr;
  require(cudaMalloc(&block, bytes > 0 ? bytes : 1), "cudaMalloc");
  return block;
}

void* page_locked_block(std::size_t bytes) {
  void* block = nullptr;
  require(cudaMallocHost(&block, bytes), "cudaMallocHost");
  return block;
}

class Lane {
 public:
  explicit Lane(const void* weights)
      : tokens_(static_cast<std::int64_t*>(page_locked_block(kTokens * sizeof(std::int64_t)))),
        probabilities_(static_cast<float*>(page_locked_block(kClasses * sizeof(float)))) {
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    memory_.arena = device_block(BRACKETS_ARENA_BYTES);
    memory_.state = device_block(BRACKETS_STATE_BYTES);
    memory_.weights = weights;
    memory_.instance = page_locked_block(BRACKETS_INSTANCE_BYTES);
    memory_.stream = stream;
    require(brackets_init(&memory_), &memory_, "brackets_init");
  }
  ~Lane() {
    brackets_release(&memory_);
    cudaStreamDestroy(static_cast<cudaStream_t>(memory_.stream));
    cudaFree(memory_.arena);
    cudaFree(memory_.state);
    for (void* block : {memory_.instance, static_cast<void*>(tokens_), static_cast<void*>(probabilities_)})
      cudaFreeHost(block);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Starts a run; does not wait. What is no letter of the model's is a blank.
  void start(const std::string& text) {
    for (std::size_t i = 0; i < kTokens; ++i) {
      const char* const found = i < text.size() && text[i] != '\0' ? std::strchr(kLetters, text[i]) : nullptr;
      tokens_[i] = found != nullptr ? found - kLetters : 0;
    }
    const brackets_inputs inputs = {tokens_};
    const brackets_outputs outputs = {probabilities_};
    require(brackets_run(&memory_, &inputs, &outputs), &memory_, "brackets_run");
    text_ = text;
    is_busy_ = true;
  }

  // Waits for the run that was started, and prints its answer; nothing where there is none.
  void finish() {
    if (!is_busy_) return;
    is_busy_ = false;
    require(brackets_finish(&memory_), &memory_, "brackets_finish");
    std::size_t best = 0;
    for (std::size_t i = 1; i < kClasses; ++i) {
      if (probabilities_[i] > probabilities_[best]) best = i;
    }
    std::cout << kAnswers[best] << " " << text_ << "\n";
  }

 private:
  brackets_memory memory_{};
  std::int64_t* tokens_;
  float* probabilities_;
  std::string text_;
  bool is_busy_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 4;
  if (count < 1 || count > 64) fail("usage: server [LANES], 1 to 64");
  void* const weights = device_block(BRACKETS_WEIGHTS_BYTES);  // filled by the first lane's init
  {
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < count; ++i) lanes.push_back(std::make_unique<Lane>(weights));
    std::size_t next = 0;
    for (std::string line; std::getline(std::cin, line); next = (next + 1) % lanes.size()) {
      lanes[next]->finish();  // of the request before the last ones
      lanes[next]->start(line);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[(next + i) % lanes.size()]->finish();
  }
  cudaFree(weights);
  return 0;
}
