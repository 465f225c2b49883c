// Rules of identities, arithmetic with constants and reductions: each law, and each reason not to.

#include <fmt/ranges.h>

#include "passes/rules/support.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

bool feeds(const ir::Graph& graph, const std::string& name) {
  for (const ir::ValueId id : graph.values()) {
    if (graph.value(id).name == name) return passes::feeds_integer_decision(graph, id);
  }
  throw std::runtime_error("no value " + name);
}

/// One node of x: float[2,3] with a constant.
std::string with_constant(const std::string& constant, const std::string& node,
                          const std::string& result = "float[2,3] y") {
  return "g (float[2,3] x) => (" + result + ") <" + constant + "> { y = " + node + " }";
}

TEST(NeutralElements, LeaveTheOperand) {
  expect_fires("mul-one", with_constant("float[3] c = {1.0,1.0,1.0}", "Mul(c, x)"), "");
  expect_fires("div-one", with_constant("float c = {1.0}", "Div(x, c)"), "");
  expect_fires("pow-one", with_constant("float c = {1.0}", "Pow(x, c)"), "");
  expect_fires("sub-zero", with_constant("float c = {0.0}", "Sub(x, c)"), "");
  expect_fires("add-negative-zero", with_constant("float c = {-0.0}", "Add(x, c)"), "");
  expect_fires("add-zero", with_constant("float c = {0.0}", "Add(x, c)"), "");
  expect_fires("sub-negative-zero", with_constant("float c = {-0.0}", "Sub(x, c)"), "");
  expect_fires("add-negative-zero", "g (int64[2] x) => (int64[2] y) <int64 c = {0}> { y = Add(x, c) }", "");
}

TEST(NeutralElements, RefuseOtherNumbersAndLargerResults) {
  expect_refuses("mul-one", with_constant("float[3] c = {1.0,2.0,1.0}", "Mul(x, c)"), "is not 1");
  expect_refuses("mul-one", with_constant("float[2,1,1] c = {1.0,1.0}", "Mul(x, c)", "float[2,2,3] y"),
                 "another type or shape");
  expect_refuses("mul-one", with_constant("float[1,1,1] c = {1.0}", "Mul(x, c)", "float[1,2,3] y"),
                 "another type or shape");
  expect_refuses("div-one", with_constant("float c = {1.0}", "Div(c, x)"), "");
  expect_refuses("sub-zero", with_constant("float c = {0.0}", "Sub(c, x)"), "");
  expect_refuses("add-negative-zero", with_constant("float c = {0.0}", "Add(x, c)"), "sign of -0");
  expect_refuses("sub-zero", with_constant("float c = {-0.0}", "Sub(x, c)"), "sign of -0");
}

TEST(NeutralElements, TierExactKeepsTheSignOfZero) {
  ir::Graph graph = parse(with_constant("float c = {0.0}", "Add(x, c)"));
  passes::Options options;
  options.tier = passes::Tier::kExact;
  run_pass(graph, "rules", options);
  EXPECT_EQ(operators(graph), "Add");
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "");
}

TEST(Movements, ThatDoNotMove) {
  expect_fires("identity", "g (float[2] x) => (float[2] y) { y = Identity(x) }", "");
  expect_fires("cast-to-same", "g (float[2] x) => (float[2] y) { y = Cast<to = 1>(x) }", "");
  expect_fires("reshape-to-same",
               "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {0,-1}> { y = Reshape(x, s) }", "");
  expect_fires("expand-to-same",
               "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {1,3}> { y = Expand(x, s) }", "");
  expect_fires("tile-once", "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {1,1}> { y = Tile(x, s) }", "");
  expect_fires("slice-of-all",
               "g (float[2,3] x) => (float[2,3] y) <int64[1] a = {0}, int64[1] b = {99}, int64[1] c = {-1}>"
               " { y = Slice(x, a, b, c) }",
               "");
  expect_fires("pad-by-nothing", "g (float[2] x) => (float[2] y) <int64[2] p = {0,0}> { y = Pad(x, p) }", "");
  expect_fires("transpose-of-unit-axes",
               "g (float[2,1,3,1] x) => (float[1,2,3,1] y) { y = Transpose<perm = [1,0,2,3]>(x) }",
               "Reshape");
  expect_fires("concat-of-one", "g (float[2] x) => (float[2] y) { y = Concat<axis = 0>(x) }", "");
  expect_fires("concat-of-one",
               "g (float[2,2] x, float[2,0] n) => (float[2,2] y) { y = Concat<axis = -1>(n, x) }", "");
}

