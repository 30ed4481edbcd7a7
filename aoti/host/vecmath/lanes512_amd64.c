//go:build linux && cgo

// AVX-512: f16 and d8.

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma"))), apply_to = function)
#pragma STDC FP_CONTRACT OFF
#elif defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma")
#endif

// fn marks the parts that functions are made of: all are inlined, so that a vector
// never crosses a call that isn't one of the package's own functions.
#define fn static inline __attribute__((always_inline))

#include "vec_avx512.h"

#include "functions.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
