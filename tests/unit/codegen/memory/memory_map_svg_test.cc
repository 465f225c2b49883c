#include "codegen/report/memory_map_svg.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/codegen/memory/memory_instances.h"

namespace gcompile {
namespace {

using memory_instances::make_buffer;
using testing::HasSubstr;
using testing::Not;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(MemoryMapSvg, PlacesRectanglesByStepAndOffset) {
  std::vector<Buffer> buffers{make_buffer(100, 0, 4), make_buffer(300, 2, 8)};
  buffers[0].name = "a";
  buffers[1].name = "b";
  buffers[1].kind = BufferKind::kScratch;
  MemoryPlan plan;
  plan.offsets = {0, 100};
  plan.arena_bytes = 400;
  plan.lower_bound = 400;
  const std::string svg = memory_map_svg(buffers, plan);
  // The plot is 904 units wide from x = 84, and 336 high from y = 44 down.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"84.00\" y=\"296.00\" width=\"452.00\" height=\"84.00\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"310.00\" y=\"44.00\" width=\"678.00\" height=\"252.00\""));
  EXPECT_THAT(svg, HasSubstr("<title>b\nscratch, 300 B (300 bytes)\noffset 100, steps 2 to 7</title>"));
  EXPECT_THAT(svg, HasSubstr("activation (1)"));
  EXPECT_THAT(svg, HasSubstr("no plan is smaller"));
  EXPECT_THAT(svg, Not(HasSubstr("state (")));
  // Live bytes: 100 from 0, 400 from 2, 300 from 4, none from 8.
  EXPECT_THAT(svg, HasSubstr("M84.00 380.00H84.00V296.00H310.00V44.00H536.00V128.00H988.00V380.00"));
}

TEST(MemoryMapSvg, EscapesNamesAndClosesWhatItOpens) {
  std::vector<Buffer> buffers{make_buffer(8, 0, 1), make_buffer(0, 0, 1)};
  buffers[0].name = "<script>\"&\x01</title>";
  const std::string svg = memory_map_svg(buffers, plan_memory(buffers));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&quot;&amp;\\x01&lt;/title&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_EQ(count_of(svg, "<text"), count_of(svg, "</text>"));
  EXPECT_EQ(count_of(svg, "<title>"), count_of(svg, "</title>"));
  EXPECT_EQ(count_of(svg, "<rect"), 1 + 1) << "one buffer with bytes, one key in the legend";
}

TEST(MemoryMapSvg, DrawsAnEmptyPlan) {
  EXPECT_THAT(memory_map_svg({}, plan_memory({})), HasSubstr("arena 0 B"));
}

}  // namespace
}  // namespace gcompile