/// Whether a transpose of row-major elements gives row-major elements, by the place of each.
bool keeps_places(const ir::Shape& shape, const std::vector<std::int64_t>& perm) {
  const ir::Shape strides = ir::row_major_strides(shape);
  std::int64_t count = 1;
  for (const ir::Dim size : shape) count *= size;
  std::vector<std::int64_t> at(shape.size(), 0);  // in the result
  for (std::int64_t place = 0; place < count; ++place) {
    std::int64_t from = 0;
    for (std::size_t i = 0; i < perm.size(); ++i) from += at[i] * strides[static_cast<std::size_t>(perm[i])];
    if (from != place) return false;
    for (std::size_t i = perm.size(); i-- > 0;) {
      if (++at[i] < shape[static_cast<std::size_t>(perm[i])]) break;
      at[i] = 0;
    }
  }
  return true;
}

/// Whichever axes have one element, and in every order of the axes.
TEST(Movements, TransposesThatKeepThePlacesOfElements) {
  for (unsigned units = 0; units < 16; ++units) {
    ir::Shape shape = {2, 3, 4, 5};
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = units >> i & 1 ? ir::Dim{1} : shape[i];
    std::vector<std::int64_t> perm = {0, 1, 2, 3};
    while (std::next_permutation(perm.begin(), perm.end())) {
      const std::string text =
          fmt::format("g (float[{}] x) => (float[{},{},{},{}] y) {{ y = Transpose<perm = [{}]>(x) }}",
                      fmt::join(shape, ","), shape[perm[0]], shape[perm[1]], shape[perm[2]], shape[perm[3]],
                      fmt::join(perm, ","));
      SCOPED_TRACE(text);
      ir::Graph graph = parse(text);
      apply_rule(graph, "transpose-of-unit-axes");
      EXPECT_EQ(operators(graph) != "Transpose", keeps_places(shape, perm));
    }
  }
}

/// A linear layer over rows [4, 3] that becomes [2, 2, 5].
std::string linear(const std::string& layer, const std::string& addend = "float[5] c") {
  return "g (float[4,3] x, float[3,5] w, " + addend + ") => (float[2,2,5] y) <int64[3] s = {2,2,5}> { " +
         layer + " y = Reshape(p, s) }";
}

TEST(ReshapeOfRows, GoesInFrontOfTheProduct) {
  expect_fires("reshape-of-rows", linear("m = MatMul(x, w) p = Add(m, c)"), "Reshape MatMul Add");
  expect_fires("reshape-of-rows", linear("m = MatMul(x, w) p = Add(c, m)", "float[1,5] c"),
               "Reshape MatMul Add");
  expect_fires("reshape-of-rows", linear("m = MatMul(x, w) p = Add(m, c)", "float c"), "Reshape MatMul Add");
  expect_fires("reshape-of-rows", linear("p = MatMul(x, w)"), "Reshape MatMul");
}

TEST(ReshapeOfRows, StaysWhereColumnsOrAddendsChange) {
  const std::string layer = "m = MatMul(x, w) p = Add(m, c)";
  expect_refuses("reshape-of-rows", linear(layer, "float[4,5] c"), "in each row");
  expect_refuses("reshape-of-rows", linear(layer, "float[4,1] c"), "in each row");
  expect_refuses("reshape-of-rows",
                 "g (float[4,3] x, float[3,6] w) => (float[4,2,3] y) <int64[3] s = {4,2,3}>"
                 " { p = MatMul(x, w) y = Reshape(p, s) }",
                 "columns change");
  expect_refuses("reshape-of-rows",
                 "g (float[1,3] x, float[3,6] w) => (float[6] y) <int64[1] s = {6}>"
                 " { p = MatMul(x, w) y = Reshape(p, s) }",
                 "columns change");
  expect_refuses("reshape-of-rows",
                 "g (float[2,4,3] x, float[3,5] w) => (float[4,2,5] y) <int64[3] s = {4,2,5}>"
                 " { p = MatMul(x, w) y = Reshape(p, s) }",
                 "not of rows");
}

