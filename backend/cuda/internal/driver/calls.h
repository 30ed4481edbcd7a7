// What Go calls: each function makes the context current and calls the driver,
// in one call of C, because goroutines change threads in between.
#ifndef LORI_CUDA_CALLS_H
#define LORI_CUDA_CALLS_H

#include "libs.h"

// The libraries as tables of functions.
#define LORI_DRIVER_FIELD(name, args) CUresult(*name) args;
typedef struct lori_driver {
	LORI_DRIVER_FUNCTIONS(LORI_DRIVER_FIELD)
} lori_driver;

#define LORI_NVRTC_FIELD(name, args) nvrtcResult(*name) args;
typedef struct lori_nvrtc {
	LORI_NVRTC_FUNCTIONS(LORI_NVRTC_FIELD)
} lori_nvrtc;

#define LORI_CUBLASLT_FIELD(name, result, args) result(*name) args;
typedef struct lori_cublaslt {
	LORI_CUBLASLT_FUNCTIONS(LORI_CUBLASLT_FIELD)
} lori_cublaslt;

// lori_cu_open opens a library; without one it returns NULL and sets *why to the
// loader's text, which the caller frees.
void *lori_cu_open(const char *path, char **why);
// lori_cu_symbol returns the address of a symbol, 0 if there is none.
uintptr_t lori_cu_symbol(void *library, const char *name);

// lori_cu_resolve_… fills the table of a library and returns NULL, or the name of a
// function that is missing.
const char *lori_cu_resolve_driver(void *library, lori_driver *table);
const char *lori_cu_resolve_nvrtc(void *library, lori_nvrtc *table);
const char *lori_cu_resolve_cublaslt(void *library, lori_cublaslt *table);

// Calls without a context: W(name, parameters after the driver, call).
#define LORI_PLAIN(W)                                                                                \
	W(driver_version, (int *v), cuDriverGetVersion(v))                                           \
	W(device_count, (int *n), cuDeviceGetCount(n))                                               \
	W(device_get, (int i, CUdevice *dev), cuDeviceGet(dev, i))                                   \
	W(device_name, (CUdevice dev, char *name, int n), cuDeviceGetName(name, n, dev))             \
	W(device_uuid, (CUdevice dev, CUuuid *id), cuDeviceGetUuid_v2(id, dev))                      \
	W(device_memory, (CUdevice dev, size_t *n), cuDeviceTotalMem_v2(n, dev))                     \
	W(device_attribute, (CUdevice dev, unsigned int a, int *v), cuDeviceGetAttribute(v, a, dev)) \
	W(device_peer, (CUdevice dev, CUdevice peer, int *can), cuDeviceCanAccessPeer(can, dev, peer)) \
	W(context_retain, (CUdevice dev, CUcontext *c), cuDevicePrimaryCtxRetain(c, dev))            \
	W(context_release, (CUdevice dev), cuDevicePrimaryCtxRelease_v2(dev))

