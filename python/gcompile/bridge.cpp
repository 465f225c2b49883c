// A project as a shared library that Python calls: the same C names whatever the model is called. Host code, which
// gcompile/library.py compiles against the project's own apps/support.h and links with its library.
// -DGCOMPILE_MODEL=NAME says which project it is.
#include "support.h"

#if __has_include("gcrt/app/sizes_of_files.h")
#define GCOMPILE_HAS_SIZES 1
#include "gcrt/app/sizes_of_files.h"
#else
#define GCOMPILE_HAS_SIZES 0
#include "gcrt/app/run.h"
#endif
#if __has_include("gcrt/app/growing_model.h")
#define GCOMPILE_HAS_HELD_SIZES 1
#else
#define GCOMPILE_HAS_HELD_SIZES 0
#endif

#include <chrono>
#include <mutex>

#define GCOMPILE_JOIN(a, b) a##b
#define GCOMPILE_NAME_OF(model, suffix) GCOMPILE_JOIN(model, suffix)
#define GCOMPILE_NAME(suffix) GCOMPILE_NAME_OF(GCOMPILE_MODEL, suffix)
#define GCOMPILE_EXPORT extern "C" __attribute__((visibility("default")))

// Python's stable ABI, as far as it is needed, so that no header of Python is. Weak: the program that `verify` runs
// links with this library, and has no Python.
extern "C" {
struct PyObject_;
__attribute__((weak)) PyObject_* PyTuple_GetItem(PyObject_* tuple, std::ptrdiff_t place);
__attribute__((weak)) PyObject_* PyUnicode_InternFromString(const char* text);
__attribute__((weak)) PyObject_* PyObject_GetAttr(PyObject_* object, PyObject_* name);
__attribute__((weak)) void Py_DecRef(PyObject_* object);
__attribute__((weak)) void PyErr_Clear(void);
__attribute__((weak)) void* PyCapsule_GetPointer(PyObject_* capsule, const char* name);
__attribute__((weak)) void* PyEval_SaveThread(void);
__attribute__((weak)) void PyEval_RestoreThread(void* state);
}

namespace {

using namespace GCRT_NAMESPACE;
using T = GCOMPILE_NAME(_app)::Traits;
using Model = GCOMPILE_NAME(_app)::Model;
constexpr int kMaxRank = GCOMPILE_NAME_OF(GCOMPILE_UPPER, _MAX_RANK);

// What numpy tells of an array by __array_struct__.
struct ArrayInterface {
  int two, rank;
  char kind;
  int element_bytes, flags;
  std::intptr_t *shape, *strides;
  void* data;
  PyObject_* description;
};
// Dense in C's order, aligned, in the machine's order of bytes.
constexpr int kUsable = 0x1 | 0x100 | 0x200, kWriteable = 0x400;

// What a run takes at a port: the row of a table that Python makes.
struct Expected {
  std::int64_t kind, element_bytes, bytes, rank, shape[kMaxRank + 1];
};

struct Plan {
  const std::int64_t* sizes;
  const Expected* table;
  std::int64_t input_count, output_count;
};

constexpr int kMostArrays = GCOMPILE_NAME_OF(GCOMPILE_UPPER, _INPUTS) + GCOMPILE_NAME_OF(GCOMPILE_UPPER, _OUTPUTS) + 1;

// What arrays have told of themselves, which may be what keeps their memory.
class Capsules {
 public:
  Capsules() = default;
  ~Capsules() {
    for (int i = 0; i < count_; ++i) Py_DecRef(capsules_[i]);
  }
  Capsules(const Capsules&) = delete;
  Capsules& operator=(const Capsules&) = delete;

  // Takes the capsule; null where it is none of an array.
  const ArrayInterface* array(PyObject_* capsule) {
    if (capsule != nullptr) capsules_[count_++] = capsule;
    const void* const told = capsule == nullptr ? nullptr : PyCapsule_GetPointer(capsule, nullptr);
    if (told == nullptr) PyErr_Clear();
    return static_cast<const ArrayInterface*>(told);
  }

