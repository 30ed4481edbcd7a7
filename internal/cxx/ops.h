// The pointwise ops, with the meaning of package ir. Integers narrower than 32
// bits and bools come as i32; the caller wraps the result.

template <class T> struct Unsigned;
template <> struct Unsigned<i32> { typedef u32 type; };
template <> struct Unsigned<i64> { typedef u64 type; };

// WRAP defines an op on integers that is computed modulo 2ⁿ, FLOATS one on
// floats, BOTH one that is written alike for both.
#define WRAP1(name, expr) \
  INLINE i32 name(i32 a) { const u32 x = (u32)a; return (i32)(expr); } \
  INLINE i64 name(i64 a) { const u64 x = (u64)a; return (i64)(expr); }
#define WRAP2(name, expr) \
  INLINE i32 name(i32 a, i32 b) { const u32 x = (u32)a, y = (u32)b; return (i32)(expr); } \
  INLINE i64 name(i64 a, i64 b) { const u64 x = (u64)a, y = (u64)b; return (i64)(expr); }
#define INTS1(R, name, expr) \
  INLINE R(i32) name(i32 x) { return expr; } \
  INLINE R(i64) name(i64 x) { return expr; }
#define INTS2(R, name, expr) \
  INLINE R(i32) name(i32 x, i32 y) { return expr; } \
  INLINE R(i64) name(i64 x, i64 y) { return expr; }
#define FLOATS1(R, name, expr) \
  INLINE R(f32) name(f32 x) { typedef f32 F; return expr; } \
  INLINE R(f64) name(f64 x) { typedef f64 F; return expr; }
#define FLOATS2(R, name, expr) \
  INLINE R(f32) name(f32 x, f32 y) { typedef f32 F; return expr; } \
  INLINE R(f64) name(f64 x, f64 y) { typedef f64 F; return expr; }
#define BOTH1(R, name, expr) INTS1(R, name, expr) FLOATS1(R, name, expr)
#define BOTH2(R, name, expr) INTS2(R, name, expr) FLOATS2(R, name, expr)
#define MATH1(name, single, twice) \
  INLINE f32 name(f32 x) { return single; } \
  INLINE f64 name(f64 x) { return twice; }
#define MATH2(name, single, twice) \
  INLINE f32 name(f32 x, f32 y) { return single; } \
  INLINE f64 name(f64 x, f64 y) { return twice; }
#define SAME(T) T
#define TRUTH(T) bool

WRAP2(op_add, x + y)
WRAP2(op_sub, x - y)
WRAP2(op_mul, x * y)
WRAP1(op_neg, 0 - x)
WRAP1(op_abs, a < 0 ? 0 - x : x)
WRAP1(op_bitwise_not, ~x)
WRAP2(op_bitwise_and, x & y)
WRAP2(op_bitwise_or, x | y)
WRAP2(op_bitwise_xor, x ^ y)
WRAP2(op_bitwise_left_shift, y < 8 * sizeof(x) ? x << y : 0)
INTS2(SAME, op_bitwise_right_shift, x >> ((u64)y < 8 * sizeof(x) ? y : 8 * sizeof(x) - 1))

template <class T> INLINE T gcd_int(T x, T y) {
  while (y != 0) {
    const T m = y == -1 ? 0 : x % y;
    x = y, y = m;
  }
  return op_abs(x);
}
INLINE i32 op_gcd(i32 x, i32 y) { return gcd_int<i32>(x, y); }
INLINE i64 op_gcd(i64 x, i64 y) { return gcd_int<i64>(x, y); }

FLOATS2(SAME, op_add, x + y)
FLOATS2(SAME, op_sub, x - y)
FLOATS2(SAME, op_mul, x * y)
FLOATS2(SAME, op_div, x / y)
FLOATS1(SAME, op_neg, -x)
MATH1(op_abs, fabsf(x), fabs(x))
FLOATS1(SAME, op_reciprocal, (F)1 / x)
MATH1(op_sqrt, sqrtf(x), sqrt(x))
MATH1(op_rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))

INTS2(SAME, op_maximum, x >= y ? x : y)
INTS2(SAME, op_minimum, x <= y ? x : y)
FLOATS2(SAME, op_maximum, x != x || x >= y ? x : y)
FLOATS2(SAME, op_minimum, x != x || x <= y ? x : y)
INTS1(SAME, op_sign, (x > 0) - (x < 0))
FLOATS1(SAME, op_sign, (F)((x > 0) - (x < 0)))
BOTH1(SAME, op_relu, x < 0 ? 0 : x)

INTS1(SAME, op_floor, x)
INTS1(SAME, op_ceil, x)
INTS1(SAME, op_round, x)
INTS1(SAME, op_trunc, x)
MATH1(op_floor, floorf(x), floor(x))
MATH1(op_ceil, ceilf(x), ceil(x))
MATH1(op_round, rintf(x), rint(x))
MATH1(op_trunc, truncf(x), trunc(x))

