// Reductions and maps over the same rows are one kernel, in every spelling; maps reach the kernel before a view.

#include "ir/forms/form.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

/// Kernels behind fusion: nodes that are no view.
std::size_t kernels(const std::string& text) {
  SCOPED_TRACE(text);
  const ir::Graph graph = run_pipeline(parse(text), {}, 2e-5);
  std::size_t count = 0;
  for (const ir::NodeId id : graph.nodes()) {
    const auto* form = std::get_if<ir::LoopForm>(graph.node(id).form.get());
    count += !form || !ir::pure_load(*form);
  }
  return count;
}

/// Behind `x`, float[4,6,32], which no shape of the body depends on.
std::size_t of_rows(const std::string& body, const std::string& outputs = "float[4,6,32] y",
                    const std::string& more = "") {
  return kernels("g (float[4,6,32] x" + more + ") => (" + outputs +
                 ") <int64[1] a = {-1}, float e = {1e-5}> { " + body + " }");
}

TEST(Stitch, MakesOneKernelOfARow) {
  const std::string one_each = "float[4,6,1] y";
  EXPECT_EQ(of_rows("m = ReduceMean(x, a)\n y = Sub(x, m)"), 1u);
  EXPECT_EQ(
      of_rows("m = ReduceMax(x, a)\n s = Sub(x, m)\n p = Exp(s)\n d = ReduceSum(p, a)\n r = Reciprocal(d)\n"
              " y = Mul(p, r)"),
      1u);
  EXPECT_EQ(of_rows("m = ReduceMax(x, a)\n s = Sub(x, m)\n p = Exp(s)\n d = ReduceSum(p, a)\n l = Log(d)\n"
                    " y = Sub(s, l)"),
            1u);
  EXPECT_EQ(of_rows("p = Exp(x)\n d = ReduceSum(p, a)\n y = Div(p, d)"), 1u);
  EXPECT_EQ(
      of_rows("q = Mul(x, x)\n b = ReduceMean(q, a)\n m = ReduceMean(x, a)\n n = Mul(m, m)\n y = Sub(b, n)",
              one_each),
      1u);
  EXPECT_EQ(
      of_rows("m = ReduceMean(x, a)\n d = Sub(x, m)\n q = Mul(d, d)\n v = ReduceMean(q, a)\n y = Sqrt(v)",
              one_each),
      1u);
  EXPECT_EQ(of_rows("q = Abs(x)\n m = ReduceMax(q, a)\n f = Max(m, e)\n y = Div(x, f)"), 1u);
  EXPECT_EQ(
      of_rows("h = ReduceMax(x, a)\n l = ReduceMin(x, a)\n d = Sub(x, l)\n r = Sub(h, l)\n y = Div(d, r)"),
      1u);
  EXPECT_EQ(of_rows("p = Softmax(x)\n l = Log(p)\n t = Mul(p, l)\n y = ReduceSum(t, a)", one_each), 1u);
  EXPECT_EQ(of_rows("p = Mul(x, z)\n d = ReduceSum(p, a)\n n = ReduceL2(x, a)\n m = ReduceL2(z, a)\n"
                    " t = Mul(n, m)\n f = Max(t, e)\n y = Div(d, f)",
                    one_each, ", float[4,6,32] z"),
            1u);
}

TEST(Stitch, WalksRowsAlongAnyAxes) {
  EXPECT_EQ(
      kernels("g (float[4,6,32] x) => (float[4,6,32] y) <int64[1] a = {1}, float e = {1e-5}> {"
              " m = ReduceMean(x, a)\n d = Sub(x, m)\n q = Mul(d, d)\n v = ReduceMean(q, a)\n f = Add(v, e)\n"
              " s = Sqrt(f)\n y = Div(d, s) }"),
      1u);
  EXPECT_EQ(kernels("g (float[2,3,4,5] x) => (float[2,3,4,5] y) <int64[2] a = {1, 3}> {"
                    " m = ReduceMean(x, a)\n y = Sub(x, m) }"),
            1u);
  // A reduction that drops its axes, read through a view.
  EXPECT_EQ(kernels("g (float[2,3,8] x) => (float[2,3,8] y) <int64[1] a = {2}, int64[3] s = {2, 3, 1}> {"
                    " m = ReduceMax<keepdims = 0>(x, a)\n n = Reshape(m, s)\n y = Sub(x, n) }"),
            1u);
}

TEST(Stitch, LeavesOtherRowsAlone) {
  // Rows of other axes, of another length, of a transposed matrix; and a position that is found.
  EXPECT_EQ(kernels("g (float[8,8] x) => (float[8,8] y) <int64[1] a = {0}, int64[1] b = {1}> {"
                    " m = ReduceMax(x, a)\n n = ReduceMin(x, b)\n t = Sub(x, m)\n y = Sub(t, n) }"),
            2u);
  EXPECT_EQ(kernels("g (float[4,16] x, float[4,8] z) => (float[4,8] y) <int64[1] a = {1}> {"
                    " m = ReduceMax(x, a)\n y = Sub(z, m) }"),
            2u);
  EXPECT_EQ(kernels("g (float[8,8] x) => (float[8,8] y) <int64[1] a = {1}> {"
                    " m = ReduceMax<keepdims = 0>(x, a)\n y = Sub(x, m) }"),
            2u);
  EXPECT_EQ(kernels("g (float[4,16] x) => (float[4,16] y) { i = ArgMax<axis = 1>(x)\n f = Cast<to = 1>(i)\n"
                    " y = Add(x, f) }"),
            2u);
  // Who else reads what is reduced finds it in memory.
  EXPECT_EQ(of_rows("m = ReduceMean(x, a)\n y = Sub(x, m)", "float[4,6,32] y, float[4,6,1] m"), 2u);
}

