#include "driver/machine/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "base/diagnostics.h"
#include "base/interrupt.h"

namespace gcompile {
namespace {

volatile std::sig_atomic_t signal_has_come = 0;

void note_signal(int) { signal_has_come = 1; }

/// Models and their data are mapped: a page behind the new end of a file that somebody cut off cannot be
/// read, and there is nothing to return to.
void report_lost_page(int) {
  constexpr char kText[] = "error: a file became shorter while it was read\n";
  const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(written >= 0 ? static_cast<int>(ExitCode::kInputOutput) : static_cast<int>(ExitCode::kInternal));
}

}  // namespace

void catch_interrupts() {
  set_interrupt_hook(throw_if_interrupted);
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  struct sigaction lost_page = action;
  lost_page.sa_handler = report_lost_page;
  sigaction(SIGBUS, &lost_page, nullptr);
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
  if (interrupted()) throw CompileError(ExitCode::kInterrupted, "interrupted");
}

}  // namespace gcompile
