// Runs the decoder of growing_state.py in steps: what each leaves where, and what follows from it.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "net/net.h"
#include "require.h"

namespace {

constexpr std::int64_t kRows = 192, kWords = 50;
using Floats = std::vector<float>;

// The same words always, and a state that goes through them.
class Sequence {
 public:
  Sequence() : arena_(NET_ARENA_BYTES), state_(NET_STATE_BYTES), instance_(NET_INSTANCE_BYTES) {
    memory_.arena = aligned(arena_);
    memory_.state = aligned(state_);
    memory_.instance = aligned(instance_);
    require(net_init(&memory_) == NET_OK, "init");
  }

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
    const net_inputs inputs = {ids.data(), mask.data(), positions.data()};
    const net_outputs outputs = {logits->data()};
    return net_run(&memory_, &sizes, &inputs, &outputs);
  }
  Floats run(std::int64_t past, std::int64_t rows) const {
    Floats logits;
    require(try_run(past, rows, &logits) == NET_OK, "run");
    return logits;
  }

  const net_memory* memory() const { return &memory_; }
  net_sizes* held() const { return &static_cast<net_state*>(memory_.state)->held; }
  unsigned char* bytes() const { return static_cast<unsigned char*>(memory_.state); }

 private:
  using Block = std::vector<unsigned char>;
  static constexpr std::size_t kAlign = NET_ALIGN;
  struct Padded : Block {
    explicit Padded(std::size_t bytes) : Block(bytes + kAlign) {}
  };
  static void* aligned(Block& block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block.data());
    return block.data() + (kAlign - address % kAlign) % kAlign;
  }

  Padded arena_, state_, instance_;
  net_memory memory_{};
};

// Visits `rows` rows behind `past`, in all states: each element, and whether it is of the first in the batch.
template <class Visit>
void visit_rows(const Sequence& sequence, std::int64_t past, std::int64_t rows, const Visit& visit) {
  const net_description* const what = net_describe();
  for (int i = 0; i < what->state_count; ++i) {
    const net_tensor& state = what->states[i];
    require(state.shape[2] == kRows, "room for all rows");
    const std::int64_t heads = state.shape[0] * state.shape[1], size = state.shape[3];
    for (std::int64_t head = 0; head < heads; ++head) {
      float* const first =
          reinterpret_cast<float*>(sequence.bytes() + state.offset) + (head * kRows + past) * size;
      for (std::int64_t j = 0; j < rows * size; ++j) visit(head < state.shape[1], first + j);
    }
  }
}

float worst(const Floats& a, const float* b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::fmax(most, std::fabs(a[i] - b[i]));
  return most;
}

// A prompt and single rows after it are what one run of all rows is.
void steps(std::int64_t prompt, std::int64_t all) {
  const Sequence whole, sequence;
  const Floats expected = whole.run(0, all);
  std::int64_t past = 0;
  while (past < all) {
    const std::int64_t rows = past == 0 ? prompt : 1;
    const Floats logits = sequence.run(past, rows);
    require(worst(logits, expected.data() + past * kWords) < 2e-5f, "logits of a step");
    past += rows;
    require(sequence.held()->past == past && sequence.held()->batch == 1, "what the state holds");
  }
}

// A run writes its own rows and no others, and reads none that nobody wrote.
void rows_alone() {
  const Sequence sequence, other;
  const float unread = std::numeric_limits<float>::quiet_NaN();
  visit_rows(sequence, 0, kRows, [&](bool, float* at) { *at = unread; });
  std::int64_t past = 0;
  for (const std::int64_t rows : {5, 1, 1, 40, 1, 144}) {
    const std::vector<unsigned char> before(sequence.bytes(), sequence.bytes() + NET_STATE_BYTES);
    const Floats logits = sequence.run(past, rows);
    require(logits == other.run(past, rows), "logits behind rows of no meaning");
    visit_rows(sequence, past, rows, [&](bool of_the_batch, float* at) {
      require(std::isnan(*at) == !of_the_batch, "a row of its own");
      const auto offset = reinterpret_cast<unsigned char*>(at) - sequence.bytes();
      std::memcpy(at, before.data() + offset, sizeof(float));
    });
    require(std::memcmp(before.data() + sizeof(net_sizes), sequence.bytes() + sizeof(net_sizes),
                        NET_STATE_BYTES - sizeof(net_sizes)) == 0,
            "nothing but new rows is written");
    visit_rows(other, past, rows, [&](bool of_the_batch, float* at) {
      if (!of_the_batch) return;
      const auto offset = reinterpret_cast<unsigned char*>(at) - other.bytes();
      std::memcpy(sequence.bytes() + offset, at, sizeof(float));
    });
    past += rows;
  }
  require(past == kRows, "all rows");
  Floats logits;
  require(sequence.try_run(past, 1, &logits) == NET_INVALID_SIZES, "no row behind the last");
}

// Fewer rows than the state holds, none, those of another batch, too many.
void sizes_of_the_state() {
  const Sequence sequence;
  Floats logits;
  require(sequence.try_run(1, 1, &logits) == NET_INVALID_STATE, "rows of a state that holds none");
  sequence.run(0, 9);
  require(sequence.try_run(10, 1, &logits) == NET_INVALID_STATE, "more rows than the state holds");
  require(sequence.try_run(9, 1, &logits, 2) == NET_INVALID_STATE, "rows of another batch");
  require(sequence.held()->past == 9, "a refused run changes nothing");
  const Floats first = sequence.run(9, 3), again = sequence.run(9, 3);
  require(first == again, "the same rows once more");
  require(net_reset(sequence.memory()) == NET_OK && sequence.held()->batch == 0, "reset");
  require(sequence.try_run(0, 4, &logits, 2) == NET_OK, "another batch after a reset");
  require(std::strcmp(net_status_text(NET_INVALID_STATE), "unknown status") != 0, "a text of the status");
}

// A sequence goes on in another instance from what was saved of it.
void saved() {
  const Sequence sequence, other;
  sequence.run(0, 17);
  const net_sizes sizes = *sequence.held();
  for (int i = 0; i < NET_STATES; ++i) {
    std::int64_t shape[NET_MAX_RANK] = {};
    require(net_state_shape(&sizes, i, shape) == NET_OK && shape[2] == 17, "shape of a state");
    Floats data(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
    require(net_save_state(sequence.memory(), i, data.data()) == NET_OK, "save");
    require(net_load_state(other.memory(), &sizes, i, data.data()) == NET_OK, "load");
    net_sizes too_many = sizes;
    too_many.past = kRows + 1;
    require(net_load_state(other.memory(), &too_many, i, data.data()) == NET_INVALID_SIZES,
            "load of too many rows");
    require(net_state_shape(&too_many, i, shape) == NET_INVALID_SIZES, "shape of too many rows");
  }
  float nothing = 0;
  require(net_save_state(sequence.memory(), NET_STATES, &nothing) == NET_INVALID_ARGUMENT,
          "a state that is none");
  require(sequence.run(17, 2) == other.run(17, 2), "logits after loading");
}

}  // namespace

int main() {
  steps(7, 60);
  steps(130, 140);
  steps(kRows - 40, kRows - 32);
  rows_alone();
  sizes_of_the_state();
  saved();
  return 0;
}