TEST(Movements, ThatMove) {
  expect_refuses("cast-to-same", "g (float[2] x) => (double[2] y) { y = Cast<to = 11>(x) }", "another type");
  expect_refuses("reshape-to-same",
                 "g (float[2,3] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Reshape(x, s) }",
                 "another type");
  expect_refuses("expand-to-same",
                 "g (float[1,3] x) => (float[2,3] y) <int64[2] s = {2,1}> { y = Expand(x, s) }",
                 "another type");
  expect_refuses("slice-of-all",
                 "g (float[3] x) => (float[3] y) <int64[1] a = {-1}, int64[1] b = {-99}, int64[1] c = {0}, "
                 "int64[1] d = {-1}>"
                 " { y = Slice(x, a, b, c, d) }",
                 "reverses");
  // Same shape, other elements.
  expect_refuses("pad-by-nothing", "g (float[2] x) => (float[2] y) <int64[2] p = {1,-1}> { y = Pad(x, p) }",
                 "not 0");
  expect_refuses("transpose-of-unit-axes",
                 "g (float[2,1,2] x) => (float[2,1,2] y) { y = Transpose<perm = [2,1,0]>(x) }",
                 "change places");
  expect_refuses("concat-of-one", "g (float[1] x, float[1] n) => (float[2] y) { y = Concat<axis = 0>(x, n) }",
                 "several operands");
}

TEST(Pairs, CancelOrMerge) {
  expect_fires("involution", "g (float[3] x) => (float[3] y) { t = Neg(x)\n y = Neg(t) }", "");
  expect_fires("idempotent", "g (float[3] x) => (float[3] y) { t = Relu(x)\n y = Relu(t) }", "Relu");
  expect_fires("transpose-of-transpose",
               "g (float[2,3,4] x) => (float[2,3,4] y) { t = Transpose<perm = [2,0,1]>(x)\n"
               " y = Transpose<perm = [1,2,0]>(t) }",
               "");
  expect_fires("transpose-of-transpose",
               "g (float[2,3,4] x) => (float[3,2,4] y) { t = Transpose<perm = [2,0,1]>(x)\n"
               " y = Transpose<perm = [2,1,0]>(t) }",
               "Transpose");
  expect_fires(
      "reshape-of-reshape",
      "g (float[2,6] x) => (float[4,3] y) <int64[1] a = {12}, int64[2] b = {4,3}> { t = Reshape(x, a)\n"
      " y = Reshape(t, b) }",
      "Reshape");
  // The middle value lives on for its other reader.
  expect_fires("reshape-of-reshape",
               "g (float[2,6] x) => (float[2,6] y, float[12] t) <int64[1] a = {12}, int64[2] b = {2,6}>"
               " { t = Reshape(x, a)\n y = Reshape(t, b) }",
               "Reshape");
  expect_fires(
      "slice-of-slice",
      "g (float[20,4] x) => (float[3,2] y) <int64[1] a = {2}, int64[1] b = {-1}, int64[1] z = {0},"
      " int64[1] two = {2}, int64[2] c = {1,-2}, int64[2] d = {7,9}, int64[2] e = {0,1}, int64[2] f = {2,1}>"
      " { t = Slice(x, a, b, z, two)\n y = Slice(t, c, d, e, f) }",
      "Slice");
}

TEST(Pairs, ThatDoNot) {
  expect_refuses("involution", "g (float[3] x) => (float[3] y) { t = Abs(x)\n y = Neg(t) }", "");
  expect_refuses("slice-of-slice",
                 "g (float[9] x) => (float[2] y) <int64[1] a = {8}, int64[1] b = {2}, int64[1] z = {0}, "
                 "int64[1] s = {-1},"
                 " int64[1] c = {1}, int64[1] d = {3}> { t = Slice(x, a, b, z, s)\n y = Slice(t, c, d) }",
                 "reverses");
}

