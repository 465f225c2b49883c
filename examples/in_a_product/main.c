/* A model in a product: all memory is the caller's, errors are returned, nothing else happens. C11. */
#include <stdio.h>

#include "shapes/shapes.h"

static _Alignas(SHAPES_ALIGN) unsigned char arena[SHAPES_ARENA_BYTES];
static _Alignas(SHAPES_ALIGN) unsigned char instance[SHAPES_INSTANCE_BYTES];
static float image[SHAPES_INPUT_IMAGE_ELEMENTS];

int main(void) {
  static const char *const kNames[] = {"circle", "square", "triangle", "cross", "star"};
  float probabilities[SHAPES_OUTPUT_PROBABILITIES_ELEMENTS];
  const shapes_memory memory = {.arena = arena, .instance = instance};
  const shapes_inputs inputs = {.image = image};
  const shapes_outputs outputs = {.probabilities = probabilities};

  /* A white square on black. */
  for (int c = 0; c < 3; ++c) {
    for (int y = 9; y < 23; ++y) {
      for (int x = 9; x < 23; ++x) image[(c * 32 + y) * 32 + x] = 1.0f;
    }
  }
  shapes_status status = shapes_init(&memory);
  if (status == SHAPES_OK) status = shapes_run(&memory, &inputs, &outputs);
  if (status != SHAPES_OK) {
    fprintf(stderr, "%s\n", shapes_status_text(status));
    return 1;
  }
  for (int i = 0; i < SHAPES_OUTPUT_PROBABILITIES_ELEMENTS; ++i) printf("%s %.3f\n", kNames[i], (double)probabilities[i]);
  return 0;
}
