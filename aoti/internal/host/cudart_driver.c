// The driver's functions, as libraries call them.

#include "cudart.h"

#include <stdlib.h>
#include <string.h>

#define GPU                                                                                                            \
	const lori_gpu *g = lori_here.gpu;                                                                             \
	if (__builtin_expect(!g, 0))                                                                                   \
	return LORI_RESULT_NOT_INITIALIZED

#define PASS(name, field, params, ...)                                                                                 \
	lori_result name params                                                                                        \
	{                                                                                                              \
		GPU;                                                                                                   \
		return g->field(__VA_ARGS__);                                                                          \
	}

PASS(lrDriverGetVersion, version, (int *version), version)
PASS(lrModuleLoadData, load, (void **module, const void *image), module, image)
PASS(lrModuleUnload, unload, (void *module), module)
PASS(lrModuleGetFunction, function, (void **function, void *module, const char *name), function, module, name)
PASS(lrFuncSetAttribute, function_set, (void *function, int attribute, int value), function, attribute, value)

// text finds what the driver says of a result; it answers what it does not know
// with success here, since libraries throw this function's own result away with the other's.
static lori_result text_of(lori_result r, const char **text, bool name)
{
	const lori_gpu *g = lori_here.gpu;
	*text = NULL;
	lori_result bad = g ? (name ? g->error_name : g->error_text)(r, text) : 0;
	if (bad || !*text)
		*text = name ? "CUDA_ERROR_UNKNOWN" : "unknown error, or no GPU is in use";
	return 0;
}

lori_result lrGetErrorName(lori_result r, const char **text) { return text_of(r, text, true); }
lori_result lrGetErrorString(lori_result r, const char **text) { return text_of(r, text, false); }

lori_result lrCtxSynchronize(void) { return lori_wait(NULL); }
lori_result lrStreamSynchronize(void *stream) { return lori_wait(stream); }

lori_result lrCtxGetCurrent(void **context)
{
	GPU;
	*context = g->context;
	return 0;
}

lori_result lrCtxSetCurrent(void *context)
{
	GPU;
	return g->set_context(context);
}

// A path of the machine that compiled says nothing here: the file has the same name
// in the library's package.
lori_result lrModuleLoad(void **module, const char *path)
{
	GPU;
	const char *slash = strrchr(path, '/');
	void *image = loriGoDeviceFile(lori_here.token, (char *)(slash ? slash + 1 : path));
	if (!image)
		return LORI_RESULT_FILE_NOT_FOUND;
	lori_result r = g->load(module, image);
	free(image);
	return r;
}

lori_result lrLaunchKernel(void *function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
			   uint32_t shared, void *stream, void **params, void **extra)
{
	GPU;
	return g->launch(function, gx, gy, gz, bx, by, bz, shared, stream ? stream : lori_here.stream, params, extra);
}

// launch_config is CUlaunchConfig.
typedef struct launch_config {
	uint32_t grid[3], block[3], shared;
	void *stream;
	void *attributes;
	uint32_t n;
} launch_config;

lori_result lrLaunchKernelEx(const void *config, void *function, void **params, void **extra)
{
	GPU;
	launch_config c = *(const launch_config *)config;
	if (!c.stream)
		c.stream = lori_here.stream;
	return g->launch_ex(&c, function, params, extra);
}

lori_result lrTensorMapEncodeTiled(void *map, uint32_t type, uint32_t rank, void *address, const uint64_t *sizes,
				   const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
				   uint32_t interleave, uint32_t swizzle, uint32_t promotion, uint32_t fill)
{
	GPU;
	if (!g->tensor_map)
		return LORI_RESULT_NOT_SUPPORTED;
	return g->tensor_map(map, type, rank, address, sizes, strides, box, element_strides, interleave, swizzle, promotion,
			     fill);
}
