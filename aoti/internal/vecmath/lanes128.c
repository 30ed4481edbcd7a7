//go:build linux && cgo && (amd64 || arm64)

// 128 bits: f4 and d2.

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__clang__) && defined(__x86_64__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#elif defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif

// fn marks the parts that functions are made of: all are inlined, so that a vector
// never crosses a call that isn't one of the package's own functions.
#define fn static inline __attribute__((always_inline))

#include "vec_128.h"

#include "functions.h"

#if defined(__clang__) && defined(__x86_64__)
#pragma clang attribute pop
#endif
