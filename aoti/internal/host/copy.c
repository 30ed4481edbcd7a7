// Copies between strided views.

#include "convert.h"
#include "device.h"
#include "tensor.h"

#include <string.h>

enum { MAX_DIMS = 64 };

// A walk goes over two views of the same sizes, in bytes.
typedef struct walk {
	int64_t ndim;
	int64_t sizes[MAX_DIMS], to[MAX_DIMS], from[MAX_DIMS];
} walk;

// walk_of matches src to dst from the right, as broadcasting does, and joins the
// dimensions that lie in a row in both.
static lori_error walk_of(walk *w, const lori_tensor *dst, const lori_tensor *src)
{
	int64_t ds = lori_dtype_size(dst->dtype), ss = lori_dtype_size(src->dtype);
	w->ndim = 0;
	for (int32_t i = 0; i < src->ndim - dst->ndim; i++)
		if (src->sizes[i] != 1)
			return lori_fail("copy: a tensor of %d dimensions into one of %d", src->ndim, dst->ndim);
	for (int32_t i = 0; i < dst->ndim; i++) {
		int32_t j = i + src->ndim - dst->ndim;
		int64_t n = dst->sizes[i], from = 0;
		if (j >= 0 && src->sizes[j] != 1) {
			if (src->sizes[j] != n)
				return lori_fail("copy: size %lld into %lld in dimension %d", (long long)src->sizes[j],
						 (long long)n, i);
			from = src->strides[j] * ss;
		}
		int64_t to = dst->strides[i] * ds, last = w->ndim - 1;
		if (n == 1)
			continue;
		if (last >= 0 && w->to[last] == to * n && w->from[last] == from * n) {
			w->sizes[last] *= n;
			w->to[last] = to;
			w->from[last] = from;
			continue;
		}
		w->sizes[w->ndim] = n;
		w->to[w->ndim] = to;
		w->from[w->ndim++] = from;
	}
	if (w->ndim == 0) {
		w->ndim = 1;
		w->sizes[0] = 1;
		w->to[0] = ds;
		w->from[0] = ss;
	}
	return LORI_OK;
}

#define MOVE(type)                                                                                                     \
	for (int64_t i = 0; i < n; i++, to += ts, from += fs) {                                                        \
		type x;                                                                                                \
		memcpy(&x, from, sizeof x);                                                                            \
		memcpy(to, &x, sizeof x);                                                                              \
	}                                                                                                              \
	break;

typedef struct wide {
	uint64_t a, b;
} wide;

// row copies n elements of one size.
static void row(char *to, int64_t ts, const char *from, int64_t fs, int64_t n, int64_t size)
{
	if (ts == size && fs == size) {
		memmove(to, from, (size_t)(n * size));
		return;
	}
	switch (size) {
	case 1:
		MOVE(uint8_t)
	case 2:
		MOVE(uint16_t)
	case 4:
		MOVE(uint32_t)
	case 8:
		MOVE(uint64_t)
	case 16:
		MOVE(wide)
	}
}

lori_error lori_copy(lori_tensor *dst, const lori_tensor *src)
{
	walk w;
	if (lori_tensor_check(dst, "copy") || lori_tensor_check(src, "copy") || walk_of(&w, dst, src) != LORI_OK)
		return LORI_FAIL;
	if (lori_on_device(dst) || lori_on_device(src))
		return lori_device_copy(dst, src);
	if (dst->layout != LORI_STRIDED || src->layout != LORI_STRIDED)
		return lori_fail("copy: a tensor of packed layout");
	if (dst->dtype != src->dtype && (dst->dtype == LORI_F8E8M0FNU || dst->dtype == LORI_F4E2M1FNX2 ||
					 src->dtype == LORI_F4E2M1FNX2))
		return lori_fail("copy: no conversion from %s to %s", lori_dtype_name(src->dtype),
				 lori_dtype_name(dst->dtype));
	if (dst->numel == 0)
		return LORI_OK;
	char *to = lori_tensor_data(dst);
	const char *from = lori_tensor_data(src);
	if (to == from && dst->dtype == src->dtype && memcmp(w.to, w.from, (size_t)w.ndim * sizeof *w.to) == 0)
		return LORI_OK;
	int64_t size = dst->dtype == src->dtype ? lori_dtype_size(dst->dtype) : 0;
	int64_t inner = w.ndim - 1, at[MAX_DIMS] = {0};
	for (;;) {
		if (size) {
			row(to, w.to[inner], from, w.from[inner], w.sizes[inner], size);
		} else {
			for (int64_t i = 0; i < w.sizes[inner]; i++)
				lori_store(to + i * w.to[inner], dst->dtype,
					   lori_load(from + i * w.from[inner], src->dtype));
		}
		int64_t d = inner - 1;
		for (; d >= 0; d--) {
			to += w.to[d];
			from += w.from[d];
			if (++at[d] < w.sizes[d])
				break;
			at[d] = 0;
			to -= w.to[d] * w.sizes[d];
			from -= w.from[d] * w.sizes[d];
		}
		if (d < 0)
			return LORI_OK;
	}
}

void *lori_host_elements(const lori_tensor *t)
{
	return lori_tensor_dense(t) && !lori_on_device(t) ? lori_tensor_data(t) : NULL;
}

lori_tensor *lori_dense(const lori_tensor *t)
{
	if (lori_tensor_dense(t) && !lori_on_device(t))
		return lori_tensor_alias(t);
	lori_tensor *dense = lori_tensor_empty(t->ndim, t->sizes, NULL, t->dtype);
	if (dense && lori_copy(dense, t) != LORI_OK) {
		lori_tensor_delete(dense);
		return NULL;
	}
	return dense;
}
