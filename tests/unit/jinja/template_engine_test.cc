#include <map>
#include <string>

#include "base/diagnostics.h"
#include "codegen/emit/embedded.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jinja/engine.h"
#include "nlohmann/json.hpp"

// White space and the order of evaluation are compared with jinja2 itself in jinja_differential.py; here
// stand the parts where this engine is stricter or different, and its messages.
namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;
using Templates = std::map<std::string, std::string>;
using testing::HasSubstr;

std::string render(const Templates& templates, const Json& data) {
  TemplateEngine engine([&](const std::string& name) -> std::optional<std::string> {
    const auto found = templates.find(name);
    if (found == templates.end()) return std::nullopt;
    return found->second;
  });
  return engine.render("main.j2", data);
}

std::string render(const std::string& text, const Json& data) {
  return render(Templates{{"main.j2", text}}, data);
}

std::string error_of(const Templates& templates, const Json& data) {
  try {
    const std::string text = render(templates, data);
    return "no error: " + text;
  } catch (const CompileError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kInternal);
    return error.what();
  }
}

std::string error_of(const std::string& text, const Json& data) {
  return error_of(Templates{{"main.j2", text}}, data);
}

const Json kData = {{"name", "relu"},
                    {"code", "first;\n  second;\n\nlast;"},
                    {"count", 3},
                    {"scale", 0.5},
                    {"yes", true},
                    {"nothing", nullptr},
                    {"layer", {{"name", "a/b"}}},
                    {"names", {"x", "y"}},
                    {"mixed", {"x", 1, true}}};

TEST(TemplateEngine, RendersALayerList) {
  const std::string text =
      "{# the schedule #}\n"
      "void run() {\n"
      "  {% for layer in layers %}\n"
      "  {% if layer.fused and not loop.first %}\n"
      "  // fused\n"
      "  {% endif %}\n"
      "  {{ layer.call }}({{ layer.arguments | join(\", \") }});\n"
      "  {% endfor %}\n"
      "}\n";
  const Json data = {{"layers",
                      {{{"call", "conv"}, {"fused", true}, {"arguments", {"a", 1}}},
                       {{"call", "relu"}, {"fused", true}, {"arguments", Json::array()}}}}};
  EXPECT_EQ(render(text, data), "void run() {\n  conv(a, 1);\n  // fused\n  relu();\n}\n");
}

TEST(TemplateEngine, ValuesOfSeveralLinesKeepTheirIndentation) {
  EXPECT_EQ(render("  {{ code }}\n", kData), "  first;\n    second;\n\n  last;\n");
  EXPECT_EQ(render("\t{{ code | upper }}\n", kData), "\tFIRST;\n\t  SECOND;\n\n\tLAST;\n");
  EXPECT_EQ(render("{% if yes %}\n  {{ code }}\n{% endif %}", kData), "  first;\n    second;\n\n  last;\n");
}

TEST(TemplateEngine, ValuesNotFirstOnTheirLineAreLeftAlone) {
  EXPECT_EQ(render("x {{ code }}", kData), "x first;\n  second;\n\nlast;");
  EXPECT_EQ(render("  {{- code }}", kData), "first;\n  second;\n\nlast;");
  EXPECT_EQ(render("{{ name }}  {{ code }}", kData), "relu  first;\n  second;\n\nlast;");
}

TEST(TemplateEngine, ExplicitIndentWins) {
  EXPECT_EQ(render("  {{ code | indent(2) }}", kData), render("  {{ code }}", kData));
  EXPECT_EQ(render("  {{ code | indent(0) }}", kData), "  first;\n  second;\n\nlast;");
}

TEST(TemplateEngine, FiltersEscape) {
  const Json data = {{"name", "a\"*/\n"}, {"value", 255}};
  EXPECT_EQ(render("{{ name | c_string }}", data), "\"a\\\"*/\\012\"");
  EXPECT_EQ(render("{{ name | comment }}", data), "a\"%2A/%0A");
  EXPECT_EQ(render("{{ name | html }}", data), "a&quot;*/\n");
  EXPECT_EQ(render("{{ name | c_ident }}", data), "a");
  EXPECT_EQ(render("{{ value | hex }} {{ value | hex(4) }}", data), "0xff 0x00ff");
}

TEST(TemplateEngine, LargeIntegersKeepTheirSign) {
  const Json data = {{"low", INT64_MIN}, {"high", UINT64_MAX}};
  EXPECT_EQ(render("{{ low }} {{ high }} {{ high | hex }}", data),
            "-9223372036854775808 18446744073709551615 0xffffffffffffffff");
}

