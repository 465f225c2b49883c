// Packs in code of the host that is compiled as CUDA code, as steps that choose branches are: there every
// address will do. Nothing here needs a GPU, so what nvcc makes of it runs everywhere.
// clang-format off
#include "gcrt/cuda/device/device.h"  // before any other header of gcrt
// clang-format on

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {
namespace {

// Out of the compiler's sight, which otherwise moves the elements one by one.
template <int N, class T>
__attribute__((noinline)) void twice(const T* x, T* y) {
  store(Lanes<N>{}, y, load(Lanes<N>{}, x) + load(Lanes<N>{}, x));
}

template <int N, class T>
void check_offsets() {
  constexpr std::size_t kMost = 32;
  for (std::size_t offset = 0; offset < kMost; ++offset) {
    SCOPED_TRACE(::testing::Message() << N << " of " << sizeof(T) << " bytes, " << offset << " bytes off");
    alignas(64) unsigned char from[kMost + sizeof(T) * N] = {}, to[kMost + sizeof(T) * N] = {};
    std::vector<T> values(N), got(N);
    for (int i = 0; i < N; ++i) values[static_cast<std::size_t>(i)] = static_cast<T>(i + 1);
    std::memcpy(from + offset, values.data(), sizeof(T) * N);
    twice<N>(reinterpret_cast<const T*>(from + offset), reinterpret_cast<T*>(to + offset));
    std::memcpy(got.data(), to + offset, sizeof(T) * N);
    for (int i = 0; i < N; ++i)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<T>(2 * i + 2)) << "element " << i;
  }
}

template <class T>
void check_lanes() {
  check_offsets<2, T>();
  check_offsets<4, T>();
  check_offsets<8, T>();
  check_offsets<16, T>();
}

TEST(HostPacks, MayLieAnywhere) {
  check_lanes<float>();
  check_lanes<double>();
  check_lanes<std::int8_t>();
  check_lanes<std::uint16_t>();
  check_lanes<std::int32_t>();
  check_lanes<std::int64_t>();
}

}  // namespace
}  // namespace GCRT_NAMESPACE