TEST(Stitch, LeavesFewLongRowsToAllWorkers) {
  const auto centred = [](const std::string& shape) {
    return kernels("g (float[" + shape + "] x) => (float[" + shape +
                   "] y) <int64[1] a = {1}> {"
                   " m = ReduceMax(x, a)\n y = Sub(x, m) }");
  };
  EXPECT_EQ(centred("2,16384"), 1u);
  EXPECT_EQ(centred("2,16400"), 2u);
  EXPECT_EQ(centred("16,16400"), 1u);
  EXPECT_EQ(centred("2,512,64"), 1u);
  EXPECT_EQ(centred("2,520,64"), 2u);
}

TEST(Stitch, ReachesTheKernelBeforeAView) {
  EXPECT_EQ(kernels("g (float[4,6,32] x) => (float[4,192] y) <int64[2] s = {4, 192}> {"
                    " t = Sigmoid(x)\n r = Reshape(t, s)\n y = Tanh(r) }"),
            1u);
  EXPECT_EQ(kernels("g (float[4,6,32] x, float[32,8] w_) => (float[24,8] y) <int64[2] s = {24, 8}> {"
                    " m = MatMul(x, w_)\n r = Reshape(m, s)\n y = Tanh(r) }"),
            1u);
  // A bias of the last axis, and a residual that lies as the view's result does.
  EXPECT_EQ(kernels("g (float[4,6,32] x, float[32,8] w_, float[8] w_b, float[24,8] z) => (float[24,8] y)"
                    " <int64[2] s = {24, 8}> {"
                    " m = MatMul(x, w_)\n r = Reshape(m, s)\n b = Add(r, w_b)\n y = Add(b, z) }"),
            1u);
  EXPECT_EQ(kernels("g (float[1,1,32] x, float[32,8] w_, float[1,8,1,9] z) => (float[1,8,1,9] y)"
                    " <int64[1] s = {3}> {"
                    " m = MatMul(x, w_)\n t = Transpose<perm = [0, 2, 1]>(m)\n g = Sigmoid(t)\n"
                    " u = Unsqueeze(g, s)\n y = Mul(z, u) }"),
            2u);
}

TEST(Stitch, IsAGroupNormWithItsScalesAndSiLU) {
  EXPECT_EQ(
      kernels("g (float[2,8,6,4] x, float[8,1,1] w_s, float[8,1,1] w_b) => (float[2,8,6,4] y)"
              " <int64[3] split = {2, 4, -1}, int64[4] back = {2, 8, 6, 4}, float[4] one = {1, 1, 1, 1},"
              " float[4] none = {0, 0, 0, 0}> {"
              " r = Reshape(x, split)\n n = InstanceNormalization(r, one, none)\n k = Reshape(n, back)\n"
              " t = Mul(k, w_s)\n u = Add(t, w_b)\n s = Sigmoid(u)\n y = Mul(u, s) }"),
      1u);
}

/// Two convolutions side by side, what joins their results in memory, a body that makes v of them, and another
/// convolution, for which all of that lies channels-last.
std::size_t of_parts(const std::string& body, const std::string& more = "") {
  return kernels("g (float[1,4,5,5] x, float[3,4,1,1] w_p, float[5,4,1,1] w_q, float[2,8,1,1] w_r" + more +
                 ") => (float[1,2,5,5] y) { p = Conv(x, w_p)\n q = Conv(x, w_q)\n"
                 " c = Concat<axis = 1>(p, q)\n " +
                 body + "\n y = Conv(v, w_r) }");
}

TEST(Stitch, ReachesTheKernelsOfEachPart) {
  EXPECT_EQ(of_parts("v = Relu(c)"), 4u);
  EXPECT_EQ(of_parts("t = PRelu(c, w_s)\n v = Tanh(t)", ", float[8,1,1] w_s"), 4u);
  EXPECT_EQ(of_parts("t = Mul(z, c)\n v = Tanh(t)", ", float[1,1,5,5] z"), 4u);
  EXPECT_EQ(of_parts("t = Mul(z, c)\n v = Tanh(t)", ", float[1,8,1,1] z"), 4u);
  // What is neither a part nor the same for all parts; and a part that others read.
  EXPECT_EQ(of_parts("t = Transpose<perm = [0, 1, 3, 2]>(c)\n u = Add(t, c)\n v = Relu(u)"), 5u);
  EXPECT_EQ(of_parts("t = Relu(c)\n d = Concat<axis = 1>(q, p)\n v = Add(t, d)"), 6u);
}

TEST(Stitch, LeavesMapsBehindViewsThatMoveOrRepeat) {
  const std::string product = "g (float[4,6,32] x, float[32,8] w_) => ";
  EXPECT_EQ(kernels(product + "(float[4,8,6] y) { m = MatMul(x, w_)\n t = Transpose<perm = [0, 2, 1]>(m)\n"
                              " y = Tanh(t) }"),
            2u);
  EXPECT_EQ(kernels(product + "(float[4,6,8] m, float[24,8] y) <int64[2] s = {24, 8}> { m = MatMul(x, w_)\n"
                              " r = Reshape(m, s)\n y = Tanh(r) }"),
            2u);
  // Repeated along its axes, of which each has one element.
  EXPECT_EQ(kernels("g (float[2,3,3] x, float[2,2] z) => (float[2,2] y) <int64[2] s = {1, 1}> {"
                    " m = ReduceSum<keepdims = 0>(x)\n r = Reshape(m, s)\n f = Exp(r)\n"
                    " y = Add(f, z) }"),
            2u);
}

}  // namespace
}  // namespace gcompile::testing