TEST(TemplateEngine, NamesTheUnknownWithItsPlace) {
  EXPECT_THAT(error_of("line\n  {{ nosuch }}", kData), HasSubstr("main.j2:2:6: unknown name 'nosuch'"));
  EXPECT_THAT(error_of("{{ layer.nosuch }}", kData),
              HasSubstr("main.j2:1:4: unknown member 'nosuch' in 'layer.nosuch'"));
  EXPECT_THAT(error_of("{{ name.size }}", kData), HasSubstr("no member 'size' in 'name.size'"));
  EXPECT_THAT(error_of("{{ loop.first }}", kData), HasSubstr("unknown name 'loop'"));
  EXPECT_THAT(error_of("{{ loop }}", {{"loop", "data"}}), HasSubstr("unknown name 'loop'"));
  EXPECT_THAT(error_of("{% for x in names %}{% endfor %}{{ x }}", kData), HasSubstr("unknown name 'x'"));
}

TEST(TemplateEngine, RefusesWrongTypes) {
  EXPECT_THAT(error_of("{{ yes }}", kData),
              HasSubstr("1:4: only strings and integers can be printed; this is a boolean"));
  EXPECT_THAT(error_of("{{ scale }}", kData), HasSubstr("this is a floating-point number"));
  EXPECT_THAT(error_of("{{ nothing }}", kData), HasSubstr("this is null"));
  EXPECT_THAT(error_of("{{ names }}", kData), HasSubstr("this is a list"));
  EXPECT_THAT(error_of("{{ layer }}", kData), HasSubstr("this is an object"));
  EXPECT_THAT(error_of("{% if count %}{% endif %}", kData),
              HasSubstr("1:7: a condition needs a boolean; this is an integer"));
  EXPECT_THAT(error_of("{% if names %}{% endif %}", kData), HasSubstr("a condition needs a boolean"));
  EXPECT_THAT(error_of("{% if yes and name %}{% endif %}", kData),
              HasSubstr("1:15: a condition needs a boolean"));
  EXPECT_THAT(error_of("{% for x in layer %}{% endfor %}", kData),
              HasSubstr("1:13: for needs a list; this is an object"));
  EXPECT_THAT(error_of("{{ name | join }}", kData),
              HasSubstr("1:11: filter 'join': expected a list, found a string"));
  EXPECT_THAT(error_of("{{ mixed | join }}", kData),
              HasSubstr("expected a string or an integer, found a boolean"));
  EXPECT_THAT(error_of("{{ count | upper }}", kData), HasSubstr("expected a string, found an integer"));
  EXPECT_THAT(error_of("{{ name | hex }}", kData), HasSubstr("expected an integer, found a string"));
  EXPECT_THAT(error_of("{{ low | hex }}", {{"low", -1}}), HasSubstr("not negative"));
  EXPECT_THAT(error_of("{{ name | indent(999) }}", kData), HasSubstr("width 999 is not in 0..200"));
}

TEST(TemplateEngine, RefusesArithmeticAndComparison) {
  for (const char* expression :
       {"count + 1", "count == 3", "count < 4", "count > 1", "name ~ name", "names[0]", "-count"}) {
    EXPECT_THAT(error_of("{{ x" + std::string(expression) + " }}", kData), HasSubstr("unexpected character"))
        << expression;
  }
  EXPECT_THAT(error_of("{{ count is defined }}", kData), HasSubstr("expected '}}', found 'is'"));
  EXPECT_THAT(error_of("{{ name if yes }}", kData), HasSubstr("expected '}}', found 'if'"));
}

TEST(TemplateEngine, RefusesWhatTheSubsetLeavesOut) {
  EXPECT_THAT(error_of("{% set x = 1 %}", kData), HasSubstr("unexpected character '='"));
  EXPECT_THAT(error_of("{% raw %}{% endraw %}", kData),
              HasSubstr("1:4: unknown tag 'raw'; there are for, if and include"));
  EXPECT_THAT(error_of("{% macro f() %}", kData), HasSubstr("unknown tag 'macro'"));
  EXPECT_THAT(error_of("{% for x in names %}a{% else %}b{% endfor %}", kData),
              HasSubstr("a for has no else"));
  EXPECT_THAT(error_of("{% for loop in names %}{% endfor %}", kData), HasSubstr("'loop' is reserved"));
  EXPECT_THAT(error_of("{% for a, b in names %}{% endfor %}", kData), HasSubstr("expected 'in', found ','"));
  EXPECT_THAT(error_of("{{ name | default('x') }}", kData), HasSubstr("unknown filter 'default'"));
  EXPECT_THAT(error_of("{{ name | upper(1) }}", kData), HasSubstr("wrong number of arguments"));
  EXPECT_THAT(error_of("{% include name %}", kData),
              HasSubstr("expected the name of a template as a string"));
}

