//go:build linux && cgo && (amd64 || arm64)

#define _GNU_SOURCE
#include "drive.h"

#include <dlfcn.h>
#include <string.h>

void *drive_lookup(const char *symbol) { return dlsym(RTLD_DEFAULT, symbol); }

// CALL_ALL defines a function that applies a vector function to arrays.
#define CALL_ALL(name, type, lanes)                                                       \
    typedef type name __attribute__((vector_size(sizeof(type) * (lanes))));               \
    static TARGET_##lanes##type void call_##name(void *f, int args, const void *x,        \
                                                 const void *y, void *out, long n) {      \
        for (long i = 0; i + (lanes) <= n; i += (lanes)) {                                \
            name a, b, r;                                                                 \
            memcpy(&a, (const type *)x + i, sizeof a);                                    \
            memcpy(&b, (const type *)y + i, sizeof b);                                    \
            r = args == 1 ? ((name(*)(name))f)(a) : ((name(*)(name, name))f)(a, b);       \
            memcpy((type *)out + i, &r, sizeof r);                                        \
        }                                                                                 \
    }

#define TARGET_4float
#define TARGET_2double
CALL_ALL(f4, float, 4)
CALL_ALL(d2, double, 2)

#ifdef __x86_64__
#define TARGET_8float __attribute__((target("avx2,fma")))
#define TARGET_4double __attribute__((target("avx2,fma")))
#define TARGET_16float __attribute__((target("avx512f")))
#define TARGET_8double __attribute__((target("avx512f")))
CALL_ALL(f8, float, 8)
CALL_ALL(d4, double, 4)
CALL_ALL(f16, float, 16)
CALL_ALL(d8, double, 8)
#endif

void drive_call(void *f, const char *vector, int args, const void *x, const void *y, void *out, long n) {
#ifdef __x86_64__
    if (!strcmp(vector, "f16")) call_f16(f, args, x, y, out, n);
    if (!strcmp(vector, "d8")) call_d8(f, args, x, y, out, n);
    if (!strcmp(vector, "f8")) call_f8(f, args, x, y, out, n);
    if (!strcmp(vector, "d4")) call_d4(f, args, x, y, out, n);
#endif
    if (!strcmp(vector, "f4")) call_f4(f, args, x, y, out, n);
    if (!strcmp(vector, "d2")) call_d2(f, args, x, y, out, n);
}
