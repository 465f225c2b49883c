#!/usr/bin/env python3
"""Derives the minimax polynomials and rational functions of runtime_stub/gcrt/scalar/coefficients.h.

Usage: derive_polynomials.py            print the header
       derive_polynomials.py --check    exit 1 unless the committed header equals what is derived

Method: the Remez exchange algorithm in 40 digits (mpmath) for sum c_k * x^k, minimising
max |weight(x) * (polynomial(x) - function(x))|. Coefficients are then rounded to float one by one, lowest
order first, and the others are derived again after each rounding, so that the later ones absorb it.
The weight turns the error of the polynomial into the relative error of the function it serves.
"""

import os
import struct
import sys

from mpmath import (asin, atan, cos, erf, expm1, factorial, linspace, log, log1p, lu_solve, matrix, mp, mpf, nstr, pi, sin,
                    sqrt, tan, tanh)

mp.dps = 40
HEADER = os.path.join(os.path.dirname(__file__), "..", "runtime_stub", "gcrt", "scalar", "coefficients.h")
GRID = 300


def to_float(value):
    """The nearest float, as an mpf."""
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def extrema(error, low, high, count):
    """The points of largest |error| with alternating signs, one for each run of one sign."""
    points = [low + (high - low) * (1 - cos(pi * i / GRID)) / 2 for i in range(GRID + 1)]
    values = [error(x) for x in points]
    best = []
    for x, e in zip(points, values):
        if best and (best[-1][1] > 0) == (e > 0):
            if abs(e) > abs(best[-1][1]):
                best[-1] = (x, e)
        else:
            best.append((x, e))
    while len(best) > count:
        best.pop(0 if abs(best[0][1]) < abs(best[-1][1]) else -1)
    return best


def remez(function, weight, low, high, powers, fixed):
    """Free coefficients for `powers`, given the fixed part {power: coefficient}; returns (coefficients, error)."""
    count = len(powers) + 1

    def target(x):
        return function(x) - sum(c * x**k for k, c in fixed.items())

    def error(x):
        return weight(x) * (sum(c * x**k for c, k in zip(coefficients, powers)) - target(x))

    points = [low + (high - low) * (1 - cos(pi * (2 * i + 1) / (2 * count))) / 2 for i in range(count)]
    for _ in range(30):
        rows = matrix(count, count)
        right = matrix(count, 1)
        for i, x in enumerate(points):
            for j, k in enumerate(powers):
                rows[i, j] = x**k
            rows[i, count - 1] = (-1)**i / weight(x)
            right[i] = target(x)
        solution = lu_solve(rows, right)
        coefficients = [solution[j] for j in range(len(powers))]
        level = abs(solution[count - 1])
        peaks = extrema(error, low, high, count)
        worst = max(abs(e) for _, e in peaks)
        if len(peaks) < count or worst <= level * mpf("1.001"):
            break
        points = [x for x, _ in peaks]
    return coefficients, worst


def derive(function, weight, low, high, degree):
    """Float coefficients c_0..c_degree and the largest weighted error of the rounded polynomial."""
    fixed = {}
    for k in range(degree + 1):
        coefficients, _ = remez(function, weight, low, high, list(range(k, degree + 1)), fixed)
        fixed[k] = to_float(coefficients[0])
    points = linspace(low, high, 1001)
    worst = max(abs(weight(x) * (sum(c * x**k for k, c in fixed.items()) - function(x))) for x in points)
    return [fixed[k] for k in range(degree + 1)], worst


def evaluate(coefficients, x):
    return sum(c * x**k for k, c in enumerate(coefficients))


def derive_rational(function, weight, low, high, degree):
    """Float coefficients of numerator and denominator, both of `degree`, and the error after rounding.

    The exchange is that of remez(); its equations, linear but for the error times the denominator, are solved with
    the denominator of the round before. Coefficients are scaled so that the denominator begins with 1.
    """
    count = 2 * degree + 2
    points = [low + (high - low) * (1 - cos(pi * (2 * i + 1) / (2 * count))) / 2 for i in range(count)]
    denominator = [mpf(1)] + [mpf(0)] * degree

    def error(x):
        return weight(x) * (evaluate(numerator, x) / evaluate(denominator, x) - function(x))

    for _ in range(60):
        for _ in range(4):
            rows, right = matrix(count, count), matrix(count, 1)
            for i, x in enumerate(points):
                for k in range(degree + 1):
                    rows[i, k] = x**k
                for k in range(1, degree + 1):
                    rows[i, degree + k] = -function(x) * x**k
                rows[i, count - 1] = (-1)**i / weight(x) * evaluate(denominator, x)
                right[i] = function(x)
            solution = lu_solve(rows, right)
            numerator = [solution[k] for k in range(degree + 1)]
            denominator = [mpf(1)] + [solution[degree + k] for k in range(1, degree + 1)]
        peaks = extrema(error, low, high, count)
        if len(peaks) < count or max(abs(e) for _, e in peaks) <= abs(solution[count - 1]) * mpf("1.001"):
            break
        points = [x for x, _ in peaks]
    numerator, denominator = [to_float(c) for c in numerator], [to_float(c) for c in denominator]
    return numerator, denominator, max(abs(error(x)) for x in linspace(low, high, 1001))


