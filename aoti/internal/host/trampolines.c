// Each trampoline takes the arguments of any function: every register that may hold one,
// and words of the stack beyond them, which belong to the caller's frame where it
// passed fewer.

#include "trampolines.h"
#include "op.h"

#if defined(__x86_64__)
#define INTS int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t i5
#define INT_WORDS i0, i1, i2, i3, i4, i5
#else
#define INTS int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t i5, int64_t i6, int64_t i7
#define INT_WORDS i0, i1, i2, i3, i4, i5, i6, i7
#endif
#define FLOATS double f0, double f1, double f2, double f3, double f4, double f5, double f6, double f7
#define FLOAT_WORDS lori_word(f0), lori_word(f1), lori_word(f2), lori_word(f3), lori_word(f4), lori_word(f5), lori_word(f6), lori_word(f7)
#define STACK \
	int64_t s0, int64_t s1, int64_t s2, int64_t s3, int64_t s4, int64_t s5, \
	int64_t s6, int64_t s7, int64_t s8, int64_t s9, int64_t s10, int64_t s11, \
	int64_t s12, int64_t s13, int64_t s14, int64_t s15, int64_t s16, int64_t s17, \
	int64_t s18, int64_t s19, int64_t s20, int64_t s21, int64_t s22, int64_t s23
#define STACK_WORDS \
	s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, \
	s12, s13, s14, s15, s16, s17, s18, s19, s20, s21, s22, s23

#define SLOT(n) \
	lori_error lori_call_##n(INTS, FLOATS, STACK) \
	{ \
		lori_frame frame = {{INT_WORDS}, {FLOAT_WORDS}, {STACK_WORDS}}; \
		return loriGoTrampoline(n, &frame); \
	}
#define EIGHT(a, b, c, d, e, f, g, h) SLOT(a) SLOT(b) SLOT(c) SLOT(d) SLOT(e) SLOT(f) SLOT(g) SLOT(h)

EIGHT(0, 1, 2, 3, 4, 5, 6, 7)
EIGHT(8, 9, 10, 11, 12, 13, 14, 15)
EIGHT(16, 17, 18, 19, 20, 21, 22, 23)
EIGHT(24, 25, 26, 27, 28, 29, 30, 31)
EIGHT(32, 33, 34, 35, 36, 37, 38, 39)
EIGHT(40, 41, 42, 43, 44, 45, 46, 47)
EIGHT(48, 49, 50, 51, 52, 53, 54, 55)
EIGHT(56, 57, 58, 59, 60, 61, 62, 63)
