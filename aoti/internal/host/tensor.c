// Handles: views of storage.

#include "tensor.h"

#include <stdlib.h>
#include <string.h>

enum {
	ALIVE = 0x4c4f5249, // "LORI"
	DEAD = 0x44454144,
	MAX_DIMS = 64,
};

static const struct dtype {
	const char *name;
	int8_t size;
} dtypes[] = {
	[LORI_U8] = {"uint8", 1},
	[LORI_I8] = {"int8", 1},
	[LORI_I16] = {"int16", 2},
	[LORI_I32] = {"int32", 4},
	[LORI_I64] = {"int64", 8},
	[LORI_F16] = {"float16", 2},
	[LORI_F32] = {"float32", 4},
	[LORI_F64] = {"float64", 8},
	[LORI_C32] = {"complex32", 4},
	[LORI_C64] = {"complex64", 8},
	[LORI_C128] = {"complex128", 16},
	[LORI_BOOL] = {"bool", 1},
	[LORI_BF16] = {"bfloat16", 2},
	[LORI_F8E5M2] = {"float8_e5m2", 1},
	[LORI_F8E4M3FN] = {"float8_e4m3fn", 1},
	[LORI_F8E5M2FNUZ] = {"float8_e5m2fnuz", 1},
	[LORI_F8E4M3FNUZ] = {"float8_e4m3fnuz", 1},
	[LORI_U16] = {"uint16", 2},
	[LORI_U32] = {"uint32", 4},
	[LORI_U64] = {"uint64", 8},
	[LORI_F8E8M0FNU] = {"float8_e8m0fnu", 1},
	[LORI_F4E2M1FNX2] = {"float4_e2m1fn_x2", 1},
};

int64_t lori_dtype_size(int32_t dtype)
{
	return dtype < 0 || (size_t)dtype >= sizeof dtypes / sizeof *dtypes ? 0 : dtypes[dtype].size;
}

const char *lori_dtype_name(int32_t dtype) { return lori_dtype_size(dtype) == 0 ? "unknown" : dtypes[dtype].name; }

lori_error lori_extent(int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t *numel, int64_t *reach)
{
	int64_t n = 1, last = 0;
	bool empty = false;
	for (int64_t i = 0; i < ndim; i++) {
		if (sizes[i] < 0)
			return lori_fail("a tensor has a negative size: %lld in dimension %lld", (long long)sizes[i],
					 (long long)i);
		empty |= sizes[i] == 0;
	}
	for (int64_t i = 0; i < ndim && !empty; i++) {
		int64_t far;
		if (strides[i] < 0)
			return lori_fail("a tensor has a negative stride: %lld in dimension %lld",
					 (long long)strides[i], (long long)i);
		if (__builtin_mul_overflow(n, sizes[i], &n) || __builtin_mul_overflow(sizes[i] - 1, strides[i], &far) ||
		    __builtin_add_overflow(last, far, &last))
			return lori_fail("the size of a tensor overflows");
	}
	*numel = empty ? 0 : n;
	*reach = empty ? 0 : last + 1;
	return LORI_OK;
}

void lori_row_major(int64_t ndim, const int64_t *sizes, int64_t *strides)
{
	int64_t step = 1;
	for (int64_t i = ndim - 1; i >= 0; i--) {
		strides[i] = step;
		if (sizes[i] > 1 && __builtin_mul_overflow(step, sizes[i], &step))
			step = INT64_MAX / 2; // the extent, which is checked, overflows then
	}
}

static lori_tensor *handle(int64_t ndim)
{
	if (ndim < 0 || ndim > MAX_DIMS) {
		lori_fail("a tensor of %lld dimensions; %d are the most", (long long)ndim, MAX_DIMS);
		return NULL;
	}
	int64_t capacity = ndim > LORI_INLINE_DIMS ? ndim : LORI_INLINE_DIMS;
	int32_t c;
	lori_tensor *t = lori_block_take((int64_t)sizeof *t + 2 * capacity * (int64_t)sizeof(int64_t), &c);
	if (!t)
		return NULL;
	*t = (lori_tensor){.magic = ALIVE, .size_class = c, .capacity = (int32_t)capacity, .ndim = (int32_t)ndim};
	t->sizes = t->dims;
	t->strides = t->dims + ndim;
	lori_count_handle(1);
	return t;
}

