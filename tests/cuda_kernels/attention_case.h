// Cases of attention, and the formula in double, for the tests of its kernels.
#pragma once

#include <algorithm>

#include "cuda_kernel_test.h"
#include "gcrt/cuda/attention/attention.h"

namespace cuda_kernel_test {

inline std::size_t size(std::ptrdiff_t count) { return static_cast<std::size_t>(count); }

struct AttentionCase {
  int batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_size = 16, value_size = 16;
  bool is_causal = false;
  int causal_offset = 0;
  bool is_heads_inside = false;  // [batch][row][head][column] in place of [batch][head][row][column]
  bool is_k_transposed = false;  // [batch][head][column][row]
  bool is_zero_where_empty = true;
};

inline AttentionStrides strides_of(int heads, int rows, int columns, bool is_heads_inside) {
  if (is_heads_inside)
    return {std::ptrdiff_t{heads} * rows * columns, columns, std::ptrdiff_t{heads} * columns, 1};
  return {std::ptrdiff_t{heads} * rows * columns, std::ptrdiff_t{rows} * columns, columns, 1};
}

inline AttentionShape shape_of(const AttentionCase& c) {
  AttentionShape s{c.batch,
                   c.heads,
                   c.kv_heads,
                   c.queries,
                   c.keys,
                   c.head_size,
                   c.value_size,
                   0.37f,
                   c.is_causal,
                   c.causal_offset,
                   c.is_zero_where_empty,
                   {},
                   {},
                   {}};
  s.q = strides_of(c.heads, c.queries, c.head_size, c.is_heads_inside);
  s.k = strides_of(c.kv_heads, c.keys, c.head_size, c.is_heads_inside);
  s.v = strides_of(c.kv_heads, c.keys, c.value_size, c.is_heads_inside);
  if (c.is_k_transposed) {
    s.k = {std::ptrdiff_t{c.kv_heads} * c.keys * c.head_size, std::ptrdiff_t{c.keys} * c.head_size, 1,
           c.keys};
  }
  return s;
}

struct HostMask {
  AttentionMask strides;  // data is not used
  std::vector<float> additive;
  std::vector<std::uint8_t> keep;
};

// The sums, and their magnitudes: what |v| weighs.
inline void add_reference(const AttentionShape& s, const std::vector<float>& q, const std::vector<float>& k,
                          const std::vector<float>& v, const HostMask& mask, std::vector<double>& expected,
                          std::vector<double>& bound) {
  const auto place = [](const AttentionStrides& t, int b, int h, int row, int column) {
    return size(b * t.batch + h * t.head + row * t.row + column * t.column);
  };
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      const int g = h / (s.heads / s.kv_heads);
      for (int i = 0; i < s.queries; ++i) {
        std::vector<double> scores(size(s.keys), -std::numeric_limits<double>::infinity());
        double largest = -std::numeric_limits<double>::infinity();
        for (int j = 0; j < s.keys; ++j) {
          if (s.is_causal && j > i + s.causal_offset) continue;
          const std::size_t m = size(b * mask.strides.batch + h * mask.strides.head + i * mask.strides.query +
                                     j * mask.strides.key);
          const bool is_hidden = !mask.keep.empty() && mask.keep[m] == 0;
          if (is_hidden && mask.additive.empty()) continue;
          double dot = 0;
          for (int d = 0; d < s.head_size; ++d) {
            dot += double{q[place(s.q, b, h, i, d)]} * double{k[place(s.k, b, g, j, d)]};
          }
          scores[size(j)] = (is_hidden ? double{mask.strides.fill} : double{s.scale} * dot) +
                            (mask.additive.empty() ? 0.0 : double{mask.additive[m]});
          largest = std::max(largest, scores[size(j)]);
        }
        double total = 0;
        for (double& score : scores) {
          score = score == -std::numeric_limits<double>::infinity() ? 0 : std::exp(score - largest);
          total += score;
        }
        for (int d = 0; d < s.value_size; ++d) {
          double sum = 0;
          for (int j = 0; j < s.keys; ++j) sum += scores[size(j)] * double{v[place(s.v, b, g, j, d)]};
          const double empty = s.is_zero_where_empty ? 0.0 : std::numeric_limits<double>::quiet_NaN();
          expected.push_back(total > 0 ? sum / total : empty);
          bound.push_back(1.0);
        }
      }
    }
  }
}

inline AttentionCase self_attention(int heads, int tokens, int head_size) {
  AttentionCase c;
  c.heads = c.kv_heads = heads;
  c.queries = c.keys = tokens;
  c.head_size = c.value_size = head_size;
  return c;
}

}  // namespace cuda_kernel_test
