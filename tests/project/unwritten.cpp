// Runs a model, which is called `net`, under MemorySanitizer: all memory that it gets is as nobody has
// written it but the inputs, and every byte of the outputs must have been written. Only C functions: the C++
// library is not instrumented.
#include <sanitizer/msan_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "net/net.h"

namespace {

void* memory_of(std::size_t bytes) {
  void* memory = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (memory == nullptr) std::abort();
  __msan_poison(memory, bytes);
  return memory;
}

void fill(const net_tensor& tensor, void* memory) {
  const std::size_t count = tensor.bytes / tensor.element_bytes;
  if (std::strcmp(tensor.element, "float32") == 0) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<float*>(memory)[i] = static_cast<float>(i % 17) / 8 - 1;
  } else {
    for (std::size_t i = 0; i < tensor.bytes; ++i) static_cast<unsigned char*>(memory)[i] = 0;
    if (tensor.element_bytes == 1 && std::strcmp(tensor.element, "bool") != 0) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<unsigned char*>(memory)[i] = static_cast<unsigned char>(i * 7);
    }
  }
}

}  // namespace

int main() {
  const net_description* model = net_describe();
  void* inputs[64];
  void* outputs[64];
  for (int i = 0; i < model->input_count; ++i) {
    inputs[i] = memory_of(model->inputs[i].bytes);
    fill(model->inputs[i], inputs[i]);
  }
  for (int i = 0; i < model->output_count; ++i) outputs[i] = memory_of(model->outputs[i].bytes);
  net_memory memory = {};
  memory.arena = memory_of(NET_ARENA_BYTES + 64);
  memory.state = memory_of(NET_STATE_BYTES + 64);
  memory.instance = memory_of(NET_INSTANCE_BYTES + 64);
  if (net_init(&memory) != NET_OK) return 1;
  net_inputs in;
  net_outputs out;
  std::memcpy(&in, inputs, sizeof in);
  std::memcpy(&out, outputs, sizeof out);
  for (int run = 0; run < 2; ++run) {
    if (net_run(&memory, &in, &out) != NET_OK) return 1;
  }
  for (int i = 0; i < model->output_count; ++i)
    __msan_check_mem_is_initialized(outputs[i], model->outputs[i].bytes);
  std::puts("all written");
  return 0;
}
