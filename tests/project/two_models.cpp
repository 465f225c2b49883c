// Two emitted models in one program: interleaved on one poisoned arena, and on threads of their own. Prints
// one line per model and kind of run with a checksum of every output of every frame; all lines of a model
// must be equal. Built with only HAS_FIRST or HAS_SECOND the program holds that model and runs it alone.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#if defined(HAS_FIRST)
#include "first/first.h"
#endif
#if defined(HAS_SECOND)
#include "second/second.h"
#endif

namespace {

constexpr int kFrames = 4;

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(1);
}

// Aligned bytes of all ones: NaN in every floating type, and -1.
class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_((bytes / 64 + 1) * 64), data_(std::aligned_alloc(64, bytes_)) {
    if (data_ == nullptr) fail("memory", "none left");
    poison();
  }
  ~Block() { std::free(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void poison() { std::memset(data_, 0xff, bytes_); }
  void* data() const { return data_; }
  unsigned char* bytes() const { return static_cast<unsigned char*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

#define GCOMPILE_MODEL(Name, model, UPPER)                                                            \
  struct Name {                                                                                       \
    using Memory = model##_memory;                                                                    \
    using Inputs = model##_inputs;                                                                    \
    using Outputs = model##_outputs;                                                                  \
    static constexpr std::size_t arena_bytes = UPPER##_ARENA_BYTES;                                   \
    static constexpr std::size_t state_bytes = UPPER##_STATE_BYTES;                                   \
    static constexpr std::size_t instance_bytes = UPPER##_INSTANCE_BYTES;                             \
    static const model##_description* describe() { return model##_describe(); }                       \
    static const char* init(const Memory* memory) { return text(model##_init(memory)); }              \
    static const char* run(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {      \
      return text(model##_run(memory, inputs, outputs));                                              \
    }                                                                                                 \
    static const char* text(model##_status status) {                                                  \
      return status == UPPER##_OK ? nullptr : model##_status_text(status);                            \
    }                                                                                                 \
    static const model##_threads* threads_create(int count) { return model##_threads_create(count); } \
    static void threads_destroy(const model##_threads* threads) { model##_threads_destroy(threads); } \
  }
#if defined(HAS_FIRST)
GCOMPILE_MODEL(First, first, FIRST);
#endif
#if defined(HAS_SECOND)
GCOMPILE_MODEL(Second, second, SECOND);
#endif

// One model with a state and an instance of its own, fed with frames that depend on the frame's number alone.
template <class Model>
class Stream {
 public:
  explicit Stream(void* arena) : state_(Model::state_bytes), instance_(Model::instance_bytes) {
    memory_.arena = arena;
    memory_.state = state_.data();
    memory_.instance = instance_.data();
    const auto* const description = Model::describe();
    static_assert(sizeof(typename Model::Inputs) % sizeof(void*) == 0, "pointers and nothing else");
    for (int i = 0; i < description->input_count; ++i) add(description->inputs[i], inputs_);
    for (int i = 0; i < description->output_count; ++i) add(description->outputs[i], outputs_);
    if (const char* why = Model::init(&memory_)) fail(description->name, why);
  }
  ~Stream() {
    for (Tensor& tensor : inputs_) delete tensor.block;
    for (Tensor& tensor : outputs_) delete tensor.block;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  template <class Threads>
  void set_threads(const Threads* threads) {
    memory_.threads = threads;
  }

  void frame() {
    for (Tensor& tensor : inputs_) fill(tensor);
    for (Tensor& tensor : outputs_) tensor.block->poison();
    const auto inputs = pointers<typename Model::Inputs>(inputs_);
    const auto outputs = pointers<typename Model::Outputs>(outputs_);
    if (const char* why = Model::run(&memory_, &inputs, &outputs)) fail(Model::describe()->name, why);
    for (const Tensor& tensor : outputs_) {
      for (std::size_t i = 0; i < tensor.bytes; ++i)
        hash_ = (hash_ ^ tensor.block->bytes()[i]) * 0x100000001b3u;
      if (tensor.is_float) check_finite(tensor);
    }
  }
  void report(const char* kind) const {
    std::printf("%s %s %016llx\n", Model::describe()->name, kind, static_cast<unsigned long long>(hash_));
  }

 private:
  struct Tensor {
    Block* block;
    std::size_t bytes;
    bool is_float;
  };
  template <class Description>
  static void add(const Description& tensor, std::vector<Tensor>& target) {
    const bool is_float = std::strcmp(tensor.element, "float32") == 0;
    if (!is_float && std::strcmp(tensor.element, "int64") != 0)
      fail(tensor.name, "neither float32 nor int64");
    target.push_back({new Block(tensor.bytes), tensor.bytes, is_float});
  }
  // Numbers from -1 to 1, and indices from 0 to 3.
  void fill(const Tensor& tensor) {
    const std::size_t step = tensor.is_float ? sizeof(float) : sizeof(std::int64_t);
    for (std::size_t i = 0; i < tensor.bytes; i += step) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      const float value = static_cast<float>(static_cast<std::int32_t>(random_ >> 32)) * 0x1p-31f;
      const std::int64_t index = static_cast<std::int64_t>(random_ >> 62);
      std::memcpy(tensor.block->bytes() + i,
                  tensor.is_float ? static_cast<const void*>(&value) : static_cast<const void*>(&index),
                  step);
    }
  }
  static void check_finite(const Tensor& tensor) {
    for (std::size_t i = 0; i < tensor.bytes; i += 4) {
      float value;
      std::memcpy(&value, tensor.block->bytes() + i, 4);
      if (!(value - value == 0)) fail(Model::describe()->name, "an output is not finite");
    }
  }
  template <class Struct>
  static Struct pointers(const std::vector<Tensor>& tensors) {
    if (sizeof(Struct) != tensors.size() * sizeof(void*))
      fail(Model::describe()->name, "its tensors are not described");
    std::vector<void*> addresses;
    for (const Tensor& tensor : tensors) addresses.push_back(tensor.block->data());
    Struct result;
    std::memcpy(&result, addresses.data(), sizeof(result));
    return result;
  }

  Block state_, instance_;
  typename Model::Memory memory_{};
  std::vector<Tensor> inputs_, outputs_;
  std::uint64_t random_ = 1, hash_ = 0xcbf29ce484222325u;
};

template <class Model>
void solo() {
  const Block arena(Model::arena_bytes);
  Stream<Model> stream(arena.data());
  for (int i = 0; i < kFrames; ++i) stream.frame();
  stream.report("solo");
}

#if defined(HAS_FIRST) && defined(HAS_SECOND)
void shared_arena() {
  Block arena(First::arena_bytes > Second::arena_bytes ? First::arena_bytes : Second::arena_bytes);
  Stream<First> first(arena.data());
  Stream<Second> second(arena.data());
  for (int i = 0; i < kFrames; ++i) {
    arena.poison();
    first.frame();
    arena.poison();
    second.frame();
  }
  first.report("shared");
  second.report("shared");
}

// Both models on both threads at the same time: four streams, two arenas, one copy of each model's weights.
void two_threads() {
  const auto work = [] {
    Block arena(First::arena_bytes > Second::arena_bytes ? First::arena_bytes : Second::arena_bytes);
    Stream<First> first(arena.data());
    Stream<Second> second(arena.data());
    for (int i = 0; i < kFrames; ++i) {
      arena.poison();
      first.frame();
      arena.poison();
      second.frame();
    }
    first.report("threads");
    second.report("threads");
  };
  std::thread one(work), other(work);
  one.join();
  other.join();
}

template <class Model>
void pool() {
  const auto* const threads = Model::threads_create(3);
  if (threads == nullptr) fail("threads", "none");
  const Block arena(Model::arena_bytes);
  {
    Stream<Model> stream(arena.data());
    stream.set_threads(threads);
    for (int i = 0; i < kFrames; ++i) stream.frame();
    stream.report("pool");
  }
  Model::threads_destroy(threads);
}
#endif

}  // namespace

int main() {
#if defined(HAS_FIRST)
  solo<First>();
#endif
#if defined(HAS_SECOND)
  solo<Second>();
#endif
#if defined(HAS_FIRST) && defined(HAS_SECOND)
  shared_arena();
  two_threads();
  pool<First>();
  pool<Second>();
#endif
}
