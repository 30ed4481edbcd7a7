// The thread's device, its memory, and copies.

#include "device.h"

#include <string.h>
#include <time.h>

enum { MAX_DIMS = 64 };

typedef struct row {
	const char *symbol;
	size_t offset;
	bool needed;
} row;

#define ROW(field, symbol, params, needed) {#symbol, offsetof(lori_gpu, field), needed},
static const row rows[] = {LORI_GPU_CALLS(ROW){0}};

const char *lori_gpu_symbol(int i) { return rows[i].symbol; }

bool lori_gpu_set(lori_gpu *g, int i, uintptr_t address)
{
	memcpy((char *)g + rows[i].offset, &address, sizeof address);
	return address || !rows[i].needed;
}

_Thread_local lori_context lori_here;

uintptr_t lori_here_token(void) { return lori_here.token; }
uintptr_t lori_here_instance(void) { return lori_here.instance; }

lori_context lori_enter(const lori_context *p)
{
	lori_context before = lori_here;
	lori_here = *p;
	if (p->gpu)
		p->gpu->set_context(p->gpu->context); // what fails by that says so itself
	return before;
}

void lori_leave(const lori_context *before) { lori_here = *before; }

lori_error lori_device_check(const char *what, int32_t type, int32_t index)
{
	const lori_gpu *g = lori_here.gpu;
	if (type == LORI_CPU)
		return LORI_OK;
	if (!g)
		return lori_fail("%s: the model runs on the CPU, not on a device of type %d", what, type);
	if (type != g->type || (index != g->index && index != -1))
		return lori_fail("%s: device %d of type %d is not the model's, which is %d of type %d", what, index, type,
				 g->index, g->type);
	return LORI_OK;
}

void lori_device_mark(lori_storage *s, int32_t type)
{
	if (type == LORI_CPU || !lori_here.gpu)
		return;
	s->device_type = lori_here.gpu->type;
	s->device_index = lori_here.gpu->index;
}

// give_back ends the reference that Go holds for a storage.
static void give_back(void *held) { loriGoDeviceFree((uintptr_t)held); }

lori_storage *lori_device_alloc(int64_t nbytes)
{
	uint64_t address;
	uintptr_t held;
	if (loriGoDeviceAlloc(lori_here.token, nbytes, &address, &held) != LORI_OK)
		return NULL;
	lori_storage *s = lori_storage_wrap((void *)(uintptr_t)address, nbytes, LORI_DEVICE, give_back, (void *)held);
	if (!s) {
		loriGoDeviceFree(held);
		return NULL;
	}
	lori_device_mark(s, LORI_CUDA);
	return s;
}

lori_tensor *lori_device_empty(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype)
{
	return lori_tensor_empty_in(lori_device_alloc, ndim, sizes, strides, dtype);
}

lori_tensor *lori_device_tensor(uintptr_t address, int64_t nbytes, uintptr_t held, int64_t ndim, const int64_t *sizes,
				const int64_t *strides, int64_t offset, int32_t dtype)
{
	int64_t dense[MAX_DIMS];
	lori_storage *s = lori_storage_wrap((void *)address, nbytes, LORI_DEVICE, give_back, (void *)held);
	if (!s) {
		loriGoDeviceFree(held);
		return NULL;
	}
	lori_device_mark(s, LORI_CUDA);
	if (!strides) {
		lori_row_major(ndim, sizes, dense);
		strides = dense;
	}
	return lori_tensor_over(s, ndim, sizes, strides, offset, dtype);
}

lori_tensor *lori_tensor_empty_like(const lori_tensor *t, const int64_t *strides)
{
	if (lori_on_device(t))
		return lori_device_empty(t->ndim, t->sizes, strides, t->dtype);
	return lori_tensor_empty(t->ndim, t->sizes, strides, t->dtype);
}

// checked turns a result of the driver into an error with its text.
static lori_error checked(lori_result r, const char *what)
{
	const char *text = NULL;
	if (r == 0)
		return LORI_OK;
	if (!lori_here.gpu || lori_here.gpu->error_text(r, &text) || !text)
		text = "no GPU is in use";
	return lori_fail("%s: %s (CUDA error %u)", what, text, r);
}

