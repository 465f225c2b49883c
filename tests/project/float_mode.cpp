// Runs the model of float_mode.py over denormal numbers, with one thread and with three, and tells what comes
// out and whether the caller computes with denormal numbers afterwards.
#include <algorithm>
#include <cstdio>

#include "m/m.hpp"

namespace {

constexpr int kRows = 64, kDepth = 256, kColumns = 512;

volatile float g_denormal = 1e-39f;
float g_x[kRows * kDepth], g_product[kRows * kColumns], g_half[kRows * kDepth];

template <int kCount>
const char* kind(const float (&values)[kCount]) {
  if (std::all_of(values, values + kCount, [](float v) { return v == 0; })) return "zeros";
  return std::all_of(values, values + kCount, [](float v) { return v > 0; }) ? "numbers" : "both";
}

void run(const m_threads* threads) {
  m::Model model(threads);
  std::fill_n(g_x, kRows * kDepth, g_denormal);
  const m_inputs inputs = {g_x};
  const m_outputs outputs = {g_product, g_half};
  if (model.run(inputs, outputs) != M_OK) std::printf("failed ");
  std::printf("product %s, half %s, caller %s\n", kind(g_product), kind(g_half),
              g_denormal * 0.5f > 0 ? "numbers" : "zeros");
}

}  // namespace

int main() {
  run(nullptr);
  m::Threads threads(3);
  run(threads.get());
  return 0;
}
