// Math functions: each hands its arguments to Go as machine words.
#ifndef LORI_OP_H
#define LORI_OP_H

#include <stdint.h>
#include <string.h>

#include "tensor.h"

static inline int64_t lori_word(double x)
{
	int64_t w;
	memcpy(&w, &x, sizeof w);
	return w;
}

// loriGoCall runs the function in line op of symbols.txt (op.go). The words are
// the arguments in order; floats are doubles.
lori_error loriGoCall(int32_t op, int64_t *args);

// loriGoDropCache forgets what Go keeps with a constant (cache.go).
void loriGoDropCache(uintptr_t cache);

#endif