def series(terms):
    """sum terms(k) * x^k for small x, where the closed form cancels."""
    return lambda x: sum(terms(k) * x**k for k in range(40))


def away_from_zero(closed, near):
    return lambda x: near(x) if abs(x) < mpf("0.05") else closed(x)


def tables():
    """(name, comment, coefficients, error) of each polynomial."""
    half_ln2 = log(2) / 2 * mpf("1.003")  # the rounded multiple of ln 2 may be off by a little
    exp_tail = away_from_zero(lambda r: (expm1(r) - r) / r**2, series(lambda k: 1 / factorial(k + 2)))
    yield ("ExpTail", "exp(r) = 1 + r + r^2 * P(r), |r| <= ln(2) / 2",
           *derive(exp_tail, lambda r: abs(r) / (abs(expm1(r) / r) if r else 1) + mpf("1e-9"), -half_ln2, half_ln2, 4))
    log_tail = away_from_zero(lambda f: (log1p(f) - f + f**2 / 2) / f**3,
                              series(lambda k: mpf((-1)**k) / (k + 3)))
    yield ("LogTail", "log(1 + f) = f - f^2 / 2 + f^3 * P(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
           *derive(log_tail, lambda f: f**2 / (abs(log1p(f) / f) if f else 1) + mpf("1e-9"),
                   sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 8))
    quarter = (pi / 4 * mpf("1.002"))**2
    sin_tail = away_from_zero(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z,
                              series(lambda k: mpf((-1)**(k + 1)) / factorial(2 * k + 3)))
    yield ("SinTail", "sin(r) = r + r^3 * P(r^2), |r| <= pi / 4",
           *derive(sin_tail, lambda z: z + mpf("1e-9"), mpf(0), quarter, 2))
    cos_tail = away_from_zero(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2,
                              series(lambda k: mpf((-1)**k) / factorial(2 * k + 4)))
    yield ("CosTail", "cos(r) = 1 - r^2 / 2 + r^4 * P(r^2), |r| <= pi / 4",
           *derive(cos_tail, lambda z: z**2 / cos(sqrt(z)) + mpf("1e-9"), mpf(0), quarter, 2))
    atan_tail = away_from_zero(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z,
                               series(lambda k: mpf((-1)**(k + 1)) / (2 * k + 3)))
    yield ("AtanTail", "atan(t) = t + t^3 * P(t^2), |t| <= tan(pi / 8)",
           *derive(atan_tail, lambda z: z + mpf("1e-9"), mpf(0), (tan(pi / 8) * mpf("1.001"))**2, 3))
    asin_tail = away_from_zero(lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z,
                               series(lambda k: factorial(2 * k + 2) / (4**(k + 1) * factorial(k + 1)**2 * (2 * k + 3))))
    yield ("AsinTail", "asin(t) = t + t^3 * P(t^2), |t| <= 1 / 2",
           *derive(asin_tail, lambda z: z + mpf("1e-9"), mpf(0), mpf("0.2501"), 4))


def with_one(found):
    """The polynomial whose coefficient 0 was fixed at 1."""
    coefficients, error = found
    return [mpf(1), *coefficients], error


def doubles():
    """The same of those that are computed in double: pow alone, whose logarithm is multiplied by up to 150."""
    log2_tail = away_from_zero(lambda z: (log((1 + sqrt(z)) / (1 - sqrt(z))) / (log(2) * sqrt(z))),
                               series(lambda k: 2 / (log(mpf(2)) * (2 * k + 1))))
    most = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1))**2 * mpf("1.001")
    yield ("Log2Factor", "log2((1 + t) / (1 - t)) = t * P(t^2), (1 + t) / (1 - t) in [sqrt(1/2), sqrt(2)]",
           *remez(log2_tail, lambda z: 1 / log2_tail(z), mpf(0), most, list(range(6)), {}))
    yield ("Exp2Terms", "2^f = P(f), |f| <= 1 / 2",
           *with_one(remez(lambda f: mpf(2)**f, lambda f: 1 / mpf(2)**f, mpf("-0.5"), mpf("0.5"), list(range(1, 9)),
                           {0: mpf(1)})))


