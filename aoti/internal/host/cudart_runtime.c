// The runtime's functions, as libraries call them. There the last error of a
// thread is kept.

#include "cudart.h"

#include <string.h>

static _Thread_local lori_result last;

static lori_result note(lori_result r)
{
	if (r && r != LORI_RESULT_NOT_READY)
		last = r;
	return r;
}

#define RUN(name, params, call)                                                                                        \
	lori_result name params                                                                                        \
	{                                                                                                              \
		const lori_gpu *g = lori_here.gpu;                                                                     \
		return note(g ? g->call : LORI_RESULT_NOT_INITIALIZED);                                                \
	}

#define STREAM(s) ((s) ? (s) : lori_here.stream)

RUN(lrtaHostAlloc, (void **p, size_t n, uint32_t flags), host_alloc(p, n, flags))
RUN(lrtaFreeHost, (void *p), host_free(p))
RUN(lrtaMemsetAsync, (void *p, int value, size_t n, void *stream),
    set8((uintptr_t)p, (unsigned char)value, n, STREAM(stream)))
RUN(lrtaStreamCreateWithFlags, (void **stream, uint32_t flags), stream_create(stream, flags, 0))
RUN(lrtaStreamDestroy, (void *stream), stream_destroy(stream))
RUN(lrtaStreamQuery, (void *stream), stream_query(STREAM(stream)))
RUN(lrtaStreamIsCapturing, (void *stream, int *status), stream_capturing(STREAM(stream), status))
RUN(lrtaStreamWaitEvent, (void *stream, void *event, uint32_t flags), stream_wait(STREAM(stream), event, flags))
RUN(lrtaEventCreateWithFlags, (void **event, uint32_t flags), event_create(event, flags))
RUN(lrtaEventDestroy, (void *event), event_destroy(event))
RUN(lrtaEventQuery, (void *event), event_query(event))
RUN(lrtaEventRecord, (void *event, void *stream), event_record(event, STREAM(stream)))
RUN(lrtaEventElapsedTime, (float *ms, void *from, void *to), event_time(ms, from, to))

lori_result lrtaEventCreate(void **event) { return lrtaEventCreateWithFlags(event, 0); }
lori_result lrtaEventSynchronize(void *event) { return note(lori_wait_event(event)); }
lori_result lrtaStreamSynchronize(void *stream) { return note(lori_wait(stream)); }
lori_result lrtaDeviceSynchronize(void) { return note(lori_wait(NULL)); }

const char *lrtaGetErrorName(lori_result r)
{
	const char *text;
	lrGetErrorName(r, &text);
	return text;
}

const char *lrtaGetErrorString(lori_result r)
{
	const char *text;
	lrGetErrorString(r, &text);
	return text;
}

lori_result lrtaPeekAtLastError(void) { return last; }

lori_result lrtaGetLastError(void)
{
	lori_result r = last;
	last = 0;
	return r;
}

lori_result lrtaGetDevice(int *index)
{
	const lori_gpu *g = lori_here.gpu;
	if (g)
		*index = g->index;
	return note(g ? 0 : LORI_RESULT_NOT_INITIALIZED);
}

lori_result lrtaSetDevice(int index)
{
	const lori_gpu *g = lori_here.gpu;
	return note(!g ? LORI_RESULT_NOT_INITIALIZED : index == g->index ? 0 : LORI_RESULT_INVALID_DEVICE);
}

lori_result lrtaMalloc(void **p, size_t n)
{
	uint64_t address;
	*p = NULL;
	if (!lori_here.gpu)
		return note(LORI_RESULT_NOT_INITIALIZED);
	if (loriGoDeviceMalloc(lori_here.token, (int64_t)n, &address) != LORI_OK)
		return note(LORI_RESULT_OUT_OF_MEMORY);
	*p = (void *)(uintptr_t)address;
	return 0;
}

lori_result lrtaFree(void *p) { return note(loriGoDeviceMallocFree(lori_here.token, (uintptr_t)p) ? LORI_RESULT_INVALID_VALUE : 0); }

// What a copy is between, by cudaMemcpyKind; that the addresses themselves tell
// is not known here.
enum { HOST_TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE };

lori_result lrtaMemcpyAsync(void *dst, const void *src, size_t n, int kind, void *stream)
{
	const lori_gpu *g = lori_here.gpu;
	void *s = STREAM(stream);
	if (!g)
		return note(LORI_RESULT_NOT_INITIALIZED);
	if (n == 0)
		return 0;
	switch (kind) {
	case HOST_TO_HOST:
		memmove(dst, src, n);
		return 0;
	case TO_DEVICE:
		return note(g->copy_in((uintptr_t)dst, src, n, s));
	case TO_HOST:
		return note(g->copy_out(dst, (uintptr_t)src, n, s));
	case ON_DEVICE:
		return note(g->copy((uintptr_t)dst, (uintptr_t)src, n, s));
	}
	return note(LORI_RESULT_NOT_SUPPORTED);
}

lori_result lrtaMemcpy(void *dst, const void *src, size_t n, int kind)
{
	lori_result r = lrtaMemcpyAsync(dst, src, n, kind, NULL);
	return r || n == 0 ? r : note(lori_wait(NULL));
}

lori_result lrtaMemset(void *p, int value, size_t n)
{
	lori_result r = n ? lrtaMemsetAsync(p, value, n, NULL) : 0;
	return r ? r : note(lori_wait(NULL));
}

// Containers ask this before they copy constants, which this host does not let
// them; then the answer makes them copy as from the host.
lori_result lrtaPointerGetAttributes(void *attributes, const void *p)
{
	(void)attributes;
	(void)p;
	return note(LORI_RESULT_INVALID_VALUE);
}
