// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// NAME_bench --layers: the time of every layer, beside the time that the machine needs at least. Host code.
#pragma once

#include <type_traits>
#include <utility>

#include "gcrt/app/layer_table.h"
#include "gcrt/app/peak.h"

namespace GCRT_NAMESPACE {

// Times of the layers, run by run.
class LayerClock {
 public:
  // Keeps them.
  LayerClock(std::size_t layers, int runs) : times_(layers) {
    for (std::vector<double>& times : times_) times.reserve(static_cast<std::size_t>(runs));
  }
  // Tells them to `trace`, which knows layer 0 as `first_layer`.
  explicit LayerClock(Trace* trace, std::size_t first_layer = 0) : trace_(trace), first_layer_(first_layer) {}

  void begin() { last_ = Clock::now(); }
  void end(std::size_t layer) {
    const Clock::time_point now = Clock::now();
    if (trace_ != nullptr) {
      trace_->end(first_layer_ + layer, last_, now);
    } else {
      times_[layer].push_back(std::chrono::duration<double, std::milli>(now - last_).count());
    }
    last_ = now;
  }
  // Milliseconds; empty: of a branch that no run took.
  std::vector<double>& of(std::size_t layer) { return times_[layer]; }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times_;
  Clock::time_point last_;
  Trace* trace_ = nullptr;
  std::size_t first_layer_ = 0;
};

// What the machine does at most, with the threads that the model has. Measured.
class Roofline {
 public:
  // `run_bytes`: arena and weights, which is what a run touches.
  Roofline(const Threads* threads, double run_bytes)
      : floats(float_peak()),
        bytes(byte_peak()),
        float_rate(peak_rate(floats, threads)),
        byte_rate(peak_rate(bytes, threads)),
        run_bytes_(run_bytes) {
    constexpr std::size_t kSmallest = std::size_t{16} << 10, kLargest = std::size_t{256} << 20;
    std::size_t size = kSmallest;
    do {
      rates_.emplace_back(size, read_rate(size, threads));
      size *= 4;
    } while (size <= kLargest && static_cast<double>(rates_.back().first) < run_bytes);
  }

  // 10^9 bytes a second, where as many bytes are touched again and again.
  double memory_rate(double touched) const {
    for (const auto& [size, rate] : rates_) {
      if (touched <= static_cast<double>(size)) return rate;
    }
    return rates_.back().second;
  }

  // The least time of a layer in milliseconds: of its arithmetic, or of its bytes. What is no weight has just
  // been written and lies in the smallest cache that can hold it; a weight was read in the run before, and
  // since then all that a run touches. Where a cache held more than that, a layer takes less.
  double bound(const Layer& layer) const {
    const double rate = layer.multiplies_bytes ? byte_rate : float_rate;
    const double arithmetic = rate > 0 ? 2 * layer.multiply_adds / rate : 0;
    const double memory =
        layer.bytes / memory_rate(layer.bytes) + layer.weight_bytes / memory_rate(run_bytes_);
    return std::max(arithmetic, memory) / 1e6;
  }

  const PeakLoop floats, bytes;
  const double float_rate, byte_rate;  // 10^9 operations a second, 0: unknown

 private:
  double run_bytes_;
  std::vector<std::pair<std::size_t, double>> rates_;
};

// A run of L, the layers of a model, with a clock that tells `trace`; the trace learns also which threads ran
// what. `arguments`: of L::run(), between memory and clock.
template <class L, class Memory, class... Arguments>
auto run_traced(Trace* trace, LayerClock* clock, const Memory* memory, Arguments... arguments) {
  Memory traced = *memory;
  std::remove_const_t<std::remove_pointer_t<decltype(traced.threads)>> threads{};
  if (memory->threads != nullptr) {
    threads = *memory->threads;
    threads.context = trace;
    threads.parallel_for = &Trace::parallel_for;
    traced.threads = &threads;
  }
  return L::run(&traced, arguments..., clock);
}

// L are the layers of a model: all() lists them, run(memory, inputs, outputs, clock) is the model's run with
// a clock.
template <class L>
struct LayerProfile {
  // Runs the model `repeat` times, writes when its layers ran into a file, and prints a line.
  template <class Model>
  void trace(const Model& model, Tensors* tensors, int repeat, const std::string& path) const {
    const std::vector<Layer> layers = L::all();
    const Threads pool = model.threads();
    Trace trace(&pool);
    LayerClock clock(&trace);
    for (int i = 0; i < repeat; ++i) {
      model.run_with(tensors, [&](auto... arguments) { return run_traced<L>(&trace, &clock, arguments...); });
    }
    write_trace_of(trace, layers, repeat, path);
  }

  // Runs the model `repeat` times with the clock and as often without, in turns, and prints what was found.
  template <class Model>
  void operator()(const Model& model, Tensors* tensors, int repeat, int thread_count, bool json) const {
    using T = typename Model::Traits;
    const std::vector<Layer> layers = L::all();
    LayerClock clock(layers.size(), repeat);
    std::vector<double> whole;
    for (int i = 0; i < repeat; ++i) {
      model.run_with(tensors, [&](auto... arguments) { return L::run(arguments..., &clock); });
      const auto begin = std::chrono::steady_clock::now();
      model.run(tensors);
      whole.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    const Threads threads = model.threads();
    const Roofline roof(&threads, static_cast<double>(T::kBlocks.arena + T::kBlocks.weights));
    std::vector<LayerRow> rows;
    double sum = 0, bound = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      std::vector<double>& times = clock.of(i);
      if (times.empty()) continue;
      rows.push_back({i, &layers[i], std::max(quantile(&times, 0), 1e-6), quantile(&times, 0.5),
                      roof.bound(layers[i]), times.size()});
      sum += rows.back().least;
      bound += rows.back().expected;
    }
    const double least = quantile(&whole, 0);
    if (json) {
      std::printf(
          "{\"threads\": %d, \"repeat\": %d, \"float_gflops\": %.1f, \"byte_gops\": %.1f, "
          "\"run_min_ms\": %.6f, \"layers_min_ms\": %.6f, \"bound_ms\": %.6f, \"layers\": [",
          thread_count, repeat, roof.float_rate, roof.byte_rate, least, sum, bound);
      print_rows_as_json(rows, "bound");
      std::printf("]}\n");
      return;
    }
    std::printf(
        "%d thread%s: %.1f GFLOP/s (%s), %.1f GOP/s of bytes (%s); reads %.1f GB/s where 64 KiB are touched, "
        "%.1f where all that a run touches is\n",
        thread_count, thread_count == 1 ? "" : "s", roof.float_rate,
        roof.floats.run != nullptr ? roof.floats.instructions : "unknown", roof.byte_rate,
        roof.bytes.run != nullptr ? roof.bytes.instructions : "unknown", roof.memory_rate(1 << 16),
        roof.memory_rate(static_cast<double>(T::kBlocks.arena + T::kBlocks.weights)));
    print_rows(rows, sum, "bound");
    std::printf("%zu layers %.4f ms, their bounds %.4f ms; a run without this clock %.4f ms (least of %d)\n",
                rows.size(), sum, bound, least, repeat);
  }
};

}  // namespace GCRT_NAMESPACE