// Calls with a current context: W(name, parameters after driver and context, call).
#define LORI_CURRENT(W)                                                                              \
	W(context_peer, (CUcontext peer), cuCtxEnablePeerAccess(peer, 0))                            \
	W(context_priorities, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest)) \
	W(memory_info, (size_t * unused, size_t *total), cuMemGetInfo_v2(unused, total))             \
	W(module_load, (CUmodule * m, const void *image), cuModuleLoadData(m, image))                \
	W(module_unload, (CUmodule m), cuModuleUnload(m))                                            \
	W(module_function, (CUmodule m, const char *name, CUfunction *f), cuModuleGetFunction(f, m, name)) \
	W(module_global, (CUmodule m, const char *name, CUdeviceptr *p, size_t *n),                  \
	  cuModuleGetGlobal_v2(p, n, m, name))                                                       \
	W(function_get, (CUfunction f, unsigned int a, int *v), cuFuncGetAttribute(v, a, f))         \
	W(function_set, (CUfunction f, unsigned int a, int v), cuFuncSetAttribute(f, a, v))          \
	W(function_blocks, (CUfunction f, int threads, size_t shared, int *n),                       \
	  cuOccupancyMaxActiveBlocksPerMultiprocessor(n, f, threads, shared))                        \
	W(function_block_size, (CUfunction f, size_t shared, int limit, int *grid, int *block),      \
	  cuOccupancyMaxPotentialBlockSize(grid, block, f, NULL, shared, limit))                     \
	W(stream_create, (int priority, CUstream *s),                                                \
	  cuStreamCreateWithPriority(s, LORI_STREAM_NON_BLOCKING, priority))                         \
	W(stream_destroy, (CUstream s), cuStreamDestroy_v2(s))                                       \
	W(stream_query, (CUstream s), cuStreamQuery(s))                                              \
	W(stream_wait, (CUstream s, CUevent e), cuStreamWaitEvent(s, e, 0))                          \
	W(stream_capture, (CUstream s), cuStreamBeginCapture_v2(s, LORI_CAPTURE_RELAXED))            \
	W(stream_capture_end, (CUstream s, CUgraph *g), cuStreamEndCapture(s, g))                    \
	W(event_create, (unsigned int flags, CUevent *e), cuEventCreate(e, flags))                   \
	W(event_destroy, (CUevent e), cuEventDestroy_v2(e))                                          \
	W(event_record, (CUevent e, CUstream s), cuEventRecord(e, s))                                \
	W(event_query, (CUevent e), cuEventQuery(e))                                                 \
	W(event_elapsed, (CUevent from, CUevent to, float *ms), cuEventElapsedTime(ms, from, to))    \
	W(pool_destroy, (CUmemoryPool p), cuMemPoolDestroy(p))                                       \
	W(pool_set, (CUmemoryPool p, unsigned int a, uint64_t *v), cuMemPoolSetAttribute(p, a, v))   \
	W(pool_get, (CUmemoryPool p, unsigned int a, uint64_t *v), cuMemPoolGetAttribute(p, a, v))   \
	W(pool_trim, (CUmemoryPool p, size_t keep), cuMemPoolTrimTo(p, keep))                        \
	W(pool_alloc, (CUmemoryPool p, CUstream s, size_t n, CUdeviceptr *out),                      \
	  cuMemAllocFromPoolAsync(out, n, p, s))                                                     \
	W(free, (CUdeviceptr p, CUstream s), cuMemFreeAsync(p, s))                                   \
	W(host_alloc, (size_t n, void **p), cuMemHostAlloc(p, n, LORI_HOST_PORTABLE))                \
	W(host_free, (void *p), cuMemFreeHost(p))                                                    \
	W(copy_in, (CUdeviceptr to, const void *from, size_t n, CUstream s), cuMemcpyHtoDAsync_v2(to, from, n, s)) \
	W(copy_out, (void *to, CUdeviceptr from, size_t n, CUstream s), cuMemcpyDtoHAsync_v2(to, from, n, s)) \
	W(copy, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), cuMemcpyDtoDAsync_v2(to, from, n, s)) \
	W(copy_peer, (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n, CUstream s), \
	  cuMemcpyPeerAsync(to, tc, from, fc, n, s))                                                 \
	W(set8, (CUdeviceptr p, uint32_t v, size_t n, CUstream s), cuMemsetD8Async(p, (unsigned char)v, n, s)) \
	W(set16, (CUdeviceptr p, uint32_t v, size_t n, CUstream s), cuMemsetD16Async(p, (unsigned short)v, n, s)) \
	W(set32, (CUdeviceptr p, uint32_t v, size_t n, CUstream s), cuMemsetD32Async(p, v, n, s))    \
	W(graph_create, (CUgraph *g), cuGraphCreate(g, 0))                                           \
	W(graph_add_child, (CUgraph g, CUgraphNode after, CUgraph child, CUgraphNode *node),         \
	  cuGraphAddChildGraphNode(node, g, &after, after != NULL, child))                           \
	W(graph_set_child, (CUgraphExec x, CUgraphNode node, CUgraph child),                         \
	  cuGraphExecChildGraphNodeSetParams(x, node, child))                                        \
	W(graph_instantiate, (CUgraph g, CUgraphExec *x), cuGraphInstantiateWithFlags(x, g, 0))      \
	W(graph_nodes, (CUgraph g, size_t *n), cuGraphGetNodes(g, NULL, n))                          \
	W(graph_launch, (CUgraphExec x, CUstream s), cuGraphLaunch(x, s))                            \
	W(graph_exec_destroy, (CUgraphExec x), cuGraphExecDestroy(x))                                \
	W(graph_destroy, (CUgraph g), cuGraphDestroy(g))

#define LORI_UNPACK(...) __VA_ARGS__
#define LORI_PLAIN_PROTOTYPE(name, params, call) \
	CUresult lori_cu_##name(const lori_driver *d, LORI_UNPACK params);
LORI_PLAIN(LORI_PLAIN_PROTOTYPE)

#define LORI_CURRENT_PROTOTYPE(name, params, call) \
	CUresult lori_cu_##name(const lori_driver *d, CUcontext c, LORI_UNPACK params);
LORI_CURRENT(LORI_CURRENT_PROTOTYPE)

CUresult lori_cu_init(const lori_driver *d);

// lori_cu_pause sleeps for a time of less than a second, to some microseconds.
void lori_cu_pause(uint64_t nanoseconds);

