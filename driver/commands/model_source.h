#pragma once
// The model that the command line names, found before any work.

#include <optional>

#include "driver/command_line/options.h"
#include "driver/machine/local_files.h"

namespace gcompile {

/// Standard input lies in a file for as long as this lives.
class ModelSource {
 public:
  /// Throws CompileError: kInputOutput where there is no such file, with the one that may be meant; kModel
  /// for a folder, with what it seems to be; what `without_patterns` throws.
  explicit ModelSource(const Options& options);
  /// The options as given, with the path of the model in place of "-", and each pair of --state named.
  const Options& options() const { return options_; }

 private:
  void read_standard_input();
  void name_states();

  Options options_;
  std::optional<TemporaryFolder> folder_;
};

}  // namespace gcompile
