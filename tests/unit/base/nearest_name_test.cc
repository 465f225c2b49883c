#include "base/nearest_name.h"

#include <gtest/gtest.h>

namespace gcompile::ir {
namespace {

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(edit_distance("relu", "relu", 3), 0);
  EXPECT_EQ(edit_distance("relu", "rel", 3), 1);
  EXPECT_EQ(edit_distance("relu", "reluu", 3), 1);
  EXPECT_EQ(edit_distance("relu", "rely", 3), 1);
  EXPECT_EQ(edit_distance("relu", "rleu", 3), 1);
  EXPECT_EQ(edit_distance("cdua", "cuda", 3), 1);
  EXPECT_EQ(edit_distance("abcd", "badc", 3), 2);
  EXPECT_EQ(edit_distance("", "abc", 5), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting", 5), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting", 1), 2);  // more than the limit
}

TEST(NearestName, NamesTheNearestWithinAThird) {
  EXPECT_EQ(did_you_mean("Sofmax", {"Softplus", "Softmax", "ArgMax"}), "did you mean 'Softmax'?");
  EXPECT_EQ(did_you_mean("fues", {"fold", "fuse"}), "did you mean 'fuse'?");
  EXPECT_EQ(did_you_mean("Frobnicate", {"Softmax"}), "");
  EXPECT_EQ(did_you_mean("ab", {"b", "a"}), "did you mean 'a'?");  // of equals the first by name
  EXPECT_EQ(did_you_mean("7", {"0", "1"}), "");
  EXPECT_EQ(did_you_mean("", {"a"}), "");
}

TEST(NearestName, CompletesWords) {
  EXPECT_EQ(did_you_abbreviate("Quantize", {"QuantizeLinear", "QuantizeLinearInto"}),
            "did you mean 'QuantizeLinear'?");
  EXPECT_EQ(did_you_abbreviate("Qua", {"QuantizeLinear"}), "");
}

}  // namespace
}  // namespace gcompile::ir
