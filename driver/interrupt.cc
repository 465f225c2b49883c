#include "driver/interrupt.h"

#include <csignal>

#include "ir/diagnostics.h"

namespace gcompile {
namespace {

volatile std::sig_atomic_t signal_has_come = 0;

void note_signal(int) { signal_has_come = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction previous = {};
    // What the caller ignores stays ignored (nohup).
    if (sigaction(signal, nullptr, &previous) == 0 && previous.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

void survive_file_size_limit() {
  struct sigaction action = {};
  // A handler, for programs that we start would inherit SIG_IGN.
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGXFSZ, &action, nullptr);
}

bool interrupted() { return signal_has_come != 0; }

void throw_if_interrupted() {
  if (interrupted()) throw ir::CompileError(ir::ExitCode::kInterrupted, "interrupted");
}

}  // namespace gcompile
