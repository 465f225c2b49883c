#pragma once
// Work that can be long asks now and then whether the user still wants it. Whoever knows how (the driver,
// from signals) installs a function that throws when the answer is no.

namespace gcompile {

/// Called where work may last: per node, per candidate, per few thousand elements.
/// Throws what the hook throws.
void poll_interrupt();

/// nullptr: nobody interrupts. Not for several threads.
void set_interrupt_hook(void (*hook)());

}  // namespace gcompile
