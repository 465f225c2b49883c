/* A camera that names what it sees. Frames come as binary PPM images of any size, one behind the other, on standard
 * input; the largest square in the middle of each is made 32 x 32 and classified. C11; nothing is allocated. */
#include <stdint.h>
#include <stdio.h>

#include "shapes/shapes.h"

enum { kSide = 32, kChannels = 3, kLargestWidth = 4096, kClasses = SHAPES_OUTPUT_PROBABILITIES_ELEMENTS };

static const char *const kNames[kClasses] = {"circle", "square", "triangle", "cross", "star"};
static const float kSure = 0.6f;     /* below it nothing is named */
static const float kMemory = 0.5f;   /* of what earlier frames showed, frame by frame */

static _Alignas(SHAPES_ALIGN) unsigned char arena[SHAPES_ARENA_BYTES];
static _Alignas(SHAPES_ALIGN) unsigned char instance[SHAPES_INSTANCE_BYTES];
static float image[SHAPES_INPUT_IMAGE_ELEMENTS];
static float probabilities[kClasses];
static float seen[kClasses]; /* probabilities, smoothed over frames */

static uint8_t row[kLargestWidth * kChannels];
static uint32_t sums[kSide * kSide * kChannels];
static uint32_t counts[kSide * kSide];

/* A number of the header, behind blanks and comments; -1: there is none. */
static int header_number(FILE *file) {
  int c = getc(file);
  while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '#') {
    if (c == '#') {
      while (c != '\n' && c != EOF) c = getc(file);
    }
    c = getc(file);
  }
  int number = c >= '0' && c <= '9' ? 0 : -1;
  while (c >= '0' && c <= '9' && number < 100000) {
    number = 10 * number + (c - '0');
    c = getc(file);
  }
  return number;
}

/* Reads a frame row by row into `image`: the mean of the pixels that fall on each of the 32 x 32. 1: there is one, 0: the
 * input has ended, -1: what is there is no frame. */
static int read_frame(FILE *file) {
  const int first = getc(file);
  if (first == EOF) return 0;
  if (first != 'P' || getc(file) != '6') return -1;
  const int width = header_number(file), height = header_number(file), most = header_number(file);
  if (width < kSide || width > kLargestWidth || height < kSide || most != 255) return -1;
  const int side = width < height ? width : height;
  const int left = (width - side) / 2, top = (height - side) / 2;
  for (int i = 0; i < kSide * kSide; ++i) {
    counts[i] = 0;
    for (int c = 0; c < kChannels; ++c) sums[i * kChannels + c] = 0;
  }
  for (int y = 0; y < height; ++y) {
    if (fread(row, kChannels, (size_t)width, file) != (size_t)width) return -1;
    if (y < top || y >= top + side) continue;
    for (int x = 0; x < side; ++x) {
      const int place = (int)((int64_t)(y - top) * kSide / side) * kSide + (int)((int64_t)x * kSide / side);
      ++counts[place];
      for (int c = 0; c < kChannels; ++c) sums[place * kChannels + c] += row[(left + x) * kChannels + c];
    }
  }
  for (int i = 0; i < kSide * kSide; ++i) {
    for (int c = 0; c < kChannels; ++c) {
      image[c * kSide * kSide + i] = (float)sums[i * kChannels + c] / (255.0f * (float)counts[i]);
    }
  }
  return 1;
}

int main(void) {
  const shapes_memory memory = {.arena = arena, .instance = instance};
  const shapes_inputs inputs = {.image = image};
  const shapes_outputs outputs = {.probabilities = probabilities};
  shapes_status status = shapes_init(&memory);
  int frame = 0, found;
  while (status == SHAPES_OK && (found = read_frame(stdin)) != 0) {
    if (found < 0) {
      fprintf(stderr, "frame %d is no binary PPM image of at least %d x %d with 255 steps\n", frame, kSide, kSide);
      return 1;
    }
    status = shapes_run(&memory, &inputs, &outputs);
    int best = 0;
    for (int i = 0; i < kClasses; ++i) {
      seen[i] = frame == 0 ? probabilities[i] : kMemory * seen[i] + (1.0f - kMemory) * probabilities[i];
      if (seen[i] > seen[best]) best = i;
    }
    printf("%d %s %.2f\n", frame++, seen[best] >= kSure ? kNames[best] : "-", (double)seen[best]);
    fflush(stdout);
  }
  if (status != SHAPES_OK) {
    fprintf(stderr, "%s: %s\n", shapes_status_string(status), shapes_status_text(status));
    return 1;
  }
  return 0;
}