BOTH2(TRUTH, op_eq, x == y)
BOTH2(TRUTH, op_ne, x != y)
BOTH2(TRUTH, op_lt, x < y)
BOTH2(TRUTH, op_le, x <= y)
BOTH2(TRUTH, op_gt, x > y)
BOTH2(TRUTH, op_ge, x >= y)
BOTH2(TRUTH, op_logical_and, x != 0 && y != 0)
BOTH2(TRUTH, op_logical_or, x != 0 || y != 0)
BOTH2(TRUTH, op_logical_xor, (x != 0) != (y != 0))
BOTH1(TRUTH, op_logical_not, x == 0)
INTS1(TRUTH, op_signbit, x < 0)
FLOATS1(TRUTH, op_signbit, copysign((F)1, x) < 0)
INTS1(TRUTH, op_isnan, false)
INTS1(TRUTH, op_isinf, false)
INTS1(TRUTH, op_isfinite, true)
FLOATS1(TRUTH, op_isnan, x != x)
FLOATS1(TRUTH, op_isinf, x == x && x - x != x - x)
FLOATS1(TRUTH, op_isfinite, x - x == 0)

MATH1(op_exp, expf(x), exp(x))
MATH1(op_exp2, exp2f(x), exp2(x))
MATH1(op_expm1, expm1f(x), expm1(x))
MATH1(op_log, logf(x), log(x))
MATH1(op_log2, log2f(x), log2(x))
MATH1(op_log10, log10f(x), log10(x))
MATH1(op_log1p, log1pf(x), log1p(x))
MATH1(op_erf, erff(x), erf(x))
MATH1(op_erfc, erfcf(x), erfc(x))
MATH1(op_special_ndtr, normcdff(x), normcdf(x))
MATH1(op_erfinv, erfinvf(x), erfinv(x))
MATH1(op_sin, sinf(x), sin(x))
MATH1(op_cos, cosf(x), cos(x))
MATH1(op_tan, tanf(x), tan(x))
MATH1(op_asin, asinf(x), asin(x))
MATH1(op_acos, acosf(x), acos(x))
MATH1(op_atan, atanf(x), atan(x))
MATH1(op_sinh, sinhf(x), sinh(x))
MATH1(op_cosh, coshf(x), cosh(x))
MATH1(op_tanh, tanhf(x), tanh(x))
MATH1(op_asinh, asinhf(x), asinh(x))
MATH1(op_acosh, acoshf(x), acosh(x))
MATH1(op_atanh, atanhf(x), atanh(x))
MATH2(op_atan2, atan2f(x, y), atan2(x, y))
MATH2(op_pow, powf(x, y), pow(x, y))

// eˣ/(1 + eˣ) where x is negative, so that nothing overflows.
template <class F> INLINE F logistic(F x) {
  const F e = op_exp(-op_abs(x));
  return (x < 0 ? e : (F)1) / ((F)1 + e);
}
FLOATS1(SAME, op_sigmoid, logistic(x))

// Divisions of f32s are done in f64, where quotients that are integers and ones
// that are nearly so differ. fmod is exact in both.
INLINE f64 floor_quotient(f64 x, f64 y) {
  if (y == 0) return x / y;
  const f64 mod = fmod(x, y);
  f64 q = (x - mod) / y;
  if (mod != 0 && (y < 0) != (mod < 0)) q -= 1;
  if (q == 0) return copysign(0.0, x / y);
  const f64 f = floor(q);
  return q - f > 0.5 ? f + 1 : f;
}
INLINE f64 python_mod(f64 x, f64 y) {
  const f64 mod = fmod(x, y);
  return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}
FLOATS2(SAME, op_floor_divide, (F)floor_quotient(x, y))
FLOATS2(SAME, op_trunc_divide, (F)trunc((f64)x / (f64)y))
FLOATS2(SAME, op_remainder, (F)python_mod(x, y))
MATH2(op_fmod, fmodf(x, y), fmod(x, y))

// An integer divisor of 0 gives 0 and leaves the number of the instruction, counted
// from 1, in *fault: of several the greatest. The least integer over -1 wraps.
#define DIVIDE(name, expr) \
  template <class T> INLINE T name##_int(T x, T y, u32* fault, u32 where) { \
    typedef typename Unsigned<T>::type U; \
    if (y == 0) { atomicMax(fault, where); return 0; } \
    const T q = y == -1 ? (T)(0 - (U)x) : x / y, m = y == -1 ? 0 : x % y; \
    return expr; \
  } \
  INLINE i32 name(i32 x, i32 y, u32* fault, u32 where) { return name##_int<i32>(x, y, fault, where); } \
  INLINE i64 name(i64 x, i64 y, u32* fault, u32 where) { return name##_int<i64>(x, y, fault, where); }
DIVIDE(op_trunc_divide, q)
DIVIDE(op_floor_divide, m != 0 && (x < 0) != (y < 0) ? q - 1 : q)
DIVIDE(op_fmod, m)
DIVIDE(op_remainder, m != 0 && (m < 0) != (y < 0) ? m + y : m)

template <class T> INLINE T pow_int(T base, T y) {
  typedef typename Unsigned<T>::type U;
  if (y < 0) return base == 1 || (base == -1 && (y & 1) == 0) ? 1 : base == -1 ? -1 : 0;
  U x = (U)base, p = 1;
  for (; y > 0; y >>= 1) {
    if (y & 1) p *= x;
    x *= x;
  }
  return (T)p;
}
INTS2(SAME, op_pow, pow_int(x, y))

template <class T> INLINE T op_where(bool c, T x, T y) { return c ? x : y; }