def rationals():
    """(name, comment, numerator, denominator, error, x from where it is 1) of each quotient of polynomials."""
    over_x = away_from_zero(lambda z: erf(sqrt(z)) / sqrt(z),
                            series(lambda k: 2 / sqrt(pi) * (-1)**k / (factorial(k) * (2 * k + 1))))
    yield ("ErfCoefficients", "erf(x) = x * P(x^2) / Q(x^2), |x| <= 3.93",
           *derive_rational(over_x, lambda z: 1 / over_x(z), mpf(0), mpf("3.93")**2, 5), 4.0)
    tanh_over_x = lambda z: tanh(sqrt(z)) / sqrt(z) if z else mpf(1)
    yield ("TanhCoefficients", "tanh(x) = x * P(x^2) / Q(x^2), |x| <= 9.02",
           *derive_rational(tanh_over_x, lambda z: 1 / tanh_over_x(z), mpf(0), mpf("9.02")**2, 4), 9.1)


def split(value, bits, parts):
    """`value` as a sum of `parts` floats; all but the last have at most `bits` significant bits."""
    result = []
    for _ in range(parts - 1):
        scale = mpf(2)**(bits - 1 - int(mp.floor(log(abs(value), 2))))
        part = mp.floor(value * scale) / scale
        result.append(part)
        value -= part
    return result + [to_float(value)]


def literal(value):
    # Nine significant digits name every float.
    shortest = "%.9g" % float(value)
    assert to_float(mpf(shortest)) == value
    return shortest + ("f" if any(c in shortest for c in ".e") else ".0f")


def double_literal(value):
    shortest = repr(float(value))
    return shortest if "." in shortest or "e" in shortest else shortest + ".0"


def table(name, coefficients, element="float"):
    spell = literal if element == "float" else double_literal
    return ["struct %s {" % name, "static constexpr int kCount = %d;" % len(coefficients),
            "static constexpr %s kValues[] = {%s};" % (element, ", ".join(spell(c) for c in coefficients)), "};"]


def header():
    lines = ["// SPDX-FileCopyrightText: 2026 the gcompile project", "// SPDX-License-Identifier: 0BSD",
             "// Written by scripts/derive_polynomials.py; do not edit. Lowest order first.", "#pragma once", "",
             '#include "gcrt/config.h"', "", "namespace GCRT_NAMESPACE {", ""]
    for name, comment, coefficients, error in tables():
        lines.append("// %s; relative error %s." % (comment, nstr(error, 2)))
        lines += table(name, coefficients)
        lines.append("")
    for name, comment, coefficients, error in doubles():
        lines.append("// %s; relative error %s." % (comment, nstr(error, 2)))
        lines += table(name, coefficients, "double")
        lines.append("")
    for name, comment, numerator, denominator, error, one in rationals():
        lines += ["// %s; relative error %s." % (comment, nstr(error, 2)), "struct %s {" % name,
                  "static constexpr float kOne = %.1ff;" % one]
        lines += table("Numerator", numerator) + table("Denominator", denominator) + ["};", ""]
    lines.append("// ln(2) as a sum; the product of the first part and an exponent is exact.")
    lines += table("Ln2Parts", split(log(2), 15, 2))
    lines.append("")
    lines.append("// pi / 2 as a sum; products of the first three parts and integers below 2^13 are exact.")
    lines += table("HalfPiParts", split(pi / 2, 11, 4))
    lines += ["", "// One of them, as a constant that device code may use: it may not refer to the arrays.",
              "template <class Table, int I>", "constexpr auto kCoefficient = Table::kValues[I];",
              "", "}  // namespace GCRT_NAMESPACE", ""]
    return "\n".join(lines)


def main():
    text = header()
    if sys.argv[1:] == ["--check"]:
        with open(HEADER, encoding="utf-8") as file:
            committed = file.read()
        # Line breaks are the formatter's.
        if committed.split() != text.split():
            sys.exit("gcrt/scalar/coefficients.h differs from what derive_polynomials.py derives")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
