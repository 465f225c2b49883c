// What a model checks of its caller's memory and weights, and of its own plan.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "gcrt/cpu/instance.h"
#include "gcrt/memory_check.h"
#include "gcrt/plan.h"
#include "gcrt/weights_check.h"

namespace GCRT_NAMESPACE {
namespace {

TEST(PlanCheck, TakesBuffersThatShareBytesAtDifferentTimes) {
  constexpr PlannedBuffer plan[] = {{0, 64, 0, 2}, {64, 64, 1, 3}, {0, 64, 2, 4}};
  static_assert(plan_holds(plan, 0, 3, 64, 128));
  EXPECT_TRUE(plan_holds(plan, 1, 1, 64, 0)) << "no buffer, nothing to find";
}

TEST(PlanCheck, RefusesWhatDoesNotHold) {
  constexpr PlannedBuffer overlaps[] = {{0, 128, 0, 2}, {64, 64, 1, 3}};
  EXPECT_FALSE(plan_holds(overlaps, 0, 2, 64, 128));
  EXPECT_TRUE(plan_holds(overlaps, 1, 2, 64, 128)) << "only the first part sees the pair";
  constexpr PlannedBuffer crooked[] = {{32, 32, 0, 1}};
  EXPECT_FALSE(plan_holds(crooked, 0, 1, 64, 128));
  constexpr PlannedBuffer sticks_out[] = {{64, 128, 0, 1}};
  EXPECT_FALSE(plan_holds(sticks_out, 0, 1, 64, 128));
  // Out of order the sweep would miss a pair.
  constexpr PlannedBuffer unsorted[] = {{0, 64, 1, 2}, {64, 64, 0, 3}};
  EXPECT_FALSE(plan_holds(unsorted, 0, 2, 64, 128));
}

std::vector<std::byte> weights_of(const std::vector<std::uint8_t>& header, std::size_t payload) {
  std::vector<std::byte> bytes(kWeightsHeaderBytes + payload);
  std::memcpy(bytes.data(), header.data(), header.size());
  return bytes;
}

TEST(WeightsCheck, KnowsItsOwnPayloadAlone) {
  // FNV-1a over words of 8 bytes: one word of zeros.
  const std::uint64_t checksum = 0xcbf29ce484222325u * 0x100000001b3u;
  std::vector<std::uint8_t> header = {'G', 'C', 'W', 'E', 'I', 'G', 'H', 'T', 2, 0, 0, 0,
                                      0,   0,   0,   0,   8,   0,   0,   0,   0, 0, 0, 0};
  for (int i = 0; i < 8; ++i) header.push_back(static_cast<std::uint8_t>(checksum >> (8 * i)));
  const std::uint64_t structure = 0x0123456789abcdefu;
  for (int i = 0; i < 8; ++i) header.push_back(static_cast<std::uint8_t>(structure >> (8 * i)));
  const WeightsPayload payload = {8, structure};
  std::vector<std::byte> weights = weights_of(header, 8);
  EXPECT_TRUE(weights_are_good(weights.data(), payload));
  EXPECT_FALSE(weights_are_good(weights.data(), {16, structure}));
  EXPECT_FALSE(weights_are_good(weights.data(), {8, structure + 1}));
  for (const std::size_t damaged : {0u, 8u, 16u, 24u, 31u, 32u, 39u, 64u, 71u}) {
    const bool is_of_content = damaged >= kWeightsHeaderBytes || (damaged >= 24 && damaged < 32);
    weights[damaged] ^= std::byte{1};
    EXPECT_FALSE(weights_are_good(weights.data(), payload)) << damaged;
    EXPECT_EQ(header_is_good(weights.data(), payload), is_of_content) << damaged;
    weights[damaged] ^= std::byte{1};
  }
}

struct Memory {
  void *arena, *state, *instance;
};

TEST(MemoryCheck, WantsEveryBlockThatHasBytes) {
  alignas(64) std::array<std::byte, 128> bytes{};
  const BlockSizes sizes = {64, 0, 64, 64, 64};
  Memory memory = {bytes.data(), nullptr, bytes.data() + 64};
  EXPECT_EQ(check_memory(&memory, bytes.data(), sizes), Status::ok);
  EXPECT_EQ(check_memory(&memory, nullptr, sizes), Status::null_pointer);
  EXPECT_EQ(check_memory(&memory, bytes.data() + 4, sizes), Status::misaligned);
  EXPECT_EQ(check_memory<Memory>(nullptr, bytes.data(), sizes), Status::null_pointer);
  memory.arena = bytes.data() + 8;
  EXPECT_EQ(check_memory(&memory, bytes.data(), sizes), Status::misaligned);
  memory.arena = nullptr;
  EXPECT_EQ(check_memory(&memory, bytes.data(), sizes), Status::null_pointer);
  memory.arena = bytes.data();
  memory.instance = bytes.data() + 1;
  EXPECT_EQ(check_memory(&memory, bytes.data(), sizes), Status::misaligned);
}

TEST(MemoryCheck, TensorsAreAlignedAsTheirElementsAre) {
  alignas(8) std::array<std::byte, 16> bytes{};
  EXPECT_EQ(check_tensor(reinterpret_cast<const float*>(bytes.data() + 4)), Status::ok);
  EXPECT_EQ(check_tensor(reinterpret_cast<const double*>(bytes.data() + 4)), Status::misaligned);
  EXPECT_EQ(check_tensor<std::uint8_t>(nullptr), Status::null_pointer);
}

TEST(Instance, IsThatOfOneProgramAndItsWeights) {
  alignas(64) std::array<std::byte, 64> block{};
  const int weights[2] = {};
  set_instance(block.data(), {7, weights, 2});
  const Instance instance = instance_of(block.data());
  EXPECT_EQ(instance.mark, 7u);
  EXPECT_EQ(instance.weights, weights);
  EXPECT_EQ(instance.level, 2u);
}

}  // namespace
}  // namespace GCRT_NAMESPACE
