// Runs the decoder of cuda_sizes.py in steps, on the emulator: what each leaves in the state on the device,
// what follows from it, and how many graphs that takes.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cuda_on_cpu.h"
#include "net/net.h"
#include "require.h"

namespace {

constexpr std::int64_t kRows = 192, kWords = 50;
using Floats = std::vector<float>;
using Bytes = std::vector<unsigned char>;

class Block {
 public:
  explicit Block(std::size_t bytes) {
    require(cudaMalloc(&data_, bytes > 0 ? bytes : 1) == cudaSuccess, "cudaMalloc");
  }
  ~Block() { cudaFree(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

// The same words always, and a state that goes through them.
// Inputs and outputs lie in one of two sets of buffers.
class Sequence {
 public:
  Sequence() : instance_(NET_INSTANCE_BYTES / 8 + 8) {
    memory_.arena = arena_.get();
    memory_.weights = weights_.get();
    memory_.state = state_.get();
    const auto address = reinterpret_cast<std::uintptr_t>(instance_.data());
    memory_.instance = reinterpret_cast<void*>((address + NET_ALIGN - 1) / NET_ALIGN * NET_ALIGN);
    require(cudaMemset(state_.get(), 0xff, NET_STATE_BYTES) == cudaSuccess, "cudaMemset");  // NaN
    require(net_init(&memory_) == NET_OK, net_device_error(&memory_));
  }
  ~Sequence() { net_release(&memory_); }

  net_status try_run(std::int64_t past, std::int64_t rows, Floats* logits, std::int64_t batch = 1) const {
    std::vector<std::int64_t> ids, positions, mask(static_cast<std::size_t>(batch * (past + rows)), 1);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t row = past; row < past + rows; ++row) {
        ids.push_back((row * 7 + b) % kWords);
        positions.push_back(row);
      }
    }
    logits->assign(static_cast<std::size_t>(batch * rows * kWords), 0);
    net_sizes sizes{};
    sizes.batch = batch;
    sizes.sequence = rows;
    sizes.past = past;
    const Buffers& own = buffers_[turn_++ % 2];
    const auto upload = [](const Block& to, const std::vector<std::int64_t>& from) {
      require(cudaMemcpy(to.get(), from.data(), from.size() * 8, cudaMemcpyHostToDevice) == cudaSuccess,
              "upload");
    };
    upload(own.ids, ids);
    upload(own.mask, mask);
    upload(own.positions, positions);
    const net_inputs inputs = {static_cast<const std::int64_t*>(own.ids.get()),
                               static_cast<const std::int64_t*>(own.mask.get()),
                               static_cast<const std::int64_t*>(own.positions.get())};
    const net_outputs outputs = {static_cast<float*>(own.logits.get())};
    const net_status status = net_run(&memory_, &sizes, &inputs, &outputs);
    if (status != NET_OK) return status;
    require(net_finish(&memory_) == NET_OK, net_device_error(&memory_));
    require(cudaMemcpy(logits->data(), own.logits.get(), logits->size() * 4, cudaMemcpyDeviceToHost) ==
                cudaSuccess,
            "download");
    return status;
  }
  Floats run(std::int64_t past, std::int64_t rows) const {
    Floats logits;
    require(try_run(past, rows, &logits) == NET_OK, "run");
    return logits;
  }

  const net_memory* memory() const { return &memory_; }
  net_sizes held() const {
    net_sizes held{};
    require(net_held_sizes(&memory_, &held) == NET_OK, "held sizes");
    return held;
  }
  Bytes state() const {
    Bytes bytes(NET_STATE_BYTES);
    require(cudaMemcpy(bytes.data(), state_.get(), bytes.size(), cudaMemcpyDeviceToHost) == cudaSuccess,
            "state");
    return bytes;
  }

 private:
  struct Buffers {
    Block ids{8 * 2 * kRows}, mask{8 * 2 * kRows}, positions{8 * 2 * kRows}, logits{4 * 2 * kRows * kWords};
  };
  Block arena_{NET_ARENA_BYTES}, weights_{NET_WEIGHTS_BYTES}, state_{NET_STATE_BYTES};
  std::vector<std::uint64_t> instance_;
  Buffers buffers_[2];
  mutable int turn_ = 0;
  net_memory memory_{};
};

float worst(const Floats& a, const float* b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::fmax(most, std::fabs(a[i] - b[i]));
  return most;
}

// Products of tiles round rows to 16 bits, those of single rows do not: what --precision allows an element,
// 64u of the root mean square (u = 2^-8 of bfloat16, 2^-11 of float16).
float tolerance(const Floats& logits) {
  const std::string element = net_describe()->states[0].element;
  if (element == "float32") return 2e-5f;
  double squares = 0;
  for (const float logit : logits) squares += static_cast<double>(logit) * static_cast<double>(logit);
  const double rms = std::sqrt(squares / static_cast<double>(logits.size()));
  return static_cast<float>(64 * (element == "bfloat16" ? 1.0 / 256 : 1.0 / 2048) * rms);
}

// A prompt and single rows after it are what one run of all rows is, and capture nothing once the instance
// knows runs of their steps.
void steps(const Sequence& sequence, const Floats& expected, std::int64_t prompt, std::int64_t all,
           bool is_known) {
  const int graphs = cuda_on_cpu::instantiated_graphs();
  std::int64_t past = 0;
  while (past < all) {
    const std::int64_t rows = past == 0 ? prompt : 1;
    const Floats logits = sequence.run(past, rows);
    require(worst(logits, expected.data() + past * kWords) < tolerance(expected), "logits of a step");
    past += rows;
    require(sequence.held().past == past && sequence.held().batch == 1, "what the state holds");
  }
  const int made = cuda_on_cpu::instantiated_graphs() - graphs;
  std::printf("%d steps, %d graphs\n", static_cast<int>(all - prompt + 1), made);
  require(made <= (is_known ? 0 : 4), "graphs that were captured");
}

// A run writes its own rows and no others, and reads none that nobody wrote:
// those are NaN from the beginning.
void rows_alone() {
  const Sequence sequence;
  std::int64_t past = 0;
  for (const std::int64_t rows : {5, 1, 12}) {
    const Bytes before = sequence.state();
    for (const float logit : sequence.run(past, rows))
      require(!std::isnan(logit), "logits from rows of no meaning");
    Bytes after = sequence.state();
    const net_description* const what = net_describe();
    for (int i = 0; i < what->state_count; ++i) {
      const net_tensor& state = what->states[i];
      require(state.shape[2] == kRows, "room for all rows");
      const std::size_t row_bytes = static_cast<std::size_t>(state.shape[3]) * state.element_bytes;
      for (std::int64_t head = 0; head < state.shape[1]; ++head) {  // of the first in the batch
        const std::size_t at = state.offset + static_cast<std::size_t>(head * kRows + past) * row_bytes;
        const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes;
        require(std::memcmp(after.data() + at, before.data() + at, bytes) != 0, "new rows");
        std::memcpy(after.data() + at, before.data() + at, bytes);
      }
    }
    require(after == before, "nothing but new rows is written");
    past += rows;
  }
}

// Fewer rows than the state holds, none, those of another batch, too many.
void sizes_of_the_state() {
  const Sequence sequence;
  Floats logits;
  require(sequence.try_run(1, 1, &logits) == NET_INVALID_STATE, "rows of a state that holds none");
  sequence.run(0, 9);
  require(sequence.try_run(10, 1, &logits) == NET_INVALID_STATE, "more rows than the state holds");
  require(sequence.try_run(9, 1, &logits, 2) == NET_INVALID_STATE, "rows of another batch");
  require(sequence.held().past == 9, "a refused run changes nothing");
  require(sequence.try_run(9, kRows - 8, &logits) == NET_INVALID_SIZES, "no row behind the last");
  const Floats first = sequence.run(9, 3), again = sequence.run(9, 3);
  require(first == again, "the same rows once more");
  require(net_reset(sequence.memory()) == NET_OK && sequence.held().batch == 0, "reset");
  require(sequence.try_run(0, 4, &logits, 2) == NET_OK, "another batch after a reset");
}

// A sequence goes on in another instance from what was saved of it.
void saved() {
  const Sequence sequence, other;
  sequence.run(0, 17);
  const net_sizes sizes = sequence.held();
  for (int i = 0; i < NET_STATES; ++i) {
    std::int64_t shape[NET_MAX_RANK] = {};
    require(net_state_shape(&sizes, i, shape) == NET_OK && shape[2] == 17, "shape of a state");
    Bytes data(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]) *
               net_describe()->states[i].element_bytes);
    require(net_save_state(sequence.memory(), i, data.data()) == NET_OK, "save");
    require(net_load_state(other.memory(), &sizes, i, data.data()) == NET_OK, "load");
    net_sizes too_many = sizes;
    too_many.past = kRows + 1;
    require(net_load_state(other.memory(), &too_many, i, data.data()) == NET_INVALID_SIZES,
            "load of too many rows");
  }
  float nothing = 0;
  require(net_save_state(sequence.memory(), NET_STATES, &nothing) == NET_INVALID_ARGUMENT,
          "a state that is none");
  require(sequence.run(17, 2) == other.run(17, 2), "logits after loading");
}

}  // namespace

int main() {
  const Floats expected = Sequence().run(0, 40);
  const Sequence sequence;
  steps(sequence, expected, 7, 16, false);
  steps(sequence, expected, 30, 36, false);
  // Prompts in tiles, of few rows as vectors, and single rows: three kinds of steps are known.
  steps(sequence, expected, 25, 32, true);
  steps(sequence, expected, 5, 14, true);
  steps(sequence, expected, 29, 40, true);
  rows_alone();
  sizes_of_the_state();
  saved();
  return 0;
}
