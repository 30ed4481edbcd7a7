// The functions of the artefacts' interface that are for CUDA.

#include "cudart.h"
#include "shim.h"

#include <stdlib.h>

// A guard of the device has nothing to restore: a model runs on one device.
static char device_guard;

lori_error lori_torch_create_cuda_guard(int32_t index, void **ret)
{
	*ret = &device_guard;
	return lori_device_check("create_cuda_guard", LORI_CUDA, index);
}

lori_error lori_torch_delete_cuda_guard(void *guard)
{
	(void)guard;
	return LORI_OK;
}

lori_error lori_torch_cuda_guard_set_index(void *guard, int32_t index)
{
	(void)guard;
	return lori_device_check("cuda_guard_set_index", LORI_CUDA, index);
}

// A guard of the stream holds the stream of before.
lori_error lori_torch_create_cuda_stream_guard(void *stream, int32_t index, void **ret)
{
	*ret = NULL;
	if (lori_device_check("create_cuda_stream_guard", LORI_CUDA, index))
		return LORI_FAIL;
	void **before = malloc(sizeof *before);
	if (!before)
		return lori_fail("out of memory");
	*before = lori_here.stream;
	if (stream)
		lori_here.stream = stream;
	*ret = before;
	return LORI_OK;
}

lori_error lori_torch_delete_cuda_stream_guard(void *guard)
{
	if (guard)
		lori_here.stream = *(void **)guard;
	free(guard);
	return LORI_OK;
}

lori_error lori_torch_get_current_cuda_stream(int32_t index, void **ret)
{
	*ret = lori_here.stream;
	return lori_device_check("get_current_cuda_stream", LORI_CUDA, index);
}

lori_error lori_torch_cuda_caching_allocator_raw_alloc(uint64_t nbytes, void **ret)
{
	return lrtaMalloc(ret, nbytes) ? LORI_FAIL : LORI_OK;
}

lori_error lori_torch_cuda_caching_allocator_raw_delete(void *p) { return lrtaFree(p) ? LORI_FAIL : LORI_OK; }
