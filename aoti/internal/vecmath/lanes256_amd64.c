//go:build linux && cgo

// AVX2 with FMA: f8 and d4.

// gcc passes these vectors in registers wherever a function's target has them; clang
// only where the whole file's target has.
#if defined(__clang__) && !defined(__AVX2__)
#error "use gcc, or set CGO_CFLAGS to -mavx2 -mfma for the right calling convention"
#elif defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC target("avx2,fma")
#endif

// fn marks the parts that functions are made of: all are inlined, so that a vector
// never crosses a call that isn't one of the package's own functions.
#define fn static inline __attribute__((always_inline))

#include "vec_avx2.h"

#include "functions.h"
