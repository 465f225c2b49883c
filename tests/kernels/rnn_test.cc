// LSTM, GRU and RNN against the equations of the ONNX operators in double.
#include "gcrt/cpu/rnn.h"

#include <algorithm>

#include "kernel_test.h"

namespace kernel_test {
namespace {

double activate(const RnnActivation& a, double x) {
  const double alpha = static_cast<double>(a.alpha), beta = static_cast<double>(a.beta);
  switch (a.function) {
    case RnnFunction::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case RnnFunction::tanh:
      return std::tanh(x);
    case RnnFunction::relu:
      return std::max(x, 0.0);
    case RnnFunction::affine:
      return alpha * x + beta;
    case RnnFunction::leaky_relu:
      return x < 0 ? alpha * x : x;
    case RnnFunction::thresholded_relu:
      return x > alpha ? x : 0.0;
    case RnnFunction::scaled_tanh:
      return alpha * std::tanh(beta * x);
    case RnnFunction::hard_sigmoid:
      return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case RnnFunction::elu:
      return x < 0 ? alpha * (std::exp(x) - 1.0) : x;
    case RnnFunction::softsign:
      return x / (1.0 + std::fabs(x));
    case RnnFunction::softplus:
      return std::log1p(std::exp(x));
  }
  return 0.0;
}

enum class Kind { lstm, gru, rnn };

// Operands in ONNX's own layout, their packed form, and the results of both.
struct Case {
  Kind kind;
  RnnShape shape;
  RnnOptions options;
  bool has_bias, has_peepholes, has_lengths, has_initial;

