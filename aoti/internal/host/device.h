// Devices other than the CPU: which one a thread's calls are for, memory of it,
// and copies. What serves a device is registered in Go (device.go); this side
// calls its driver by the addresses found there, so that a launch is no call
// of Go.
#ifndef LORI_DEVICE_H
#define LORI_DEVICE_H

#include "tensor.h"

typedef uint32_t lori_result; // CUresult, and cudaError_t, whose numbers are the same

enum {
	LORI_RESULT_INVALID_VALUE = 1,
	LORI_RESULT_OUT_OF_MEMORY = 2,
	LORI_RESULT_NOT_INITIALIZED = 3,
	LORI_RESULT_INVALID_DEVICE = 101,
	LORI_RESULT_FILE_NOT_FOUND = 301,
	LORI_RESULT_NOT_READY = 600,
	LORI_RESULT_NOT_SUPPORTED = 801,
};

// The functions of the driver that libraries, or this host for them, call:
// F(name of the field, symbol, parameters, needed).
#define LORI_GPU_CALLS(F)                                                                                              \
	F(version, cuDriverGetVersion, (int *), true)                                                                  \
	F(error_name, cuGetErrorName, (lori_result, const char **), true)                                              \
	F(error_text, cuGetErrorString, (lori_result, const char **), true)                                            \
	F(set_context, cuCtxSetCurrent, (void *), true)                                                                \
	F(load, cuModuleLoadData, (void **, const void *), true)                                                       \
	F(unload, cuModuleUnload, (void *), true)                                                                      \
	F(function, cuModuleGetFunction, (void **, void *, const char *), true)                                        \
	F(function_set, cuFuncSetAttribute, (void *, int, int), true)                                                  \
	F(launch, cuLaunchKernel,                                                                                      \
	  (void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **, void **), true) \
	F(launch_ex, cuLaunchKernelEx, (const void *, void *, void **, void **), true)                                 \
	F(stream_create, cuStreamCreateWithPriority, (void **, uint32_t, int), true)                                   \
	F(stream_destroy, cuStreamDestroy_v2, (void *), true)                                                          \
	F(stream_query, cuStreamQuery, (void *), true)                                                                 \
	F(stream_capturing, cuStreamIsCapturing, (void *, int *), true)                                                \
	F(stream_wait, cuStreamWaitEvent, (void *, void *, uint32_t), true)                                            \
	F(event_create, cuEventCreate, (void **, uint32_t), true)                                                      \
	F(event_destroy, cuEventDestroy_v2, (void *), true)                                                            \
	F(event_record, cuEventRecord, (void *, void *), true)                                                         \
	F(event_query, cuEventQuery, (void *), true)                                                                   \
	F(event_time, cuEventElapsedTime, (float *, void *, void *), true)                                             \
	F(host_alloc, cuMemHostAlloc, (void **, size_t, uint32_t), true)                                               \
	F(host_free, cuMemFreeHost, (void *), true)                                                                    \
	F(copy_in, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), true)                               \
	F(copy_out, cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *), true)                                    \
	F(copy, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *), true)                                      \
	F(set8, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *), true)                                      \
	F(tensor_map, cuTensorMapEncodeTiled,                                                                          \
	  (void *, uint32_t, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, \
	   uint32_t, uint32_t, uint32_t, uint32_t), false)

// lori_gpu is one device, for the life of the process.
typedef struct lori_gpu {
	int32_t type, index;
	void *context;
#define LORI_GPU_FIELD(field, symbol, params, needed) lori_result(*field) params;
	LORI_GPU_CALLS(LORI_GPU_FIELD)
} lori_gpu;

// lori_gpu_symbol returns the name of the i-th function, NULL after the last, and
// lori_gpu_set takes its address; it returns false for 0 where it is needed.
const char *lori_gpu_symbol(int i);
bool lori_gpu_set(lori_gpu *g, int i, uintptr_t address);

// lori_context is where the calls of a thread go. The token is that of the stream context in
// Go; instance is that of the instance that runs, 0 for none.
typedef struct lori_context {
	const lori_gpu *gpu;
	void *stream;
	uintptr_t token;
	uintptr_t instance;
} lori_context;

// lori_here is the thread's stream context; without a GPU all is on the CPU. A library
// names the stream by NULL, which is what CUDA calls the default stream.
extern _Thread_local lori_context lori_here;

// lori_here_token returns the token of the thread's stream context, 0 on the CPU.
uintptr_t lori_here_token(void);
// lori_here_instance returns the token of the instance that runs on the thread, 0 for none.
uintptr_t lori_here_instance(void);

// lori_enter makes a stream context the thread's until lori_leave gets the result.
lori_context lori_enter(const lori_context *p);
void lori_leave(const lori_context *before);

// lori_device_check reports a device that is neither the CPU nor the thread's.
lori_error lori_device_check(const char *what, int32_t type, int32_t index);
// lori_device_mark says that the memory is of the thread's device, unless type is
// the CPU.
void lori_device_mark(lori_storage *s, int32_t type);
// lori_device_empty is lori_tensor_empty on the thread's device.
lori_tensor *lori_device_empty(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype);
// lori_device_alloc is lori_alloc on the thread's device.
lori_storage *lori_device_alloc(int64_t nbytes);
// lori_device_copy is lori_copy where one of the two is on the thread's device.
lori_error lori_device_copy(lori_tensor *dst, const lori_tensor *src);
// lori_device_move copies bytes in the thread's stream. It waits only where the
// host gets them.
lori_error lori_device_move(void *dst, bool dst_device, const void *src, bool src_device, int64_t nbytes);
lori_error lori_device_zero(void *p, int64_t nbytes);
// lori_device_host returns a copy of t in the host's memory with the same strides.
lori_tensor *lori_device_host(const lori_tensor *t);

// lori_device_tensor returns a handle over memory of the thread's device that Go
// holds; it takes the reference in any case. strides may be NULL.
lori_tensor *lori_device_tensor(uintptr_t address, int64_t nbytes, uintptr_t held, int64_t ndim, const int64_t *sizes,
				const int64_t *strides, int64_t offset, int32_t dtype);

// lori_wait waits for the work in a stream, NULL for the thread's.
lori_result lori_wait(void *stream);
// lori_wait_event waits for an event.
lori_result lori_wait_event(void *event);

// In Go (device.go). A held is a reference to a piece of memory.
lori_error loriGoDeviceAlloc(uintptr_t token, int64_t nbytes, uint64_t *address, uintptr_t *held);
void loriGoDeviceFree(uintptr_t held);
// loriGoDeviceMalloc and loriGoDeviceMallocFree are for memory that a library holds by
// its address.
lori_error loriGoDeviceMalloc(uintptr_t token, int64_t nbytes, uint64_t *address);
lori_error loriGoDeviceMallocFree(uintptr_t token, uint64_t address);
// loriGoDeviceCopy is lori_device_copy between views of the thread's device that lie
// otherwise or differ in dtype; src may be on the host. It returns LORI_ELSEWHERE
// where the device has no way to.
enum { LORI_ELSEWHERE = 2 };
lori_error loriGoDeviceCopy(uintptr_t token, lori_tensor *dst, lori_tensor *src);
// loriGoDeviceFile returns a file of the library's package in memory of malloc,
// NULL if there is none.
void *loriGoDeviceFile(uintptr_t token, char *name);

#endif