 private:
  PyObject_* capsules_[kMostArrays];
  int count_ = 0;
};

bool fits(const ArrayInterface& array, const Expected& expected, int flags) {
  if ((array.flags & flags) != flags || array.kind != expected.kind || array.rank != expected.rank) return false;
  if (array.element_bytes != expected.element_bytes) return false;
  for (int i = 0; i < array.rank; ++i) {
    if (array.shape[i] != expected.shape[i]) return false;
  }
  return true;
}

const auto* largest() {
#if GCOMPILE_HAS_SIZES
  return T::describe_largest();
#else
  return T::describe();
#endif
}

int run(const T::Memory* memory, [[maybe_unused]] const std::int64_t* sizes, void* const* inputs, void* const* outputs) {
  const T::Inputs in = T::inputs(inputs);
  const T::Outputs out = T::outputs(outputs);
#if GCOMPILE_HAS_SIZES
  T::Sizes chosen{};
  std::memcpy(&chosen, sizes, sizeof(chosen));
  return GCOMPILE_NAME(_run)(memory, &chosen, &in, &out);
#else
  return T::run(memory, &in, &out);
#endif
}

#if GCOMPILE_HAS_SIZES
// The programs keep the sizes of their runs in T::sizes, which here belong to one thread at a time and come back.
class SizesOfTheProcess {
 public:
  SizesOfTheProcess() : lock_(mutex_), before_(T::sizes) {}
  ~SizesOfTheProcess() { T::sizes = before_; }
  SizesOfTheProcess(const SizesOfTheProcess&) = delete;
  SizesOfTheProcess& operator=(const SizesOfTheProcess&) = delete;

 private:
  static inline std::mutex mutex_;
  const std::lock_guard<std::mutex> lock_;
  const T::Sizes before_;
};
#endif

}  // namespace

// Bytes of arena, state, weights and instance, the alignment of all four, and the largest rank of a tensor.
GCOMPILE_EXPORT void gcompile_blocks(std::int64_t* blocks) {
  const std::size_t found[] = {T::kBlocks.arena, T::kBlocks.state, T::kBlocks.weights, T::kBlocks.instance,
                               T::kBlocks.alignment, static_cast<std::size_t>(kMaxRank)};
  for (int i = 0; i < 6; ++i) blocks[i] = static_cast<std::int64_t>(found[i]);
}

// Where the weights are read from; empty where they are linked in.
GCOMPILE_EXPORT const char* gcompile_weights_path() { return T::kWeightsPath; }

GCOMPILE_EXPORT int gcompile_init(const T::Memory* memory) { return T::init(memory); }
GCOMPILE_EXPORT int gcompile_reset(const T::Memory* memory) { return GCOMPILE_NAME(_reset)(memory); }
GCOMPILE_EXPORT const char* gcompile_status_text(int status) {
  return T::status_text(static_cast<GCOMPILE_NAME(_status)>(status));
}
GCOMPILE_EXPORT const void* gcompile_threads_create(int count) { return T::create_threads(count); }
GCOMPILE_EXPORT void gcompile_threads_destroy(const void* threads) {
  T::destroy_threads(static_cast<const GCOMPILE_NAME(_threads)*>(threads));
}

