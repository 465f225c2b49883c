#include "jinja/text.h"

#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

/// What a model may call its nodes when it means harm, after the 65 files of the hostile corpus.
std::vector<std::string> hostile_names() {
  std::vector<std::string> names = {"",
                                    "*/",
                                    "a*/ int pwn(); /*",
                                    "/",
                                    "//",
                                    "/*",
                                    "*",
                                    "line\nbreak",
                                    "carriage\rreturn",
                                    "backslash at line end\\",
                                    "trigraph at line end?\?/",
                                    "?\?/",
                                    std::string("nul\0byte", 8),
                                    std::string(100'000, 'x'),
                                    std::string(100'000, '*'),
                                    "\xC3\xA9t\xC3\xA9",
                                    "\xFF\xFE invalid",
                                    "\xE2\x80\xAE right to left",
                                    "../../etc/passwd",
                                    "${HOME};$(rm -rf)`ls`",
                                    "\"); system(\"",
                                    "int",
                                    "0",
                                    "__reserved__",
                                    "%s%n",
                                    "<script>alert(1)</script>",
                                    "\x7F\x1B[31m"};
  for (int byte = 0; byte < 256; ++byte) names.emplace_back(1, static_cast<char>(byte));
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string name;
    static constexpr char kNasty[] = "*/\\?\n\r%\"'a0_<\x00\x80\xFF ";
    for (std::size_t length = random() % 12; length > 0; --length)
      name += kNasty[random() % (sizeof kNasty - 1)];
    names.push_back(name);
  }
  return names;
}

bool is_printable_ascii(const std::string& text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7E) return false;
  }
  return true;
}

TEST(CIdentifier, IsReadable) {
  EXPECT_EQ(c_identifier("/layer1/Conv", 17), "t17_layer1_conv");
  EXPECT_EQ(c_identifier("relu", 0, "step"), "step0_relu");
  EXPECT_EQ(c_identifier("__a__b..c__", 3), "t3_a_b_c");
  EXPECT_EQ(c_identifier("", 3), "t3");
  EXPECT_EQ(c_identifier("\xC3\xA9", 3), "t3");
  EXPECT_EQ(c_identifier_stem("9Lives"), "9lives");
}

