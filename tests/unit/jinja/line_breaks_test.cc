#include "jinja/line_breaks.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

const std::string kLong(90, 'x');

TEST(LineBreaks, ShortLinesStay) {
  const std::string text = "int a;  // " + std::string(90, 'c') + "\n\n  b();\n";
  EXPECT_EQ(with_short_lines("src/a.cpp", text), text);
}

TEST(LineBreaks, ArgumentsOfTheOuterCall) {
  EXPECT_EQ(with_short_lines("a.h", "  call(" + kLong + ", in(1, 2), third(4, 5, 6));\n"),
            "  call(" + kLong + ", in(1, 2),\n      third(4, 5, 6));\n");
}

TEST(LineBreaks, NothingWithinArgumentsOfTemplates) {
  EXPECT_EQ(with_short_lines("a.cu", "  call_of_a_kernel<1, 2>(" + kLong + ");\n"),
            "  call_of_a_kernel<1, 2>(" + kLong + ");\n");
}

TEST(LineBreaks, NothingWithinStringsAndComments) {
  const std::string text = "  f(\"" + kLong + ", with, commas, words\");";
  EXPECT_EQ(with_short_lines("a.cu", text), text);
  EXPECT_EQ(with_short_lines("a.cu", "  f(/*a, b*/ " + kLong + ", '\"', \"//, \", 7);"),
            "  f(/*a, b*/ " + kLong + ", '\"',\n      \"//, \", 7);");
}

TEST(LineBreaks, CommentsGoBeforeTheirCode) {
  EXPECT_EQ(with_short_lines("a.hpp", "  int " + kLong + ";  // what it is\n"),
            "  // what it is\n  int " + kLong + ";\n");
  EXPECT_EQ(with_short_lines("a.h", "  int " + kLong + "; /* what it is */\n"),
            "  /* what it is */\n  int " + kLong + ";\n");
}

TEST(LineBreaks, CommentsBetweenWordsAndWithinNames) {
  EXPECT_EQ(with_short_lines("a.h", "  // " + kLong + " some further words\n"),
            "  // " + kLong + " some further\n  // words\n");
  EXPECT_EQ(with_short_lines("a.h", "// " + kLong + "/" + kLong + "\n"),
            "// " + kLong + "/\n// " + kLong + "\n");
  EXPECT_EQ(with_short_lines("a.h", "/* " + kLong + " some further words */\n"),
            "/* " + kLong + " some further\n   words */\n");
  // The mark at the end is no word.
  EXPECT_EQ(with_short_lines("a.h", "/* " + kLong + " some further w */\n"),
            "/* " + kLong + " some further\n   w */\n");
}

TEST(LineBreaks, CommentsThatGoOnAreFilledAnew) {
  EXPECT_EQ(with_short_lines("a.h", "  // " + kLong + " some further words\n  // and more.\n  // Another.\n"),
            "  // " + kLong + " some further\n  // words and more.\n  // Another.\n");
  // Not into another comment, nor into what begins anew.
  EXPECT_EQ(with_short_lines("a.h", "// " + kLong + " some further words\n  // and more\n"),
            "// " + kLong + " some further\n// words\n  // and more\n");
  EXPECT_EQ(with_short_lines("a.h", "// " + kLong + " some further words\n// - and more\n"),
            "// " + kLong + " some further\n// words\n// - and more\n");
  EXPECT_EQ(with_short_lines("Makefile", "# " + kLong + " some further words\n# and " + kLong + " more\n"),
            "# " + kLong + " some further\n# words and " + kLong + " more\n");
}

TEST(LineBreaks, CommentsOfAnInterface) {
  // What is about the code before it is about the code behind it, where it went there.
  EXPECT_EQ(with_short_lines("a.h", "  int " + kLong + "; /**< what it is */\n"),
            "  /** what it is */\n  int " + kLong + ";\n");
  EXPECT_EQ(with_short_lines("a.h", "/** " + kLong + " some further words\n * and more. */\n"),
            "/** " + kLong + " some further\n * words and more. */\n");
  EXPECT_EQ(with_short_lines("a.h", "/** " + kLong + " some further words. */\n"),
            "/** " + kLong + " some further\n * words. */\n");
  EXPECT_EQ(with_short_lines("a.h", " * " + kLong + " some further words. */\n"),
            " * " + kLong + " some further\n * words. */\n");
  EXPECT_EQ(with_short_lines("a.h", " * model   " + kLong + " some further words\n"),
            " * model   " + kLong + " some\n *         further words\n");
}

TEST(LineBreaks, BodiesOfOneLine) {
  EXPECT_EQ(with_short_lines("a.cpp", "int f(int " + kLong + ") { return call(1, 2); }\n"),
            "int f(int " + kLong + ") {\n  return call(1, 2);\n}\n");
  EXPECT_EQ(with_short_lines("a.cpp", "  if (a != " + kLong + ") status = WRONG_SIZE;\n"),
            "  if (a != " + kLong + ")\n    status = WRONG_SIZE;\n");
}

TEST(LineBreaks, DirectivesAndTablesStay) {
  const std::string directive = "#define " + kLong + " (1, 2, 3, 4, 5, 6, 7, 8)\n";
  EXPECT_EQ(with_short_lines("a.h", directive), directive);
  const std::string table = "| " + kLong + " | and more words than fit |\n";
  EXPECT_EQ(with_short_lines("README.md", table), table);
}

TEST(LineBreaks, MarkdownHasProseAndCode) {
  EXPECT_EQ(with_short_lines("README.md", "* " + kLong + " some further words\n* next\n"),
            "* " + kLong + " some further\n  words\n* next\n");
  EXPECT_EQ(with_short_lines("README.md", "```c\nf(" + kLong + ", " + kLong + ");\n```\n"),
            "```c\nf(" + kLong + ",\n    " + kLong + ");\n```\n");
}

TEST(LineBreaks, ParagraphsAreFilledAnewWhereALineIsTooLong) {
  EXPECT_EQ(
      with_short_lines("README.md", kLong + " and some further words\nof one paragraph.\n\nshort\nlines\n"),
      kLong + " and some further\nwords of one paragraph.\n\nshort\nlines\n");
}

TEST(LineBreaks, BuildFilesHaveComments) {
  EXPECT_EQ(with_short_lines("CMakeLists.txt", "  # " + kLong + " some further words\n"),
            "  # " + kLong + " some further\n  # words\n");
  const std::string command = "set(A " + kLong + " some further words)\n";
  EXPECT_EQ(with_short_lines("Makefile", command), command);
}

}  // namespace
}  // namespace gcompile