  int gates() const { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  std::size_t states() const {
    return static_cast<std::size_t>(shape.directions * shape.batch * shape.hidden);
  }
  void run() const;
};

std::vector<float> pack_gates(const Case& c, const std::vector<float>& w, int depth) {
  const std::ptrdiff_t units = rnn_padded_units(c.shape.hidden);
  std::vector<float> packed;
  for (int g = 0; g < c.shape.directions * c.gates(); ++g) {
    std::vector<float> one(static_cast<std::size_t>(units * depth));
    pack_b(depth, c.shape.hidden, w.data() + g * c.shape.hidden * depth, 1, depth, one.data());
    packed.insert(packed.end(), one.begin(), one.end());
  }
  return packed;
}

std::vector<float> pad_units(const Case& c, const std::vector<float>& rows) {
  const std::size_t hidden = static_cast<std::size_t>(c.shape.hidden);
  const std::size_t units = static_cast<std::size_t>(rnn_padded_units(c.shape.hidden));
  std::vector<float> padded(rows.size() / hidden * units, 0.0f);
  for (std::size_t i = 0; i < rows.size(); ++i) padded[i / hidden * units + i % hidden] = rows[i];
  return padded;
}

void Case::run() const {
  const int H = shape.hidden, I = shape.input, B = shape.batch, T = shape.steps, D = shape.directions,
            G = gates();
  const auto size = [](int a, int b, int c, int d = 1) { return static_cast<std::size_t>(a * b * c * d); };
  const auto x = random_values<float>(size(T, B, I), 51);
  const auto w = random_values<float>(size(D, G * H, I), 52);
  auto r = random_values<float>(size(D, G * H, H), 53);
  for (float& v : r) v *= 0.5f;
  const auto wb = random_values<float>(size(D, G, H), 54);
  const auto rb = random_values<float>(size(D, G, H), 55);
  const auto peep = random_values<float>(size(D, 3, H), 56);
  const auto h0 = random_values<float>(size(D, B, H), 57);
  const auto c0 = random_values<float>(size(D, B, H), 58);
  std::vector<std::int32_t> lengths;
  for (int b = 0; b < B; ++b) lengths.push_back(has_lengths ? 1 + (b * 5 + T / 2) % T : T);
  const bool separate = kind == Kind::gru && options.linear_before_reset;

  // The reference: pre-activation of gate g, unit u from X and from the state.
  std::vector<double> y(size(T, D, B, H), 0.0), y_h(states()), y_c(states());
  for (int d = 0; d < D; ++d) {
    for (int b = 0; b < B; ++b) {
      std::vector<double> h(static_cast<std::size_t>(H), 0.0), c(h);
      const auto state = [&](int u) { return static_cast<std::size_t>((d * B + b) * H + u); };
      for (int u = 0; u < H && has_initial; ++u) {
        h[static_cast<std::size_t>(u)] = static_cast<double>(h0[state(u)]);
        c[static_cast<std::size_t>(u)] = static_cast<double>(c0[state(u)]);
      }
      const bool reverse = D == 2 ? d == 1 : shape.reverse;
      const int length = lengths[static_cast<std::size_t>(b)];
      const auto clip = [&](double v) {
        const double bound = static_cast<double>(options.clip);
        return bound > 0 ? std::min(std::max(v, -bound), bound) : v;
      };
      for (int step = 0; step < length; ++step) {
        const int t = reverse ? length - 1 - step : step;
        const auto row = [&](int g, int u) { return static_cast<std::size_t>((d * G + g) * H + u); };
        const auto from_x = [&](int g, int u) {
          double sum = has_bias ? static_cast<double>(wb[row(g, u)]) : 0.0;
          for (int i = 0; i < I; ++i) {
            sum +=
                static_cast<double>(x[static_cast<std::size_t>((t * B + b) * I + i)]) *
                static_cast<double>(w[row(g, u) * static_cast<std::size_t>(I) + static_cast<std::size_t>(i)]);
          }
          return sum;
        };
        const auto from_h = [&](int g, int u, const std::vector<double>& v) {
          double sum = has_bias ? static_cast<double>(rb[row(g, u)]) : 0.0;
          for (std::size_t i = 0; i < v.size(); ++i) {
            sum += v[i] * static_cast<double>(r[row(g, u) * v.size() + i]);
          }
          return sum;
        };
        const RnnActivation* act = options.activations[d];
        const auto f = [&](double v) { return activate(act[0], clip(v)); };
        const auto g = [&](double v) { return activate(act[1], clip(v)); };
        const auto p = [&](int k, int u) {
          return has_peepholes ? static_cast<double>(peep[static_cast<std::size_t>((d * 3 + k) * H + u)])
                               : 0.0;
        };
        std::vector<double> next_h(h), next_c(c);
        for (int u = 0; u < H; ++u) {
          const std::size_t at = static_cast<std::size_t>(u);
          if (kind == Kind::rnn) {
            next_h[at] = f(from_x(0, u) + from_h(0, u, h));
          } else if (kind == Kind::lstm) {
            const double in = f(from_x(0, u) + from_h(0, u, h) + p(0, u) * c[at]);
            const double forget =
                options.input_forget ? 1.0 - in : f(from_x(2, u) + from_h(2, u, h) + p(2, u) * c[at]);
            next_c[at] = forget * c[at] + in * g(from_x(3, u) + from_h(3, u, h));
            const double out = f(from_x(1, u) + from_h(1, u, h) + p(1, u) * next_c[at]);
            next_h[at] = out * activate(act[2], next_c[at]);
          } else {
            const double z = f(from_x(0, u) + from_h(0, u, h));
            double candidate = 0.0;
            if (options.linear_before_reset) {
              const double reset = f(from_x(1, u) + from_h(1, u, h));
              candidate = g(from_x(2, u) + reset * from_h(2, u, h));
            } else {
              std::vector<double> reset_h(h);
              for (int v = 0; v < H; ++v) {
                reset_h[static_cast<std::size_t>(v)] *= f(from_x(1, v) + from_h(1, v, h));
              }
              candidate = g(from_x(2, u) + from_h(2, u, reset_h));
            }
            next_h[at] = (1.0 - z) * candidate + z * h[at];
          }
        }
        h = next_h;
        c = next_c;
        for (int u = 0; u < H; ++u) {
          y[static_cast<std::size_t>(((t * D + d) * B + b) * H + u)] = h[static_cast<std::size_t>(u)];
        }
      }
      for (int u = 0; u < H; ++u) {
        y_h[state(u)] = h[static_cast<std::size_t>(u)];
        y_c[state(u)] = c[static_cast<std::size_t>(u)];
      }
    }
  }

  // The kernel.
  std::vector<float> bias(wb.size());
  std::vector<float> recurrent_bias;
  for (std::size_t i = 0; i < bias.size(); ++i) {
    const bool is_candidate = i / static_cast<std::size_t>(H) % static_cast<std::size_t>(G) == 2;
    bias[i] = wb[i] + (separate && is_candidate ? 0.0f : rb[i]);
    if (is_candidate) recurrent_bias.push_back(rb[i]);
  }
  const auto w_packed = pack_gates(*this, w, I);
  const auto r_packed = pack_gates(*this, r, H);
  const auto padded_bias = pad_units(*this, bias);
  const auto padded_recurrent = pad_units(*this, recurrent_bias);
  const auto padded_peep = pad_units(*this, peep);
  std::vector<float> got_y(y.size(), 9.0f), got_h(y_h.size(), 9.0f), got_c(y_c.size(), 9.0f);
  std::vector<float> scratch(static_cast<std::size_t>(rnn_scratch_floats(shape, G)));
  RnnOperands o{};
  o.x = x.data();
  o.w_packed = w_packed.data();
  o.r_packed = r_packed.data();
  o.bias = has_bias ? padded_bias.data() : nullptr;
  o.recurrent_bias = has_bias && separate ? padded_recurrent.data() : nullptr;
  o.peepholes = has_peepholes ? padded_peep.data() : nullptr;
  o.lengths = has_lengths ? lengths.data() : nullptr;
  o.initial_h = has_initial ? h0.data() : nullptr;
  o.initial_c = has_initial ? c0.data() : nullptr;
  o.y = got_y.data();
  o.y_h = got_h.data();
  o.y_c = got_c.data();
  o.scratch = scratch.data();
  if (kind == Kind::lstm) lstm(shape, o, options);
  if (kind == Kind::gru) gru(shape, o, options);
  if (kind == Kind::rnn) rnn(shape, o, options);
  const auto compare = [](const char* name, const std::vector<float>& got, const std::vector<double>& want) {
    int shown = 0;
    for (std::size_t i = 0; i < got.size() && shown < 3; ++i) {
      if (!(std::fabs(static_cast<double>(got[i]) - want[i]) <= 2e-5 * (1.0 + std::fabs(want[i])))) {
        ADD_FAILURE() << name << "[" << i << "] is " << got[i] << ", expected " << want[i];
        ++shown;
      }
    }
  };
  compare("Y", got_y, y);
  compare("Y_h", got_h, y_h);
  if (kind == Kind::lstm) compare("Y_c", got_c, y_c);
}

RnnOptions usual() {
  const RnnActivation s{RnnFunction::sigmoid, 0, 0}, t{RnnFunction::tanh, 0, 0};
  return {{{s, t, t}, {s, t, t}}, 0.0f, false, false};
}

RnnOptions usual_rnn() {
  const RnnActivation t{RnnFunction::tanh, 0, 0};
  return {{{t, t, t}, {t, t, t}}, 0.0f, false, false};
}

TEST(Rnn, Sizes) {
  for (int hidden : {1, 5, 16, 20, 48}) {
    for (int batch : {1, 2, 5}) {
      for (int steps : {1, 7, 100}) {
        const RnnShape shape{steps, batch, 9, hidden, 1, false};
        SCOPED_TRACE(::testing::Message() << "hidden " << hidden << " batch " << batch << " steps " << steps);
        Case{Kind::lstm, shape, usual(), true, false, false, false}.run();
        Case{Kind::gru, shape, usual(), true, false, false, false}.run();
        Case{Kind::rnn, shape, usual_rnn(), true, false, false, false}.run();
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
          Case{Kind::lstm, shape, usual(), has_initial, false, has_lengths, has_initial}.run();
          Case{Kind::gru, shape, usual(), has_initial, false, has_lengths, has_initial}.run();
          Case{Kind::rnn, shape, usual_rnn(), has_initial, false, has_lengths, has_initial}.run();
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
    Case{Kind::lstm, shape, options, true, true, false, true}.run();
    options = usual();
    options.linear_before_reset = flag;
    Case{Kind::gru, shape, options, true, false, true, true}.run();
    Case{Kind::gru, shape, options, false, false, false, true}.run();
    options.clip = 0.3f;
    Case{Kind::gru, shape, options, true, false, false, true}.run();
    Case{Kind::lstm, shape, options, true, flag, false, true}.run();
  }
}

TEST(Rnn, Activations) {
  const RnnShape shape{4, 2, 5, 9, 1, false};
  for (int function = 0; function <= static_cast<int>(RnnFunction::softplus); ++function) {
    SCOPED_TRACE(function);
    RnnOptions options = usual();
    options.activations[0][0] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{Kind::lstm, shape, options, true, false, false, true}.run();
    Case{Kind::rnn, shape, options, true, false, false, true}.run();
    options = usual();
    options.activations[0][1] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{Kind::gru, shape, options, true, false, false, true}.run();
    options = usual();
    options.activations[0][2] = {static_cast<RnnFunction>(function), 0.3f, 0.4f};
    Case{Kind::lstm, shape, options, true, false, false, true}.run();
  }
}

TEST(Rnn, OptionalOutputs) {
  const RnnShape shape{3, 1, 4, 6, 1, false};
  const auto x = random_values<float>(12, 1);
  const auto w = random_values<float>(4 * 16 * 4, 2);
  const auto r = random_values<float>(4 * 16 * 6, 3);
  std::vector<float> scratch(static_cast<std::size_t>(rnn_scratch_floats(shape, 4)));
  std::vector<float> y(18), y_h(6);
  RnnOperands o{};
  o.x = x.data();
  o.w_packed = w.data();
  o.r_packed = r.data();
  o.scratch = scratch.data();
  o.y = y.data();
  lstm(shape, o, usual());
  o.y = nullptr;
  o.y_h = y_h.data();
  lstm(shape, o, usual());
  for (std::size_t u = 0; u < 6; ++u) EXPECT_EQ(y_h[u], y[12 + u]);
}

}  // namespace
}  // namespace kernel_test
