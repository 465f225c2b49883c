/* A plugin of QEMU (its interface 1): how often each instruction is executed between two addresses. Executing `begin` starts
 * the counts anew, executing `end` writes them to the file `out` as lines "address count". The few declarations that are
 * needed stand here, because Debian installs no header of the interface. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*callback)(plugin_id, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, int operation, void *counter,
                                                uint64_t added);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, void (*callback)(unsigned, void *), int flags,
                                            void *argument);

#define SHOWN __attribute__((visibility("default")))
SHOWN int qemu_plugin_version = 1;
SHOWN int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments);

enum { kSlots = 1 << 20 }; /* of half-words from address 0 on: instructions begin at even addresses */

static uint64_t counts[kSlots], beginning, ending;
static const char *out;

static void begin_to_count(unsigned processor, void *unused) {
  (void)processor;
  (void)unused;
  memset(counts, 0, sizeof(counts));
}

static void write_counts(unsigned processor, void *unused) {
  (void)processor;
  (void)unused;
  FILE *file = fopen(out, "w");
  if (file == NULL) abort();
  for (uint64_t i = 0; i < kSlots; ++i) {
    if (counts[i] != 0) fprintf(file, "%" PRIx64 " %" PRIu64 "\n", 2 * i, counts[i]);
  }
  fclose(file);
}

static void translate(plugin_id id, struct qemu_plugin_tb *block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn *const instruction = qemu_plugin_tb_get_insn(block, i);
    const uint64_t address = qemu_plugin_insn_vaddr(instruction);
    if (address == beginning) qemu_plugin_register_vcpu_insn_exec_cb(instruction, begin_to_count, 0, NULL);
    if (address == ending) qemu_plugin_register_vcpu_insn_exec_cb(instruction, write_counts, 0, NULL);
    if (address / 2 < kSlots) qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, &counts[address / 2], 1);
  }
}

int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    if (strncmp(arguments[i], "out=", 4) == 0) out = arguments[i] + 4;
    if (strncmp(arguments[i], "begin=", 6) == 0) beginning = strtoull(arguments[i] + 6, NULL, 0);
    if (strncmp(arguments[i], "end=", 4) == 0) ending = strtoull(arguments[i] + 4, NULL, 0);
  }
  if (out == NULL) return 1;
  out = strdup(out); /* the arguments do not outlive this call */
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  return 0;
}
