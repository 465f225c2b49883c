/* Continues a story: reads the words of the command line, writes those that follow, up to the next full stop. One project
 * takes the prompt at once and then word by word; what it has read stays in the state. All memory is static. C11. */
#include <stdio.h>
#include <string.h>

#include "storyteller/storyteller.h"
#include "words.inc"

enum { kWordCount = sizeof(kWords) / sizeof(kWords[0]), kContext = 64 };

static _Alignas(STORYTELLER_ALIGN) unsigned char arena[STORYTELLER_ARENA_BYTES];
static _Alignas(STORYTELLER_ALIGN) unsigned char state[STORYTELLER_STATE_BYTES];
static _Alignas(STORYTELLER_ALIGN) unsigned char instance[STORYTELLER_INSTANCE_BYTES];
static float logits[kContext][kWordCount];

static int number_of(const char *word) {
  for (int i = 0; i < kWordCount; ++i) {
    if (strcmp(word, kWords[i]) == 0) return i;
  }
  return -1;
}

static int likeliest(const float *row) {
  int best = 0;
  for (int i = 1; i < kWordCount; ++i) {
    if (row[i] > row[best]) best = i;
  }
  return best;
}

int main(int argc, char **argv) {
  const storyteller_memory memory = {.arena = arena, .state = state, .instance = instance};
  const storyteller_outputs outputs = {.logits = logits[0]};
  int64_t ids[kContext];
  storyteller_sizes sizes = {.rows = argc - 1, .past = 0};
  if (argc < 2 || argc > kContext) {
    fprintf(stderr, "usage: storyteller WORD...   1 to %d words, each of:", kContext - 1);
    for (int i = 0; i < kWordCount; ++i) fprintf(stderr, " %s", kWords[i]);
    fprintf(stderr, "\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    ids[i - 1] = number_of(argv[i]);
    if (ids[i - 1] < 0) {
      fprintf(stderr, "'%s' is no word of the stories\n", argv[i]);
      return 2;
    }
  }

  storyteller_status status = storyteller_init(&memory);
  const char *word = "";
  while (status == STORYTELLER_OK && strcmp(word, ".") != 0 && sizes.past + sizes.rows <= kContext) {
    const storyteller_inputs inputs = {.ids = ids};
    status = storyteller_run(&memory, &sizes, &inputs, &outputs);
    if (status != STORYTELLER_OK) break;
    ids[0] = likeliest(logits[sizes.rows - 1]);
    word = kWords[ids[0]];
    printf("%s\n", word);
    sizes.past += sizes.rows; /* the rows that the state holds now */
    sizes.rows = 1;
  }
  if (status != STORYTELLER_OK) {
    fprintf(stderr, "%s\n", storyteller_status_text(status));
    return 1;
  }
  return 0;
}
