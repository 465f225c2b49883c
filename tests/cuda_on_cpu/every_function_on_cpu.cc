// The element-wise functions on the packs of the CPU, for packs_test.cc. The namespace keeps them apart.
#define GCRT_NAMESPACE gcrt_on_cpu
#include "every_function.h"

namespace {

template <int N, class T>
bool apply_all(int number, const T* a, const T* b, const T* c, T* out, std::size_t n) {
  bool known = true;
  for (std::size_t i = 0; i < n; i += N) {
    known = gcrt_on_cpu::apply_function<T>(number, gcrt_on_cpu::Lanes<N>{}, a + i, b + i, c + i, out + i) &&
            known;
  }
  return known;
}

}  // namespace

#define DEFINE_ON_CPU(T, N)                                                                             \
  bool apply_on_cpu(int number, int lanes, const T* a, const T* b, const T* c, T* out, std::size_t n);  \
  bool apply_on_cpu(int number, int lanes, const T* a, const T* b, const T* c, T* out, std::size_t n) { \
    return lanes == N ? apply_all<N>(number, a, b, c, out, n) : apply_all<1>(number, a, b, c, out, n);  \
  }
DEFINE_ON_CPU(float, 4)
DEFINE_ON_CPU(double, 2)
DEFINE_ON_CPU(std::int8_t, 4)
DEFINE_ON_CPU(std::uint8_t, 16)
DEFINE_ON_CPU(std::int16_t, 8)
DEFINE_ON_CPU(std::int32_t, 4)
DEFINE_ON_CPU(std::uint32_t, 4)
DEFINE_ON_CPU(std::int64_t, 2)