// A run on arrays, a tuple of inputs and then of outputs. Returns the status of the run; or 1000 and more, the place of an
// array that does not fit its row; or 2000 and more, the place of an input that an output overlaps; or 3000, where outputs
// overlap each other. Called with Python's lock, which others have while the model runs.
GCOMPILE_EXPORT int gcompile_call(const T::Memory* memory, const Plan* plan, PyObject_* arrays) {
  static PyObject_* const name = PyUnicode_InternFromString("__array_struct__");
  const std::int64_t input_count = plan->input_count, count = input_count + plan->output_count;
  void* addresses[kMostArrays];
  Capsules capsules;
  for (std::int64_t i = 0; i < count; ++i) {
    const ArrayInterface* const array = capsules.array(PyObject_GetAttr(PyTuple_GetItem(arrays, i), name));
    const int flags = i < input_count ? kUsable : kUsable | kWriteable;
    if (array == nullptr || !fits(*array, plan->table[i], flags)) return 1000 + static_cast<int>(i);
    addresses[i] = array->data;
  }
  for (std::int64_t out = input_count; out < count; ++out) {
    for (std::int64_t other = 0; other < out; ++other) {
      const auto begin_of = [&](std::int64_t i) { return reinterpret_cast<std::uintptr_t>(addresses[i]); };
      const auto end_of = [&](std::int64_t i) { return begin_of(i) + static_cast<std::uintptr_t>(plan->table[i].bytes); };
      if (begin_of(other) >= end_of(out) || begin_of(out) >= end_of(other)) continue;
      return other < input_count ? 2000 + static_cast<int>(other) : 3000;
    }
  }
  void* const state = PyEval_SaveThread();
  const int status = run(memory, plan->sizes, addresses, addresses + input_count);
  PyEval_RestoreThread(state);
  return status;
}

// Runs `repeat` times on these addresses and notes the milliseconds of each.
GCOMPILE_EXPORT int gcompile_time(const T::Memory* memory, const std::int64_t* sizes, void* const* addresses,
                                  int input_count, int repeat, double* milliseconds) {
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const int status = run(memory, sizes, addresses, addresses + input_count);
    const auto end = std::chrono::steady_clock::now();
    if (status != 0) return status;
    milliseconds[i] = std::chrono::duration<double, std::milli>(end - begin).count();
  }
  return 0;
}

// Fills an input as NAME_bench does, as far as there is room.
GCOMPILE_EXPORT void gcompile_fill(int input, std::uint64_t seed, void* data, std::int64_t bytes) {
  Tensors tensors(*largest());
  Examples<T>::add_to(&tensors);
  Tensor& tensor = tensors.inputs[static_cast<std::size_t>(input)];
  tensor.fill(&seed);
  std::memcpy(data, tensor.bytes.data(), std::min(static_cast<std::size_t>(bytes), tensor.size));
}

// Names, type and place of a state; returns its rank, or -1 where there are no more. Its shape is that in a run of the
// largest sizes.
GCOMPILE_EXPORT int gcompile_state(int state, const char** names, std::int64_t* bytes_and_offset, std::int64_t* shape) {
  const auto* const model = largest();
  if (state >= model->state_count) return -1;
  const auto& tensor = model->states[state];
  names[0] = tensor.name;
  names[1] = tensor.c_name;
  names[2] = tensor.element;
  bytes_and_offset[0] = static_cast<std::int64_t>(tensor.bytes);
  bytes_and_offset[1] = static_cast<std::int64_t>(tensor.offset);
  for (int i = 0; i < tensor.rank; ++i) shape[i] = tensor.shape[i];
  return tensor.rank;
}

// Rank and shape of an input or output in a run of the largest sizes.
GCOMPILE_EXPORT int gcompile_largest_shape(int is_output, int place, std::int64_t* shape) {
  const auto& tensor = is_output != 0 ? largest()->outputs[place] : largest()->inputs[place];
  for (int i = 0; i < tensor.rank; ++i) shape[i] = tensor.shape[i];
  return tensor.rank;
}

// How many sizes a run has, and what they may be; 0 where there is nothing to choose.
GCOMPILE_EXPORT int gcompile_size_count() {
#if GCOMPILE_HAS_SIZES
  return static_cast<int>(sizeof(T::Sizes) / sizeof(std::int64_t));
#else
  return 0;
#endif
}
GCOMPILE_EXPORT const char* gcompile_sizes_text() {
#if GCOMPILE_HAS_SIZES
  return T::kSizes;
#else
  return "";
#endif
}

#if GCOMPILE_HAS_SIZES
// Rows of a rank and kMaxRank numbers; a rank of -1 where nothing is known.
template <class Shapes, class Has>
void take_shapes(const std::int64_t* rows, int count, Shapes* shapes, Has* has) {
  for (int i = 0; i < count; ++i) {
    const std::int64_t* const row = rows + i * (kMaxRank + 1);
    has->push_back(row[0] >= 0);
    shapes->emplace_back(row + 1, row + 1 + (row[0] >= 0 ? row[0] : 0));
  }
}

