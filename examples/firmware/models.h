/* The two models of this firmware behind one small interface. Statuses are 0 where all went well. */
#ifndef MODELS_H
#define MODELS_H

#include "denoiser/denoiser.h"
#include "shapes/shapes.h"

const char* models_start(void); /* what is wrong; NULL: nothing */
const char* classify(const float image[SHAPES_INPUT_IMAGE_ELEMENTS],
                     float probabilities[SHAPES_OUTPUT_PROBABILITIES_ELEMENTS]);
/* One frame; the state stays. */
const char* denoise(const denoiser_inputs* inputs, const denoiser_outputs* outputs);

#endif
