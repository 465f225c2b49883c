/* All memory of both models: they run one after the other, so that they share an arena. */
#include "models.h"

#include <stddef.h>

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

#define ALIGN LARGER(SHAPES_ALIGN, DENOISER_ALIGN)

static _Alignas(ALIGN) unsigned char arena[LARGER(SHAPES_ARENA_BYTES, DENOISER_ARENA_BYTES)];
static _Alignas(DENOISER_ALIGN) unsigned char state[DENOISER_STATE_BYTES];
static _Alignas(SHAPES_ALIGN) unsigned char of_shapes[SHAPES_INSTANCE_BYTES];
static _Alignas(DENOISER_ALIGN) unsigned char of_denoiser[DENOISER_INSTANCE_BYTES];

static const shapes_memory shapes = {.arena = arena, .instance = of_shapes};
static const denoiser_memory denoiser = {.arena = arena, .state = state, .instance = of_denoiser};

static const char* text_of_shapes(shapes_status status) {
  return status == SHAPES_OK ? NULL : shapes_status_text(status);
}
static const char* text_of_denoiser(denoiser_status status) {
  return status == DENOISER_OK ? NULL : denoiser_status_text(status);
}

const char* models_start(void) {
  const char* const wrong = text_of_shapes(shapes_init(&shapes));
  return wrong != NULL ? wrong : text_of_denoiser(denoiser_init(&denoiser));
}

const char* classify(const float image[SHAPES_INPUT_IMAGE_ELEMENTS],
                     float probabilities[SHAPES_OUTPUT_PROBABILITIES_ELEMENTS]) {
  const shapes_inputs inputs = {.image = image};
  const shapes_outputs outputs = {.probabilities = probabilities};
  return text_of_shapes(shapes_run(&shapes, &inputs, &outputs));
}

const char* denoise(const denoiser_inputs* inputs, const denoiser_outputs* outputs) {
  return text_of_denoiser(denoiser_run(&denoiser, inputs, outputs));
}