lori_tensor *lori_tensor_undefined(void) { return handle(0); }

lori_tensor *lori_tensor_over(lori_storage *s, int64_t ndim, const int64_t *sizes, const int64_t *strides,
			      int64_t offset, int32_t dtype)
{
	int64_t size = lori_dtype_size(dtype), reach, end;
	lori_tensor *t = NULL;
	if (size == 0)
		lori_fail("a tensor of the unknown dtype %d", dtype);
	else if (offset < 0)
		lori_fail("a tensor at the negative offset %lld", (long long)offset);
	else
		t = handle(ndim);
	if (!t) {
		lori_storage_release(s);
		return NULL;
	}
	t->storage = s;
	t->device_type = s->device_type;
	t->device_index = s->device_index;
	t->dtype = dtype;
	t->offset = offset;
	memcpy(t->sizes, sizes, (size_t)ndim * sizeof *sizes);
	memcpy(t->strides, strides, (size_t)ndim * sizeof *strides);
	if (lori_extent(ndim, sizes, strides, &t->numel, &reach) != LORI_OK) {
		lori_tensor_delete(t);
		return NULL;
	}
	if (reach > 0 && (__builtin_add_overflow(reach, offset, &end) || __builtin_mul_overflow(end, size, &end) ||
			  end > s->nbytes)) {
		lori_fail("a view reaches to element %lld+%lld of %lld bytes each in a storage of %lld bytes",
			  (long long)offset, (long long)reach, (long long)size, (long long)s->nbytes);
		lori_tensor_delete(t);
		return NULL;
	}
	return t;
}

lori_tensor *lori_tensor_empty_in(lori_storage *(*alloc)(int64_t), int64_t ndim, const int64_t *sizes,
				  const int64_t *strides, int32_t dtype)
{
	int64_t dense[MAX_DIMS], numel, reach, nbytes;
	if (ndim < 0 || ndim > MAX_DIMS) {
		lori_fail("a tensor of %lld dimensions; %d are the most", (long long)ndim, MAX_DIMS);
		return NULL;
	}
	if (!strides) {
		lori_row_major(ndim, sizes, dense);
		strides = dense;
	}
	if (lori_extent(ndim, sizes, strides, &numel, &reach) != LORI_OK)
		return NULL;
	if (__builtin_mul_overflow(reach, lori_dtype_size(dtype), &nbytes)) {
		lori_fail("the size of a tensor overflows");
		return NULL;
	}
	lori_storage *s = alloc(nbytes);
	return s ? lori_tensor_over(s, ndim, sizes, strides, 0, dtype) : NULL;
}

lori_tensor *lori_tensor_empty(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype)
{
	return lori_tensor_empty_in(lori_alloc, ndim, sizes, strides, dtype);
}

lori_tensor *lori_tensor_borrow(void *data, int64_t nbytes, int64_t ndim, const int64_t *sizes,
				const int64_t *strides, int32_t dtype)
{
	int64_t dense[MAX_DIMS];
	if (!strides && ndim >= 0 && ndim <= MAX_DIMS) {
		lori_row_major(ndim, sizes, dense);
		strides = dense;
	}
	lori_storage *s = lori_storage_wrap(data, nbytes, LORI_BORROWED, NULL, NULL);
	return s ? lori_tensor_over(s, ndim, sizes, strides, 0, dtype) : NULL;
}