// poll waits until a query is answered, ever less impatiently.
static lori_result poll(lori_result (*query)(void *), void *what)
{
	lori_result r;
	for (long ns = 1000; (r = query(what)) == LORI_RESULT_NOT_READY; ns = ns < 100000 ? 2 * ns : ns) {
		struct timespec t = {.tv_nsec = ns};
		nanosleep(&t, NULL);
	}
	return r;
}

lori_result lori_wait(void *stream)
{
	return lori_here.gpu ? poll(lori_here.gpu->stream_query, stream ? stream : lori_here.stream)
			     : LORI_RESULT_NOT_INITIALIZED;
}

lori_result lori_wait_event(void *event)
{
	return lori_here.gpu ? poll(lori_here.gpu->event_query, event) : LORI_RESULT_NOT_INITIALIZED;
}

lori_error lori_device_move(void *dst, bool dst_device, const void *src, bool src_device, int64_t nbytes)
{
	const lori_gpu *g = lori_here.gpu;
	size_t n = (size_t)nbytes;
	void *s = lori_here.stream;
	if (n == 0)
		return LORI_OK;
	if (!dst_device && !src_device) {
		memmove(dst, src, n);
		return LORI_OK;
	}
	if (!g)
		return checked(LORI_RESULT_NOT_INITIALIZED, "copy");
	if (dst_device && src_device)
		return checked(g->copy((uintptr_t)dst, (uintptr_t)src, n, s), "copy on the device");
	if (dst_device)
		return checked(g->copy_in((uintptr_t)dst, src, n, s), "copy to the device");
	lori_result r = g->copy_out(dst, (uintptr_t)src, n, s);
	return checked(r ? r : lori_wait(NULL), "copy from the device");
}

lori_error lori_device_zero(void *p, int64_t nbytes)
{
	if (nbytes == 0)
		return LORI_OK;
	if (!lori_here.gpu)
		return checked(LORI_RESULT_NOT_INITIALIZED, "zero_");
	return checked(lori_here.gpu->set8((uintptr_t)p, 0, (size_t)nbytes, lori_here.stream), "zero_");
}

static int64_t reach_bytes(const lori_tensor *t)
{
	int64_t numel, reach;
	lori_extent(t->ndim, t->sizes, t->strides, &numel, &reach); // as when it was made
	return reach * lori_dtype_size(t->dtype);
}

lori_tensor *lori_device_host(const lori_tensor *t)
{
	lori_tensor *h = lori_tensor_empty(t->ndim, t->sizes, t->strides, t->dtype);
	if (h && lori_device_move(lori_tensor_data(h), false, lori_tensor_data(t), lori_on_device(t), reach_bytes(t)) != LORI_OK) {
		lori_tensor_delete(h);
		return NULL;
	}
	return h;
}

// alike reports that both lie in memory in the same way, without gaps.
static bool alike(const lori_tensor *a, const lori_tensor *b)
{
	if (a->dtype != b->dtype || a->ndim != b->ndim || memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes))
		return false;
	if (lori_tensor_dense(a) && lori_tensor_dense(b))
		return true;
	return memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0 &&
	       reach_bytes(a) == a->numel * lori_dtype_size(a->dtype);
}

lori_error lori_device_copy(lori_tensor *dst, const lori_tensor *src)
{
	bool to = lori_on_device(dst), from = lori_on_device(src);
	if (dst->layout != LORI_STRIDED || src->layout != LORI_STRIDED)
		return lori_fail("copy: a tensor of packed layout");
	if (alike(dst, src)) {
		if (lori_tensor_data(dst) == lori_tensor_data(src) && to == from)
			return LORI_OK;
		return lori_device_move(lori_tensor_data(dst), to, lori_tensor_data(src), from,
					dst->numel * lori_dtype_size(dst->dtype));
	}
	if (to) {
		lori_error done = loriGoDeviceCopy(lori_here.token, dst, (lori_tensor *)src);
		if (done != LORI_ELSEWHERE)
			return done;
	}
	lori_tensor *s = from ? lori_device_host(src) : lori_tensor_alias(src);
	// What lies between the elements of dst stays as it is.
	lori_tensor *d = to ? lori_device_host(dst) : lori_tensor_alias(dst);
	lori_error code = s && d ? lori_copy(d, s) : LORI_FAIL;
	if (code == LORI_OK && to)
		code = lori_device_move(lori_tensor_data(dst), true, lori_tensor_data(d), false, reach_bytes(dst));
	lori_tensor_delete(s);
	lori_tensor_delete(d);
	return code;
}