TEST(TemplateEngine, PointsAtWhatIsNotClosed) {
  EXPECT_THAT(error_of("a\n {{ name", kData), HasSubstr("main.j2:2:2: this '{{' is never closed"));
  EXPECT_THAT(error_of("a\n {# name", kData), HasSubstr("main.j2:2:2: this comment is never closed"));
  EXPECT_THAT(error_of("{% if yes %}\n{% for x in names %}\n", kData),
              HasSubstr("main.j2:2:1: this 'for' is never closed"));
  EXPECT_THAT(error_of("{% if yes %}{% endfor %}", kData),
              HasSubstr("1:16: expected 'endif', found 'endfor'"));
  EXPECT_THAT(error_of("{% endif %}", kData), HasSubstr("unexpected tag 'endif'"));
  EXPECT_THAT(error_of("{{ 'a\nb' }}", kData), HasSubstr("1:4: this string is never closed"));
  EXPECT_THAT(error_of("{{ 'a\\q' }}", kData), HasSubstr("1:6: unknown escape"));
}

TEST(TemplateEngine, IncludesSeeNamesButNotLoop) {
  const Templates templates = {{"main.j2", "{% for x in names %}{% include 'part.j2' %}{% endfor %}"},
                               {"part.j2", "<{{ x }}{{ name }}>"}};
  EXPECT_EQ(render(templates, kData), "<xrelu><yrelu>");
  const Templates with_loop = {
      {"main.j2", "{{ name }}{% for x in names %}\n{% include 'part.j2' %}{% endfor %}"},
      {"part.j2", "{% if loop.first %}{% endif %}"}};
  EXPECT_THAT(error_of(with_loop, kData), HasSubstr("part.j2:1:7: unknown name 'loop'"));
}

TEST(TemplateEngine, FindsFaultsInTemplatesThatAreNotRendered) {
  const Templates templates = {{"main.j2", "{% if no %}{% include 'part.j2' %}{% endif %}"},
                               {"part.j2", "ok\n{{ 1 + }}"}};
  EXPECT_THAT(error_of(templates, {{"no", false}}), HasSubstr("part.j2:2:6: unexpected character '+'"));
  EXPECT_THAT(error_of("\n{% include 'nosuch.j2' %}", kData),
              HasSubstr("main.j2:2:12: there is no template 'nosuch.j2'"));
  EXPECT_THAT(error_of(Templates{}, kData), HasSubstr("there is no template 'main.j2'"));
}

TEST(TemplateEngine, EndsRecursionWithAnError) {
  EXPECT_THAT(error_of("{% include 'main.j2' %}", kData), HasSubstr("includes are nested too deeply"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{% if yes %}";
  EXPECT_THAT(error_of(deep, kData), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("{{ " + std::string(100'000, '(') + " }}", kData), HasSubstr("nested too deeply"));
  std::string negations = "{% if ";
  for (int i = 0; i < 100'000; ++i) negations += "not ";
  EXPECT_THAT(error_of(negations + "yes %}{% endif %}", kData), HasSubstr("nested too deeply"));
  std::string filters = "{{ name";
  for (int i = 0; i < 100'000; ++i) filters += "|upper";
  EXPECT_THAT(error_of(filters + "}}", kData), HasSubstr("too many filters"));
}

TEST(TemplateEngine, DataMustBeAnObject) {
  EXPECT_THAT(error_of("x", Json::array()), HasSubstr("template data must be an object"));
}

TEST(TemplateEngine, AllEmbeddedTemplatesParse) {
  TemplateEngine engine([](const std::string& name) -> std::optional<std::string> {
    const EmbeddedFile* file = find_embedded_file("templates/" + name);
    if (file == nullptr) return std::nullopt;
    return std::string(file->contents);
  });
  const std::string room = "templates/";
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string path(file.path);
    if (path.compare(0, room.size(), room) != 0) continue;
    EXPECT_NO_THROW(engine.load(path.substr(room.size()))) << path;
  }
}

}  // namespace
}  // namespace gcompile
