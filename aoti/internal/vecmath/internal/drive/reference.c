//go:build linux && cgo && (amd64 || arm64)

// The C library's functions of 128-bit floats judge doubles, its functions of
// doubles judge floats: each is exact to far below the ulp it is held against.

#define _GNU_SOURCE
#include "drive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef _Float128 wide;

static const struct {
    const char *name;
    wide (*one)(wide);
    wide (*two)(wide, wide);
    double (*one64)(double);
    double (*two64)(double, double);
} table[] = {
#define ONE(f) {#f, f##f128, 0, f, 0}
#define TWO(f) {#f, 0, f##f128, 0, f}
    ONE(acos), ONE(acosh), ONE(asin), ONE(asinh), ONE(atan), TWO(atan2), ONE(atanh), TWO(copysign),
    ONE(cos), ONE(cosh), ONE(erf), ONE(erfc), ONE(exp), ONE(exp2), ONE(expm1), TWO(fmod), TWO(hypot),
    ONE(lgamma), ONE(log), ONE(log10), ONE(log1p), ONE(log2), TWO(pow), ONE(sin), ONE(sinh), ONE(tan),
    ONE(tanh),
};

// nextafter's value depends on the type it steps in.
static double after64(const double *x, const double *y, long i) { return nextafter(x[i], y[i]); }
static float after32(const float *x, const float *y, long i) { return nextafterf(x[i], y[i]); }

void *drive_reference(const char *name, int size, const void *x, const void *y, long n) {
    int after = !strcmp(name, "nextafter"), k = 0, count = sizeof table / sizeof *table;
    while (!after && k < count && strcmp(table[k].name, name)) k++;
    if (k == count) return NULL;
    if (size == 4) {
        const float *a = x, *b = y;
        double *r = malloc(n * sizeof *r);
        for (long i = 0; r && i < n; i++) {
            if (after) r[i] = after32(a, b, i);
            else r[i] = table[k].one64 ? table[k].one64(a[i]) : table[k].two64(a[i], b[i]);
        }
        return r;
    }
    const double *a = x, *b = y;
    wide *r = malloc(n * sizeof *r);
    for (long i = 0; r && i < n; i++) {
        if (after) r[i] = after64(a, b, i);
        else r[i] = table[k].one ? table[k].one(a[i]) : table[k].two(a[i], b[i]);
    }
    return r;
}

// error64 is |got - want| in units of the last place that want has in a double; an infinite
// result stands for the number after the largest.
static double error64(wide want, double got, double slack) {
    if (isnan((double)want) || isnan(got)) return isnan((double)want) && isnan(got) ? 0 : INFINITY;
    if (want == 0) return got == 0 && !signbit((double)want) == !signbit(got) ? 0 : INFINITY;
    if ((signbit(got) != 0) != (want < 0) && got != 0) return INFINITY;
    wide limit = ldexpf128(1, 1024);
    if (fabsf128(want) >= limit) want = copysignf128(limit, want);
    wide have = isinf(got) ? copysignf128(limit, got) : (wide)got;
    wide off = fabsf128(have - want);
    if (off <= slack) return 0;
    int e = ilogbf128(want);
    e = e > 1023 ? 1023 : e < -1022 ? -1022 : e;
    return (double)(off / ldexpf128(1, e - 52));
}

// error32 is error64 for floats against doubles, whose difference is exact enough.
static double error32(double want, float got, double slack) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (want == 0) return got == 0 && !signbit(want) == !signbit(got) ? 0 : INFINITY;
    if ((signbit(got) != 0) != (want < 0) && got != 0) return INFINITY;
    if (fabs(want) > 0x1p128) want = copysign(0x1p128, want);
    double have = isinf(got) ? copysign(0x1p128, got) : got, off = fabs(have - want);
    if (off <= slack) return 0;
    unsigned long long bits;
    memcpy(&bits, &want, sizeof bits);
    int e = (int)(bits >> 52 & 2047) - 1023;
    e = e > 127 ? 127 : e < -126 ? -126 : e;
    bits = (unsigned long long)(1023 + 23 - e) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return off * scale;
}

double drive_worst(const void *refs, int size, const void *got, long n, double slack, long *at) {
    double worst = -1;
    for (long i = 0; i < n; i++) {
        double e = size == 4 ? error32(((const double *)refs)[i], ((const float *)got)[i], slack)
                             : error64(((const wide *)refs)[i], ((const double *)got)[i], slack);
        if (e > worst) worst = e, *at = i;
    }
    return worst;
}

double drive_value(const void *refs, int size, long i) {
    return size == 4 ? ((const double *)refs)[i] : (double)((const wide *)refs)[i];
}
