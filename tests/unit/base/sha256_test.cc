#include "base/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace gcompile {
namespace {

// NIST, "Examples with Intermediate Values", SHA-256, and the empty message of the CAVP vectors.
TEST(Sha256, MatchesPublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheMessageIsCut) {
  std::string message;
  for (int i = 0; i < 300; ++i) message += static_cast<char>(i * 7);
  for (std::size_t length = 0; length <= message.size(); ++length) {
    const std::string part = message.substr(0, length);
    Sha256 hash;
    for (std::size_t i = 0; i < length; i += 13) hash.update(part.substr(i, 13));
    Sha256 whole;
    whole.update(part);
    EXPECT_EQ(hash.finish(), whole.finish()) << length;
  }
}

}  // namespace
}  // namespace gcompile
