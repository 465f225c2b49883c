// LSTM, GRU and RNN on the emulator against the equations of the ONNX operators in double.
#include "gcrt/cuda/rnn.h"

#include "../kernels/rnn_reference.h"
#include "cuda_kernel_test.h"

namespace cuda_kernel_test {
namespace {

using rnn_reference::Case;
using rnn_reference::Data;
using rnn_reference::Kind;
using rnn_reference::usual;
using rnn_reference::usual_rnn;

// [D][gates * H][depth] -> [D][gates][P][K]
std::vector<float> pack_inputs(const Case& c, const std::vector<float>& w) {
  const int hidden = c.shape.hidden, depth = c.shape.input;
  const std::vector<float> rows = rnn_reference::pad_rows(w, depth, (depth + 15) / 16 * 16);
  const int row = (depth + 15) / 16 * 16;
  return rnn_reference::pad_rows(rows, hidden * row, rnn_row_units(hidden) * row);
}

// [D][gates * H][H] -> [D][H][gates][P]
std::vector<float> pack_recurrence(const Case& c, const std::vector<float>& r) {
  const auto hidden = static_cast<std::size_t>(c.shape.hidden);
  const auto gates = static_cast<std::size_t>(c.gates());
  const auto units = static_cast<std::size_t>(rnn_row_units(c.shape.hidden));
  const auto directions = static_cast<std::size_t>(c.shape.directions);
  std::vector<float> packed(directions * hidden * gates * units, 0.0f);
  for (std::size_t d = 0; d < directions; ++d) {
    for (std::size_t g = 0; g < gates; ++g) {
      for (std::size_t u = 0; u < hidden; ++u) {
        for (std::size_t k = 0; k < hidden; ++k) {
          packed[((d * hidden + k) * gates + g) * units + u] = r[((d * gates + g) * hidden + u) * hidden + k];
        }
      }
    }
  }
  return packed;
}

struct Walk {
  int chunk_steps;
  bool has_y = true;
  bool has_states = true;
};

template <class T, bool kIsUsual, int kParts>
void start(Queue& queue, const Case& c, const RnnOperands& o, const Walk& walk, float* workspace) {
  constexpr Tile kTile = Tile::k16x64;
  const SplitDepth<kParts> split{workspace};
  if (c.kind == Kind::lstm) lstm<kTile, T, kIsUsual>(queue, c.shape, o, c.options, walk.chunk_steps, split);
  if (c.kind == Kind::rnn) rnn<kTile, T, kIsUsual>(queue, c.shape, o, c.options, walk.chunk_steps, split);
  if (c.kind != Kind::gru) return;
  if (c.options.linear_before_reset) {
    gru_linear<kTile, T, kIsUsual>(queue, c.shape, o, c.options, walk.chunk_steps, split);
  } else {
    gru<kTile, T, kIsUsual>(queue, c.shape, o, c.options, walk.chunk_steps, split);
  }
}

template <class T, int kParts = 1>
void run(const Case& c, const Walk& walk) {
  SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(c.kind) << " steps " << c.shape.steps
                                    << " batch " << c.shape.batch << " input " << c.shape.input << " hidden "
                                    << c.shape.hidden << " directions " << c.shape.directions << " chunk "
                                    << walk.chunk_steps);
  const int units = rnn_row_units(c.shape.hidden);
  const RnnPlan plan{T::kBatchTile, T::kKept, 0, walk.chunk_steps};
  const Data data(c);
  const DeviceArray<float> x(data.x), w(pack_inputs(c, data.w)), r(pack_recurrence(c, data.r)), h0(data.h0),
      c0(data.c0), bias(rnn_reference::pad_rows(data.bias(c), c.shape.hidden, units)),
      recurrent_bias(rnn_reference::pad_rows(data.recurrent_bias(c), c.shape.hidden, units)),
      peepholes(rnn_reference::pad_rows(data.peep, c.shape.hidden, units));
  const DeviceArray<std::int32_t> lengths(data.lengths);
  DeviceArray<float> y(data.y.size()), y_h(c.states()), y_c(c.states()),
      scratch(static_cast<std::size_t>(rnn_scratch_floats(c.shape, c.gates(), plan))),
      workspace(static_cast<std::size_t>(gemm_workspace_size(std::ptrdiff_t{walk.chunk_steps} * c.shape.batch,
                                                             std::ptrdiff_t{c.gates()} * units,
                                                             c.shape.directions, kParts)));
  RnnOperands o{};
  o.x = x.data();
  o.w_packed = w.data();
  o.r_packed = r.data();
  o.bias = c.has_bias ? bias.data() : nullptr;
  o.recurrent_bias = c.has_bias && c.is_linear_gru() ? recurrent_bias.data() : nullptr;
  o.peepholes = c.has_peepholes ? peepholes.data() : nullptr;
  o.lengths = c.has_lengths ? lengths.data() : nullptr;
  o.initial_h = c.has_initial ? h0.data() : nullptr;
  o.initial_c = c.has_initial ? c0.data() : nullptr;
  o.y = walk.has_y ? y.data() : nullptr;
  o.y_h = walk.has_states ? y_h.data() : nullptr;
  o.y_c = walk.has_states && c.kind == Kind::lstm ? y_c.data() : nullptr;
  o.scratch = scratch.data();
  CountingQueue queue;
  if (c.kind != Kind::rnn && is_usual(c.options, 0, c.kind == Kind::lstm ? 3 : 2)) {
    start<T, true, kParts>(queue, c, o, walk, workspace.data());
  } else {
    start<T, false, kParts>(queue, c, o, walk, workspace.data());
  }
  expect_no_error(queue);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  if (walk.has_y) rnn_reference::compare("Y", y.read().data(), data.y);
  if (walk.has_states) rnn_reference::compare("Y_h", y_h.read().data(), data.y_h);
  if (o.y_c != nullptr) rnn_reference::compare("Y_c", y_c.read().data(), data.y_c);
}

// All three operators.
template <class T, int kParts = 1>
void run_all(const RnnShape& shape, const Walk& walk, bool has_lengths = false, bool has_initial = false) {
  for (bool is_linear : {false, true}) {
    RnnOptions options = usual();
    options.linear_before_reset = is_linear;
    run<T, kParts>({Kind::gru, shape, options, true, false, has_lengths, has_initial}, walk);
  }
  run<T, kParts>({Kind::lstm, shape, usual(), true, false, has_lengths, has_initial}, walk);
  run<T, kParts>({Kind::rnn, shape, usual_rnn(), true, false, has_lengths, has_initial}, walk);
}

TEST(CudaRnn, OneLaunch) {
  for (int hidden : {1, 4, 5, 18, 64}) {
    for (int batch : {1, 5}) {
      const RnnShape shape{3, batch, 9, hidden, 1, false};
      run_all<RnnTile<1, 1>>(shape, {3});
      run_all<RnnTile<4, 8>>(shape, {3});
    }
  }
  run_all<RnnTile<1, 12>>({2, 2, 17, 131, 1, false}, {2});
  run<RnnTile<1, 12>>({Kind::lstm, {2, 1, 3, 509, 1, false}, usual(), true, false, false, true}, {2});
}

TEST(CudaRnn, LaunchPerStep) {
  for (int hidden : {1, 5, 16, 70}) {
    for (int batch : {1, 5}) {
      run_all<RnnTile<4, 0>>({3, batch, 9, hidden, 1, false}, {3}, false, batch == 5);
    }
  }
  run_all<RnnTile<2, 0>>({2, 3, 20, 261, 1, false}, {2});
}

TEST(CudaRnn, Chunks) {
  for (int chunk : {1, 2, 5, 7}) {
    for (int directions : {1, 2}) {
      run_all<RnnTile<4, 1>>({7, 3, 6, 10, directions, true}, {chunk}, true, true);
      run_all<RnnTile<4, 0>>({7, 3, 6, 10, directions, true}, {chunk}, true, true);
    }
  }
  // X * W in parts of the depth.
  run_all<RnnTile<4, 1>, 3>({5, 4, 300, 10, 2, false}, {4});
}

TEST(CudaRnn, DirectionsLengthsInitialStates) {
  for (int directions : {1, 2}) {
    for (bool reverse : {false, true}) {
      for (bool has_lengths : {false, true}) {
        for (bool has_initial : {false, true}) {
          const RnnShape shape{6, 3, 7, 18, directions, reverse};
          run_all<RnnTile<1, 1>>(shape, {6}, has_lengths, has_initial);
          run_all<RnnTile<4, 0>>(shape, {6}, has_lengths, has_initial);
        }
      }
    }
  }
}

TEST(CudaRnn, Options) {
  const RnnShape shape{4, 2, 5, 17, 2, false};
  for (bool flag : {false, true}) {
    RnnOptions options = usual();
    options.input_forget = flag;
    run<RnnTile<1, 1>>({Kind::lstm, shape, options, true, true, false, true}, {4});
    run<RnnTile<4, 0>>({Kind::lstm, shape, options, true, true, true, true}, {4});
    options = usual();
    options.linear_before_reset = flag;
    run<RnnTile<1, 1>>({Kind::gru, shape, options, false, false, false, true}, {4});
    options.clip = 0.3f;
    run<RnnTile<4, 1>>({Kind::gru, shape, options, true, false, false, true}, {4});
    run<RnnTile<4, 0>>({Kind::gru, shape, options, true, false, true, true}, {4});
    run<RnnTile<4, 1>>({Kind::lstm, shape, options, true, flag, false, true}, {4});
  }
}

TEST(CudaRnn, Activations) {
  const RnnShape shape{4, 2, 5, 9, 1, false};
  for (int function = 0; function <= static_cast<int>(RnnFunction::softplus); ++function) {
    SCOPED_TRACE(function);
    for (int place = 0; place < 3; ++place) {
      RnnOptions options = usual();
      options.activations[0][place] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
      run<RnnTile<1, 1>>({Kind::lstm, shape, options, true, false, false, true}, {4});
      if (place < 2) run<RnnTile<1, 1>>({Kind::gru, shape, options, true, false, false, true}, {4});
      if (place < 1) run<RnnTile<1, 1>>({Kind::rnn, shape, options, true, false, false, true}, {4});
    }
  }
}

TEST(CudaRnn, OptionalResultsAndNoSteps) {
  const RnnShape shape{5, 2, 4, 6, 2, false};
  for (int chunk : {2, 5}) {
    run_all<RnnTile<1, 1>>(shape, {chunk, true, false}, true, true);
    run_all<RnnTile<1, 1>>(shape, {chunk, false, true}, true, true);
    run_all<RnnTile<4, 0>>(shape, {chunk, true, false}, true, true);
    run_all<RnnTile<4, 0>>(shape, {chunk, false, true}, true, true);
  }
  run_all<RnnTile<1, 1>>({0, 2, 4, 6, 2, false}, {1}, false, true);
  run_all<RnnTile<4, 0>>({0, 2, 4, 6, 2, false}, {1}, false, true);
}

// Everything that a plan promises to fit.
TEST(CudaRnn, PlansFit) {
  for (int gates : {1, 3, 4}) {
    for (int hidden : {1, 3, 20, 64, 100, 128, 200, 256, 400, 512, 700, 1024, 3000, 8192}) {
      for (int batch : {1, 2, 5, 64, 1000}) {
        for (int steps : {1, 7, 1000, 100000}) {
          for (bool is_reset_first : {false, true}) {
            const RnnShape shape{steps, batch, 40, hidden, 2, false};
            if (is_reset_first && gates != 3) continue;
            const RnnPlan plan = plan_rnn(shape, gates, is_reset_first);
            SCOPED_TRACE(::testing::Message() << gates << " gates, hidden " << hidden << ", batch " << batch
                                              << ", steps " << steps);
            const int units = rnn_block_units(shape, plan);
            EXPECT_LE(units * plan.batch_tile, kRnnThreads);
            EXPECT_LE(gates * units / 4, kRnnThreads);
            const int floats = hidden * plan.batch_tile + 3 + kRnnThreads * 4 * plan.batch_tile;
            EXPECT_LE(floats * 4, 64 * 1024 + 16);
            EXPECT_GE(plan.chunk_steps, 1);
            EXPECT_LE(plan.chunk_steps, steps);
            EXPECT_LE(rnn_launches(shape, plan), plan.kept > 0 ? 2 * steps : 3 * steps);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuda_kernel_test
