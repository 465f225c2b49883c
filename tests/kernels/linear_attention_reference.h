// Linear attention by its formula, a matrix at a time, in double; cases for the tests of both targets.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gcrt/linear_attention.h"
#include "random_values.h"

namespace linear_attention_reference {

using namespace GCRT_NAMESPACE;

struct Case {
  LinearAttentionShape shape;
  bool has_past, has_factors, has_rates;
};

// Batch, steps, heads of queries, keys, states and results, sizes, factors, rates, scale; columns beside
// vectors of every width.
inline const Case kCases[] = {{{2, 3, 4, 2, 2, 4, 5, 19, 5, 2, 0.5f}, true, true, true},
                              {{1, 4, 2, 2, 2, 2, 8, 16, 1, 1, 2.0f}, false, true, true},
                              {{1, 1, 3, 1, 1, 3, 3, 7, 1, 1, 1.0f}, true, false, true},
                              {{3, 2, 2, 1, 1, 2, 2, 1, 2, 1, 1.0f}, true, true, false},
                              {{1, 5, 1, 1, 1, 1, 4, 33, 1, 1, 0.25f}, false, false, false},
                              {{1, 3, 2, 1, 4, 4, 3, 9, 1, 4, 1.0f}, true, true, true},
                              {{2, 0, 2, 2, 2, 2, 3, 4, 1, 1, 1.0f}, true, false, false}};

struct Data {
  std::vector<float> q, k, v, past, factors, rates;
  std::vector<double> state, y;

  explicit Data(const Case& c) {
    const LinearAttentionShape& s = c.shape;
    const std::ptrdiff_t tokens = s.batch * s.steps, matrices = s.batch * s.heads;
    q = values(tokens * s.query_heads * s.size, 1);
    k = values(tokens * s.key_heads * s.size, 2);
    v = values(tokens * s.heads * s.value_size, 3);
    past = values(matrices * s.size * s.value_size, 4);
    factors = values(tokens * s.heads * s.factors, 5);
    rates = values(tokens * s.rates, 6);
    state.assign(past.size(), 0.0);
    if (c.has_past) state.assign(past.begin(), past.end());
    y.resize(static_cast<std::size_t>(tokens * s.results * s.value_size));
    for (std::ptrdiff_t number = 0; number < matrices; ++number) {
      for (std::ptrdiff_t step = 0; step < s.steps; ++step) advance(c, number, step);
    }
  }

  LinearAttentionTensors<float> tensors(const Case& c, float* to_state, float* to_y) const {
    return {q.data(),
            k.data(),
            v.data(),
            c.has_past ? past.data() : nullptr,
            c.has_factors ? factors.data() : nullptr,
            c.has_rates ? rates.data() : nullptr,
            to_state,
            to_y};
  }

  void expect(const std::vector<float>& got_state, const std::vector<float>& got_y) const {
    for (std::size_t i = 0; i < state.size(); ++i) ASSERT_NEAR(double{got_state[i]}, state[i], 1e-4) << i;
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(double{got_y[i]}, y[i], 1e-4) << i;
  }

 private:
  static std::vector<float> values(std::ptrdiff_t count, std::uint32_t seed) {
    return kernel_test::random_values<float>(static_cast<std::size_t>(count), seed);
  }
  static double at(const std::vector<float>& from, std::ptrdiff_t i) {
    return double{from[static_cast<std::size_t>(i)]};
  }

  void advance(const Case& c, std::ptrdiff_t number, std::ptrdiff_t step) {
    const LinearAttentionShape& s = c.shape;
    const std::ptrdiff_t token = number / s.heads * s.steps + step, head = number % s.heads;
    const std::ptrdiff_t row = token * s.heads + head, group = s.results / s.heads;
    const std::ptrdiff_t key = token * s.key_heads + head / (s.heads / s.key_heads);
    const auto entry = [&](std::ptrdiff_t i, std::ptrdiff_t j) -> double& {
      return state[static_cast<std::size_t>((number * s.size + i) * s.value_size + j)];
    };
    for (std::ptrdiff_t j = 0; j < s.value_size; ++j) {
      double known = 0, fresh = at(v, row * s.value_size + j);
      for (std::ptrdiff_t i = 0; i < s.size; ++i) {
        if (c.has_factors) entry(i, j) *= at(factors, row * s.factors + i % s.factors);
        known += entry(i, j) * at(k, key * s.size + i);
      }
      if (c.has_rates) fresh = (fresh - known) * at(rates, token * s.rates + head % s.rates);
      for (std::ptrdiff_t i = 0; i < s.size; ++i) entry(i, j) += fresh * at(k, key * s.size + i);
      for (std::ptrdiff_t g = 0; g < group; ++g) {
        const std::ptrdiff_t result = head * group + g;
        const std::ptrdiff_t query = token * s.query_heads + result / (s.results / s.query_heads);
        double sum = 0;
        for (std::ptrdiff_t i = 0; i < s.size; ++i) sum += entry(i, j) * at(q, query * s.size + i);
        y[static_cast<std::size_t>((token * s.results + result) * s.value_size + j)] = sum * double{s.scale};
      }
    }
  }
};

}  // namespace linear_attention_reference
