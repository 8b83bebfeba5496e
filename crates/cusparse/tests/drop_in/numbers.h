/* Numbers of cuSPARSE's types, arrays of them, and the count of what a test program expects. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { R32F = 0, R64F = 1, R16F = 2, R8I = 3, C32F = 4, C64F = 5, R16BF = 14 };
typedef double complex Number;

static int failures, products;

static void expect(int is_right, const char *what, const char *more) {
    ++products;
    if (!is_right) {
        ++failures;
        printf("%s: %s\n", what, more);
    }
}

static size_t size_of(int type) {
    switch (type) {
    case R16F:
    case R16BF:
        return 2;
    case R32F:
        return 4;
    case C64F:
        return 16;
    default:
        return 8;
    }
}

/* Converts a value to fp16. Values are multiples of 1/4 below 2048, which are exact in all types
 * but bf16, where results lose their last bits. */
static uint16_t half_of(double value) {
    if (value == 0)
        return 0;
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t bits = (uint16_t)((exponent + 14) << 10 | (int)lrint((2 * fraction - 1) * 1024));
    return value < 0 ? bits | 0x8000 : bits;
}

static double value_of_half(uint16_t bits) {
    double value = ldexp((bits & 0x3ff) | (bits & 0x7c00 ? 0x400 : 0), ((bits >> 10 & 31) - 25));
    return bits & 0x8000 ? -value : value;
}

static void put(int type, void *array, int64_t at, Number value) {
    float single = (float)creal(value);
    uint32_t bits;
    switch (type) {
    case R32F:
        ((float *)array)[at] = single;
        break;
    case R64F:
        ((double *)array)[at] = creal(value);
        break;
    case R16F:
        ((uint16_t *)array)[at] = half_of(creal(value));
        break;
    case R16BF:
        memcpy(&bits, &single, 4);
        ((uint16_t *)array)[at] = (uint16_t)(bits >> 16);
        break;
    case C32F:
        ((float complex *)array)[at] = (float complex)value;
        break;
    default:
        ((Number *)array)[at] = value;
    }
}

static Number get(int type, const void *array, int64_t at) {
    float single;
    uint32_t bits;
    switch (type) {
    case R32F:
        return ((const float *)array)[at];
    case R64F:
        return ((const double *)array)[at];
    case R16F:
        return value_of_half(((const uint16_t *)array)[at]);
    case R16BF:
        bits = (uint32_t)((const uint16_t *)array)[at] << 16;
        memcpy(&single, &bits, 4);
        return single;
    case C32F:
        return ((const float complex *)array)[at];
    default:
        return ((const Number *)array)[at];
    }
}

static unsigned state = 1;

static int drawn(int below) {
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 8) % below;
}

/* Draws a multiple of 1/4 in [-2, 2]; for a complex type both parts are such numbers. */
static Number number(int type) {
    double real = (drawn(17) - 8) / 4.0;
    return type == C32F || type == C64F ? real + I * (drawn(17) - 8) / 4.0 : real;
}

static void *array_of(int type, int64_t count) {
    void *array = malloc((size_t)count * size_of(type) + 16);
    for (int64_t at = 0; at < count; ++at)
        put(type, array, at, number(type));
    return array;
}

static void put_index(int type, void *array, int at, int64_t value) {
    if (type == 2)
        ((int32_t *)array)[at] = (int32_t)value;
    else
        ((int64_t *)array)[at] = value;
}

#endif