TEST(Casts, MergeOnlyWhenTheMiddleHoldsEveryValue) {
  const auto chain = [](const std::string& from, int middle, int to, const std::string& result) {
    return "g (" + from + "[5] x) => (" + result + "[5] y) { t = Cast<to = " + std::to_string(middle) +
           ">(x)\n y = Cast<to = " + std::to_string(to) + ">(t) }";
  };
  expect_fires("cast-of-cast", chain("float16", 1, 10, "float16"), "");
  expect_fires("cast-of-cast", chain("int8", 7, 2, "uint8"), "Cast");
  expect_fires("cast-of-cast", chain("uint8", 1, 6, "int32"), "Cast");
  expect_fires("cast-of-cast", chain("bool", 6, 1, "float"), "Cast");
  // float32 -> float16 -> float32 rounds.
  expect_refuses("cast-of-cast", chain("float", 10, 1, "float"), "loses values");
  expect_refuses("cast-of-cast", chain("int32", 1, 7, "int64"), "loses values");
  expect_refuses("cast-of-cast", chain("float", 9, 1, "float"), "loses values");
  expect_refuses("cast-of-cast", chain("int16", 1, 3, "int8"), "saturates");
}

TEST(Where, WithAKnownCondition) {
  const auto where = [](const std::string& condition, const std::string& a) {
    return "g (" + a + " a, float[2] b) => (float[2] y) <bool[2] c = {" + condition +
           "}> { y = Where(c, a, b) }";
  };
  expect_fires("where-constant", where("1,1", "float[2]"), "");
  expect_fires("where-constant", where("0,0", "float[1]"), "");
  expect_refuses("where-constant", where("1,0", "float[2]"), "mixed");
  expect_refuses("where-constant", where("1,1", "float[1]"), "broadcast");
}

TEST(Division, ByPowersOfTwoOnly) {
  expect_fires("div-by-power-of-two", with_constant("float[3] c = {4.0,-0.5,1.0}", "Div(x, c)"), "Mul");
  expect_refuses("div-by-power-of-two", with_constant("float c = {3.0}", "Div(x, c)"), "power of two");
  // In float64 the reciprocal of 3 as the compiler computes it is a number of the type.
  expect_refuses("div-by-power-of-two",
                 "g (double[2] x) => (double[2] y) <double[2] c = {2.0,3.0}> { y = Div(x, c) }",
                 "power of two");
  expect_refuses("div-by-power-of-two", with_constant("float c = {0.0}", "Div(x, c)"), "power of two");
  // The reciprocal of 2^127 is a denormal number.
  expect_refuses("div-by-power-of-two",
                 with_constant("float c = {170141183460469231731687303715884105728.0}", "Div(x, c)"),
                 "power of two");
  expect_refuses("div-by-power-of-two", "g (int32[2] x) => (int32[2] y) <int32 c = {2}> { y = Div(x, c) }",
                 "truncation");
  const auto erf_of = [](const std::string& c) {
    return "g (float[3] x) => (float[3] y) <float c = {" + c + "}> { t = Div(x, c) y = Erf(t) }";
  };
  expect_fires("erf-of-quotient", erf_of("1.41421356"), "Mul Erf");
  expect_refuses("erf-of-quotient", erf_of("0.0"), "near the ends");
  expect_refuses("erf-of-quotient", erf_of("1.0e30"), "near the ends");
  expect_fires("one-over", with_constant("float c = {1.0}", "Div(c, x)"), "Reciprocal");
  expect_refuses("one-over", with_constant("float c = {2.0}", "Div(c, x)"), "not 1");
}

TEST(Powers, SquaresAndRoots) {
  expect_fires("pow-two", with_constant("float c = {2.0}", "Pow(x, c)"), "Mul");
  expect_fires("pow-two", with_constant("int64 c = {2}", "Pow(x, c)"), "Mul");
  const std::string half = "g (float[3] x, float[3] z) => (float[3] y) <float c = {0.5}> { ";
  expect_fires("pow-half", half + "t = Mul(x, x)\n e = Exp(z)\n s = Add(t, e)\n y = Pow(s, c) }",
               "Mul Exp Add Sqrt");
  expect_refuses("pow-half", half + "y = Pow(x, c) }", "-infinity or -0");
  expect_refuses("pow-half", half + "t = Mul(x, z)\n y = Pow(t, c) }", "-infinity or -0");
  expect_refuses("pow-half", half + "t = Mul(x, x)\n s = Add(t, z)\n y = Pow(s, c) }", "-infinity or -0");
  expect_refuses("pow-two", with_constant("float c = {3.0}", "Pow(x, c)"), "another exponent");
  expect_refuses("pow-half", "g (int32[2] x) => (int32[2] y) <float c = {0.5}> { y = Pow(x, c) }", "integer");
}

