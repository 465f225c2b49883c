// What the user should hear though nothing is wrong: crossed states, and what a new project overwrites.

#include "driver/commands/state_names.h"
#include "driver/publish/overwritten.h"
#include "driver/publish/publish.h"
#include "gmock/gmock.h"
#include "tests/unit/driver/publish_fixture.h"

namespace gcompile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The pairs of all those given that are told; every input and output has one type.
Pairs told(const Pairs& pairs, const std::vector<std::string>& more_outputs = {}) {
  ir::Graph graph;
  const ir::TensorType type{ir::ElementType::kFloat32, {2, 3}};
  std::vector<ir::ValueId> values;
  for (const auto& [input, output] : pairs) values.push_back(graph.add_input(input, type));
  for (std::size_t i = 0; i < pairs.size(); ++i) graph.add_output(values[i], pairs[i].second);
  for (const std::string& name : more_outputs) graph.add_output(values[0], name);
  Pairs found;
  for (const Diagnostic& each : crossed_states(graph, pairs)) {
    EXPECT_EQ(each.severity, Severity::kWarning);
    for (const auto& pair : pairs) {
      if (each.message.rfind("--state " + pair.first + "=" + pair.second + ":", 0) == 0)
        found.push_back(pair);
    }
  }
  return found;
}

TEST(CrossedStates, AreTold) {
  const Pairs crossed[] = {
      {{"a_in", "b_out"}, {"b_in", "a_out"}},
      {{"h0", "cn"}, {"c0", "hn"}},
      {{"past_key_values.0.key", "present.0.value"}, {"past_key_values.0.value", "present.0.key"}},
      {{"past_key_values.0.key", "present.1.key"}, {"past_key_values.1.key", "present.0.key"}},
      {{"cache_1", "new_cache_2"}, {"cache_2", "new_cache_3"}, {"cache_3", "new_cache_1"}},
      {{"h", "new_c"}, {"c", "new_h"}},
  };
  for (const Pairs& pairs : crossed) {
    EXPECT_EQ(told(pairs), pairs) << pairs[0].first;
    Pairs right = pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      right[i].second = pairs[(i + pairs.size() - 1) % pairs.size()].second;
    EXPECT_THAT(told(right), IsEmpty()) << pairs[0].first;
  }
}

TEST(CrossedStates, OneOfTwoAndOneThatIsLeftOut) {
  EXPECT_THAT(told({{"a_in", "b_out"}}, {"a_out"}), ElementsAre(std::pair("a_in", "b_out")));
  EXPECT_THAT(told({{"a_in", "a_out"}}, {"b_out", "scores"}), IsEmpty());
}

TEST(CrossedStates, NamesThatSayNothingAreLeftAlone) {
  EXPECT_THAT(told({{"input.1", "441"}, {"input.5", "530"}}), IsEmpty());
  EXPECT_THAT(told({{"x", "p"}, {"y", "q"}}), IsEmpty());
}

class ToldOnPublishing : public PublishFixture {
 protected:
  std::vector<std::string> publish_told(const FileSet& files) {
    return publish(files, target_.string(), {false, false}).warnings;
  }
};

TEST_F(ToldOnPublishing, NothingOfWhatWasWrittenByTheTool) {
  EXPECT_THAT(publish_told(first_output()), IsEmpty());
  EXPECT_THAT(publish_told(first_output()), IsEmpty());
  EXPECT_THAT(publish_told(second_output()), IsEmpty());
}

TEST_F(ToldOnPublishing, EditsThatAreReplacedOrRemoved) {
  publish_told(first_output());
  write_file(target_ / "src/net.cpp", "edited\n");
  write_file(target_ / "old/gone.h", "edited too\n");
  write_file(target_ / "CMakeLists.txt", "same in both\n");
  EXPECT_THAT(publish_told(second_output()),
              ElementsAre(HasSubstr("are overwritten: old/gone.h, src/net.cpp")));
  EXPECT_THAT(publish_told(second_output()), IsEmpty());
}

TEST_F(ToldOnPublishing, AnEditThatTheNewProjectHolds) {
  publish_told(first_output());
  write_file(target_ / "src/net.cpp", "second version, longer\n");
  EXPECT_THAT(publish_told(second_output()), IsEmpty());
}

TEST_F(ToldOnPublishing, TheProjectOfAnotherModel) {
  publish_told(first_output());
  FileSet other;
  other.add("CMakeLists.txt", "same in both\n");
  other.add_manifest("other", {{"version", 1}});
  EXPECT_THAT(publish_told(other), ElementsAre(HasSubstr("held the project 'net', which this one replaces")));
  EXPECT_THAT(publish_told(other), IsEmpty());
}

}  // namespace
}  // namespace gcompile
