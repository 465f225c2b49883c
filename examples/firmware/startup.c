/* From reset to main: memory as C expects it, and the floating-point unit. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern unsigned char data_begin[], data_end[], data_in_flash[], bss_begin[], bss_end[], stack_top[];
extern void initialise_monitor_handles(void); /* of newlib: semihosting, through which printf reaches QEMU */
extern int main(void);

void reset(void);

static void stop(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)reset, (uintptr_t)stop, (uintptr_t)stop,
    (uintptr_t)stop,      (uintptr_t)stop,  (uintptr_t)stop};

void reset(void) {
  /* CPACR, ARM DDI 0403, B3.2.20 */
  volatile uint32_t* const coprocessor_access = (volatile uint32_t*)0xE000ED88u;
  *coprocessor_access |= 0xFu << 20;
  __asm volatile("dsb\n\tisb");
  memcpy(data_begin, data_in_flash, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  initialise_monitor_handles();
  _Exit(main());
}

/* newlib's exit wants them of every program. */
void _init(void) {}
void _fini(void) {}