TEST(CIdentifier, IsAlwaysAnIdentifierThatCxxDoesNotReserve) {
  for (const std::string& name : hostile_names()) {
    const std::string identifier = c_identifier(name, 5);
    EXPECT_EQ(identifier.substr(0, 2), "t5");
    EXPECT_LE(identifier.size(), 43u);
    EXPECT_EQ(identifier.find("__"), std::string::npos);
    EXPECT_NE(identifier.back(), '_');
    for (const char c : identifier) {
      EXPECT_TRUE((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') << identifier;
    }
  }
}

TEST(CIdentifier, DiffersWhereTheIndexDiffers) {
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const char* name : {"", "1", "1_2", "a", "A", "a!", "2"}) {
    for (std::size_t index = 0; index < 300; ++index) {
      seen.insert(c_identifier(name, count++));
    }
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(CIdentifier, CutsLongStemsWithoutATrailingUnderscore) {
  EXPECT_EQ(c_identifier_stem(std::string(100'000, 'X')), std::string(40, 'x'));
  EXPECT_EQ(c_identifier_stem(std::string(39, 'x') + "//y"), std::string(39, 'x'));
  EXPECT_EQ(c_identifier_stem(std::string(38, 'x') + "//y"), std::string(38, 'x') + "_y");
}

TEST(CommentEscape, KeepsOrdinaryNames) {
  EXPECT_EQ(comment_escape("/layer1/layer1.0/conv1/Conv_output_0"), "/layer1/layer1.0/conv1/Conv_output_0");
  EXPECT_EQ(comment_escape("a b:c-d [e]"), "a b:c-d [e]");
}

TEST(CommentEscape, EscapesWhatEndsOrContinuesAComment) {
  EXPECT_EQ(comment_escape("a*/b"), "a%2A/b");
  EXPECT_EQ(comment_escape("a\\"), "a%5C");
  EXPECT_EQ(comment_escape("a?\?/"), "a%3F%3F%2F");
  EXPECT_EQ(comment_escape("a\nb\r"), "a%0Ab%0D");
  EXPECT_EQ(comment_escape("100%"), "100%25");
  EXPECT_EQ(comment_escape(std::string("\0\xC3\xA9", 3)), "%00%C3%A9");
  EXPECT_EQ(comment_escape("a/"), "a%2F");
}

TEST(CommentEscape, HostileNamesStayInsideOneComment) {
  for (const std::string& name : hostile_names()) {
    const std::string text = comment_escape(name);
    EXPECT_TRUE(is_printable_ascii(text)) << text;
    EXPECT_LE(text.size(), 200u);
    EXPECT_EQ(text.find_first_of("*\\?"), std::string::npos) << text;
    // The tightest comment that a template can write still ends where it should,
    // and gcc's -Wcomment is silent.
    const std::string comment = "/*" + text + "*/";
    EXPECT_EQ(comment.find("*/", 2), comment.size() - 2) << comment;
    EXPECT_EQ(comment.find("/*", 1), std::string::npos) << comment;
  }
}

TEST(CommentEscape, CutsAtAWholeEscape) {
  EXPECT_EQ(comment_escape(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(comment_escape(std::string(201, 'x')), std::string(197, 'x') + "...");
  const std::string stars = comment_escape(std::string(100'000, '*'));
  EXPECT_EQ(stars.size(), 65 * 3 + 3u);
  EXPECT_EQ(stars.substr(stars.size() - 6), "%2A...");
}

/// Reads a literal's inside back as a C compiler does.
std::string decode_c_string(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text[i + 1] == '"' || text[i + 1] == '\\') {
      bytes += text[++i];
    } else {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    }
  }
  return bytes;
}

TEST(CStringEscape, DenotesExactlyTheBytes) {
  EXPECT_EQ(c_string_escape("a\"b\\c?"), "a\\\"b\\\\c\\077");
  EXPECT_EQ(c_string_escape("\x01"
                            "1"),
            "\\0011");
  for (const std::string& name : hostile_names()) {
    const std::string text = c_string_escape(name);
    EXPECT_TRUE(is_printable_ascii(text));
    EXPECT_EQ(text.find('?'), std::string::npos);
    EXPECT_EQ(decode_c_string(text), name);
  }
}

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(html_escape("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(html_escape("\xC3\xA9\n\t"), "\xC3\xA9\n\t");
  EXPECT_EQ(html_escape(std::string("\0\x7F\xFF", 3)), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(html_escape("\xC2\x85\xC2\xA0"), "\xEF\xBF\xBD\xC2\xA0");
  EXPECT_EQ(html_escape(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(html_escape(std::string(1001, '<')).size(), 1000 * 4 + 3u);
  EXPECT_EQ(html_escape("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(html_escape("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // an overlong slash
  EXPECT_EQ(html_escape("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(html_escape("\xF4\x90\x80\x80").substr(0, 3), "\xEF\xBF\xBD");  // above U+10FFFF
  EXPECT_EQ(html_escape("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");           // cut short
  for (const std::string& name : hostile_names()) {
    EXPECT_EQ(html_escape(name).find_first_of("<>\"'"), std::string::npos);
  }
}

TEST(JsonText, AcceptsAnyName) {
  for (const std::string& name : hostile_names()) {
    const std::string text = json_text({{"name", name}});
    EXPECT_TRUE(nlohmann::ordered_json::accept(text));
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c <= 0x7E));
  }
  EXPECT_EQ(json_text({{"b", 1}, {"a", "\xC3\xA9"}}), "{\n  \"b\": 1,\n  \"a\": \"\\u00e9\"\n}\n");
}

TEST(FloatLiteral, IsShortAndTyped) {
  EXPECT_EQ(float_literal(1.0f), "1.0f");
  EXPECT_EQ(float_literal(0.1f), "0.1f");
  EXPECT_EQ(float_literal(-0.0f), "-0.0f");
  EXPECT_EQ(float_literal(1e-45f), "1e-45f");
  EXPECT_EQ(float_literal(3.4028235e38f), "3.4028235e+38f");
  EXPECT_EQ(float_literal(16777216.0f), "16777216.0f");
  EXPECT_EQ(float_literal(std::numeric_limits<float>::infinity()), "INFINITY");
  EXPECT_EQ(float_literal(-std::numeric_limits<float>::infinity()), "-INFINITY");
  EXPECT_EQ(float_literal(std::nanf("")), "NAN");
  EXPECT_EQ(double_literal(0.1), "0.1");
  EXPECT_EQ(double_literal(2.0), "2.0");
  EXPECT_EQ(double_literal(-std::numeric_limits<double>::infinity()), "static_cast<double>(-INFINITY)");
  EXPECT_EQ(double_literal(std::nan("")), "static_cast<double>(NAN)");
}

TEST(FloatLiteral, ReadsBackExactly) {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = float_literal(value);
    ASSERT_EQ(text.back(), 'f');
    ASSERT_NE(text.find_first_of(".e"), std::string::npos) << text;
    const float read = std::strtof(text.c_str(), nullptr);
    ASSERT_EQ(std::memcmp(&read, &value, sizeof value), 0) << text;
  }
}

// The compiler's own reading of literals of every shape that float_literal prints.
static_assert(1e-45f > 0.0f && 3.4028235e+38f == std::numeric_limits<float>::max() &&
              1e+10f == 10000000000.0f);

}  // namespace
TEST(WrapSignatures, BreaksLongParameterLists) {
  EXPECT_EQ(wrap_signatures("void f(int a, int b) {\n  g(aaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
                            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb);\n}\n",
                            50),
            "void f(int a, int b) {\n  g(aaaaaaaaaaaaaaaaaaaaaaaaaaaa,\n      "
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb);\n}\n");
  EXPECT_EQ(
      wrap_signatures("GLOBAL(64) void name(const float* first, const float* second, float* third);", 60),
      "GLOBAL(64) void name(const float* first,\n"
      "                     const float* second, float* third);");
  EXPECT_EQ(wrap_signatures("  g(aaaaaaaaaaaaaaaaaaaa, Tile<6, 4, 2>{}, b);", 36),
            "  g(aaaaaaaaaaaaaaaaaaaa,\n      Tile<6, 4, 2>{}, b);")
      << "not between the arguments of a template";
  EXPECT_EQ(c_string_lines("ab \"cd\" efgh", 6),
            (std::vector<std::string>{"\"ab \"", "\"\\\"cd\\\"\"", "\" efgh\""}));
  EXPECT_EQ(c_string_lines("", 6), std::vector<std::string>{"\"\""});
  EXPECT_EQ(wrap_signatures("void a_name_without_parameters_that_is_longer_than_the_line();", 20),
            "void a_name_without_parameters_that_is_longer_than_the_line();");
}

}  // namespace gcompile