// lori_cu_stream and lori_cu_event make a stream and an event of a number that another library gave.
CUstream lori_cu_stream(uintptr_t handle);
CUevent lori_cu_event(uintptr_t handle);

CUresult lori_cu_capturing(const lori_driver *d, CUcontext c, CUstream s, int *yes);
CUresult lori_cu_pool_create(const lori_driver *d, CUcontext c, int device, CUmemoryPool *p);
CUresult lori_cu_pool_access(const lori_driver *d, CUcontext c, CUmemoryPool p, int peer);

// lori_cu_text returns the name and the text of an error, "" for unknown ones.
void lori_cu_text(const lori_driver *d, CUresult r, const char **name, const char **text);

// LORI_MAX_SLOTS is how many parameters a kernel can have here.
enum { LORI_MAX_SLOTS = 512 };

typedef struct lori_launch {
	uint32_t grid[3], block[3], cluster[3]; // cluster[0] is 0 for none
	uint32_t shared;			// dynamic, in bytes
	uint32_t cooperative, overlap;		// booleans
} lori_launch;

// lori_cu_launch starts a kernel with n parameters of 64 bits each, of which the
// kernel reads as many bytes as its parameter has.
CUresult lori_cu_launch(const lori_driver *d, CUcontext c, CUfunction f, CUstream s, const lori_launch *l,
			const uint64_t *slots, size_t n);

// lori_cu_graph_add_kernel adds such a start to a graph, after another node unless
// that is NULL; lori_cu_graph_set_kernel replaces that of a node.
CUresult lori_cu_graph_add_kernel(const lori_driver *d, CUcontext c, CUgraph g, CUgraphNode after, CUfunction f,
				  const lori_launch *l, const uint64_t *slots, size_t n, CUgraphNode *node);
CUresult lori_cu_graph_set_kernel(const lori_driver *d, CUcontext c, CUgraphExec x, CUgraphNode node, CUfunction f,
				  const lori_launch *l, const uint64_t *slots, size_t n);

// lori_cu_nvrtc_version returns the version and the number of architectures.
nvrtcResult lori_cu_nvrtc_version(const lori_nvrtc *v, int *major, int *minor, int *archs);
nvrtcResult lori_cu_nvrtc_archs(const lori_nvrtc *v, int *archs);

// lori_cu_compile compiles a source to a cubin, or to PTX. *image and *log are NULL
// or the caller's to free; *call says which function failed.
nvrtcResult lori_cu_compile(const lori_nvrtc *v, const char *src, const char *name, const char *const *options,
			    int n_options, int ptx, char **image, size_t *size, char **log, const char **call);

// A matrix product as cuBLASLt wants it, that is, column-major.
typedef struct lori_matrix {
	uint32_t type;
	uint64_t rows, cols;
	int64_t ld, stride; // in elements
} lori_matrix;

typedef struct lori_matmul_spec {
	lori_matrix a, b, d; // c is like d
	int32_t batch;
	uint32_t compute, scale, transa, transb;
	uint32_t epilogue, bias_type;
	int32_t scale_rows; // the scales are of rows and columns
	int8_t fast;        // sums of 8-bit floats may have fewer bits
	uint64_t workspace; // the most that may be used, in bytes
	uint32_t align;     // addresses of matrices are multiples of it
} lori_matmul_spec;

enum { LORI_MAX_CHOICES = 8 };

typedef struct lori_matmul {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	uint32_t scale; // the type of alpha and beta
	uint32_t scaled; // the operands are 8-bit floats, which have scales
	int n; // of choices
	cublasLtMatmulHeuristicResult_t choices[LORI_MAX_CHOICES];
} lori_matmul;

// Addresses are of the device, 0 for none.
typedef struct lori_matmul_run {
	uint64_t a, b, c, d;
	uint64_t workspace, workspace_size;
	uint64_t bias, scale_a, scale_b, scale_d;
	double alpha, beta;
	int choice;
} lori_matmul_run;

// The calls of cuBLASLt return its status; a failure to make the context
// current is in *r. *call says which function failed.
cublasStatus_t lori_cu_blas_create(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t *h,
				   CUresult *r);
cublasStatus_t lori_cu_blas_destroy(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				    CUresult *r);
size_t lori_cu_blas_version(const lori_cublaslt *l);
void lori_cu_blas_text(const lori_cublaslt *l, cublasStatus_t s, const char **name, const char **text);
cublasStatus_t lori_cu_matmul_create(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				     const lori_matmul_spec *spec, lori_matmul *m, CUresult *r, const char **call);
cublasStatus_t lori_cu_matmul_destroy(const lori_cublaslt *l, lori_matmul *m);
cublasStatus_t lori_cu_matmul_run(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				  lori_matmul *m, const lori_matmul_run *run, CUstream s, CUresult *r,
				  const char **call);

#endif
