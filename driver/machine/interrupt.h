#pragma once

namespace gcompile {

/// Lets SIGINT, SIGTERM and SIGHUP set a flag in place of ending the process at once. The stages poll it,
/// also inside their loops (base/interrupt.h). A second signal of the same kind ends it the hard way.
void catch_interrupts();

/// Makes a write beyond the limit on file sizes (ulimit -f) fail with EFBIG, an error like a full disk, in
/// place of ending the process.
void survive_file_size_limit();

/// Whether such a signal has come.
bool interrupted();

/// Throws CompileError(ExitCode::kInterrupted) if such a signal has come.
void throw_if_interrupted();

}  // namespace gcompile
