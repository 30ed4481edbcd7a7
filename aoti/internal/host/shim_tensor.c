// The functions of the artefacts' interface that make, look at and copy tensors.

#include "device.h"
#include "library.h"
#include "shim.h"

#include <string.h>

enum { MAX_DIMS = 64 };

#define GET(name, type, value)                                                                                         \
	lori_error lori_torch_get_##name(lori_tensor *t, type *ret)                                                    \
	{                                                                                                              \
		if (__builtin_expect(lori_tensor_check(t, "get_" #name) != LORI_OK, 0))                                \
			return LORI_FAIL;                                                                              \
		*ret = value;                                                                                          \
		return LORI_OK;                                                                                        \
	}


lori_error lori_torch_get_data_ptr(lori_tensor *t, void **ret)
{
	if (__builtin_expect(lori_tensor_check(t, "get_data_ptr") != LORI_OK, 0))
		return LORI_FAIL;
	if (__builtin_expect(lori_touching != NULL, 0))
		lori_recorded_add(lori_touching, t);
	*ret = lori_tensor_data(t);
	return LORI_OK;
}

GET(storage_size, int64_t, t->storage->nbytes)
GET(dim, int64_t, t->ndim)
GET(numel, int64_t, t->numel)
GET(storage_numel, int64_t, t->storage->nbytes / lori_dtype_size(t->dtype))
GET(sizes, int64_t *, t->sizes)
GET(strides, int64_t *, t->strides)
GET(dtype, int32_t, t->dtype)
GET(device_type, int32_t, t->device_type)
GET(device_index, int32_t, t->device_index)
GET(layout, int32_t, t->layout)
GET(storage_offset, int64_t, t->offset)

static lori_error at_dim(lori_tensor *t, int64_t d, const char *what, const int64_t *values, int64_t *ret)
{
	int64_t i = d < 0 ? d + t->ndim : d;
	if (i < 0 || i >= t->ndim)
		return lori_fail("%s: dimension %lld of a tensor of %d", what, (long long)d, t->ndim);
	*ret = values[i];
	return LORI_OK;
}

lori_error lori_torch_get_size(lori_tensor *t, int64_t d, int64_t *ret)
{
	return lori_tensor_check(t, "get_size") ? LORI_FAIL : at_dim(t, d, "get_size", t->sizes, ret);
}

lori_error lori_torch_get_stride(lori_tensor *t, int64_t d, int64_t *ret)
{
	return lori_tensor_check(t, "get_stride") ? LORI_FAIL : at_dim(t, d, "get_stride", t->strides, ret);
}

lori_error lori_torch_is_contiguous(lori_tensor *t, bool *ret)
{
	if (lori_tensor_check(t, "is_contiguous"))
		return LORI_FAIL;
	*ret = t->layout == LORI_STRIDED && lori_tensor_dense(t);
	return LORI_OK;
}

lori_error lori_torch_is_defined(lori_tensor *t, bool *ret)
{
	*ret = t && t->storage;
	return LORI_OK;
}

lori_error lori_torch_delete_tensor_object(lori_tensor *t) { return lori_tensor_delete(t); }

// give hands a new handle out; NULL is a failure whose text is set.
static lori_error give(lori_tensor *t, lori_tensor **ret)
{
	*ret = t;
	return t ? LORI_OK : LORI_FAIL;
}

lori_error lori_torch_new_tensor_handle(lori_tensor *t, lori_tensor **ret)
{
	if (!t)
		return lori_fail("new_tensor_handle: the tensor handle is NULL");
	return give(lori_tensor_alias(t), ret);
}

lori_error lori_torch_new_uninitialized_tensor(lori_tensor **ret) { return give(lori_tensor_undefined(), ret); }

lori_error lori_torch_assign_tensors(lori_tensor *src, lori_tensor *dst)
{
	if (!src || !dst)
		return lori_fail("assign_tensors: the tensor handle is NULL");
	return lori_tensor_assign(dst, src);
}

lori_error lori_torch_assign_tensors_out(lori_tensor *src, lori_tensor **ret)
{
	return lori_torch_new_tensor_handle(src, ret);
}

// view returns a handle over the storage of t.
static lori_error view(lori_tensor *t, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
		       int32_t dtype, lori_tensor **ret)
{
	lori_storage_retain(t->storage);
	*ret = lori_tensor_over(t->storage, ndim, sizes, strides, offset, dtype);
	if (!*ret)
		return LORI_FAIL;
	return LORI_OK;
}

lori_error lori_torch__reinterpret_tensor(lori_tensor *t, int64_t ndim, const int64_t *sizes, const int64_t *strides,
					  int64_t storage_offset, lori_tensor **ret)
{
	int64_t offset;
	if (lori_tensor_check(t, "_reinterpret_tensor") || (lori_pending() && lori_take_pending()))
		return LORI_FAIL;
	if (__builtin_add_overflow(t->offset, storage_offset, &offset))
		return lori_fail("_reinterpret_tensor: the offset overflows");
	return view(t, ndim, sizes, strides, offset, t->dtype, ret);
}

lori_error lori_torch__alloc_from_pool(lori_tensor *t, int64_t offset_bytes, int32_t dtype, int64_t ndim,
				       const int64_t *sizes, const int64_t *strides, lori_tensor **ret)
{
	int64_t size = lori_dtype_size(dtype);
	if (lori_tensor_check(t, "_alloc_from_pool"))
		return LORI_FAIL;
	if (size == 0 || offset_bytes % size != 0)
		return lori_fail("_alloc_from_pool: offset %lld for dtype %d", (long long)offset_bytes, dtype);
	return view(t, ndim, sizes, strides, t->offset + offset_bytes / size, dtype, ret);
}

lori_error lori_torch_as_strided(lori_tensor *t, const int64_t *sizes, const int64_t *strides, lori_tensor **ret)
{
	if (lori_tensor_check(t, "as_strided"))
		return LORI_FAIL;
	return view(t, t->ndim, sizes, strides, t->offset, t->dtype, ret);
}

lori_error lori_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
				    int32_t device_type, int32_t device_index, lori_tensor **ret)
{
	if (lori_pending() && lori_take_pending())
		return LORI_FAIL;
	if (device_type == LORI_CPU)
		return give(lori_tensor_empty(ndim, sizes, strides, dtype), ret);
	if (lori_device_check("empty_strided", device_type, device_index))
		return LORI_FAIL;
	return give(lori_device_empty(ndim, sizes, strides, dtype), ret);
}

lori_error lori_torch_empty_strided_pinned(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
					   int32_t device_type, int32_t device_index, lori_tensor **ret)
{
	return lori_torch_empty_strided(ndim, sizes, strides, dtype, device_type, device_index, ret);
}

lori_error lori_torch_create_tensor_from_blob_v2(void *data, int64_t ndim, const int64_t *sizes,
						 const int64_t *strides, int64_t storage_offset, int32_t dtype,
						 int32_t device_type, int32_t device_index, lori_tensor **ret,
						 int32_t layout, const uint8_t *opaque_metadata,
						 int64_t opaque_metadata_size)
{
	int64_t numel, reach, nbytes, size = lori_dtype_size(dtype);
	if (lori_device_check("create_tensor_from_blob", device_type, device_index) || lori_extent(ndim, sizes, strides, &numel, &reach))
		return LORI_FAIL;
	if (layout != LORI_STRIDED && layout != LORI_MKLDNN)
		return lori_fail("create_tensor_from_blob: layout %d", layout);
	if (storage_offset < 0 || __builtin_add_overflow(reach, storage_offset, &nbytes) ||
	    __builtin_mul_overflow(nbytes, size, &nbytes))
		return lori_fail("create_tensor_from_blob: offset %lld", (long long)storage_offset);
	if (layout == LORI_MKLDNN) {
		// The sizes are those of the values, the strides say nothing.
		int64_t packed = lori_opaque_nbytes(opaque_metadata, opaque_metadata_size);
		if (packed == 0)
			return lori_fail("create_tensor_from_blob: packed bytes of an unknown form");
		nbytes = packed > nbytes ? packed : nbytes;
	}
	lori_storage *s = lori_storage_wrap(data, nbytes, LORI_FOREIGN, NULL, NULL);
	if (s)
		lori_device_mark(s, device_type);
	lori_tensor *t = s ? lori_tensor_over(s, ndim, sizes, strides, storage_offset, dtype) : NULL;
	if (t && layout == LORI_MKLDNN && lori_opaque_set(t, opaque_metadata, opaque_metadata_size) != LORI_OK) {
		lori_tensor_delete(t);
		t = NULL;
	}
	if (t && (!lori_here.gpu || lori_on_device(t))) // the constants of a library for a device are there
		lori_record_add(t);
	return give(t, ret);
}

lori_error lori_torch_create_tensor_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
					      int64_t storage_offset, int32_t dtype, int32_t device_type,
					      int32_t device_index, lori_tensor **ret)
{
	return lori_torch_create_tensor_from_blob_v2(data, ndim, sizes, strides, storage_offset, dtype, device_type,
						     device_index, ret, LORI_STRIDED, NULL, 0);
}

// by_stride orders the dimensions from the one that moves slowest through memory
// to the fastest, equal ones as they are.
static void by_stride(const lori_tensor *t, int32_t *order)
{
	for (int32_t i = 0; i < t->ndim; i++) {
		int32_t at = i;
		for (; at > 0 && t->strides[order[at - 1]] < t->strides[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

// compact computes the strides of a copy: those of t if its elements fill their
// memory without gaps and overlaps in some order, else dense ones in t's order.
static void compact(const lori_tensor *t, int64_t *strides)
{
	int32_t order[MAX_DIMS];
	int64_t step = 1;
	bool keep = true;
	by_stride(t, order);
	for (int32_t i = t->ndim - 1; i >= 0; i--) {
		int32_t d = order[i];
		strides[d] = step;
		keep &= t->sizes[d] == 1 || t->strides[d] == step;
		step *= t->sizes[d] > 0 ? t->sizes[d] : 1;
	}
	if (keep)
		memcpy(strides, t->strides, (size_t)t->ndim * sizeof *strides);
}

// clone_packed copies packed bytes as they are.
static lori_error clone_packed(lori_tensor *t, lori_tensor **ret)
{
	lori_storage *s = lori_alloc(t->storage->nbytes);
	if (!s)
		return LORI_FAIL;
	memcpy(s->data, t->storage->data, (size_t)s->nbytes);
	lori_tensor *copy = lori_tensor_over(s, t->ndim, t->sizes, t->strides, t->offset, t->dtype);
	if (copy && lori_opaque_set(copy, t->opaque->bytes, t->opaque->size) != LORI_OK) {
		lori_tensor_delete(copy);
		copy = NULL;
	}
	return give(copy, ret);
}

static lori_error clone_with(lori_tensor *t, const int64_t *strides, lori_tensor **ret)
{
	if (t->layout != LORI_STRIDED)
		return clone_packed(t, ret);
	lori_tensor *copy = lori_tensor_empty_like(t, strides);
	if (copy && lori_copy(copy, t) != LORI_OK) {
		lori_tensor_delete(copy);
		copy = NULL;
	}
	return give(copy, ret);
}

lori_error lori_torch_clone(lori_tensor *t, lori_tensor **ret)
{
	if (lori_tensor_check(t, "clone"))
		return LORI_FAIL;
	int64_t strides[MAX_DIMS];
	compact(t, strides);
	return clone_with(t, strides, ret);
}

// clone_preserve_strides copies the whole reach of a view, gaps included, so that
// further views with the same strides stay inside it.
lori_error lori_torch_clone_preserve_strides(lori_tensor *t, lori_tensor **ret)
{
	int64_t numel, reach, one = 1;
	if (lori_tensor_check(t, "clone_preserve_strides") ||
	    lori_extent(t->ndim, t->sizes, t->strides, &numel, &reach))
		return LORI_FAIL;
	bool there = lori_on_device(t);
	lori_tensor *flat = there ? lori_device_empty(1, &reach, &one, t->dtype) : lori_tensor_empty(1, &reach, &one, t->dtype);
	if (!flat)
		return LORI_FAIL;
	lori_error err = lori_device_move(lori_tensor_data(flat), there, lori_tensor_data(t), there,
					  reach * lori_dtype_size(t->dtype));
	if (err == LORI_OK)
		err = view(flat, t->ndim, t->sizes, t->strides, 0, t->dtype, ret);
	lori_tensor_delete(flat);
	return err;
}

lori_error lori_torch_copy_(lori_tensor *self, lori_tensor *src, int32_t non_blocking)
{
	(void)non_blocking;
	return lori_copy(self, src);
}

lori_error lori_torch_tensor_copy_(lori_tensor *src, lori_tensor *dst) { return lori_copy(dst, src); }

lori_error lori_torch_zero_(lori_tensor *t)
{
	if (lori_tensor_check(t, "zero_"))
		return LORI_FAIL;
	if (lori_tensor_dense(t) && lori_on_device(t))
		return lori_device_zero(lori_tensor_data(t), t->numel * lori_dtype_size(t->dtype));
	if (lori_tensor_dense(t)) {
		memset(lori_tensor_data(t), 0, (size_t)(t->numel * lori_dtype_size(t->dtype)));
		return LORI_OK;
	}
	uint64_t zero[2] = {0, 0};
	lori_tensor *z = lori_tensor_borrow(zero, sizeof zero, 0, NULL, NULL, t->dtype);
	if (!z)
		return LORI_FAIL;
	lori_error err = lori_copy(t, z);
	lori_tensor_delete(z);
	return err;
}
