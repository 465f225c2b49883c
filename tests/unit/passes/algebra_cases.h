#pragma once
// The graphs of rules of algebra, of movements that meet, and of contractions that become one (rule_cases.h).

#include "tests/unit/passes/rule_case.h"

namespace gcompile::testing {

inline std::vector<RuleCase> algebra_cases() {
  const std::string ab = ", T w_a, T w_b", each = ", T[20] w_a, T[20] w_b", c = ", T c", y = ", T[20] z";
  std::vector<RuleCase> cases;
  for (const std::string& more : {ab, each}) {
    for (const char* nodes : {"t = Div(x, w_a) y = Div(t, w_b)", "t = Mul(x, w_a) y = Div(t, w_b)",
                              "t = Div(x, w_a) y = Mul(t, w_b)"}) {
      cases.push_back({"div-constants", unary(nodes, more)});
    }
    for (const char* nodes : {"t = Div(w_a, x) y = Div(t, w_b)", "t = Div(w_a, x) y = Mul(t, w_b)"})
      cases.push_back({"numerator-constants", unary(nodes, more)});
  }
  for (const char* nodes : {"t = Sub(w_a, x) y = Add(t, w_b)", "t = Add(x, w_a) y = Sub(w_b, t)",
                            "t = Sub(w_a, x) y = Sub(w_b, t)"}) {
    cases.push_back({"minuend-constants", unary(nodes, ab)});
    cases.push_back({"minuend-constants", unary(nodes, each)});
  }
  for (const char* nodes : {"t = Mul(x, w_a) u = Add(t, w_b) y = Mul(u, w_c)",
                            "t = Div(x, w_a) u = Add(t, w_b) y = Div(u, w_c)"}) {
    cases.push_back({"affine-constants", unary(nodes, ", T w_a, T w_b, T w_c")});
    cases.push_back({"affine-constants", unary(nodes, ", T[20] w_a, T[20] w_b, T[20] w_c")});
  }
  const std::string multiples = "t = Mul(x, a) u = Mul(x, b) y = Add(t, u)";
  const std::string common = "t = Mul(x, a) u = Mul(z, a) y = ", ab_numbers = ", T a, T b", a = ", T a";
  const std::vector<RuleCase> sums = {
      {"sum-of-multiples", unary(multiples, ab_numbers), {{"a", 3}, {"b", 0.25}}},
      {"sum-of-multiples", unary(multiples, ab_numbers), {{"a", -3}, {"b", -5}}},
      {"sum-of-multiples", unary(multiples, ab_numbers), {{"a", 1e30}, {"b", 1e-30}}, false, false, false},
      {"sum-of-multiples",
       unary("t = Mul(x, w_a) u = Mul(x, w_b) y = Add(t, u)", each),
       {},
       false,
       false,
       false},
      {"multiple-and-itself", unary("t = Mul(x, a) y = Add(t, x)", a), {{"a", 0.75}}},
      {"multiple-and-itself", unary("t = Mul(x, w_a) y = Add(t, x)", ", T w_a"), {}, false, false, false},
      {"twice", unary("y = Add(x, x)")},
      {"common-factor", unary(common + "Add(t, u)", a + y), {{"a", 1.5}}},
      {"common-factor", unary(common + "Sub(t, u)", a + y), {{"a", -2}}},
      {"exp-of-log", unary("t = Abs(x) u = Log(t) y = Exp(u)")},
      {"square-of-root", unary("t = Abs(x) u = Sqrt(t) y = Mul(u, u)")},
      {"root-of-square", unary("t = Mul(x, x) y = Sqrt(t)")},
      {"mul-by-reciprocal", unary("t = Reciprocal(z) y = Mul(x, t)", y)},
      {"mul-by-reciprocal", unary("t = Reciprocal(x) y = Mul(w_a, t)", ", T w_a")},
      {"pow-minus-one", unary("y = Pow(x, c)", c), {{"c", -1}}},
      {"pow-minus-half", unary("t = Abs(x) y = Pow(t, c)", c), {{"c", -0.5}}},
  };
  cases.insert(cases.end(), sums.begin(), sums.end());
  const std::vector<RuleCase> refused = {
      {.rule = "sum-of-multiples",
       .graph = unary(multiples, "", "<float a = {2.0}, float b = {-1.0}> "),
       .refuses = "not of one sign"},
      {.rule = "common-factor",
       .graph = unary(common + "Add(t, u)", y, "<float a = {0.5}> "),
       .refuses = "below 1"},
      {.rule = "exp-of-log", .graph = unary("t = Log(x) y = Exp(t)"), .refuses = "may be negative"},
      {.rule = "mul-by-reciprocal",
       .graph = unary("t = Reciprocal(z) y = Mul(x, t)", ", T[1] z"),
       .refuses = "fewer elements"},
  };
  cases.insert(cases.end(), refused.begin(), refused.end());
  return cases;
}

inline std::vector<RuleCase> sign_cases() {
  const std::string w = ", T[20] w_c", z = ", T[20] z";
  const std::string matrices = "g (T[3,4] x, T[4,5] w_w) => (T[3,5] y) { ";
  const std::string conv = "g (T[1,2,6] x, T[3,2,3] w_w, T[3] w_b) => (T[1,3,6] y) { ";
  return {
      {"add-of-neg", unary("t = Neg(z) y = Add(x, t)", z)},
      {"add-of-neg", "g (int32[9] x, int32[9] z) => (int32[9] y) { t = Neg(z) y = Add(x, t) }"},
      {"sub-of-neg", unary("t = Neg(z) y = Sub(x, t)", z)},
      {"signs-cancel", unary("t = Neg(z) u = Neg(x) y = Mul(u, t)", z)},
      {"signs-cancel", unary("t = Neg(z) u = Neg(x) y = Div(u, t)", z)},
      {"neg-into-factor", unary("t = Neg(x) y = Mul(t, w_c)", w)},
      {"neg-into-factor", unary("t = Neg(x) y = Div(t, w_c)", w)},
      {"neg-into-factor", unary("t = Neg(x) y = Div(w_c, t)", w)},
      {"neg-into-factor", "g (int8[9] x, int8 w_c) => (int8[9] y) { t = Neg(x) y = Mul(t, w_c) }"},
      {"neg-of-multiple", unary("t = Mul(x, w_c) y = Neg(t)", w)},
      {"neg-of-multiple", unary("t = Div(x, w_c) y = Neg(t)", w)},
      {"neg-of-multiple", unary("t = Div(w_c, x) y = Neg(t)", w)},
      {"abs-of-neg", unary("t = Neg(x) y = Abs(t)")},
      {"neg-of-sum", unary("t = Add(x, w_c) y = Neg(t)", w)},
      {"neg-of-difference", unary("t = Sub(z, x) y = Neg(t)", z)},
      {"neg-into-product", matrices + "t = Neg(x) y = MatMul(t, w_w) }"},
      {"neg-of-product", matrices + "t = MatMul(x, w_w) y = Neg(t) }"},
      {"neg-before-conv", conv + "t = Neg(x) y = Conv<pads = [1,1]>(t, w_w, w_b) }"},
      {"neg-of-conv", conv + "t = Conv<pads = [1,1]>(x, w_w, w_b) y = Neg(t) }"},
  };
}

inline std::vector<RuleCase> movement_pair_cases() {
  const std::string head = "<int64[1] s0 = {0}, int64[1] s4 = {4}, int64[1] s8 = {8}, int64[1] s20 = {20}> ";
  const std::string pads = "<int64[2] p = {2,3}, int64[2] q = {1,0}, int64[1] a = {2}, int64[1] b = {22}> ";
  const std::string rows = "<int64[2] i = {2,-1}, int64[2] s = {1,3}, int64[2] e = {4,8}> { ";
  const std::string product = "g (T[6,4] x, T[4,10] w_w) => ",
                    sum = "g (T[6,4] x, T[4,10] w_w, T[10] w_c) => ";
  return {
      {"concat-of-slices",
       unary("a = Slice(x, s0, s8) b = Slice(x, s8, s20) y = Concat<axis = 0>(a, b)", "", head)},
      {"concat-of-concat",
       "g (T[8] x, T[12] z) => (T[28] y) { t = Concat<axis = 0>(z, x) y = Concat<axis = 0>(x, t) }"},
      {"slice-of-concat",
       "g (T[8] x, T[12] z) => (T[4] y) " + head + "{ t = Concat<axis = 0>(z, x) y = Slice(t, s4, s8) }"},
      {"pad-of-pad", "g (T[20] x) => (T[26] y) " + pads + "{ t = Pad(x, p) y = Pad(t, q) }"},
      {"slice-of-pad", unary("t = Pad(x, p) y = Slice(t, a, b)", "", pads)},
      {"slice-of-product", product + "(T[3,5] y) " + rows + "t = MatMul(x, w_w) y = Slice(t, s, e) }"},
      {"slice-of-product",
       sum + "(T[3,5] y) " + rows + "t = MatMul(x, w_w) u = Add(t, w_c) y = Slice(u, s, e) }"},
      {"gather-of-product", product + "(T[2,10] y) " + rows + "t = MatMul(x, w_w) y = Gather(t, i) }"},
      {"gather-of-product",
       sum + "(T[6,2] y) " + rows + "t = MatMul(x, w_w) u = Add(t, w_c) y = Gather<axis = 1>(u, i) }"},
      {"slice-of-conv",
       "g (T[1,2,6] x, T[5,2,3] w_w, T[5] w_b) => (T[1,2,4] y) <int64[1] s = {1}, int64[1] e = {3}>"
       " { t = Conv(x, w_w, w_b) y = Slice(t, s, e, s) }"},
  };
}

inline std::vector<RuleCase> pool_cases() {
  return {
      {"max-pool-twice",
       "g (T[1,2,12] x) => (T[1,2,5] y) { t = MaxPool<kernel_shape = [3], pads = [1,1]>(x)"
       " y = MaxPool<kernel_shape = [3], strides = [3], pads = [1,2]>(t) }"},
      {"average-pool-twice",
       "g (T[1,2,12] n_x) => (T[1,2,3] y) { t = AveragePool<kernel_shape = [2], strides = [2]>(n_x)"
       " y = AveragePool<kernel_shape = [2], strides = [2]>(t) }"},
      {"maximum-of-pool",
       "g (T[1,2,12] x) => (T[1,2,1] y) <int64[1] a = {2}> {"
       " t = MaxPool<kernel_shape = [3], strides = [3]>(x) y = ReduceMax(t, a) }"},
  };
}

/// Inputs and computed weights are ordinary numbers: sums in another order are another matter.
inline std::vector<RuleCase> product_cases() {
  const std::string linear = "g (T[4,3] n_x, T[3,6] w_w, T[6,3] w_v, T[6] w_b) => (T[4,3] y) { ";
  const std::string chain = " => (T[8,1] y) { ", row = " => (T[1,8] y) { ";
  const std::string two = "g (T[4,3] n_x, T[4,3] n_z, T[3,6] n_w, T[6] n_b, T[6] n_c) => (T[4,6] y) { ";
  const std::string one = "g (T[4,3] n_x, T[3,6] w_w, T[3,6] w_v, T[6] n_b, T[6] n_c) => (T[4,6] y) { ";
  const std::string lefts = two + "s = MatMul(n_x, n_w) t = MatMul(n_z, n_w) ";
  const std::string rights = one + "s = MatMul(n_x, w_w) t = MatMul(n_x, w_v) ";
  std::vector<RuleCase> cases = {
      {"linear-of-linear", linear + "t = MatMul(n_x, w_w) y = MatMul(t, w_v) }"},
      {"linear-of-linear", linear + "t = MatMul(n_x, w_w) u = Add(t, w_b) y = MatMul(u, w_v) }"},
      {"product-chain",
       "g (T[8,8] n_a, T[8,8] n_b, T[8,1] n_c)" + chain + "t = MatMul(n_a, n_b) y = MatMul(t, n_c) }"},
      {"product-chain",
       "g (T[1,8] n_a, T[8,8] n_b, T[8,8] n_c)" + row + "t = MatMul(n_b, n_c) y = MatMul(n_a, t) }"},
      {"shift-before-matmul",
       "g (T[4,3] n_x, T[3] w_c, T[3,6] w_w) => (T[4,6] y) { t = Add(n_x, w_c) y = MatMul(t, w_w) }"},
      {"identity-weights", "g (T[20,1] x, T[1,1] w) => (T[20,1] y) { y = MatMul(x, w) }", {{"w", 1}}},
  };
  for (const std::string& sum :
       {std::string("y = Add(s, t) }"), std::string("u = Add(s, n_b) y = Add(u, t) }"),
        std::string("u = Add(s, n_b) v = Add(t, n_c) y = Add(u, v) }")}) {
    cases.push_back({"products-of-one-weight", lefts + sum});
    cases.push_back({"products-of-one-operand", rights + sum});
  }
  for (RuleCase& row : cases) {
    row.weights_flush = true;
    row.must_fire = row.rule != "product-chain" && row.rule != "products-of-one-weight";  // not in float16
  }
  return cases;
}

inline std::vector<RuleCase> convolution_cases() {
  const std::string branches =
      "g (T[1,2,6] n_x, T[3,2,3] w_w, T[3,2,1] w_v, T[3] w_b, T[3] w_c) => (T[1,3,6] y) { ";
  const std::string operand =
      "g (T[1,2,6] n_x, T[2,2,3] w_w, T[2,1] w_f, T[2,1] w_s) => (T[1,2,6] y) {"
      " s = Conv<pads = [1,1]>(n_x, w_w) ";
  const std::string absorbed = "g (T[1,2,6] x, T[3,2,3] w_w, T c) => (T[1,3,4] y) { s = Conv(x, w_w) ";
  const std::string reduced =
      "g (T[1,2,6] n_x, T[3,2,3] w_w, T c) => (T[1,3,1] y) <int64[1] a = {-1}> {"
      " s = Conv(n_x, w_w) t = ReduceMean(s, a) ";
  const std::string concat =
      "g (T[1,2,6] x, T[3,2,3] w_w, T[2,2,3] w_v, T[5,1] w_c) => (T[1,5,4] y) {"
      " s = Conv(x, w_w) t = Conv(x, w_v) u = Concat<axis = 1>(s, t) y = ";
  std::vector<RuleCase> cases = {
      {"convolutions-of-one-operand",
       branches + "s = Conv<pads = [1,1]>(n_x, w_w, w_b) t = Conv(n_x, w_v, w_c) y = Add(t, s) }"},
      {"operand-into-conv", operand + "y = Add(s, n_x) }"},
      {"operand-into-conv", operand + "t = Mul(n_x, w_f) y = Add(s, t) }"},
      {"operand-into-conv", operand + "t = Mul(n_x, w_f) u = Add(t, w_s) y = Add(s, u) }"},
      {"convolutions-of-one-weight",
       "g (T[1,2,6] n_x, T[1,2,6] n_z, T[3,2,3] n_w) => (T[1,3,4] y) {"
       " s = Conv(n_x, n_w) t = Conv(n_z, n_w) y = Add(s, t) }"},
      {"identity-weights", "g (T[2,1,5] x, T[1,1,1] w) => (T[2,1,5] y) { y = Conv(x, w) }", {{"w", 1}}},
      {"conv-of-conv",
       "g (T[1,2,6] n_x, T[6,2,3] w_w, T[6] w_b, T[3,6,1] w_v) => (T[1,3,6] y) {"
       " t = Conv<pads = [1,1]>(n_x, w_w, w_b) y = Conv(t, w_v) }"},
      {"conv-of-conv",
       "g (T[1,2,6] n_x, T[8,2,1] w_w, T[3,8,3] w_v, T[3] w_c) => (T[1,3,6] y) {"
       " t = Conv(n_x, w_w) y = Conv<pads = [1,1]>(t, w_v, w_c) }"},
      {"scale-past-map", absorbed + "t = Relu(s) y = Mul(t, c) }", {{"c", 3}}},
      {"scale-past-map", absorbed + "t = Relu(s) y = Div(t, c) }", {{"c", 3}}},
      {"scale-past-mean",
       absorbed + "t = AveragePool<kernel_shape = [3], pads = [1,1]>(s) y = Mul(t, c) }",
       {{"c", -0.3}}},
      {"scale-past-mean",
       absorbed + "t = AveragePool<kernel_shape = [3], pads = [1,1]>(s) y = Div(t, c) }",
       {{"c", -3}}},
      {"scale-past-mean", reduced + "y = Mul(t, c) }", {{"c", -0.3}}},
      {"scale-past-mean", reduced + "y = Div(t, c) }", {{"c", -3}}},
      {"constant-past-concat", concat + "Mul(u, w_c) }"},
      {"constant-past-concat", concat + "Div(u, w_c) }"},
      {"constant-past-concat", concat + "Add(u, w_c) }"},
  };
  for (RuleCase& row : cases) {
    row.weights_flush = true;
    row.must_fire =
        row.rule != "convolutions-of-one-weight" && row.rule != "scale-past-mean";  // not in float16
  }
  return cases;
}

}  // namespace gcompile::testing