TEST(Constants, Meet) {
  const std::string constants = "float[3] a = {1.5,0.25,-3.0}, float b = {2.5}";
  const auto chain = [&](const std::string& op, const std::string& tail) {
    return "g (float[2,3] x) => (float[2,3] y) <" + constants + "> { t = " + op + "(x, a)\n" + tail + " }";
  };
  expect_fires("add-constants", chain("Add", "y = Add(b, t)"), "Add");
  expect_fires("mul-constants", chain("Mul", "y = Mul(t, b)"), "Mul");
  expect_fires("sub-constant", chain("Sub", "y = Relu(t)"), "Add Relu");
  expect_fires("sub-constant", "g (uint8[2] x) => (uint8[2] y) <uint8 c = {200}> { y = Sub(x, c) }", "Add");
  expect_fires(
      "add-constants",
      "g (int8[2] x) => (int8[2] y) <int8 a = {100}, int8 b = {100}> { t = Add(x, a)\n y = Add(t, b) }",
      "Add");
  // The constants together are infinite, zero, or a denormal number.
  const auto scalars = [](const std::string& type, const std::string& f, const std::string& a,
                          const std::string& b) {
    return "g (" + type + "[3] x) => (" + type + "[3] y) <" + type + " a = {" + a + "}, " + type + " b = {" +
           b + "}> { t = " + f + "(x, a)\n y = " + f + "(t, b) }";
  };
  const std::string reason = "leave their range";
  expect_refuses("mul-constants", scalars("float", "Mul", "1e30", "1e30"), reason);
  expect_refuses("mul-constants", scalars("float", "Mul", "1e-30", "1e-30"), reason);
  expect_refuses("mul-constants", scalars("float", "Mul", "1e-20", "1e-20"), reason);
  expect_refuses("mul-constants", scalars("double", "Mul", "1e200", "1e200"), reason);
  expect_refuses("add-constants", scalars("float", "Add", "3e38", "3e38"), reason);
  expect_refuses("add-constants", scalars("double", "Add", "1.7e308", "1.7e308"), reason);
  expect_fires("mul-constants", scalars("float", "Mul", "1e30", "1e-30"), "Mul");
  // t has another reader.
  expect_refuses("add-constants", chain("Add", "s = Add(t, b)\n y = Mul(s, t)"), "");
}

TEST(Constants, StayApartBeforeIntegerDecisions) {
  const std::string head =
      "g (float[2,3] x) => (int64[2,3] y) <float a = {1.5}, float b = {2.5}> { t = Add(x, a)\n s = Add(t, "
      "b)\n";
  expect_refuses("add-constants", head + "y = Cast<to = 7>(s) }", "decided");
  expect_refuses("add-constants", head + "u = Tanh(s)\n v = Round(u)\n y = Cast<to = 7>(v) }", "decided");
  ir::Graph graph = parse(head + "u = Transpose<perm = [0,1]>(s)\n b2 = Less(u, x)\n y = Cast<to = 7>(b2) }");
  EXPECT_TRUE(feeds(graph, "s"));
  EXPECT_TRUE(feeds(graph, "u"));
  EXPECT_FALSE(feeds(graph, "y"));
}

