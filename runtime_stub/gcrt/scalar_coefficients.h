// Written by scripts/derive_polynomials.py; do not edit. Lowest order first.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// exp(r) = 1 + r + r^2 * P(r), |r| <= ln(2) / 2; relative error 1.4e-8.
struct ExpTail {
  static constexpr int kCount = 5;
  static constexpr float kValues[] = {0.49999997f, 0.166665375f, 0.0416677408f, 0.00836731587f,
                                      0.00138379564f};
};

// log(1 + f) = f - f^2 / 2 + f^3 * P(f), sqrt(1/2) <= 1 + f <= sqrt(2); relative error 9.9e-9.
struct LogTail {
  static constexpr int kCount = 9;
  static constexpr float kValues[] = {0.333333135f,  -0.250001669f, 0.200022236f,
                                      -0.166593671f, 0.142095566f,  -0.125421435f,
                                      0.120868832f,  -0.109716415f, 0.0549600646f};
};

// erf(x) = x + x * P(x^2), |x| <= 0.925; relative error 9.7e-10.
struct ErfSmall {
  static constexpr int kCount = 7;
  static constexpr float kValues[] = {0.128379166f,   -0.376126289f,    0.112836242f,   -0.0268555861f,
                                      0.00519193662f, -0.000804362877f, 7.96840322e-05f};
};

// log(1 - erf(x)) = x * P(x), 0.925 <= x <= 3.93; relative error 2.7e-10.
struct ErfLarge {
  static constexpr int kCount = 8;
  static constexpr float kValues[] = {-1.12855434f,   -0.635613322f,   -0.105285771f,   0.0226983428f,
                                      -0.0029450478f, 5.49496435e-05f, 4.45378246e-05f, -4.85420469e-06f};
};

// sin(r) = r + r^3 * P(r^2), |r| <= pi / 4; relative error 3.8e-9.
struct SinTail {
  static constexpr int kCount = 3;
  static constexpr float kValues[] = {-0.166666552f, 0.00833218824f, -0.000195180066f};
};

// cos(r) = 1 - r^2 / 2 + r^4 * P(r^2), |r| <= pi / 4; relative error 1.2e-10.
struct CosTail {
  static constexpr int kCount = 3;
  static constexpr float kValues[] = {0.0416666456f, -0.00138873083f, 2.44321018e-05f};
};

// ln(2) as a sum; the product of the first part and an exponent is exact.
struct Ln2Parts {
  static constexpr int kCount = 2;
  static constexpr float kValues[] = {0.693145752f, 1.42860677e-06f};
};

// pi / 2 as a sum; products of the first three parts and integers below 2^13 are exact.
struct HalfPiParts {
  static constexpr int kCount = 4;
  static constexpr float kValues[] = {1.5703125f, 0.000483751297f, 7.54953362e-08f, 2.56334407e-12f};
};

// One of them, as a constant that device code may use: it may not refer to the arrays.
template <class Table, int I>
constexpr float kCoefficient = Table::kValues[I];

}  // namespace GCRT_NAMESPACE
