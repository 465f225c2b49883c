// Runs the merged decoder of growing_state.py: a prompt without the cache, then single rows with it.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "net/net.h"
#include "require.h"

namespace {

constexpr std::int64_t kRows = 344, kHeard = 23, kWidth = 32, kWords = 50;
using Floats = std::vector<float>;
using Bytes = std::vector<unsigned char>;

class Sequence {
 public:
  Sequence()
      : arena_(NET_ARENA_BYTES + kAlign),
        state_(NET_STATE_BYTES + kAlign),
        instance_(NET_INSTANCE_BYTES + kAlign) {
    memory_.arena = aligned(arena_);
    memory_.state = aligned(state_);
    memory_.instance = aligned(instance_);
    require(net_init(&memory_) == NET_OK, "init");
  }

  net_status try_run(std::int64_t past, std::int64_t rows, bool use_cache, Floats* logits) const {
    std::vector<std::int64_t> ids;
    for (std::int64_t row = past; row < past + rows; ++row) ids.push_back(row * 7 % kWords);
    // What nobody reads has no meaning.
    Floats heard(kHeard * kWidth, std::numeric_limits<float>::quiet_NaN());
    if (!use_cache) {
      for (std::size_t i = 0; i < heard.size(); ++i) heard[i] = std::sin(static_cast<float>(i));
    }
    logits->assign(static_cast<std::size_t>(rows * kWords), 0);
    net_sizes sizes{};
    sizes.batch = 1;
    sizes.sequence = rows;
    sizes.past = past;
    sizes.heard = sizes.heard_before = kHeard;
    const std::uint8_t cache = use_cache ? 1 : 0;
    const net_inputs inputs = {ids.data(), heard.data(), &cache};
    const net_outputs outputs = {logits->data()};
    return net_run(&memory_, &sizes, &inputs, &outputs);
  }
  Floats run(std::int64_t past, std::int64_t rows) const {
    Floats logits;
    require(try_run(past, rows, past > 0, &logits) == NET_OK, "run");
    return logits;
  }

  unsigned char* memory() const { return static_cast<unsigned char*>(memory_.state); }
  Bytes state() const { return Bytes(memory(), memory() + NET_STATE_BYTES); }

 private:
  static constexpr std::size_t kAlign = NET_ALIGN;
  static void* aligned(Bytes& block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block.data());
    return block.data() + (kAlign - address % kAlign) % kAlign;
  }

  Bytes arena_, state_, instance_;
  net_memory memory_{};
};

// Without the sizes in front.
Bytes rows_of(const Bytes& state) { return Bytes(state.begin() + sizeof(net_sizes), state.end()); }

// Sets every element of `row` of the caches that grow.
void set_row(unsigned char* state, std::int64_t row, float value) {
  const net_description* const what = net_describe();
  int growing = 0;
  for (int i = 0; i < what->state_count; ++i) {
    const net_tensor& cache = what->states[i];
    if (cache.shape[2] != kRows) continue;
    ++growing;
    for (std::int64_t head = 0; head < cache.shape[1]; ++head) {
      float* const at =
          reinterpret_cast<float*>(state + cache.offset) + (head * kRows + row) * cache.shape[3];
      for (std::int64_t j = 0; j < cache.shape[3]; ++j) at[j] = value;
    }
  }
  require(growing == 4, "caches that grow, and others that do not");
}

// 200 rows after a prompt are what one run of all rows is. Each writes its own rows alone, and reads what the
// first has left of the encoder's.
void steps(std::int64_t prompt) {
  const std::int64_t all = prompt + 200;
  const Sequence whole, sequence;
  const Floats expected = whole.run(0, all);
  for (std::int64_t past = 0; past < all;) {
    const std::int64_t rows = past == 0 ? prompt : 1;
    Bytes before = sequence.state();
    const Floats logits = sequence.run(past, rows);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const float difference = logits[i] - expected[static_cast<std::size_t>(past * kWords) + i];
      require(std::fabs(difference) < 2e-5f, "logits of a step");
    }
    if (past > 0) {
      const Bytes first = sequence.state();
      set_row(sequence.memory(), past, std::numeric_limits<float>::quiet_NaN());
      require(sequence.run(past, rows) == logits && sequence.state() == first, "the same row once more");
      Bytes after = first;
      for (Bytes* each : {&before, &after}) set_row(each->data(), past, 0);
      require(rows_of(before) == rows_of(after), "nothing but the new row is written");
    }
    past += rows;
  }
}

// Without the cache there are no rows before: a run at some writes nothing.
void contradiction() {
  const Sequence sequence;
  sequence.run(0, 9);
  const Bytes before = rows_of(sequence.state());
  Floats logits;
  require(sequence.try_run(9, 1, false, &logits) == NET_SHAPE_MISMATCH, "rows before, and no cache");
  for (const float value : logits) require(value == 0, "logits of no run");
  require(rows_of(sequence.state()) == before, "state of no run");
  const Sequence other;
  other.run(0, 9);
  require(sequence.run(9, 1) == other.run(9, 1), "a run after the refused one");
}

}  // namespace

int main() {
  steps(7);
  steps(130);
  contradiction();
  return 0;
}
