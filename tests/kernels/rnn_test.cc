// LSTM, GRU and RNN against the equations of the ONNX operators in double.
#include "gcrt/cpu/rnn.h"

#include "gcrt/cpu/rnn_loops.h"
#include "kernel_test.h"
#include "rnn_reference.h"

namespace kernel_test {
namespace {

// Steps of one product: tests have fewer, more, and a rest.
constexpr int kBlock = 5;

using rnn_reference::Data;
using rnn_reference::Kind;
using rnn_reference::usual;
using rnn_reference::usual_rnn;

struct Case : rnn_reference::Case {
  void run() const;
  template <class E>
  void run_by_definition(const Data& data) const;
};

std::vector<float> pack_gates(const rnn_reference::Case& c, const std::vector<float>& w, int depth) {
  const std::ptrdiff_t units = rnn_padded_units(c.shape.hidden);
  std::vector<float> packed;
  for (int g = 0; g < c.shape.directions * c.gates(); ++g) {
    std::vector<float> one(static_cast<std::size_t>(units * depth));
    pack_b(depth, c.shape.hidden, w.data() + g * c.shape.hidden * depth, 1, depth, one.data());
    packed.insert(packed.end(), one.begin(), one.end());
  }
  return packed;
}

/// The plain loops, in elements of another type.
template <class E>
void Case::run_by_definition(const Data& data) const {
  const auto in_elements = [](const std::vector<float>& from) {
    return std::vector<E>(from.begin(), from.end());
  };
  const auto x = in_elements(data.x), w = in_elements(data.w), r = in_elements(data.r),
             h0 = in_elements(data.h0), c0 = in_elements(data.c0), peep = in_elements(data.peep),
             bias = in_elements(data.both_biases(*this));
  std::vector<E> got_y(data.y.size(), E(9)), got_h(states(), E(9)), got_c(states(), E(9)),
      scratch(states() * kRnnSequenceRows);
  const RnnTensors<E> tensors{x.data(),
                              w.data(),
                              r.data(),
                              has_bias ? bias.data() : nullptr,
                              has_peepholes ? peep.data() : nullptr,
                              has_lengths ? data.lengths.data() : nullptr,
                              has_initial ? h0.data() : nullptr,
                              has_initial ? c0.data() : nullptr,
                              got_y.data(),
                              got_h.data(),
                              got_c.data(),
                              scratch.data()};
  RnnOptionsOf<E> as{{}, E(options.clip), options.input_forget, options.linear_before_reset};
  for (int d = 0; d < 2; ++d) {
    for (int f = 0; f < 3; ++f) {
      const RnnActivation& a = options.activations[d][f];
      as.activations[d][f] = {a.function, E(a.alpha), E(a.beta)};
    }
  }
  const std::ptrdiff_t rows = std::ptrdiff_t{shape.directions} * shape.batch;
  if (kind == Kind::lstm) recurrence_by_definition<LstmByDefinition>(shape, tensors, as, 0, rows);
  if (kind == Kind::gru) recurrence_by_definition<GruByDefinition>(shape, tensors, as, 0, rows);
  if (kind == Kind::rnn) recurrence_by_definition<RnnByDefinition>(shape, tensors, as, 0, rows);
  const auto in_floats = [](const std::vector<E>& from) {
    std::vector<float> out;
    for (const E v : from) out.push_back(static_cast<float>(v));
    return out;
  };
  rnn_reference::compare("Y by definition", in_floats(got_y).data(), data.y);
  rnn_reference::compare("Y_h by definition", in_floats(got_h).data(), data.y_h);
  if (kind == Kind::lstm) rnn_reference::compare("Y_c by definition", in_floats(got_c).data(), data.y_c);
}

void Case::run() const {
  const int units = static_cast<int>(rnn_padded_units(shape.hidden));
  const auto pad_units = [&](const std::vector<float>& rows) {
    return rnn_reference::pad_rows(rows, shape.hidden, units);
  };
  const bool separate = is_linear_gru();
  const Data data(*this);
  const auto w_packed = pack_gates(*this, data.w, shape.input);
  const auto r_packed = pack_gates(*this, data.r, shape.hidden);
  const auto padded_bias = pad_units(data.bias(*this));
  const auto padded_recurrent = pad_units(data.recurrent_bias(*this));
  const auto padded_peep = pad_units(data.peep);
  std::vector<float> got_y(data.y.size(), 9.0f), got_h(states(), 9.0f), got_c(states(), 9.0f);
  std::vector<float> scratch(static_cast<std::size_t>(rnn_scratch_floats(shape, gates(), kBlock)));
  RnnOperands o{};
  o.x = data.x.data();
  o.w_packed = w_packed.data();
  o.r_packed = r_packed.data();
  o.bias = has_bias ? padded_bias.data() : nullptr;
  o.recurrent_bias = has_bias && separate ? padded_recurrent.data() : nullptr;
  o.peepholes = has_peepholes ? padded_peep.data() : nullptr;
  o.lengths = has_lengths ? data.lengths.data() : nullptr;
  o.initial_h = has_initial ? data.h0.data() : nullptr;
  o.initial_c = has_initial ? data.c0.data() : nullptr;
  o.y = got_y.data();
  o.y_h = got_h.data();
  o.y_c = got_c.data();
  o.scratch = scratch.data();
  if (kind == Kind::lstm) lstm(shape, o, options, kBlock);
  if (kind == Kind::gru) gru(shape, o, options, kBlock);
  if (kind == Kind::rnn) rnn(shape, o, options, kBlock);
  rnn_reference::compare("Y", got_y.data(), data.y);
  rnn_reference::compare("Y_h", got_h.data(), data.y_h);
  if (kind == Kind::lstm) rnn_reference::compare("Y_c", got_c.data(), data.y_c);
  run_by_definition<float>(data);
  run_by_definition<double>(data);
}

TEST(Rnn, Sizes) {
  for (int hidden : {1, 5, 16, 20, 48}) {
    for (int batch : {1, 2, 5}) {
      for (int steps : {1, 7, 100}) {
        const RnnShape shape{steps, batch, 9, hidden, 1, false};
        SCOPED_TRACE(::testing::Message() << "hidden " << hidden << " batch " << batch << " steps " << steps);
        Case{{Kind::lstm, shape, usual(), true, false, false, false}}.run();
        Case{{Kind::gru, shape, usual(), true, false, false, false}}.run();
        Case{{Kind::rnn, shape, usual_rnn(), true, false, false, false}}.run();
      }
    }
  }
}

TEST(Rnn, DirectionsLengthsInitialStates) {
  for (int directions : {1, 2}) {
    for (bool reverse : {false, true}) {
      for (bool has_lengths : {false, true}) {
        for (bool has_initial : {false, true}) {
          const RnnShape shape{13, 3, 7, 18, directions, reverse};
          Case{{Kind::lstm, shape, usual(), has_initial, false, has_lengths, has_initial}}.run();
          Case{{Kind::gru, shape, usual(), has_initial, false, has_lengths, has_initial}}.run();
          Case{{Kind::rnn, shape, usual_rnn(), has_initial, false, has_lengths, has_initial}}.run();
        }
      }
    }
  }
}

TEST(Rnn, Options) {
  const RnnShape shape{6, 2, 5, 17, 2, false};
  for (bool flag : {false, true}) {
    RnnOptions options = usual();
    options.input_forget = flag;
    Case{{Kind::lstm, shape, options, true, true, false, true}}.run();
    options = usual();
    options.linear_before_reset = flag;
    Case{{Kind::gru, shape, options, true, false, true, true}}.run();
    Case{{Kind::gru, shape, options, false, false, false, true}}.run();
    options.clip = 0.3f;
    Case{{Kind::gru, shape, options, true, false, false, true}}.run();
    Case{{Kind::lstm, shape, options, true, flag, false, true}}.run();
  }
}

TEST(Rnn, Activations) {
  const RnnShape shape{4, 2, 5, 9, 1, false};
  for (int function = 0; function <= static_cast<int>(RnnFunction::softplus); ++function) {
    SCOPED_TRACE(function);
    RnnOptions options = usual();
    options.activations[0][0] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{{Kind::lstm, shape, options, true, false, false, true}}.run();
    Case{{Kind::rnn, shape, options, true, false, false, true}}.run();
    options = usual();
    options.activations[0][1] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{{Kind::gru, shape, options, true, false, false, true}}.run();
    options = usual();
    options.activations[0][2] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{{Kind::lstm, shape, options, true, false, false, true}}.run();
  }
}

TEST(Rnn, OptionalOutputs) {
  const RnnShape shape{3, 1, 4, 6, 1, false};
  const auto x = random_values<float>(12, 1);
  const auto w = random_values<float>(4 * 16 * 4, 2);
  const auto r = random_values<float>(4 * 16 * 6, 3);
  std::vector<float> scratch(static_cast<std::size_t>(rnn_scratch_floats(shape, 4, kBlock)));
  std::vector<float> y(18), y_h(6);
  RnnOperands o{};
  o.x = x.data();
  o.w_packed = w.data();
  o.r_packed = r.data();
  o.scratch = scratch.data();
  o.y = y.data();
  lstm(shape, o, usual(), kBlock);
  o.y = nullptr;
  o.y_h = y_h.data();
  lstm(shape, o, usual(), kBlock);
  for (std::size_t u = 0; u < 6; ++u) EXPECT_EQ(y_h[u], y[12 + u]);
}

}  // namespace
}  // namespace kernel_test
