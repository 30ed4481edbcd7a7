// What artefacts call when they were built to be looked into.

#include "convert.h"
#include "shim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 16 };

static double real_part(lori_value v) { return v.kind == LORI_INT ? (double)v.i : v.kind == LORI_UINT ? (double)v.u : v.re; }

// dense_of returns t dense as a handle to delete, or NULL with the text.
static lori_tensor *dense_of(lori_tensor *t, const char *what)
{
	return lori_tensor_check(t, what) || t->layout != LORI_STRIDED ? NULL : lori_dense(t);
}

lori_error lori_torch_check_inf_and_nan(const char *name, lori_tensor *t)
{
	lori_tensor *d = dense_of(t, "check_inf_and_nan");
	if (!d)
		return LORI_FAIL;
	int64_t size = lori_dtype_size(d->dtype), bad = -1;
	const char *p = lori_tensor_data(d);
	for (int64_t i = 0; i < d->numel && bad < 0; i++) {
		lori_value v = lori_load(p + i * size, d->dtype);
		if (v.kind != LORI_INT && v.kind != LORI_UINT && (!isfinite(v.re) || (v.kind == LORI_COMPLEX && !isfinite(v.im))))
			bad = i;
	}
	lori_tensor_delete(d);
	return bad < 0 ? LORI_OK : lori_fail("%s has an infinity or NaN, first at element %lld", name, (long long)bad);
}

void lori_torch_print_tensor_handle(lori_tensor *t, const char *msg)
{
	lori_tensor *d = dense_of(t, "print_tensor_handle");
	printf("[%s] ", msg ? msg : "");
	if (!d) {
		printf("no tensor that can be printed\n");
		return;
	}
	printf("%s [", lori_dtype_name(d->dtype));
	for (int32_t i = 0; i < d->ndim; i++)
		printf("%s%lld", i ? ", " : "", (long long)t->sizes[i]);
	printf("] strides [");
	for (int32_t i = 0; i < d->ndim; i++)
		printf("%s%lld", i ? ", " : "", (long long)t->strides[i]);
	printf("]");
	int64_t size = lori_dtype_size(d->dtype);
	const char *p = lori_tensor_data(d);
	double least = INFINITY, most = -INFINITY, sum = 0;
	for (int64_t i = 0; i < d->numel; i++) {
		double x = real_part(lori_load(p + i * size, d->dtype));
		least = fmin(least, x);
		most = fmax(most, x);
		sum += x;
	}
	if (d->numel > 0)
		printf(" min %g max %g mean %g:", least, most, sum / (double)d->numel);
	for (int64_t i = 0; i < d->numel && i < SHOWN; i++)
		printf(" %g", real_part(lori_load(p + i * size, d->dtype)));
	printf("%s\n", d->numel > SHOWN ? " …" : "");
	fflush(stdout);
	lori_tensor_delete(d);
}

// The type of an element in NumPy's format; dtypes that it lacks are saved as
// their bits.
static const char *npy_type(int32_t dtype)
{
	switch (dtype) {
	case LORI_BOOL:
		return "|b1";
	case LORI_I8:
		return "|i1";
	case LORI_I16:
		return "<i2";
	case LORI_I32:
		return "<i4";
	case LORI_I64:
		return "<i8";
	case LORI_U16:
	case LORI_BF16:
		return "<u2";
	case LORI_U32:
		return "<u4";
	case LORI_U64:
		return "<u8";
	case LORI_F16:
		return "<f2";
	case LORI_F32:
		return "<f4";
	case LORI_F64:
		return "<f8";
	case LORI_C64:
		return "<c8";
	case LORI_C128:
		return "<c16";
	}
	return lori_dtype_size(dtype) == 4 ? "<u4" : "|u1";
}

static bool write_npy(FILE *f, const lori_tensor *d)
{
	char head[1024] = "\x93NUMPY\x01";
	char *text = head + 10;
	int room = sizeof head - 10;
	int n = snprintf(text, (size_t)room, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_type(d->dtype));
	for (int32_t i = 0; i < d->ndim && n < room; i++)
		n += snprintf(text + n, (size_t)(room - n), "%lld,", (long long)d->sizes[i]);
	n += n < room ? snprintf(text + n, (size_t)(room - n), "), }") : 0;
	int padded = (10 + n + 1 + 63) / 64 * 64;
	if (padded > (int)sizeof head)
		return false;
	memset(text + n, ' ', (size_t)(padded - 10 - n));
	head[padded - 1] = '\n';
	head[8] = (char)((padded - 10) & 0xff);
	head[9] = (char)((padded - 10) >> 8);
	size_t bytes = (size_t)(d->numel * lori_dtype_size(d->dtype));
	return fwrite(head, 1, (size_t)padded, f) == (size_t)padded && fwrite(lori_tensor_data(d), 1, bytes, f) == bytes;
}

// save_tensor_handle writes the tensor under tmp/aoti_torch, as libtorch does, in
// NumPy's format instead of a pickle.
void lori_torch_save_tensor_handle(lori_tensor *t, const char *tensor_name, const char *launch_prefix,
				   const char *kernel_name)
{
	char path[1024];
	lori_tensor *d = dense_of(t, "save_tensor_handle");
	snprintf(path, sizeof path, "tmp/aoti_torch/%s_%s_%s_cpu.npy", launch_prefix, kernel_name, tensor_name);
	for (char *p = strchr(path, '/'); p && p < path + 16; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(path, 0777) != 0 && errno != EEXIST)
			fprintf(stderr, "warning: save_tensor_handle: %s: %s\n", path, strerror(errno));
		*p = '/';
	}
	FILE *f = d ? fopen(path, "wb") : NULL;
	bool ok = f && write_npy(f, d);
	if (f)
		ok &= fclose(f) == 0;
	if (!ok)
		fprintf(stderr, "warning: save_tensor_handle: %s: %s\n", path, d ? strerror(errno) : lori_error_text());
	if (d)
		lori_tensor_delete(d);
}
