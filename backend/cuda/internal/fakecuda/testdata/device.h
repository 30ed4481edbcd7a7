// CUDA C++ as plain C++, for tests: kernels see the names of CUDA, and run on the
// fibers of fiber.h.

#include <stdint.h>
#include <string.h>

// The mathematics of C, whose C++ form takes as long to compile as a kernel.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#include "fiber.h"

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

static gpu* here; // it runs the kernels of this file
#define threadIdx (here->threadIdx)
#define blockIdx (here->blockIdx)
#define blockDim (here->blockDim)
#define gridDim (here->gridDim)

static inline void __syncthreads() { here->wait(here, THREAD_AT_BLOCK); }
static inline void __syncwarp() { here->wait(here, THREAD_AT_WARP); }
static inline void __trap() { here->trap(here); }

// shuffled hands v to the lanes of the warp and returns where their values are.
static inline const unsigned* shuffled(unsigned v) {
  unsigned* slots = here->exchange[here->threads[here->current].parity ^= 1];
  slots[here->current] = v;
  here->wait(here, THREAD_AT_WARP);
  return slots;
}
static inline unsigned __shfl_xor_sync(unsigned, unsigned v, int d) {
  const unsigned* slots = shuffled(v);
  return slots[here->current ^ d];
}
static inline unsigned __shfl_up_sync(unsigned, unsigned v, unsigned d) {
  const unsigned* slots = shuffled(v);
  return here->current % 32u >= d ? slots[here->current - d] : v;
}
static inline unsigned __shfl_down_sync(unsigned, unsigned v, unsigned d) {
  const unsigned* slots = shuffled(v);
  return here->current % 32u + d < 32 ? slots[here->current + d] : v;
}
static inline unsigned __shfl_sync(unsigned, unsigned v, int lane) {
  const unsigned* slots = shuffled(v);
  return slots[(here->current & ~31) + (lane & 31)];
}

static inline unsigned atomicMax(unsigned* p, unsigned v) {
  unsigned old = *p;
  if (v > old) *p = v;
  return old;
}
static inline unsigned atomicAdd(unsigned* p, unsigned v) {
  unsigned old = *p;
  *p += v;
  return old;
}
static inline int atomicAdd(int* p, int v) {
  int old = *p;
  *p += v;
  return old;
}
static inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) {
  unsigned long long old = *p;
  *p += v;
  return old;
}

template <class To, class From> static inline To bits(From x) {
  To y;
  static_assert(sizeof x == sizeof y, "");
  memcpy(&y, &x, sizeof y);
  return y;
}
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// The inverse of erf, by Newton's method on erfc, which is precise near 1.
static inline double erfinv(double x) {
  if (!(x > -1 && x < 1)) return x == 1 ? (double)INFINITY : x == -1 ? -(double)INFINITY : NAN;
  if (x == 0) return x;
  const long double half_root_pi = 0.886226925452758013649083741670572591L, a = fabsl((long double)x);
  long double l = logl((1 - a) * (1 + a)), b = 4.3307467508L + l / 2;
  long double y = a < 1e-4L ? a * half_root_pi : sqrtl(sqrtl(b * b - l / 0.147L) - b);
  for (int i = 0; i < 6; i++) {
    const long double off = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
    const long double step = off * half_root_pi * expl(y * y);
    y -= step / (1 + y * step);
  }
  return x < 0 ? -y : y;
}
static inline float erfinvf(float x) { return erfinv(x); }

static inline double normcdf(double x) { return erfcl(-x * 0.707106781186547524400844362104849039L) / 2; }
static inline float normcdff(float x) { return normcdf(x); }

// Entry is a kernel that is called by the addresses of its parameters.
template <auto k> struct Entry;
template <class... A, void (*k)(A...)> struct Entry<k> {
  struct Call {
    Call(A... a) { k(a...); }
  };
  static void run(void* const* p) { Call{*(A*)*p++...}; }
  static constexpr unsigned sizes[sizeof...(A) + 1] = {sizeof(A)...};
};

// Kernel is an entry by name. sizes are those of the parameters, up to a 0.
struct Kernel {
  const char* name;
  void (*run)(void* const* params);
  const unsigned* sizes;
};
