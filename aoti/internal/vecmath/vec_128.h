// Vectors of 128 bits, 4 floats or 2 doubles, in the compilers' own vector
// extensions: linux/arm64's names, built on amd64 too so that tests cover them.

#include <math.h>

#define NF 4
#define ND 2
#define VM(func, type, ulp) Loris_##func##type##ulp
#define F(func, ulp) VM(func, f4, ulp)
#define D(func, ulp) VM(func, d2, ulp)

// As everywhere, min and max give their second operand where one is a NaN.

typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef int vi __attribute__((vector_size(16)));
typedef long long vl __attribute__((vector_size(16)));
typedef vi mf;
typedef vl md;

// EACH_F and EACH_D apply an expression in i to each lane.
#define EACH_F(type, expr) ((type){expr(0), expr(1), expr(2), expr(3)})
#define EACH_D(type, expr) ((type){expr(0), expr(1)})

#define FMA_F(i) __builtin_fmaf(a[i], b[i], c[i])
#define FNMA_F(i) __builtin_fmaf(-a[i], b[i], c[i])
#define SQRT_F(i) __builtin_sqrtf(a[i])
#define RINT_F(i) __builtin_rintf(a[i])
#define TRUNC_F(i) __builtin_truncf(a[i])
fn vf f_set(float c) { return (vf){c, c, c, c}; }
fn vf f_fma(vf a, vf b, vf c) { return EACH_F(vf, FMA_F); }
fn vf f_fnma(vf a, vf b, vf c) { return EACH_F(vf, FNMA_F); }
fn vf f_sqrt(vf a) { return EACH_F(vf, SQRT_F); }
fn vf f_rint(vf a) { return EACH_F(vf, RINT_F); }
fn vf f_trunc(vf a) { return EACH_F(vf, TRUNC_F); }
fn mf f_lt(vf a, vf b) { return a < b; }
fn mf f_le(vf a, vf b) { return a <= b; }
fn mf f_eq(vf a, vf b) { return a == b; }
fn mf f_isnan(vf a) { return a != a; }
fn vf f_sel(mf m, vf a, vf b) { return (vf)(((vi)a & m) | ((vi)b & ~m)); }
fn vf f_min(vf a, vf b) { return f_sel(a < b, a, b); }
fn vf f_max(vf a, vf b) { return f_sel(b < a, a, b); }
fn mf f_and(mf a, mf b) { return a & b; }
fn mf f_or(mf a, mf b) { return a | b; }
fn mf f_not(mf a) { return ~a; }
fn int f_any(mf m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }

#define FMA_D(i) __builtin_fma(a[i], b[i], c[i])
#define FMS_D(i) __builtin_fma(a[i], b[i], -c[i])
#define FNMA_D(i) __builtin_fma(-a[i], b[i], c[i])
#define SQRT_D(i) __builtin_sqrt(a[i])
#define RINT_D(i) __builtin_rint(a[i])
#define TRUNC_D(i) __builtin_trunc(a[i])
#define GATHER_D(k) t[i[k]]
fn vd d_set(double c) { return (vd){c, c}; }
fn vd d_fma(vd a, vd b, vd c) { return EACH_D(vd, FMA_D); }
fn vd d_fms(vd a, vd b, vd c) { return EACH_D(vd, FMS_D); }
fn vd d_fnma(vd a, vd b, vd c) { return EACH_D(vd, FNMA_D); }
fn vd d_sqrt(vd a) { return EACH_D(vd, SQRT_D); }
fn vd d_rint(vd a) { return EACH_D(vd, RINT_D); }
fn vd d_trunc(vd a) { return EACH_D(vd, TRUNC_D); }
fn md d_lt(vd a, vd b) { return a < b; }
fn md d_le(vd a, vd b) { return a <= b; }
fn md d_eq(vd a, vd b) { return a == b; }
fn md d_isnan(vd a) { return a != a; }
fn md l_test(vl a, vl b) { return (a & b) != 0; }
fn vd d_sel(md m, vd a, vd b) { return (vd)(((vl)a & m) | ((vl)b & ~m)); }
fn vd d_min(vd a, vd b) { return d_sel(a < b, a, b); }
fn vd d_max(vd a, vd b) { return d_sel(b < a, a, b); }
fn md d_and(md a, md b) { return a & b; }
fn md d_or(md a, md b) { return a | b; }
fn md d_not(md a) { return ~a; }
fn int d_any(md m) { return (m[0] | m[1]) != 0; }
fn vd d_gather(const double *t, vl i) { return EACH_D(vd, GATHER_D); }

fn vd d_low(vf a) { return (vd){a[0], a[1]}; }
fn vd d_high(vf a) { return (vd){a[2], a[3]}; }
fn vf f_join(vd a, vd b) { return (vf){(float)a[0], (float)a[1], (float)b[0], (float)b[1]}; }
