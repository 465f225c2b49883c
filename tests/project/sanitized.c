/* Runs a library twice with small numbers, in memory that nobody has written to, and looks at every result. The project
 * has the name "model"; members of its inputs and outputs are pointers, in the order of the description. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define LOOK_AT(p, bytes) __msan_check_mem_is_initialized(p, bytes)
#endif
#endif
#ifndef LOOK_AT
#define LOOK_AT(p, bytes) ((void)(p), (void)(bytes))
#endif

enum { kThreads = 2, kMostTensors = 512 };

typedef struct part {
  void (*body)(void *argument, ptrdiff_t begin, ptrdiff_t end);
  void *argument;
  ptrdiff_t begin, end;
} part;

static void *run_part(void *of) {
  const part *p = of;
  if (p->begin < p->end) p->body(p->argument, p->begin, p->end);
  return NULL;
}

static void parallel_for(void *context, ptrdiff_t count, void (*body)(void *, ptrdiff_t, ptrdiff_t), void *argument) {
  part parts[kThreads];
  pthread_t threads[kThreads];
  int i;
  (void)context;
  for (i = 0; i < kThreads; ++i) {
    parts[i].body = body;
    parts[i].argument = argument;
    parts[i].begin = count * i / kThreads;
    parts[i].end = count * (i + 1) / kThreads;
    if (pthread_create(&threads[i], NULL, run_part, &parts[i]) != 0) abort();
  }
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

/* Not cleared. */
static void *memory_of(size_t bytes) {
  void *at = aligned_alloc(MODEL_ALIGN, (bytes / MODEL_ALIGN + 1) * MODEL_ALIGN);
  if (!at) abort();
  return at;
}

static void fill(void *at, const model_tensor *tensor) {
  size_t i, count = tensor->bytes / tensor->element_bytes;
  for (i = 0; i < count; ++i) {
    const float value = (float)((i * 2654435761u >> 16) % 255) / 255.0f - 0.5f;
    if (strcmp(tensor->element, "float32") == 0) {
      ((float *)at)[i] = value;
    } else if (strcmp(tensor->element, "float64") == 0) {
      ((double *)at)[i] = value;
    } else {
      /* One or zero as integers and truths; of 16-bit floats small numbers. */
      memset((char *)at + i * tensor->element_bytes, 0, tensor->element_bytes);
      ((char *)at)[i * tensor->element_bytes] = (char)(i % 2);
    }
  }
}

int main(void) {
  const model_description *description = model_describe();
  model_memory memory = {0};
  const model_threads threads = {NULL, kThreads, parallel_for};
  void *inputs[kMostTensors], *outputs[kMostTensors];
  int i, run;
  if (description->input_count > kMostTensors || description->output_count > kMostTensors) return 3;
  memory.arena = memory_of(MODEL_ARENA_BYTES);
  memory.state = memory_of(MODEL_STATE_BYTES);
  memory.instance = memory_of(MODEL_INSTANCE_BYTES);
  memory.threads = &threads;
  for (i = 0; i < description->input_count; ++i) {
    inputs[i] = memory_of(description->inputs[i].bytes);
    fill(inputs[i], &description->inputs[i]);
  }
  for (i = 0; i < description->output_count; ++i) outputs[i] = memory_of(description->outputs[i].bytes);
  if (model_init(&memory) != MODEL_OK) return 4;
  for (run = 0; run < 2; ++run) {
    const model_status status = model_run(&memory, (const model_inputs *)inputs, (const model_outputs *)outputs);
    if (status != MODEL_OK) {
      fprintf(stderr, "%s\n", model_status_text(status));
      return 5;
    }
    for (i = 0; i < description->output_count; ++i) LOOK_AT(outputs[i], description->outputs[i].bytes);
  }
  for (i = 0; i < description->input_count; ++i) free(inputs[i]);
  for (i = 0; i < description->output_count; ++i) free(outputs[i]);
  free(memory.arena);
  free(memory.state);
  free(memory.instance);
  puts("sanitized");
  return 0;
}
