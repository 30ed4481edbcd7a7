#include "convert.h"

#include <math.h>
#include <string.h>

float lori_bfloat_to_float(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

uint16_t lori_float_to_bfloat(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (f != f)
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A mini is a float of at most 16 bits: sign, exponent, fraction.
typedef struct mini {
	int8_t exponent, fraction; // bits
	int8_t bias;
	// What the largest exponent is for: infinities and NaN as in IEEE 754; numbers
	// but for one NaN of all ones; numbers, with NaN as the negative zero.
	enum { IEEE, FN, FNUZ } special;
} mini;

static const mini half = {5, 10, 15, IEEE}, e5m2 = {5, 2, 15, IEEE}, e4m3fn = {4, 3, 7, FN};
static const mini e5m2fnuz = {5, 2, 16, FNUZ}, e4m3fnuz = {4, 3, 8, FNUZ};

static float mini_decode(const mini *m, uint32_t bits)
{
	uint32_t sign = bits >> (m->exponent + m->fraction) & 1;
	uint32_t top = (1u << m->exponent) - 1;
	uint32_t e = bits >> m->fraction & top;
	uint32_t f = bits & ((1u << m->fraction) - 1);
	uint32_t ones = (1u << m->fraction) - 1;
	float x;
	if (m->special == IEEE && e == top)
		x = f ? NAN : INFINITY;
	else if (m->special == FN && e == top && f == ones)
		x = NAN;
	else if (m->special == FNUZ && sign && e == 0 && f == 0)
		return NAN;
	else if (e == 0)
		x = ldexpf((float)f, 1 - m->bias - m->fraction);
	else
		x = ldexpf((float)(f | 1u << m->fraction), (int)e - m->bias - m->fraction);
	return sign ? -x : x;
}

static uint32_t mini_encode(const mini *m, float x)
{
	uint32_t sign = signbit(x) ? 1u << (m->exponent + m->fraction) : 0;
	uint32_t ones = (1u << m->fraction) - 1, top = (1u << m->exponent) - 1;
	uint32_t infinity = top << m->fraction;
	uint32_t nan = m->special == IEEE ? infinity | 1u << (m->fraction - 1)
		     : m->special == FN	  ? infinity | ones
					  : 1u << (m->exponent + m->fraction);
	uint32_t most = m->special == IEEE ? infinity - 1 : m->special == FN ? infinity | (ones - 1) : infinity | ones;
	if (x != x)
		return m->special == FNUZ ? nan : sign | nan;
	int e;
	float a = fabsf(x);
	frexpf(a, &e); // a is in [2^(e-1), 2^e)
	int unit = e - 1 - m->fraction;
	int least = 1 - m->bias - m->fraction;
	if (a == 0 || unit < least)
		unit = least;
	// Rounded to a whole number of units, exactly: a float has bits enough.
	double n = isinf(a) ? (double)(most + 1) * 1e30 : nearbyint(ldexp((double)a, -unit));
	double bits = n + (double)((uint32_t)(unit - least) << m->fraction);
	if (bits > (double)most)
		return sign | (m->special == IEEE ? infinity : nan);
	if (m->special == FNUZ && bits == 0)
		return 0;
	return sign | (uint32_t)bits;
}

float lori_half_to_float(uint16_t h) { return mini_decode(&half, h); }
uint16_t lori_float_to_half(float f) { return (uint16_t)mini_encode(&half, f); }

static const mini *mini_of(int32_t dtype)
{
	switch (dtype) {
	case LORI_F16:
		return &half;
	case LORI_F8E5M2:
		return &e5m2;
	case LORI_F8E4M3FN:
		return &e4m3fn;
	case LORI_F8E5M2FNUZ:
		return &e5m2fnuz;
	case LORI_F8E4M3FNUZ:
		return &e4m3fnuz;
	}
	return NULL;
}

#define READ(type, kind_, field)                                                                                       \
	{                                                                                                              \
		type x;                                                                                                \
		memcpy(&x, p, sizeof x);                                                                               \
		return (lori_value){.kind = kind_, .field = x};                                                        \
	}

lori_value lori_load(const void *p, int32_t dtype)
{
	float f[2];
	double d[2];
	uint16_t h[2] = {0, 0};
	switch (dtype) {
	case LORI_BOOL:
		return (lori_value){.kind = LORI_INT, .i = *(const uint8_t *)p != 0};
	case LORI_U8:
		READ(uint8_t, LORI_INT, i)
	case LORI_I8:
		READ(int8_t, LORI_INT, i)
	case LORI_I16:
		READ(int16_t, LORI_INT, i)
	case LORI_I32:
		READ(int32_t, LORI_INT, i)
	case LORI_I64:
		READ(int64_t, LORI_INT, i)
	case LORI_U16:
		READ(uint16_t, LORI_INT, i)
	case LORI_U32:
		READ(uint32_t, LORI_INT, i)
	case LORI_U64:
		READ(uint64_t, LORI_UINT, u)
	case LORI_F32:
		READ(float, LORI_REAL, re)
	case LORI_F64:
		READ(double, LORI_REAL, re)
	case LORI_C32:
		memcpy(h, p, sizeof h);
		return (lori_value){LORI_COMPLEX, .re = lori_half_to_float(h[0]), .im = lori_half_to_float(h[1])};
	case LORI_C64:
		memcpy(f, p, sizeof f);
		return (lori_value){LORI_COMPLEX, .re = f[0], .im = f[1]};
	case LORI_C128:
		memcpy(d, p, sizeof d);
		return (lori_value){LORI_COMPLEX, .re = d[0], .im = d[1]};
	case LORI_F8E8M0FNU:
		h[0] = *(const uint8_t *)p;
		return (lori_value){LORI_REAL, .re = h[0] == 255 ? NAN : ldexp(1, h[0] - 127)};
	}
	memcpy(h, p, (size_t)lori_dtype_size(dtype));
	if (dtype == LORI_BF16)
		return (lori_value){LORI_REAL, .re = lori_bfloat_to_float(h[0])};
	const mini *m = mini_of(dtype);
	return (lori_value){LORI_REAL, .re = m ? mini_decode(m, h[0]) : 0};
}

static double as_real(lori_value v) { return v.kind == LORI_INT ? (double)v.i : v.kind == LORI_UINT ? (double)v.u : v.re; }

static float as_float(lori_value v) { return v.kind == LORI_INT ? (float)v.i : v.kind == LORI_UINT ? (float)v.u : (float)v.re; }

// as_int is the conversion of x86 where C leaves it open.
static int64_t as_int(lori_value v)
{
	if (v.kind == LORI_INT || v.kind == LORI_UINT)
		return v.i;
	if (!(v.re >= -0x1p63 && v.re < 0x1p63))
		return INT64_MIN;
	return (int64_t)v.re;
}

// as_int32 is how floats become integers of at most 32 bits.
static int64_t as_int32(lori_value v)
{
	if (v.kind == LORI_INT || v.kind == LORI_UINT)
		return v.i;
	if (!(v.re > -0x1p31 - 1 && v.re < 0x1p31))
		return INT32_MIN;
	return (int32_t)v.re;
}

static uint64_t as_uint(lori_value v)
{
	if (v.kind != LORI_INT && v.kind != LORI_UINT && v.re >= 0x1p63 && v.re < 0x1p64)
		return (uint64_t)v.re;
	return (uint64_t)as_int(v);
}

#define WRITE(type, value)                                                                                             \
	{                                                                                                              \
		type x = (type)(value);                                                                                \
		memcpy(p, &x, sizeof x);                                                                               \
		return;                                                                                                \
	}

void lori_store(void *p, int32_t dtype, lori_value v)
{
	float f[2];
	double d[2], im = v.kind == LORI_COMPLEX ? v.im : 0;
	uint16_t h[2];
	switch (dtype) {
	case LORI_BOOL:
		WRITE(uint8_t, v.kind == LORI_INT || v.kind == LORI_UINT ? v.i != 0 : v.re != 0 || im != 0)
	case LORI_U8:
		WRITE(uint8_t, as_int(v))
	case LORI_I8:
		WRITE(int8_t, as_int32(v))
	case LORI_I16:
		WRITE(int16_t, as_int32(v))
	case LORI_I32:
		WRITE(int32_t, as_int32(v))
	case LORI_I64:
		WRITE(int64_t, as_int(v))
	case LORI_U16:
		WRITE(uint16_t, as_int32(v))
	case LORI_U32:
		WRITE(uint32_t, as_int(v))
	case LORI_U64:
		WRITE(uint64_t, as_uint(v))
	case LORI_F32:
		WRITE(float, as_float(v))
	case LORI_F64:
		WRITE(double, as_real(v))
	case LORI_BF16:
		WRITE(uint16_t, lori_float_to_bfloat(as_float(v)))
	case LORI_C32:
		h[0] = lori_float_to_half(as_float(v));
		h[1] = lori_float_to_half((float)im);
		memcpy(p, h, sizeof h);
		return;
	case LORI_C64:
		f[0] = as_float(v);
		f[1] = (float)im;
		memcpy(p, f, sizeof f);
		return;
	case LORI_C128:
		d[0] = as_real(v);
		d[1] = im;
		memcpy(p, d, sizeof d);
		return;
	}
	const mini *m = mini_of(dtype);
	if (m) {
		h[0] = (uint16_t)mini_encode(m, as_float(v));
		memcpy(p, h, (size_t)lori_dtype_size(dtype));
	}
}
