// Trampolines: functions of C for custom ops. A library that calls one is made to call
// a trampoline instead, and the trampoline knows which op it stands for.
#ifndef LORI_TRAMPOLINES_H
#define LORI_TRAMPOLINES_H

#include "tensor.h"

// The registers that hold arguments. Any further ones lie on the stack, a word
// each.
#if defined(__x86_64__)
enum { LORI_INT_REGISTERS = 6 };
#else
enum { LORI_INT_REGISTERS = 8 };
#endif
enum { LORI_FLOAT_REGISTERS = 8, LORI_STACK_WORDS = 24, LORI_TRAMPOLINES = 64 };

// lori_frame is all that a caller may have passed.
typedef struct lori_frame {
	int64_t ints[LORI_INT_REGISTERS];
	int64_t floats[LORI_FLOAT_REGISTERS]; // the bits
	int64_t stack[LORI_STACK_WORDS];
} lori_frame;

// loriGoTrampoline runs the op of a trampoline.
lori_error loriGoTrampoline(int32_t trampoline, lori_frame *frame);

#endif
