// LSTM, GRU and RNN by the equations of the ONNX operators in double: what the kernels of both targets are
// compared with. Include the kernels first.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gcrt/rnn_cell.h"

namespace rnn_reference {

using namespace GCRT_NAMESPACE;

enum class Kind { lstm, gru, rnn };

inline double activate(const RnnActivation& a, double x) {
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

struct Case {
  Kind kind;
  RnnShape shape;
  RnnOptions options;
  bool has_bias, has_peepholes, has_lengths, has_initial;

  int gates() const { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  bool is_linear_gru() const { return kind == Kind::gru && options.linear_before_reset; }
  std::size_t states() const {
    return static_cast<std::size_t>(shape.directions * shape.batch * shape.hidden);
  }
};

// Small reproducible values in [-1, 1).
inline std::vector<float> values(std::size_t count, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761u + 1u;
  std::vector<float> result(count);
  for (float& value : result) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * (1.0f / 2147483648.0f);
  }
  return result;
}

// Operands in ONNX's own layout, and the results.
struct Data {
  explicit Data(const Case& c);

  // W's and R's bias added as the kernels take them, and R's bias of gate h.
  std::vector<float> bias(const Case& c) const;
  std::vector<float> recurrent_bias(const Case& c) const;
  // [D][2][gates][H], as ONNX has them.
  std::vector<float> both_biases(const Case& c) const;

  std::vector<float> x, w, r, wb, rb, peep, h0, c0;
  std::vector<std::int32_t> lengths;
  std::vector<double> y, y_h, y_c;
};

inline Data::Data(const Case& arguments) {
  const Kind kind = arguments.kind;
  const RnnShape& shape = arguments.shape;
  const RnnOptions& options = arguments.options;
  const bool has_bias = arguments.has_bias, has_peepholes = arguments.has_peepholes;
  const bool has_lengths = arguments.has_lengths, has_initial = arguments.has_initial;
  const int H = shape.hidden, I = shape.input, B = shape.batch, T = shape.steps, D = shape.directions,
            G = arguments.gates();
  const auto size = [](int a, int b, int c, int d = 1) { return static_cast<std::size_t>(a * b * c * d); };
  x = values(size(T, B, I), 51);
  w = values(size(D, G * H, I), 52);
  r = values(size(D, G * H, H), 53);
  // Sums of many units stay as small as those of few.
  for (float& v : r) v *= H > 60 ? 4.0f / static_cast<float>(H) : 0.5f;
  wb = values(size(D, G, H), 54);
  rb = values(size(D, G, H), 55);
  peep = values(size(D, 3, H), 56);
  h0 = values(size(D, B, H), 57);
  c0 = values(size(D, B, H), 58);
  for (int b = 0; b < B; ++b) lengths.push_back(has_lengths ? 1 + (b * 5 + T / 2) % T : T);

  // The reference: pre-activation of gate g, unit u from X and from the state.
  y.assign(size(T, D, B, H), 0.0);
  y_h.assign(arguments.states(), 0.0);
  y_c.assign(arguments.states(), 0.0);
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
}

inline std::vector<float> Data::bias(const Case& c) const {
  std::vector<float> sums(wb.size());
  const auto hidden = static_cast<std::size_t>(c.shape.hidden);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool is_candidate = i / hidden % static_cast<std::size_t>(c.gates()) == 2;
    sums[i] = wb[i] + (c.is_linear_gru() && is_candidate ? 0.0f : rb[i]);
  }
  return sums;
}
inline std::vector<float> Data::both_biases(const Case& c) const {
  std::vector<float> both;
  const auto rows = static_cast<std::ptrdiff_t>(c.gates()) * c.shape.hidden;
  for (int d = 0; d < c.shape.directions; ++d) {
    for (const std::vector<float>* from : {&wb, &rb}) {
      both.insert(both.end(), from->begin() + d * rows, from->begin() + (d + 1) * rows);
    }
  }
  return both;
}

inline std::vector<float> Data::recurrent_bias(const Case& c) const {
  std::vector<float> apart;
  const auto hidden = static_cast<std::size_t>(c.shape.hidden);
  for (std::size_t i = 0; i < rb.size(); ++i) {
    if (i / hidden % static_cast<std::size_t>(c.gates()) == 2) apart.push_back(rb[i]);
  }
  return apart;
}

inline RnnOptions usual() {
  const RnnActivation s{RnnFunction::sigmoid, 0, 0}, t{RnnFunction::tanh, 0, 0};
  return {{{s, t, t}, {s, t, t}}, 0.0f, false, false};
}

inline RnnOptions usual_rnn() {
  const RnnActivation t{RnnFunction::tanh, 0, 0};
  return {{{t, t, t}, {t, t, t}}, 0.0f, false, false};
}

// Rows of `from` elements, padded with zeros to `to` each.
inline std::vector<float> pad_rows(const std::vector<float>& rows, int from, int to) {
  const auto narrow = static_cast<std::size_t>(from), wide = static_cast<std::size_t>(to);
  std::vector<float> padded(rows.size() / narrow * wide, 0.0f);
  for (std::size_t i = 0; i < rows.size(); ++i) padded[i / narrow * wide + i % narrow] = rows[i];
  return padded;
}

inline void compare(const char* name, const float* got, const std::vector<double>& want) {
  int shown = 0;
  for (std::size_t i = 0; i < want.size() && shown < 3; ++i) {
    if (!(std::fabs(static_cast<double>(got[i]) - want[i]) <= 2e-5 * (1.0 + std::fabs(want[i])))) {
      ADD_FAILURE() << name << "[" << i << "] is " << got[i] << ", expected " << want[i];
      ++shown;
    }
  }
}

}  // namespace rnn_reference
