/* A white square is named, and some frames of a tone in noise are cleaned. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "models.h"

#define FRAMES 4

static float image[SHAPES_INPUT_IMAGE_ELEMENTS];
static float frame[DENOISER_INPUT_FRAME_ELEMENTS], clean[DENOISER_OUTPUT_CLEAN_ELEMENTS];

static void draw_square(void) {
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 9; y < 23; ++y) {
      for (int x = 9; x < 23; ++x) image[(channel * 32 + y) * 32 + x] = 1.0f;
    }
  }
}

static void record(int number) {
  static uint32_t noise = 1;
  for (int i = 0; i < DENOISER_INPUT_FRAME_ELEMENTS; ++i) {
    noise = noise * 1664525u + 1013904223u;
    const float tone = sinf(0.15f * (float)(number * DENOISER_INPUT_FRAME_ELEMENTS + i));
    frame[i] = 0.5f * tone + 0.2f * ((float)(noise >> 8) / 16777216.0f - 0.5f);
  }
}

static int failed(const char* what, const char* why) {
  printf("%s: %s\n", what, why);
  return 1;
}

int main(void) {
  float probabilities[SHAPES_OUTPUT_PROBABILITIES_ELEMENTS];
  const denoiser_inputs inputs = {.frame = frame};
  const denoiser_outputs outputs = {.clean = clean};
  const char* wrong = models_start();
  if (wrong != NULL) return failed("start", wrong);

  draw_square();
  wrong = classify(image, probabilities);
  if (wrong != NULL) return failed("classify", wrong);
  printf("shape");
  for (int i = 0; i < SHAPES_OUTPUT_PROBABILITIES_ELEMENTS; ++i) printf(" %.6f", (double)probabilities[i]);
  printf("\n");

  for (int number = 0; number < FRAMES; ++number) {
    record(number);
    wrong = denoise(&inputs, &outputs);
    if (wrong != NULL) return failed("denoise", wrong);
    printf("frame");
    for (int i = 0; i < DENOISER_OUTPUT_CLEAN_ELEMENTS; i += 16) printf(" %.6f", (double)clean[i]);
    printf("\n");
  }
  return 0;
}