TEST(Clamps, Merge) {
  const std::string constants = "<float a = {-1.0}, float b = {1.0}, float c = {0.5}, float d = {-0.5}>";
  const auto chain = [&](const std::string& nodes) {
    return "g (float[40] x) => (float[40] y) " + constants + " { " + nodes + " }";
  };
  expect_fires("clip-of-clip", chain("t = Clip(x, a, b)\n y = Clip(t, d, c)"), "Clip");
  expect_fires("clip-of-clip", chain("t = Clip(x, , d)\n y = Clip(t, c)"), "Clip");
  expect_fires("clip-of-clip", chain("t = Clip(x, b, a)\n y = Clip(t, d, c)"), "Clip");
  expect_fires("clip-of-relu", chain("t = Relu(x)\n y = Clip(t, a, b)"), "Clip");
  expect_fires("relu-of-clip", chain("t = Clip(x, a, b)\n y = Relu(t)"), "Clip");
  expect_fires("relu-of-clip", chain("t = Clip(x, , d)\n y = Relu(t)"), "Clip");
  expect_fires("max-to-clip", chain("y = Max(x, a)"), "Clip");
  expect_fires("min-to-clip", chain("y = Min(b, x)"), "Clip");
  expect_refuses("max-to-clip", with_constant("float[3] c = {0.0,1.0,2.0}", "Max(x, c)"), "one number");
  expect_refuses("max-to-clip", with_constant("float[1,1,1] c = {0.0}", "Max(x, c)", "float[1,2,3] y"),
                 "another type");
  // t has another reader.
  expect_refuses("clip-of-relu", chain("t = Relu(x)\n s = Clip(t, a, b)\n y = Add(s, t)"), "");
}

TEST(Reductions, OfReductions) {
  const auto twice = [](const std::string& op, int keep1, const std::string& axes1, int keep2,
                        const std::string& axes2, const std::string& result) {
    return "g (float[2,3,4,5] x) => (float[" + result + "] y) <int64[1] a = {" + axes1 + "}, int64[1] b = {" +
           axes2 + "}> { t = " + op + "<keepdims = " + std::to_string(keep1) + ">(x, a)\n y = " + op +
           "<keepdims = " + std::to_string(keep2) + ">(t, b) }";
  };
  expect_fires("reduce-sum-twice", twice("ReduceMean", 1, "2", 1, "-1", "2,3,1,1"), "ReduceMean");
  // x.mean(1).mean(-1): the second axis is axis 3 of x.
  expect_fires("reduce-sum-twice", twice("ReduceMean", 0, "1", 0, "-1", "2,4"), "ReduceMean");
  expect_fires("reduce-sum-twice", twice("ReduceSum", 0, "3", 0, "0", "3,4"), "ReduceSum");
  expect_fires("reduce-extremum-twice", twice("ReduceMax", 1, "2", 1, "3", "2,3,1,1"), "ReduceMax");
  // One keeps its axes, the other drops them.
  expect_fires("reduce-sum-twice", twice("ReduceMean", 1, "2", 0, "3", "2,3,1"), "ReduceMean Reshape");
  expect_fires("reduce-sum-twice", twice("ReduceMean", 0, "2", 1, "-1", "2,3,1"), "ReduceMean Reshape");
  expect_refuses("reduce-sum-twice", twice("ReduceMean", 1, "2", 1, "-2", "2,3,1,5"), "reduced twice");
  expect_refuses("reduce-sum-twice",
                 "g (float[2,3] x) => (float[1,1] y) <int64[1] a = {0}, int64[1] b = {1}> {"
                 " t = ReduceSum(x, a)\n y = ReduceMean(t, b) }",
                 "different kinds");
  expect_refuses("reduce-sum-twice",
                 "g (float[2,3] x) => (int64[1,1] y) <int64[1] a = {0}, int64[1] b = {1}> {"
                 " t = ReduceSum(x, a)\n s = ReduceSum(t, b)\n y = Cast<to = 7>(s) }",
                 "decided");
}

TEST(Reductions, OfOneElement) {
  expect_fires(
      "reduce-of-one",
      "g (float[2,1,3] x) => (float[2,3] y) <int64[1] a = {1}> { y = ReduceMean<keepdims = 0>(x, a) }",
      "Reshape");
  expect_fires("reduce-of-one",
               "g (float[2,1,3] x) => (float[2,1,3] y) <int64[1] a = {-2}> { y = ReduceMax(x, a) }", "");
  expect_refuses("reduce-of-one", "g (float[2,1] x) => (float[1,1] y) { y = ReduceSum(x) }",
                 "several elements");
}

}  // namespace
}  // namespace gcompile::testing