// share makes the empty handle t hold what src holds.
static void share(lori_tensor *t, const lori_tensor *src)
{
	if (src->storage)
		lori_storage_retain(src->storage);
	if (src->opaque)
		atomic_fetch_add_explicit(&src->opaque->refs, 1, memory_order_relaxed);
	t->dtype = src->dtype;
	t->layout = src->layout;
	t->device_type = src->device_type;
	t->device_index = src->device_index;
	t->storage = src->storage;
	t->offset = src->offset;
	t->numel = src->numel;
	t->opaque = src->opaque;
	memcpy(t->sizes, src->sizes, (size_t)src->ndim * sizeof *src->sizes);
	memcpy(t->strides, src->strides, (size_t)src->ndim * sizeof *src->strides);
}

lori_tensor *lori_tensor_alias(const lori_tensor *src)
{
	lori_tensor *t = handle(src->ndim);
	if (t)
		share(t, src);
	return t;
}

static void drop(lori_storage *s, lori_opaque *o)
{
	if (s)
		lori_storage_release(s);
	if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		lori_block_give(o, o->size_class);
}

lori_error lori_tensor_assign(lori_tensor *dst, const lori_tensor *src)
{
	if (dst == src)
		return LORI_OK;
	if (src->ndim > dst->capacity)
		return lori_fail("a handle for %d dimensions cannot become one of %d", dst->capacity, src->ndim);
	lori_storage *s = dst->storage;
	lori_opaque *o = dst->opaque;
	dst->ndim = src->ndim;
	dst->strides = dst->dims + src->ndim;
	share(dst, src);
	drop(s, o);
	return LORI_OK;
}

lori_error lori_tensor_check(const lori_tensor *t, const char *what)
{
	if (!t)
		return lori_fail("%s: the tensor handle is NULL", what);
	if (t->magic != ALIVE)
		return lori_fail("%s: the tensor handle %s", what,
				 t->magic == DEAD ? "is used after its deletion" : "is none of this host");
	if (!t->storage)
		return lori_fail("%s: the tensor is undefined", what);
	return LORI_OK;
}

lori_error lori_tensor_delete(lori_tensor *t)
{
	if (!t)
		return LORI_OK;
	if (t->magic != ALIVE)
		return lori_fail("delete: the tensor handle %s",
				 t->magic == DEAD ? "is deleted already" : "is none of this host");
	t->magic = DEAD;
	drop(t->storage, t->opaque);
	lori_count_handle(-1);
	lori_block_give(t, t->size_class);
	return LORI_OK;
}

void *lori_tensor_data(const lori_tensor *t)
{
	return (char *)t->storage->data + t->offset * lori_dtype_size(t->dtype);
}

bool lori_tensor_dense(const lori_tensor *t)
{
	int64_t step = 1;
	if (t->numel == 0)
		return true;
	for (int32_t i = t->ndim - 1; i >= 0; i--) {
		if (t->sizes[i] != 1 && t->strides[i] != step)
			return false;
		step *= t->sizes[i];
	}
	return true;
}

bool lori_tensor_exclusive(const lori_tensor *t)
{
	const lori_storage *s = t->storage;
	return (s->flags == LORI_OWNED || s->flags == LORI_DEVICE) && atomic_load(&s->refs) == 1 && t->layout == LORI_STRIDED &&
	       lori_tensor_dense(t) && t->numel * lori_dtype_size(t->dtype) >= s->nbytes / 2;
}

lori_error lori_tensor_read(const lori_tensor *t, void *dst, int64_t nbytes)
{
	if (lori_tensor_check(t, "read"))
		return LORI_FAIL;
	if (nbytes != t->numel * lori_dtype_size(t->dtype))
		return lori_fail("read: %lld elements of %s into %lld bytes", (long long)t->numel,
				 lori_dtype_name(t->dtype), (long long)nbytes);
	if (lori_tensor_dense(t) && t->layout == LORI_STRIDED && !lori_on_device(t)) {
		if (nbytes > 0)
			memcpy(dst, lori_tensor_data(t), (size_t)nbytes);
		return LORI_OK;
	}
	lori_tensor *to = lori_tensor_borrow(dst, nbytes, t->ndim, t->sizes, NULL, t->dtype);
	if (!to)
		return LORI_FAIL;
	lori_error err = lori_copy(to, t);
	lori_tensor_delete(to);
	return err;
}

