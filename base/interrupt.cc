#include "base/interrupt.h"

namespace gcompile {
namespace {

void (*interrupt_hook)() = nullptr;

}  // namespace

void poll_interrupt() {
  if (interrupt_hook) interrupt_hook();
}

void set_interrupt_hook(void (*hook)()) { interrupt_hook = hook; }

}  // namespace gcompile
