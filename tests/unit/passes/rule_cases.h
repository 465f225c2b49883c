#pragma once
// A graph for every row of the tables of rules in which it fires, and graphs that a rule's guard refuses, for
// tests of all rules at once. `T` stands for a type of floats and `TO` for its number in Cast.

#include "tests/unit/passes/algebra_cases.h"
#include "tests/unit/passes/rule_case.h"

namespace gcompile::testing {

inline std::vector<RuleCase> quantised_cases() {
  const std::string q = ", float s, uint8 z";
  const std::vector<std::pair<std::string, double>> sz = {{"s", 0.3}, {"z", 3}};
  const std::vector<std::pair<std::string, double>> least = {{"s", 0.3}, {"z", 0}};
  std::vector<RuleCase> cases = {
      {"quantize-of-dequantize",
       "g (uint8[20] x" + q +
           ") => (uint8[20] y) { d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z) }",
       sz},
      {"relu-into-saturation",
       "g (T[20] x" + q + ") => (uint8[20] y) { t = Relu(x) y = QuantizeLinear(t, s, z) }", least},
      {"clip-into-saturation",
       "g (T[20] x, T a, T b" + q + ") => (uint8[20] y) { t = Clip(x, a, b) y = QuantizeLinear(t, s, z) }",
       {{"s", 0.3}, {"z", 3}, {"a", -5}, {"b", 100}}},
      {"dequantize-after-movement",
       "g (uint8[4,5] x" + q +
           ") => (T[5,4] y) { d = DequantizeLinear(x, s, z) y = Transpose<perm = [1,0]>(d) }",
       sz},
      {"dequantize-after-movement",
       "g (uint8[1,1,4,5] x" + q +
           ") => (T[1,1,3,4] y) { d = DequantizeLinear(x, s, z) y = MaxPool<kernel_shape = [2,2]>(d) }",
       sz},
      {"quantize-before-movement",
       "g (T[4,5] x" + q +
           ") => (uint8[5,4] y) { t = Transpose<perm = [1,0]>(x) y = QuantizeLinear(t, s, z) }",
       sz},
      {"dequantize-after-concat",
       "g (uint8[4] a, uint8[5] b" + q +
           ") => (T[9] y) { c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, s, z)"
           " y = Concat<axis = 0>(c, d) }",
       sz},
      {"quantize-before-concat",
       "g (T[8] a, T[12] b" + q +
           ") => (uint8[20] y) { c = Concat<axis = 0>(a, b) y = QuantizeLinear(c, s, z) }",
       sz},
      {"conv-of-integers",
       "g (uint8[1,2,6] x, int8[3,2,3] w_w, T[3] w_b, float v" + q +
           ") => (T[1,3,4] y) { d = DequantizeLinear(x, s, z) e = DequantizeLinear(w_w, v)"
           " y = Conv(d, e, w_b) }",
       {{"s", 0.3}, {"z", 3}, {"v", 0.7}}},
      {"conv-transpose-of-integers",
       "g (uint8[1,2,6] x, int8[2,3,3] w_w, T[3] w_b, float v" + q +
           ") => (T[1,3,8] y) { d = DequantizeLinear(x, s, z) e = DequantizeLinear(w_w, v)"
           " y = ConvTranspose(d, e, w_b) }",
       {{"s", 0.3}, {"z", 3}, {"v", 0.7}}},
      {"matmul-of-integers",
       "g (uint8[3,6] x, int8[6,4] w_w, float v" + q +
           ") => (T[3,4] y) { d = DequantizeLinear(x, s, z) e = DequantizeLinear(w_w, v) y = MatMul(d, e) }",
       {{"s", 0.3}, {"z", 3}, {"v", 0.7}}},
      {"bias-of-integers",
       "g (uint8[3,4] x, int8[4,4] w_w, int32[4] bias, float s) => (T[3,4] y) { m = MatMulInteger(x, w_w)"
       " d = DequantizeLinear(m, s) e = DequantizeLinear(bias, s) y = Add(d, e) }",
       {{"s", 0.25}, {"bias", 1000}}},
      {"mean-of-integers",
       "g (uint8[1,3,4,5] x" + q +
           ") => (T[1,3,1,1] y) { d = DequantizeLinear(x, s, z) y = GlobalAveragePool(d) }",
       sz},
      {"mean-of-integers",
       "g (uint8[1,3,4,5] x" + q +
           ") => (T[1,3,1,1] y) { d = DequantizeLinear(x, s, z) y = AveragePool<kernel_shape = [4,5]>(d) }",
       sz},
  };
  for (RuleCase& row : cases) row.float32_only = true;
  cases.push_back({"matmul-of-packed-weights",
                   "g (T[3,6] x, int8[6,4] w_w, T w_s) => (T[3,4] y) { d = DequantizeLinear(w_w, w_s)"
                   " y = MatMul(x, d) }",
                   {},
                   false,
                   false,
                   false});
  cases.push_back({"matmul-of-packed-columns",
                   "g (T[3,6] x, int8[4,6] w_w, T w_s) => (T[3,4] y) { d = DequantizeLinear(w_w, w_s)"
                   " t = Transpose<perm = [1,0]>(d) y = MatMul(x, t) }",
                   {},
                   false,
                   false,
                   false});
  return cases;
}

inline std::vector<RuleCase> movement_cases() {
  std::vector<RuleCase> cases = {
      {"identity", unary("y = Identity(x)")},
      {"cast-to-same", unary("y = Cast<to = TO>(x)")},
      {"reshape-to-same", unary("y = Reshape(x, s)", "", "<int64[1] s = {20}> ")},
      {"expand-to-same", unary("y = Expand(x, s)", "", "<int64[1] s = {20}> ")},
      {"tile-once", unary("y = Tile(x, s)", "", "<int64[1] s = {1}> ")},
      {"slice-of-all", unary("y = Slice(x, a, b)", "", "<int64[1] a = {0}, int64[1] b = {99}> ")},
      {"pad-by-nothing", unary("y = Pad(x, p)", "", "<int64[2] p = {0,0}> ")},
      {"transpose-of-unit-axes", "g (T[20,1] x) => (T[1,20] y) { y = Transpose<perm = [1,0]>(x) }"},
      {"reshape-of-rows",
       "g (T[4,3] x, T[3,5] w_w) => (T[2,2,5] y) <int64[3] shape = {2,2,5}>"
       " { p = MatMul(x, w_w) y = Reshape(p, shape) }"},
      {"reshape-of-rows",
       "g (T[4,3] x, T[3,5] w_w, T[5] w_c) => (T[2,2,5] y) <int64[3] shape = {2,2,5}>"
       " { p = MatMul(x, w_w) q = Add(p, w_c) y = Reshape(q, shape) }"},
      {"concat-of-one", unary("y = Concat<axis = 0>(x)")},
      {"where-constant", unary("y = Where(c, x, z)", ", bool c, T[20] z"), {{"c", 1}}},
      {"where-constant", unary("y = Where(c, x, z)", ", bool c, T[20] z"), {{"c", 0}}},
      {.rule = "cast-of-cast",
       .graph = "g (T[20] x) => (T[20] y) { t = Cast<to = 10>(x) y = Cast<to = TO>(t) }",
       .refuses = "loses values"},
      {"transpose-of-transpose",
       "g (T[4,5] x) => (T[4,5] y) { t = Transpose<perm = [1,0]>(x) y = Transpose<perm = [1,0]>(t) }"},
      {"reshape-of-reshape",
       "g (T[20] x) => (T[5,4] y) <int64[2] a = {4,5}, int64[2] b = {5,4}> { t = Reshape(x, a)"
       " y = Reshape(t, b) }"},
      {"slice-of-slice",
       "g (T[20] x) => (T[6] y) <int64[1] a = {2}, int64[1] b = {18}, int64[1] c = {1}, int64[1] d = {7}>"
       " { t = Slice(x, a, b) y = Slice(t, c, d) }"},
      {"involution", unary("t = Neg(x) y = Neg(t)")},
      {"involution", "g (bool[4] x) => (bool[4] y) { t = Not(x) y = Not(t) }"},
      {"involution", "g (uint8[9] x) => (uint8[9] y) { t = BitwiseNot(x) y = BitwiseNot(t) }"},
      {"pad-into-conv",
       "g (T[1,2,6] x, T[3,2,3] w_w) => (T[1,3,6] y) <int64[6] pads = {0,0,1,0,0,1}>"
       " { t = Pad(x, pads) y = Conv(t, w_w) }"},
      {"pad-into-conv",
       "g (T[1,2,6] x, T[3,2,3] n_w) => (T[1,3,6] y) <int64[6] pads = {0,0,1,0,0,1}>"
       " { t = Pad(x, pads) y = Conv(t, n_w) }",
       {},
       false,
       false,
       false},
      {"pad-into-average-pool",
       "g (T[1,2,6] x) => (T[1,2,7] y) <int64[6] pads = {0,0,1,0,0,1}>"
       " { t = Pad(x, pads) y = AveragePool<kernel_shape = [2]>(t) }"},
  };
  for (const char* f : {"Relu", "Abs", "Ceil", "Floor", "Round", "Sign"}) {
    cases.push_back({"idempotent", unary("t = " + std::string(f) + "(x) y = " + std::string(f) + "(t)")});
  }
  // To a wider type and back, and past it.
  for (const auto& [type, to] : {std::pair<std::string, std::string>{"T", "TO"},
                                 {"float", "1"},
                                 {"float16", "10"},
                                 {"int32", "6"},
                                 {"int8", "3"}}) {
    cases.push_back({"cast-of-cast", "g (T[20] x) => (" + type +
                                         "[20] y) { t = Cast<to = 11>(x) y = Cast<to = " + to + ">(t) }"});
  }
  return cases;
}

inline std::vector<RuleCase> arithmetic_cases() {
  const std::string c = ", T c", w = ", T[20] w_c", ab = ", T w_a, T w_b", each = ", T[20] w_a, T[20] w_b";
  const std::string bounds = ", T w_a, T w_b, T w_c, T w_d";
  std::vector<RuleCase> cases = {
      {"mul-one", unary("y = Mul(c, x)", c), {{"c", 1}}},
      {"div-one", unary("y = Div(x, c)", c), {{"c", 1}}},
      {"pow-one", unary("y = Pow(x, c)", c), {{"c", 1}}},
      {"sub-zero", unary("y = Sub(x, c)", c), {{"c", 0}}},
      {"add-negative-zero", unary("y = Add(x, c)", c), {{"c", -0.0}}},
      {"add-zero", unary("y = Add(x, c)", c), {{"c", 0}}},
      {"sub-negative-zero", unary("y = Sub(x, c)", c), {{"c", -0.0}}},
      {"sub-constant", unary("y = Sub(x, w_c)", w)},
      {"div-by-power-of-two", unary("y = Div(x, c)", c), {{"c", 4}}},
      {"div-by-power-of-two", unary("y = Div(x, c)", c), {{"c", -0x1p-13}}},
      {"div-by-power-of-two", unary("y = Div(x, c)", c), {{"c", 0x1p14}}},
      {"div-by-power-of-two", unary("y = Div(x, w_c)", w), {}, false, false, false},
      {"erf-of-quotient", unary("t = Div(x, c) y = Erf(t)", c), {{"c", 1.41421356}}},
      {"erf-of-quotient", unary("t = Div(x, c) y = Erf(t)", c), {{"c", 0}}, false, false, false},
      {"one-over", unary("y = Div(c, x)", c), {{"c", 1}}},
      {"pow-two", unary("y = Pow(x, c)", c), {{"c", 2}}},
      {"pow-half", unary("t = Abs(x) y = Pow(t, c)", c), {{"c", 0.5}}},
      {"pow-half",
       unary("t = Mul(x, x) u = Add(t, w_c) y = Pow(u, c)", c + w),
       {{"c", 0.5}},
       false,
       false,
       false},
      {"pow-half", unary("y = Pow(x, c)", c), {{"c", 0.5}}, false, false, false},
      {"add-constants", unary("t = Add(x, w_a) y = Add(t, w_b)", ab)},
      {"add-constants", unary("t = Add(x, w_a) y = Add(t, w_b)", each)},
      {"mul-constants", unary("t = Mul(x, w_a) y = Mul(t, w_b)", ab)},
      {"mul-constants", unary("t = Mul(x, w_a) y = Mul(t, w_b)", each)},
      {"max-to-clip", unary("y = Max(x, w_a)", ab)},
      {"min-to-clip", unary("y = Min(x, w_a)", ab)},
      {"clip-of-clip", unary("t = Clip(x, w_a, w_b) y = Clip(t, w_c, w_d)", bounds)},
      {"clip-of-clip", unary("t = Clip(x, , w_a) y = Clip(t, w_b)", ab)},
      {"clip-of-relu", unary("t = Relu(x) y = Clip(t, w_a, w_b)", ab)},
      {"clip-of-relu", unary("t = Relu(x) y = Clip(t, w_a)", ab)},
      {"relu-of-clip", unary("t = Clip(x, w_a, w_b) y = Relu(t)", ab)},
      {"relu-of-clip", unary("t = Clip(x, , w_a) y = Relu(t)", ab)},
  };
  return cases;
}

inline std::vector<RuleCase> reduce_cases() {
  std::vector<RuleCase> cases;
  for (const std::string f : {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"}) {
    cases.push_back({"reduce-of-one",
                     "g (T[20,1] x) => (T[20] y) <int64[1] a = {1}> { y = " + f + "<keepdims = 0>(x, a) }"});
    if (f == "ReduceProd") continue;
    const bool picks = f == "ReduceMax" || f == "ReduceMin";
    cases.push_back({picks ? "reduce-extremum-twice" : "reduce-sum-twice",
                     "g (T[2,5,4] x) => (T[2,1,1] y) <int64[1] a = {1}, int64[1] b = {2}> { t = " + f +
                         "(x, a) y = " + f + "(t, b) }"});
  }
  return cases;
}

inline std::vector<RuleCase> composite_cases() {
  const std::string axes = "<int64[1] a = {-1}> ";
  const std::string layer =
      "m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a)"
      " e = Add(v, eps) s = Sqrt(e) ";
  const std::string rms = "q = Mul(x, x) v = ReduceMean(q, a) e = Add(v, eps) s = Sqrt(e) ";
  const std::string head = "g (T[4,5] x, T eps) => (T[4,5] y) " + axes + "{ ";
  const std::string normal = "g (T[4,5] x, T[5] one, T[5] w_g) => (T[4,5] y) { n = ";
  const std::vector<std::pair<std::string, double>> eps = {{"eps", 0x1p-10}}, one = {{"one", 1}};
  return {
      {"layer-norm", head + layer + "y = Div(d, s) }", eps},
      {"layer-norm-by-reciprocal", head + layer + "r = Reciprocal(s) y = Mul(d, r) }", eps},
      {"rms-norm", head + rms + "y = Div(x, s) }", eps},
      {"rms-norm-by-reciprocal", head + rms + "r = Reciprocal(s) y = Mul(x, r) }", eps},
      {"norm-gain", normal + "LayerNormalization(x, one) y = Mul(n, w_g) }", one},
      {"norm-bias", normal + "LayerNormalization(x, one) y = Add(n, w_g) }", one},
      {"softmax", "g (T[4,5] x) => (T[4,5] y) " + axes +
                      "{ m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s) }"},
  };
}

inline std::vector<RuleCase> weight_cases() {
  const std::string head = "g (T[1,2,6] x, T[3,2,3] w_w, T[3] w_b, ", conv = ") => (T[1,3,4] y) { ";
  const std::string after = head + "T[3,1] w_c" + conv + "t = Conv(x, w_w, w_b) y = ";
  const std::string before = head + "T[2,1] w_c" + conv + "t = ";
  const std::string product =
      "g (T[3,4] x, T[4,5] w_w, T[5] w_b, T[5] w_c) => (T[3,5] y) { t = MatMul(x, w_w) ";
  const std::string rows = "g (T[3,4] x, T[4,5] w_w, T[4] w_c) => (T[3,5] y) { t = ";
  std::vector<RuleCase> cases = {
      {"scale-into-conv", after + "Mul(t, w_c) }"},
      {"divisor-into-conv", after + "Div(t, w_c) }"},
      {"shift-into-conv", after + "Add(t, w_c) }"},
      {"scale-before-conv", before + "Mul(x, w_c) y = Conv(t, w_w, w_b) }"},
      {"divisor-before-conv", before + "Div(x, w_c) y = Conv(t, w_w, w_b) }"},
      {"shift-before-conv", before + "Add(x, w_c) y = Conv(t, w_w, w_b) }"},
      {"scale-into-matmul", product + "y = Mul(t, w_c) }"},
      {"divisor-into-matmul", product + "y = Div(t, w_c) }"},
      {"scale-into-biased-matmul", product + "u = Add(t, w_b) y = Mul(u, w_c) }"},
      {"divisor-into-biased-matmul", product + "u = Add(t, w_b) y = Div(u, w_c) }"},
      {"scale-before-matmul", rows + "Mul(x, w_c) y = MatMul(t, w_w) }"},
      {"divisor-before-matmul", rows + "Div(x, w_c) y = MatMul(t, w_w) }"},
  };
  for (RuleCase& row : cases) row.weights_flush = true;
  return cases;
}

inline std::vector<RuleCase> volume_cases() {
  const std::string head =
      "g (T[3,2,4,4] x, T[4,2,3,3] w_w) => (T[1,4,3,4,4] y) <int64[5] s = {1,3,4,4,4}> {"
      " c = Conv<pads = [1,1,1,1]>(x, w_w) v = Reshape(c, s) ";
  const std::string with_bounds =
      "g (T[3,2,4,4] x, T[4,2,3,3] w_w, T n_low, T n_high) => (T[1,4,3,4,4] y) <int64[5] s = {1,3,4,4,4}> {"
      " c = Conv<pads = [1,1,1,1]>(x, w_w) v = Reshape(c, s) ";
  std::vector<RuleCase> cases = {
      // One product for each result: sums in another order are another matter.
      {"volume-as-images",
       "g (T[1,1,3,4,4] x, T[4,1,1,1,1] w_w, T[4] w_b) => (T[1,4,5,6,6] y)"
       " { y = Conv<pads = [1,1,1,1,1,1]>(x, w_w, w_b) }"},
      {"volume-as-images", "g (T[1,1,5,2,2] x, T[4,1,1,1,1] w_w) => (T[1,4,5,2,2] y) { y = Conv(x, w_w) }"},
      {"transposed-depthwise-by-phases",
       "g (T[1,2,3,3] x, T[2,1,2,2] w_w, T[2] w_b) => (T[1,2,6,6] y)"
       " { y = ConvTranspose<strides = [2,2], group = 2>(x, w_w, w_b) }"},
      {"transposed-volume-by-phases",
       "g (T[1,1,2,2,2] x, T[1,3,2,2,2] w_w) => (T[1,3,4,4,4] y)"
       " { y = ConvTranspose<strides = [2,2,2]>(x, w_w) }"},
      {"depthwise-by-results",
       "g (T[1,2,4,4] x, T[6,1,1,1] w_w, T[6] w_b) => (T[1,6,4,4] y)"
       " { y = Conv<group = 2>(x, w_w, w_b) }"},
      {"map-below-views", head + "m = Relu(v) y = Transpose<perm = [0,2,1,3,4]>(m) }"},
      {"clip-below-views", with_bounds + "m = Clip(v, n_low, n_high) y = Transpose<perm = [0,2,1,3,4]>(m) }"},
      {"sum-below-views", head + "r = Relu(x) k = Conv<pads = [1,1,1,1]>(r, w_w) u = Reshape(k, s)"
                                 " m = Add(v, u) y = Transpose<perm = [0,2,1,3,4]>(m) }"},
  };
  for (RuleCase& row : cases) row.float32_only = true;
  return cases;
}

inline std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> all;
  for (auto cases : {quantised_cases(), movement_cases(), arithmetic_cases(), reduce_cases(),
                     composite_cases(), weight_cases(), volume_cases(), algebra_cases(), sign_cases(),
                     movement_pair_cases(), pool_cases(), product_cases(), convolution_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace gcompile::testing
