// What the definitions need, for processors.

// The functions of C: their C++ form takes longer to compile than a kernel.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#define INLINE inline __attribute__((always_inline))

template <class To, class From> INLINE To same_bits(From x) {
  static_assert(sizeof(To) == sizeof x, "");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
INLINE unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
INLINE float __uint_as_float(unsigned x) { return same_bits<float>(x); }
INLINE double __longlong_as_double(long long x) { return same_bits<double>(x); }
INLINE void atomicMax(unsigned* p, unsigned v) {
  if (*p < v) *p = v;
}

// The inverse of erf, by Newton's method on erfc, which is precise near 1.
static double erfinv(double x) {
  if (!(x > -1 && x < 1)) return x == 1 ? (double)INFINITY : x == -1 ? -(double)INFINITY : (double)NAN;
  if (x == 0) return x;
  const double half_root_pi = 0.88622692545275801365, a = fabs(x), l = log1p(-a * a), b = 4.3307467508 + l / 2;
  double y = a < 1e-4 ? a * half_root_pi : sqrt(sqrt(b * b - l / 0.147) - b);
  for (int i = 0; i < 4; i++) {
    const double off = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y), step = off * half_root_pi * exp(y * y);
    y -= step / (1 + y * step);
  }
  return x < 0 ? -y : y;
}
static inline float erfinvf(float x) { return (float)erfinv(x); }

// The distribution function of the standard normal distribution. What rounding the argument of erfc loses is
// made up for by the slope.
static double normcdf(double x) {
  const double root = 0.70710678118654752440, rest = -4.833646656726457e-17, z = -x * root, y = erfc(z) / 2;
  return z > 0 && z < 30 ? y - y * 2 * z * (fma(-x, root, -z) - x * rest) : y;
}
static inline float normcdff(float x) { return (float)normcdf(x); }
