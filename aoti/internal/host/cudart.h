// The parts of CUDA's driver and runtime that compiled models call, under the names
// that the private copies of libraries ask for: "lr" in the place of "cu" and
// "lrta" in that of "cuda". They go to the driver that serves the thread's device, and take
// the default stream for the stream of the model that runs.
#ifndef LORI_CUDART_H
#define LORI_CUDART_H

#include "device.h"

lori_result lrDriverGetVersion(int *version);
lori_result lrGetErrorName(lori_result r, const char **text);
lori_result lrGetErrorString(lori_result r, const char **text);
lori_result lrCtxSynchronize(void);
lori_result lrCtxGetCurrent(void **context);
lori_result lrCtxSetCurrent(void *context);
lori_result lrStreamSynchronize(void *stream);
lori_result lrModuleLoad(void **module, const char *path);
lori_result lrModuleLoadData(void **module, const void *image);
lori_result lrModuleUnload(void *module);
lori_result lrModuleGetFunction(void **function, void *module, const char *name);
lori_result lrFuncSetAttribute(void *function, int attribute, int value);
lori_result lrLaunchKernel(void *function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
			   uint32_t shared, void *stream, void **params, void **extra);
lori_result lrLaunchKernelEx(const void *config, void *function, void **params, void **extra);
lori_result lrTensorMapEncodeTiled(void *map, uint32_t type, uint32_t rank, void *address, const uint64_t *sizes,
				   const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
				   uint32_t interleave, uint32_t swizzle, uint32_t promotion, uint32_t fill);

const char *lrtaGetErrorName(lori_result r);
const char *lrtaGetErrorString(lori_result r);
lori_result lrtaGetLastError(void);
lori_result lrtaPeekAtLastError(void);
lori_result lrtaGetDevice(int *index);
lori_result lrtaSetDevice(int index);
lori_result lrtaDeviceSynchronize(void);
lori_result lrtaMalloc(void **p, size_t n);
lori_result lrtaFree(void *p);
lori_result lrtaHostAlloc(void **p, size_t n, uint32_t flags);
lori_result lrtaFreeHost(void *p);
lori_result lrtaMemcpy(void *dst, const void *src, size_t n, int kind);
lori_result lrtaMemcpyAsync(void *dst, const void *src, size_t n, int kind, void *stream);
lori_result lrtaMemset(void *p, int value, size_t n);
lori_result lrtaMemsetAsync(void *p, int value, size_t n, void *stream);
lori_result lrtaPointerGetAttributes(void *attributes, const void *p);
lori_result lrtaStreamCreateWithFlags(void **stream, uint32_t flags);
lori_result lrtaStreamDestroy(void *stream);
lori_result lrtaStreamQuery(void *stream);
lori_result lrtaStreamIsCapturing(void *stream, int *status);
lori_result lrtaStreamSynchronize(void *stream);
lori_result lrtaStreamWaitEvent(void *stream, void *event, uint32_t flags);
lori_result lrtaEventCreate(void **event);
lori_result lrtaEventCreateWithFlags(void **event, uint32_t flags);
lori_result lrtaEventDestroy(void *event);
lori_result lrtaEventQuery(void *event);
lori_result lrtaEventRecord(void *event, void *stream);
lori_result lrtaEventSynchronize(void *event);
lori_result lrtaEventElapsedTime(float *ms, void *from, void *to);

#endif
