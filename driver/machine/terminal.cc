#include "driver/machine/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gcompile {
namespace {

// ECMA-48 control sequences.
constexpr std::string_view kEraseLine = "\r\x1B[K";
constexpr std::string_view kBoldRed = "\x1B[1;31m";
constexpr std::string_view kBoldMagenta = "\x1B[1;35m";
constexpr std::string_view kReset = "\x1B[0m";

constexpr int kDefaultWidth = 80;
constexpr int kMinWidth = 20;

/// A list of more is cut to a few.
constexpr std::size_t kMostDetails = 8;
constexpr std::size_t kFewDetails = 5;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int terminal_width(int descriptor) {
  struct winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<int>(size.ws_col, kMinWidth);
  const int columns = std::atoi(std::string(environment("COLUMNS")).c_str());
  return columns > 0 ? std::max(columns, kMinWidth) : kDefaultWidth;
}

std::string without_control_characters(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace

std::optional<ColorMode> parse_color_mode(std::string_view text) {
  if (text == "auto") return ColorMode::kAuto;
  if (text == "always") return ColorMode::kAlways;
  if (text == "never") return ColorMode::kNever;
  return std::nullopt;
}

TerminalFacts examine_terminal(int descriptor, ColorMode mode) {
  TerminalFacts facts;
  facts.is_terminal = ::isatty(descriptor) == 1 && environment("TERM") != "dumb";
  facts.width = terminal_width(descriptor);
  const bool automatic = facts.is_terminal && environment("NO_COLOR").empty();
  facts.use_color = mode == ColorMode::kAlways || (mode == ColorMode::kAuto && automatic);
  return facts;
}

Terminal::Terminal(std::ostream& stream, TerminalFacts facts, Verbosity verbosity)
    : stream_(stream), facts_(facts), verbosity_(verbosity) {}

Terminal::~Terminal() { finish(); }

void Terminal::stage(int number, int count, std::string_view name, std::string_view detail) {
  end_stage();
  if (verbosity_ == Verbosity::kQuiet) return;
  stage_ = name;
  stage_began_ = std::chrono::steady_clock::now();
  std::string text = fmt::format("[{}/{}] {}", number, count, name);
  if (!detail.empty()) text += fmt::format("  {}", detail);
  text = without_control_characters(text);
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (!facts_.is_terminal || verbosity_ == Verbosity::kVerbose) return line(text);
  // The last column stays free: some terminals wrap as soon as it is filled.
  stream_ << kEraseLine << elide(text, facts_.width - 1) << std::flush;
  live_ = true;
}

void Terminal::note(std::string_view text) {
  if (verbosity_ != Verbosity::kQuiet) line(without_control_characters(text));
}

void Terminal::detail(std::string_view text) {
  if (verbosity_ == Verbosity::kVerbose) line(without_control_characters(text));
}

void Terminal::diagnostic(const Diagnostic& diagnostic) {
  if (diagnostic.severity == Severity::kWarning && !warnings_.insert(to_string(diagnostic)).second) return;
  diagnostics_.push_back(diagnostic);
  Diagnostic shown = diagnostic;
  if (verbosity_ != Verbosity::kVerbose && shown.details.size() > kMostDetails) {
    const std::size_t rest = shown.details.size() - kFewDetails;
    shown.details.resize(kFewDetails);
    shown.details.push_back(fmt::format("and {} more; -v lists all", rest));
  }
  std::string text = without_control_characters(to_string(shown));
  if (facts_.use_color) {
    const std::string_view color = diagnostic.severity == Severity::kError ? kBoldRed : kBoldMagenta;
    const std::size_t colon = text.find(':');
    text = fmt::format("{}{}{}{}", color, text.substr(0, colon), kReset, text.substr(colon));
  }
  line(text);
}

void Terminal::finish() {
  end_stage();
  erase();
}

void Terminal::end_stage() {
  if (!stage_.empty() && verbosity_ == Verbosity::kVerbose) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - stage_began_;
    line(fmt::format("  {}: {:.3f} s", stage_, seconds.count()));
  }
  stage_.clear();
}

void Terminal::erase() {
  if (live_) stream_ << kEraseLine << std::flush;
  live_ = false;
}

void Terminal::line(std::string_view text) {
  erase();
  stream_ << text << '\n' << std::flush;
}

std::string elide(std::string_view text, int width) {
  const auto limit = static_cast<std::size_t>(std::max(width, 0));
  if (text.size() <= limit) return std::string(text);
  if (limit <= 3) return std::string("...").substr(0, limit);
  const std::size_t head = (limit - 3) / 2;
  const std::size_t tail = limit - 3 - head;
  return fmt::format("{}...{}", text.substr(0, head), text.substr(text.size() - tail));
}

}  // namespace gcompile
