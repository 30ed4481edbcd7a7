// What every function is written in, over the types of one width: vf (floats),
// vd (doubles, half as many), vi and vl (their bits), mf and md (masks). A file
// vec_*.h included before this one gives the types and the operations that the
// width's instructions decide; arithmetic is C's own operators on vectors.
//
// Nothing here may be contracted to a fused multiply-add that isn't written as
// one: the package is compiled as ISO C, where compilers leave that off.

#include <math.h>
#include <string.h>

#include "coefficients.h"

typedef unsigned int vui __attribute__((vector_size(sizeof(vi))));
typedef unsigned long long vul __attribute__((vector_size(sizeof(vl))));

#define SIGN_D ((long long)0x8000000000000000LL)
#define SIGN_F ((int)0x80000000)
#define TERMS(c) (int)(sizeof(c) / sizeof((c)[0]))
#define POLY_D(x, c) d_poly(x, c, TERMS(c))
#define POLY_F(x, c) f_poly(x, c, TERMS(c))

fn vd d_abs(vd x) { return (vd)((vl)x & ~SIGN_D); }
fn vl d_sign(vd x) { return (vl)x & SIGN_D; }
fn vd d_flip(vd x, vl sign) { return (vd)((vl)x ^ sign); }
fn md d_negative(vd x) { return l_test((vl)x, (vl)d_set(-0.0)); }
// d_most and d_least clamp and let NaN through.
fn vd d_most(vd x, double top) { return d_min(d_set(top), x); }
fn vd d_least(vd x, double low) { return d_max(d_set(low), x); }

fn vf f_abs(vf x) { return (vf)((vi)x & ~SIGN_F); }
fn vi f_sign(vf x) { return (vi)x & SIGN_F; }
fn vf f_flip(vf x, vi sign) { return (vf)((vi)x ^ sign); }
fn vf f_most(vf x, float top) { return f_min(f_set(top), x); }
fn vf f_least(vf x, float low) { return f_max(f_set(low), x); }

// d_poly is c[0] + c[1]x + … by Horner's rule; n is a constant where it is used.
fn vd d_poly(vd x, const double *c, int n) {
    vd r = d_set(c[n - 1]);
#pragma GCC unroll 16
    for (int i = n - 2; i >= 0; i--) r = d_fma(r, x, d_set(c[i]));
    return r;
}

fn vf f_poly(vf x, const float *c, int n) {
    vf r = f_set(c[n - 1]);
#pragma GCC unroll 16
    for (int i = n - 2; i >= 0; i--) r = f_fma(r, x, f_set(c[i]));
    return r;
}

// d_int turns whole numbers below 2^51 into integers, l_double back.
fn vl d_int(vd n) { return (vl)(n + d_set(0x1.8p52)) - (vl)d_set(0x1.8p52); }
fn vd l_double(vl n) { return (vd)(n + (vl)d_set(0x1.8p52)) - d_set(0x1.8p52); }
fn vi f_int(vf n) { return (vi)(n + f_set(0x1.8p23f)) - (vi)f_set(0x1.8p23f); }
fn vf i_float(vi n) { return (vf)(n + (vi)f_set(0x1.8p23f)) - f_set(0x1.8p23f); }

// d_nearest and f_nearest are x c rounded to a whole number, of a size below 2^51 or 2^22.
fn vd d_nearest(vd x, double c) { return d_fma(x, d_set(c), d_set(0x1.8p52)) - d_set(0x1.8p52); }
fn vf f_nearest(vf x, float c) { return f_fma(x, f_set(c), f_set(0x1.8p23f)) - f_set(0x1.8p23f); }

// d_exp2 and f_exp2 are 2^n for n in the range of normal numbers.
fn vd d_exp2(vl n) { return (vd)((n + 1023) << 52); }
fn vf f_exp2(vi n) { return (vf)((n + 127) << 23); }

#ifndef VM_SCALE
// d_scale is x 2^n for whole n, |n| <= 2000. Where 2^n isn't a normal number for some lane, two
// factors serve: the first product is exact, so that a subnormal result is rounded once.
fn vd d_scale(vd x, vd n) {
    vl k = d_int(n);
    if (__builtin_expect(d_any(d_lt(d_set(1022), d_abs(n))), 0)) {
        vl half = (vl)((vul)(k + 4096) >> 1) - 2048;
        return x * d_exp2(half) * d_exp2(k - half);
    }
    return x * d_exp2(k);
}

fn vf f_scale(vf x, vf n) {
    vi k = f_int(n);
    if (__builtin_expect(f_any(f_lt(f_set(126), f_abs(n))), 0)) {
        vi half = k >> 1;
        return x * f_exp2(half) * f_exp2(k - half);
    }
    return x * f_exp2(k);
}
#endif

// d_frexp splits a normal x > 0 into m in [2/3, 4/3) and a power e. Logarithms of m from
// sqrt(2) down would lose more digits, as the terms of m - 1 have opposite signs there.
fn vd d_frexp(vd x, vd *e) {
    const long long least = 0x3fe5555555555556LL;
    vl shifted = (vl)x - least;
    *e = l_double((vl)((vul)(shifted + (1024LL << 52)) >> 52) - 1024);
    return (vd)((shifted & 0xfffffffffffffLL) + least);
}

fn vf f_frexp(vf x, vf *e) {
    const int least = 0x3f2aaaab;
    vi shifted = (vi)x - least;
    *e = i_float(shifted >> 23);
    return (vf)((shifted & 0x7fffff) + least);
}

// d_exponent is the power e of two with 2^e <= |x| < 2^(e+1), no less than
// -1022 and no more than 1022, so that 2^e and 2^-e are normal numbers.
fn vd d_exponent(vd x) {
    vd e = l_double((vl)((vul)((vl)x & ~SIGN_D) >> 52) - 1023);
    return d_most(d_least(e, -1022), 1022);
}

// d_lanes calls a scalar function for the lanes in m: the rare arguments that
// vectors would serve no faster.
static __attribute__((noinline, unused)) vd d_lanes(vd pick, vd r, vd x, double (*call)(double)) {
    for (int i = 0; i < ND; i++) {
        if (pick[i] != 0) r[i] = call(x[i]);
    }
    return r;
}

static __attribute__((noinline, unused)) vd d_lanes2(vd pick, vd r, vd x, vd y, double (*call)(double, double)) {
    for (int i = 0; i < ND; i++) {
        if (pick[i] != 0) r[i] = call(x[i], y[i]);
    }
    return r;
}

fn vd d_rare(md m, vd r, vd x, double (*call)(double)) {
    if (__builtin_expect(d_any(m), 0)) return d_lanes(d_sel(m, d_set(1), d_set(0)), r, x, call);
    return r;
}

fn vd d_rare2(md m, vd r, vd x, vd y, double (*call)(double, double)) {
    if (__builtin_expect(d_any(m), 0)) return d_lanes2(d_sel(m, d_set(1), d_set(0)), r, x, y, call);
    return r;
}
