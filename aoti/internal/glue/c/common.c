// Texts of errors, checks of tensors, and which code the processor can run.
#include "glue.h"

#if !defined LORIS_COMPILED && !defined LORIS_CUDA
#include <cpuid.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread char last_error[256];

void lx_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(last_error, sizeof last_error, format, args);
	va_end(args);
}

const char *lx_last_error(void) { return last_error; }

__attribute__((visibility("default"))) lx_error AOTInductorGetLastError(const char **text)
{
	*text = last_error;
	return LX_OK;
}

const lx_plan *lx_plan_of(void) { return (const lx_plan *)loris_words; }
const char *lx_text(int64_t at) { return loris_text + at; }

const lx_constant *lx_constant_of(size_t i)
{
	return (const lx_constant *)(loris_words + lx_plan_of()->constant_at) + i;
}

// The numbers of c10::ScalarType.
const char *lx_dtype_name(int64_t dtype)
{
	switch (dtype) {
	case 0: return "uint8";
	case 1: return "int8";
	case 2: return "int16";
	case 3: return "int32";
	case 4: return "int64";
	case 5: return "float16";
	case 6: return "float32";
	case 7: return "float64";
	case 9: return "complex64";
	case 10: return "complex128";
	case 11: return "bool";
	case 15: return "bfloat16";
	}
	return "another dtype";
}

int64_t lx_dtype_size(int64_t dtype)
{
	switch (dtype) {
	case 2: case 5: case 15: return 2;
	case 3: case 6: return 4;
	case 4: case 7: case 9: return 8;
	case 10: return 16;
	}
	return 1;
}

void lx_dense(int64_t ndim, const int64_t *sizes, int64_t *strides)
{
	int64_t n = 1;
	while (ndim-- > 0) {
		strides[ndim] = n;
		n *= sizes[ndim] > 0 ? sizes[ndim] : 1;
	}
}

static char *write_sizes(char *text, size_t size, int64_t ndim, const int64_t *sizes)
{
	size_t at = 0;
	text[0] = 0;
	for (int64_t i = 0; i < ndim && at + 24 < size; i++)
		at += (size_t)snprintf(text + at, size - at, i ? ", %lld" : "%lld", (long long)sizes[i]);
	return text;
}

// check_device compares the device of a tensor with the model's.
static lx_error check_device(const char *what, const char *name, int32_t type, int32_t have, int32_t index)
{
	if (index == LX_ANYWHERE)
		return LX_OK;
	if (type != LX_DEVICE)
		lx_fail("%s %s: is not on %s", what, name, LX_DEVICE ? "a GPU" : "the CPU");
	else if (LX_DEVICE && have != index)
		lx_fail("%s %s: is on cuda:%d, the model on cuda:%d", what, name, have, index);
	else
		return LX_OK;
	return LX_FAILED;
}

lx_error lx_check(lx_handle tensor, const char *what, const char *name, int64_t dtype, int64_t ndim, const int64_t *sizes, int64_t *strides, int32_t index)
{
	int64_t have_dim, *have, *steps;
	int32_t have_dtype, device, have_index = 0;
	char a[80], b[80];
	if (!tensor) {
		lx_fail("%s %s: there is no tensor", what, name);
		return LX_FAILED;
	}
	if (aoti_torch_get_device_type(tensor, &device) || aoti_torch_get_dtype(tensor, &have_dtype) || aoti_torch_get_dim(tensor, &have_dim) ||
	    aoti_torch_get_sizes(tensor, &have) || aoti_torch_get_strides(tensor, &steps) || (LX_DEVICE && aoti_torch_get_device_index(tensor, &have_index))) {
		lx_fail("%s %s: cannot be read", what, name);
		return LX_FAILED;
	}
	if (check_device(what, name, device, have_index, index))
		return LX_FAILED;
	if (have_dtype != dtype)
		lx_fail("%s %s: has dtype %s, want %s", what, name, lx_dtype_name(have_dtype), lx_dtype_name(dtype));
	else if (have_dim != ndim)
		lx_fail("%s %s: has %lld dimensions, want %lld", what, name, (long long)have_dim, (long long)ndim);
	else if (ndim && memcmp(have, sizes, (size_t)ndim * sizeof *have))
		lx_fail("%s %s: has sizes [%s], want [%s]", what, name, write_sizes(a, sizeof a, ndim, have), write_sizes(b, sizeof b, ndim, sizes));
	else {
		if (ndim)
			memcpy(strides, steps, (size_t)ndim * sizeof *strides);
		return LX_OK;
	}
	return LX_FAILED;
}

lx_error lx_usable(lx_handle tensor, int64_t ndim, const int64_t *sizes, const int64_t *strides, bool *usable, void **data)
{
	int64_t want[LX_MAX_DIMS];
	int32_t type = LX_DEVICE;
	if (aoti_torch_get_data_ptr(tensor, data) || (LX_DEVICE && aoti_torch_get_device_type(tensor, &type)))
		return LX_FAILED;
	*usable = type == LX_DEVICE && (uintptr_t)*data % LX_ALIGN == 0;
	lx_dense(ndim, sizes, want);
	for (int64_t d = 0; d < ndim; d++)
		*usable = *usable && (strides[d] == want[d] || sizes[d] == 1);
	return LX_OK;
}

#if defined LORIS_COMPILED || defined LORIS_CUDA
int lx_level(void) { return 0; } // what the compiler made is for this processor
#else
// The system must save the registers, too: bits 1 and 2 of XCR0 are those of SSE and AVX, 5 to 7
// those of AVX-512.
int lx_level(void)
{
	const int64_t levels = lx_plan_of()->levels;
	uint32_t a, b, c, d, low, high;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return -1;
	const uint32_t one = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29; // FMA, OSXSAVE, AVX, F16C
	if ((c & one) != one || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return -1;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	const uint32_t avx2 = 1u << 5 | 1u << 8; // AVX2, BMI2
	const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; // F, DQ, BW, VL
	if ((low & 6) != 6 || (b & avx2) != avx2)
		return -1;
	if ((levels & 2) && (low & 0xe0) == 0xe0 && (b & avx512) == avx512)
		return 1;
	return levels & 1 ? 0 : -1;
}
#endif
