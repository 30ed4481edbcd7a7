// Single elements: reading and writing any dtype.
#ifndef LORI_CONVERT_H
#define LORI_CONVERT_H

#include "tensor.h"

// lori_value is one element, as the widest type of its kind.
typedef struct lori_value {
	enum { LORI_INT, LORI_UINT, LORI_REAL, LORI_COMPLEX } kind;
	union {
		int64_t i;
		uint64_t u;
		double re;
	};
	double im;
} lori_value;

// lori_load reads an element; the dtype is a known one.
lori_value lori_load(const void *p, int32_t dtype);
// lori_store writes an element as c10 converts it: to floats by rounding to
// nearest, to integers towards zero, to narrower integers by the low bits, to
// bool by != 0, from complex numbers by the real part.
void lori_store(void *p, int32_t dtype, lori_value v);

float lori_half_to_float(uint16_t h);
uint16_t lori_float_to_half(float f);
float lori_bfloat_to_float(uint16_t h);
uint16_t lori_float_to_bfloat(float f);

#endif