lori_error lori_opaque_set(lori_tensor *t, const uint8_t *bytes, int64_t size)
{
	int32_t c;
	lori_opaque *o = lori_block_take((int64_t)sizeof *o + size, &c);
	if (!o)
		return LORI_FAIL;
	atomic_init(&o->refs, 1);
	o->size_class = c;
	o->size = size;
	memcpy(o->bytes, bytes, (size_t)size);
	t->layout = LORI_MKLDNN;
	t->opaque = o;
	return LORI_OK;
}

int64_t lori_opaque_nbytes(const uint8_t *bytes, int64_t size)
{
	// Where oneDNN's description has the rank, the dtype and the padded sizes.
	enum { RANK = 4, DTYPE = 104, PADDED = 112, MOST = 12 };
	static const int8_t sizes[] = {0, 2, 2, 4, 4, 1, 1, 8};
	int32_t rank, dtype;
	int64_t n;
	if (size < PADDED + MOST * (int64_t)sizeof n)
		return 0;
	memcpy(&rank, bytes + RANK, sizeof rank);
	if (rank == 0)
		memcpy(&rank, bytes, sizeof rank);
	memcpy(&dtype, bytes + DTYPE, sizeof dtype);
	if (rank < 1 || rank > MOST || dtype < 0 || dtype >= (int32_t)sizeof sizes)
		return 0;
	int64_t nbytes = sizes[dtype];
	for (int32_t i = 0; i < rank; i++) {
		memcpy(&n, bytes + PADDED + i * (int32_t)sizeof n, sizeof n);
		if (n < 0 || __builtin_mul_overflow(nbytes, n, &nbytes))
			return 0;
	}
	return nbytes;
}

static _Thread_local lori_recorded *recording;

void lori_record_start(lori_recorded *list) { recording = list; }
void lori_record_stop(void) { recording = NULL; }

void lori_record_add(const lori_tensor *t)
{
	if (recording)
		lori_recorded_add(recording, t);
}

void lori_recorded_add(lori_recorded *r, const lori_tensor *t)
{
	if (r->count == r->capacity) {
		int64_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
		lori_tensor **items = realloc(r->items, (size_t)capacity * sizeof *items);
		if (!items) {
			r->failed = true;
			return;
		}
		r->items = items;
		r->capacity = capacity;
	}
	lori_tensor *copy = lori_tensor_alias(t);
	if (copy)
		r->items[r->count++] = copy;
	else
		r->failed = true;
}

void lori_record_free(lori_recorded *list)
{
	for (int64_t i = 0; i < list->count; i++)
		lori_tensor_delete(list->items[i]);
	free(list->items);
	*list = (lori_recorded){0};
}

lori_error lori_tensor_resize(lori_tensor *t, int64_t ndim, const int64_t *sizes, const int64_t *strides)
{
	int64_t numel, reach, offset = t->offset, item = lori_dtype_size(t->dtype);
	if (lori_tensor_check(t, "resize_") || lori_extent(ndim, sizes, strides, &numel, &reach))
		return LORI_FAIL;
	lori_storage *s = t->storage, *grown = NULL;
	if (reach > (INT64_MAX / item) - offset)
		return lori_fail("resize_: the size is too large");
	int64_t nbytes = numel ? (offset + reach) * item : 0;
	if (nbytes > s->nbytes) {
		if (atomic_load(&s->refs) > 1 || !(atomic_load(&s->flags) & LORI_OWNED))
			return lori_fail("resize_: the memory is too small, and others hold it");
		grown = lori_alloc(nbytes);
		if (!grown)
			return LORI_FAIL;
		memcpy(grown->data, s->data, (size_t)s->nbytes);
		s = grown;
	} else {
		lori_storage_retain(s);
	}
	lori_tensor *view = lori_tensor_over(s, ndim, sizes, strides, offset, t->dtype);
	if (!view)
		return LORI_FAIL;
	lori_error code = lori_tensor_assign(t, view);
	lori_tensor_delete(view);
	return code;
}