#if GCOMPILE_HAS_HELD_SIZES
// Whether states of these sizes have the shapes.
static bool states_fit(const T::Sizes& sizes, const ShapesOfFiles& shapes) {
  for (std::size_t i = 0; i < shapes.states.size(); ++i) {
    std::int64_t shape[kMaxRank + 1] = {};
    const auto status = T::state_shape(&sizes, static_cast<int>(i), shape);
    if (status != decltype(status){} || shapes.states[i] != std::vector<std::int64_t>(shape, shape + largest()->states[i].rank))
      return false;
  }
  return true;
}
#endif

// The sizes of a run whose inputs, and states, have the shapes: rows of take_shapes(). `sizes` has, and keeps, those that
// `is_told` marks. Returns whether there are such sizes. Without `inputs`: sizes that states of those shapes can be of.
GCOMPILE_EXPORT int gcompile_find_sizes(const std::int64_t* inputs, const std::int64_t* states, const bool* is_told,
                                        std::int64_t* sizes) {
  const SizesOfTheProcess sizes_of_the_process;
  ShapesOfFiles shapes;
  const std::vector<std::int64_t> nothing(static_cast<std::size_t>(largest()->input_count * (kMaxRank + 1)), -1);
  take_shapes(inputs == nullptr ? nothing.data() : inputs, largest()->input_count, &shapes.inputs, &shapes.has_input);
  take_shapes(states, largest()->state_count, &shapes.states, &shapes.has_state);
  auto* const told = reinterpret_cast<std::int64_t*>(&T::sizes);
  for (int i = 0; i < gcompile_size_count(); ++i) {
    if (is_told[i]) told[i] = sizes[i];
  }
  for (int candidate = 0; candidate < T::kSizeCandidates; ++candidate) {
    const T::Sizes found = T::told_by(shapes, is_told, candidate);
#if GCOMPILE_HAS_HELD_SIZES
    const bool is_right = inputs == nullptr ? states_fit(found, shapes) : shapes_fit<T>(found, shapes);
#else
    const bool is_right = shapes_fit<T>(found, shapes);
#endif
    if (!is_right) continue;
    std::memcpy(sizes, &found, sizeof(found));
    return 1;
  }
  return 0;
}

// Rank and shape of an output in a run of these sizes; -1 where there is no such run.
GCOMPILE_EXPORT int gcompile_output_shape(const std::int64_t* sizes, int output, std::int64_t* shape) {
  T::Sizes chosen{};
  std::memcpy(&chosen, sizes, sizeof(chosen));
  const auto status = T::output_shape(&chosen, output, shape);
  if (status != decltype(status){}) return -1;
  const SizesOfTheProcess sizes_of_the_process;
  T::sizes = chosen;
  return T::output_rank(output);
}
#endif

#if GCOMPILE_HAS_HELD_SIZES
// The shape of a state as it is now.
GCOMPILE_EXPORT int gcompile_held_shape(const T::Memory* memory, int state, std::int64_t* shape) {
  T::Sizes held{};
  const int status = T::held_sizes(memory, &held);
  return status != 0 ? status : static_cast<int>(T::state_shape(&held, state, shape));
}
GCOMPILE_EXPORT int gcompile_save_state(const T::Memory* memory, int state, void* data) {
  return T::save_state(memory, state, data);
}
GCOMPILE_EXPORT int gcompile_load_state(const T::Memory* memory, const std::int64_t* sizes, int state,
                                        const void* data) {
  T::Sizes chosen{};
  std::memcpy(&chosen, sizes, sizeof(chosen));
  return T::load_state(memory, &chosen, state, data);
}
#endif

// The project's runner, for who runs it in a process of its own.
GCOMPILE_EXPORT int gcompile_main(int argc, char** argv) {
#if GCOMPILE_HAS_SIZES
  take_sizes<T>(&argc, argv);
  tell_sizes<T>(argc, argv);
#endif
  return run_program<Model>(argc, argv);
}
