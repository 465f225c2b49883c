// Branches of an If that read, or give, as many elements as data says.

#include <gtest/gtest.h>

#include "tests/unit/frontend/counted_fixture.h"

namespace gcompile::frontend_test {
namespace {

/// What a detector does where nothing was found: nothing, and there is a count of nothing.
TEST(CountedBranches, NothingInOneBranch) {
  const Outcome outcome =
      model("(float[4,2] x, bool[4] m) => (float[n,2] y)",
            "zero = Constant<value_int = 0>()\n"
            "r = Compress<axis = 0>(x, m)\n"
            "count = Size(r)\n"
            "empty = Equal(count, zero)\n"
            "z = If(empty) <then_branch = g () => (float[p,2] v) "
            "{ v = Constant<value = float[0,2] {}>() }, else_branch = h () => (float[q,2] w) "
            "{ last = Constant<value_ints = [1]>()  none = Constant<value_float = 0.0>()  sum = "
            "ReduceSum<keepdims = 0>(r, last)"
            "  has = Greater(sum, none)  w = Compress<axis = 0>(r, has) }>\n"
            "y = Neg(z)");
  const Tensor x = floats({4, 2}, {1, 2, 3, 4, -5, 1, 7, 8});
  EXPECT_EQ(filled(outcome, 0, {x, mask(kNone)}), Numbers{});
  EXPECT_EQ(filled(outcome, 0, {x, mask(kSome)}), (Numbers{-3, -4, -7, -8}));
  EXPECT_EQ(filled(outcome, 0, {x, mask(kAll)}), (Numbers{-1, -2, -3, -4, -7, -8}));
}

/// A branch reads as many rows as there are, and results that count alike meet behind it.
TEST(CountedBranches, ReadInBranches) {
  const Outcome outcome = model("(float[4] x, bool[4] m, bool b) => (float[n] y, float s)",
                                "r = Compress<axis = 0>(x, m)\n"
                                "u, v, s = If(b) <then_branch = g () => (float[p] u1, float[p] v1, float s1) "
                                "{ u1 = Neg(r)  v1 = Exp(r)  s1 = ReduceSum<keepdims = 0>(r) }, "
                                "else_branch = h () => (float[q] u2, float[q] v2, float s2) "
                                "{ u2 = Identity(x)  v2 = Abs(x)  s2 = ReduceMax<keepdims = 0>(r) }>\n"
                                "y = Add(u, v)");
  const Tensor x = floats({4}, {0, 2, -3, 4}), yes = tensor(ElementType::kBool, {}, {1}),
               no = tensor(ElementType::kBool, {}, {0});
  EXPECT_EQ(filled(outcome, 0, {x, mask({1, 0, 0, 0}), yes}), (Numbers{1}));
  EXPECT_EQ(filled(outcome, 1, {x, mask(kSome), yes}), (Numbers{6}));
  EXPECT_EQ(filled(outcome, 0, {x, mask(kSome), no}), (Numbers{0, 4, 0, 8}));
  EXPECT_EQ(filled(outcome, 1, {x, mask({0, 0, 1, 0}), no}), (Numbers{-3}));
}

}  // namespace
}  // namespace gcompile::frontend_test
