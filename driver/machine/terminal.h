#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"

namespace gcompile {

enum class ColorMode { kAuto, kAlways, kNever };

/// "auto", "always" or "never".
std::optional<ColorMode> parse_color_mode(std::string_view text);

/// Quiet: warnings and errors. Normal: also stages and notes. Verbose: also details, whole lists, and each
/// stage keeps its line, with the seconds that it took on the next one.
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// What the stream is connected to.
struct TerminalFacts {
  bool is_terminal = false;  ///< understands carriage return and "erase line"
  int width = 80;            ///< columns; a live line stays below it
  bool use_color = false;
};

/// The facts about a file descriptor: a terminal unless TERM is "dumb"; width from the window size, else
/// COLUMNS, else 80. In kAuto colour is for terminals,
/// unless NO_COLOR is set and not empty (https://no-color.org).
TerminalFacts examine_terminal(int descriptor, ColorMode mode);

/// All that the tool says to people; results for programs go to standard output and not through here. On a
/// terminal the stage at hand is one live line, that the next one replaces; elsewhere every stage is a plain
/// line. Control characters in texts are shown as \xNN, for names come from the model.
class Terminal {
 public:
  Terminal(std::ostream& stream, TerminalFacts facts, Verbosity verbosity);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// "[5/9] fuse_epilogue  1,204 -> 311 nodes"; elided in the middle on a terminal.
  void stage(int number, int count, std::string_view name, std::string_view detail = "");
  /// A line that stays.
  void note(std::string_view text);
  /// A line for -v.
  void detail(std::string_view text);
  /// "warning: ..." and "error: ..." with location, details and help, as ir::to_string(), the first word
  /// coloured; of many details the first few. A warning is said once.
  void diagnostic(const Diagnostic& diagnostic);
  /// Ends the last stage: erases the live line.
  void finish();
  /// All that diagnostic() was given, a warning once.
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

  Verbosity verbosity() const { return verbosity_; }

 private:
  void erase();
  void line(std::string_view text);
  void end_stage();

  std::ostream& stream_;
  const TerminalFacts facts_;
  const Verbosity verbosity_;
  bool live_ = false;
  std::string stage_;  // the one at hand; empty: none
  std::chrono::steady_clock::time_point stage_began_;
  std::vector<Diagnostic> diagnostics_;
  std::set<std::string> warnings_;  // their texts, each of which is shown once
};

/// `text` in at most `width` bytes: the middle becomes "...".
std::string elide(std::string_view text, int width);

}  // namespace gcompile
