// Written by scripts/derive_polynomials.py; do not edit. Lowest order first.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// exp(r) = 1 + r + r^2 * P(r), |r| <= ln(2) / 2; error of the polynomial 1.4e-8 relative to the function.
constexpr float kExpTail[] = {0.49999997f, 0.166665375f, 0.0416677408f, 0.00836731866f, 0.00138378644f};

// log(1 + f) = f - f^2 / 2 + f^3 * P(f), sqrt(1/2) <= 1 + f <= sqrt(2); error of the polynomial 1.7e-9
// relative to the function.
constexpr float kLogTail[] = {0.333333135f,  -0.250001669f, 0.200022236f,  -0.166593581f, 0.142095596f,
                              -0.125500873f, 0.121093139f,  -0.109122805f, 0.0533119403f};

// erf(x) = x + x * P(x^2), |x| <= 0.925; error of the polynomial 9.7e-10 relative to the function.
constexpr float kErfSmall[] = {0.128379166f,   -0.376126289f,    0.112836242f,   -0.0268555861f,
                               0.00519193662f, -0.000804362935f, 7.96841123e-05f};

// log(1 - erf(x)) = x * P(x), 0.925 <= x <= 3.93; error of the polynomial 2.5e-10 relative to the function.
constexpr float kErfLarge[] = {-1.12855434f,    -0.635613322f,   -0.105285764f,   0.0226983204f,
                               -0.00294502592f, 5.49446377e-05f, 4.45339138e-05f, -4.85257897e-06f};

// sin(r) = r + r^3 * P(r^2), |r| <= pi / 4; error of the polynomial 3.8e-9 relative to the function.
constexpr float kSinTail[] = {-0.166666552f, 0.00833218824f, -0.00019518008f};

// cos(r) = 1 - r^2 / 2 + r^4 * P(r^2), |r| <= pi / 4; error of the polynomial 1.2e-10 relative to the
// function.
constexpr float kCosTail[] = {0.0416666456f, -0.00138873083f, 2.44321018e-05f};

// ln(2) as a sum; the product of the first part and an exponent is exact.
constexpr float kLn2Parts[] = {0.693145752f, 1.42860677e-06f};

// pi / 2 as a sum; products of the first three parts and integers below 2^13 are exact.
constexpr float kHalfPiParts[] = {1.5703125f, 0.000483751297f, 7.54953362e-08f, 2.56334407e-12f};

}  // namespace GCRT_NAMESPACE
