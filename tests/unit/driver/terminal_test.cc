#include "driver/machine/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <regex>
#include <sstream>

#include "gtest/gtest.h"

namespace gcompile {
namespace {

constexpr TerminalFacts kPlain = {false, 80, false};
constexpr TerminalFacts kLive = {true, 30, true};

Diagnostic warning() {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::kWarning;
  diagnostic.message = "odd model";
  diagnostic.help = "look again";
  return diagnostic;
}

Diagnostic error() {
  Diagnostic diagnostic;
  diagnostic.code = "E0203";
  diagnostic.message = "bad model";
  return diagnostic;
}

std::string say_everything(TerminalFacts facts, Verbosity verbosity) {
  std::ostringstream stream;
  {
    Terminal terminal(stream, facts, verbosity);
    terminal.stage(1, 2, "fold", "12 -> 3 nodes");
    terminal.detail("a detail");
    terminal.diagnostic(warning());
    terminal.stage(2, 2, "emit");
    terminal.note("done");
    terminal.diagnostic(error());
  }
  return stream.str();
}

TEST(Terminal, PlainStreamsGetPlainLines) {
  EXPECT_EQ(say_everything(kPlain, Verbosity::kNormal),
            "[1/2] fold  12 -> 3 nodes\nwarning: odd model\n   = help: look again\n[2/2] emit\ndone\n"
            "error[E0203]: bad model\n");
}

TEST(Terminal, VerboseAddsDetailsAndQuietLeavesTrouble) {
  const std::string said = std::regex_replace(say_everything(kPlain, Verbosity::kVerbose),
                                              std::regex(": \\d+\\.\\d{3} s\n"), ": T s\n");
  EXPECT_EQ(said,
            "[1/2] fold  12 -> 3 nodes\na detail\nwarning: odd model\n   = help: look again\n  fold: T s\n"
            "[2/2] emit\ndone\nerror[E0203]: bad model\n  emit: T s\n");
  EXPECT_EQ(say_everything(kPlain, Verbosity::kQuiet),
            "warning: odd model\n   = help: look again\nerror[E0203]: bad model\n");
}

TEST(Terminal, AWarningIsSaidOnceAnErrorEachTime) {
  std::ostringstream stream;
  Terminal terminal(stream, kPlain, Verbosity::kNormal);
  for (int i = 0; i < 3; ++i) terminal.diagnostic(warning());
  for (int i = 0; i < 2; ++i) terminal.diagnostic(error());
  Diagnostic other = warning();
  other.location = "elsewhere";
  terminal.diagnostic(other);
  EXPECT_EQ(stream.str(),
            "warning: odd model\n   = help: look again\nerror[E0203]: bad model\nerror[E0203]: bad model\n"
            "warning: odd model\n  --> elsewhere\n   = help: look again\n");
  EXPECT_EQ(terminal.diagnostics().size(), 4u);
}

TEST(Terminal, LongListsAreCutUnlessVerbose) {
  Diagnostic long_list = error();
  for (int i = 0; i < 9; ++i) long_list.details.push_back(std::to_string(i));
  const auto said = [&](Verbosity verbosity) {
    std::ostringstream stream;
    Terminal(stream, kPlain, verbosity).diagnostic(long_list);
    return stream.str();
  };
  EXPECT_EQ(said(Verbosity::kNormal),
            "error[E0203]: bad model\n   |  0\n   |  1\n   |  2\n   |  3\n   |  4\n   |  and 4 more; -v "
            "lists all\n");
  EXPECT_NE(said(Verbosity::kVerbose).find("   |  8\n"), std::string::npos);
  long_list.details.pop_back();
  EXPECT_EQ(said(Verbosity::kNormal), said(Verbosity::kVerbose));
}

TEST(Terminal, ALiveLineIsReplacedAndErased) {
  EXPECT_EQ(say_everything(kLive, Verbosity::kNormal),
            "\r\x1B[K[1/2] fold  12 -> 3 nodes"
            "\r\x1B[K\x1B[1;35mwarning\x1B[0m: odd model\n   = help: look again\n"
            "\r\x1B[K[2/2] emit"
            "\r\x1B[K"
            "done\n"
            "\x1B[1;31merror[E0203]\x1B[0m: bad model\n");
}

TEST(Terminal, TheLiveLineGoesWhenTheTerminalGoes) {
  std::ostringstream stream;
  { Terminal(stream, kLive, Verbosity::kNormal).stage(1, 1, "emit"); }
  EXPECT_EQ(stream.str(), "\r\x1B[K[1/1] emit\r\x1B[K");
}

TEST(Terminal, LiveLinesStayBelowTheWidth) {
  std::ostringstream stream;
  Terminal terminal(stream, kLive, Verbosity::kNormal);
  terminal.stage(1, 9, "fuse", std::string(100, 'x') + "end");
  const std::string shown = stream.str().substr(4);
  EXPECT_EQ(shown.size(), 29u);
  EXPECT_EQ(shown.substr(0, 13), "[1/9] fuse  x");
  EXPECT_EQ(shown.substr(13), "...xxxxxxxxxxend");
}

TEST(Terminal, NamesCannotSendControlSequences) {
  std::ostringstream stream;
  Terminal terminal(stream, kPlain, Verbosity::kVerbose);
  terminal.stage(1, 1, "a\x1B[2Jb\rc\nd");
  terminal.note("x\x1B]0;title\x07");
  EXPECT_EQ(stream.str(), "[1/1] a\\x1b[2Jb\\x0dc d\nx\\x1b]0;title\\x07\n");
}

TEST(Terminal, ColorModes) {
  EXPECT_EQ(parse_color_mode("auto"), ColorMode::kAuto);
  EXPECT_EQ(parse_color_mode("always"), ColorMode::kAlways);
  EXPECT_EQ(parse_color_mode("never"), ColorMode::kNever);
  EXPECT_EQ(parse_color_mode("Always"), std::nullopt);
  EXPECT_EQ(parse_color_mode(""), std::nullopt);
}

/// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    if (old != nullptr) old_ = old;
    ::setenv(name, value, 1);
  }
  ~Environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Terminal, ExaminesARealTerminal) {
  const Environment term("TERM", "xterm");
  const Environment no_color("NO_COLOR", "");
  int leader = -1;
  int terminal = -1;
  struct winsize size = {24, 133, 0, 0};
  ASSERT_EQ(::openpty(&leader, &terminal, nullptr, nullptr, &size), 0);
  TerminalFacts facts = examine_terminal(terminal, ColorMode::kAuto);
  EXPECT_TRUE(facts.is_terminal);
  EXPECT_EQ(facts.width, 133);
  EXPECT_TRUE(facts.use_color);
  EXPECT_FALSE(examine_terminal(terminal, ColorMode::kNever).use_color);
  {
    const Environment set("NO_COLOR", "1");
    EXPECT_FALSE(examine_terminal(terminal, ColorMode::kAuto).use_color);
    EXPECT_TRUE(examine_terminal(terminal, ColorMode::kAlways).use_color);
  }
  {
    const Environment dumb("TERM", "dumb");
    EXPECT_FALSE(examine_terminal(terminal, ColorMode::kAuto).is_terminal);
    EXPECT_FALSE(examine_terminal(terminal, ColorMode::kAuto).use_color);
  }
  ::close(leader);
  ::close(terminal);
}

TEST(Terminal, ExaminesAFile) {
  const Environment columns("COLUMNS", "100");
  const int file = ::open("/dev/null", O_WRONLY);
  const TerminalFacts facts = examine_terminal(file, ColorMode::kAuto);
  EXPECT_FALSE(facts.is_terminal);
  EXPECT_FALSE(facts.use_color);
  EXPECT_EQ(facts.width, 100);
  EXPECT_TRUE(examine_terminal(file, ColorMode::kAlways).use_color);
  ::close(file);
}

TEST(Elide, KeepsBothEnds) {
  EXPECT_EQ(elide("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(elide("abcdefgh", 7), "ab...gh");
  EXPECT_EQ(elide("abcdefgh", 6), "a...gh");
  EXPECT_EQ(elide("abcdefgh", 3), "...");
  EXPECT_EQ(elide("abcdefgh", 1), ".");
  EXPECT_EQ(elide("abcdefgh", -1), "");
}

}  // namespace
}  // namespace gcompile
