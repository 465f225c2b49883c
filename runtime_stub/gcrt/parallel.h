// The only thing a kernel knows about threads: somebody may run a range of work items in pieces.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Supplied by the caller of the model; a null pointer to Threads means serial. `parallel_for` runs `body`
// over disjoint ranges that cover [0, count) and returns when all have finished; `count` (of Threads) is
// the most ranges that run at the same time. The emitted C header declares the same layout.
struct Threads {
  void* context;
  int count;
  void (*parallel_for)(void* context, std::ptrdiff_t count,
                       void (*body)(void* argument, std::ptrdiff_t begin, std::ptrdiff_t end),
                       void* argument);
};

// Calls body(begin, end) over ranges that cover [0, count).
template <class F>
GCRT_INLINE void parallel_for(const Threads* threads, std::ptrdiff_t count, const F& body) {
  if (count <= 0) return;
  struct Call {  // compiled once for both ways
    static GCRT_NOINLINE void run(void* argument, std::ptrdiff_t begin, std::ptrdiff_t end) {
      (*static_cast<const F*>(argument))(begin, end);
    }
  };
  void* const argument = const_cast<F*>(&body);
  if (threads == nullptr || threads->count <= 1 || threads->parallel_for == nullptr || count == 1) {
    Call::run(argument, 0, count);
  } else {
    threads->parallel_for(threads->context, count, &Call::run, argument);
  }
}

}  // namespace GCRT_NAMESPACE
