#pragma once
// Errors and warnings about the user's model, collected per stage and shown together;
// and checks on ourselves.

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

/// Process exit codes (README, "Exit codes").
enum class ExitCode : int {
  kOk = 0,
  kModel = 1,
  kUsage = 2,
  kMismatch = 3,
  kInputOutput = 4,
  kInternal = 70,
  kInterrupted = 130,
};

enum class Severity { kWarning, kError };

/// One finding. `message` starts in lower case, one sentence, no full stop. `location` names graph and node.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string code;  // "E0203"; docs/errors.md lists them
  std::string message;
  std::string location;
  std::vector<std::string> details;  // operand shapes, producers
  std::string help;
};

/// Multi-line text as shown to the user, without colour.
std::string to_string(const Diagnostic& diagnostic);

/// The one exception of the compiler; unwinds to driver/main.cc.
class CompileError : public std::exception {
 public:
  CompileError(ExitCode code, std::string message, std::string help = {});
  CompileError(ExitCode code, std::vector<Diagnostic> diagnostics);
  const char* what() const noexcept override { return text_.c_str(); }
  ExitCode exit_code() const { return code_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ExitCode code_;
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

/// Collects findings of a stage; throw_if_errors() ends the stage with all of them.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic);
  bool has_errors() const;
  const std::vector<Diagnostic>& all() const { return all_; }
  void throw_if_errors() const;

 private:
  std::vector<Diagnostic> all_;
};

/// Printable ASCII of a name from a model: others become \xNN, at most `limit` characters.
std::string printable(std::string_view name, std::size_t limit = 200);

[[noreturn]] void internal_error(const char* file, int line, const char* condition);

/// Law of the compiler itself; a failure is a bug of ours: "internal compiler error", exit code 70.
#define GC_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::gcompile::internal_error(__FILE__, __LINE__, #condition))

}  // namespace gcompile
