// The part of CUDA that this package calls, declared from its public
// documentation so that nobody needs CUDA's headers to build. A test compiles
// this file with LORI_CUDA_HEADERS, which takes the types from the real headers,
// and holds every function and number against them.
//
// Enumerations are unsigned int here, as compilers make those that have no
// negative member.
#ifndef LORI_CUDA_API_H
#define LORI_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef LORI_CUDA_HEADERS
#include <cuda.h>
#else
typedef unsigned int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned int CUdevice_attribute;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUmemPool_attribute;
typedef unsigned int CUstreamCaptureMode;
typedef unsigned int CUstreamCaptureStatus;
typedef size_t (*CUoccupancyB2DSize)(int);

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

typedef struct CUmemLocation_st {
	unsigned int type;
	int id;
} CUmemLocation;

typedef struct CUmemPoolProps_st {
	unsigned int allocType, handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	unsigned int flags;
} CUmemAccessDesc;

typedef union CUlaunchAttributeValue_union {
	char pad[64];
	int cooperative;
	struct {
		unsigned int x, y, z;
	} clusterDim;
	int programmaticStreamSerializationAllowed;
	uint64_t align;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
	unsigned int id;
	char pad[4];
	CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams, **extra;
	struct CUkern_st *kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;
#endif

// The functions of the driver: F(symbol, parameters). All return CUresult.
#define LORI_DRIVER_FUNCTIONS(F)                                                                     \
	F(cuDriverGetVersion, (int *))                                                               \
	F(cuInit, (unsigned int))                                                                    \
	F(cuGetErrorName, (CUresult, const char **))                                                 \
	F(cuGetErrorString, (CUresult, const char **))                                               \
	F(cuDeviceGetCount, (int *))                                                                 \
	F(cuDeviceGet, (CUdevice *, int))                                                            \
	F(cuDeviceGetName, (char *, int, CUdevice))                                                  \
	F(cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                                  \
	F(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                                 \
	F(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                               \
	F(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice))                                        \
	F(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                         \
	F(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                  \
	F(cuCtxSetCurrent, (CUcontext))                                                              \
	F(cuCtxEnablePeerAccess, (CUcontext, unsigned int))                                          \
	F(cuCtxGetStreamPriorityRange, (int *, int *))                                               \
	F(cuModuleLoadData, (CUmodule *, const void *))                                              \
	F(cuModuleUnload, (CUmodule))                                                                \
	F(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                               \
	F(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *))                   \
	F(cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction))                             \
	F(cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))                               \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t))             \
	F(cuOccupancyMaxPotentialBlockSize, (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int)) \
	F(cuLaunchKernel, (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,       \
			   unsigned int, unsigned int, unsigned int, CUstream, void **, void **))    \
	F(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **))                  \
	F(cuStreamCreateWithPriority, (CUstream *, unsigned int, int))                               \
	F(cuStreamDestroy_v2, (CUstream))                                                            \
	F(cuStreamQuery, (CUstream))                                                                 \
	F(cuStreamWaitEvent, (CUstream, CUevent, unsigned int))                                      \
	F(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                                  \
	F(cuStreamEndCapture, (CUstream, CUgraph *))                                                 \
	F(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                                  \
	F(cuEventCreate, (CUevent *, unsigned int))                                                  \
	F(cuEventDestroy_v2, (CUevent))                                                              \
	F(cuEventRecord, (CUevent, CUstream))                                                        \
	F(cuEventQuery, (CUevent))                                                                   \
	F(cuEventElapsedTime, (float *, CUevent, CUevent))                                           \
	F(cuMemGetInfo_v2, (size_t *, size_t *))                                                     \
	F(cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                                 \
	F(cuMemPoolDestroy, (CUmemoryPool))                                                          \
	F(cuMemPoolSetAttribute, (CUmemoryPool, CUmemPool_attribute, void *))                        \
	F(cuMemPoolGetAttribute, (CUmemoryPool, CUmemPool_attribute, void *))                        \
	F(cuMemPoolTrimTo, (CUmemoryPool, size_t))                                                   \
	F(cuMemPoolSetAccess, (CUmemoryPool, const CUmemAccessDesc *, size_t))                       \
	F(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                  \
	F(cuMemFreeAsync, (CUdeviceptr, CUstream))                                                   \
	F(cuMemHostAlloc, (void **, size_t, unsigned int))                                           \
	F(cuMemFreeHost, (void *))                                                                   \
	F(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                       \
	F(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                             \
	F(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                        \
	F(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))     \
	F(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                           \
	F(cuMemsetD16Async, (CUdeviceptr, unsigned short, size_t, CUstream))                         \
	F(cuMemsetD32Async, (CUdeviceptr, unsigned int, size_t, CUstream))                           \
	F(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                 \
	F(cuGraphCreate, (CUgraph *, unsigned int))                                                  \
	F(cuGraphAddKernelNode_v2, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,             \
				    const CUDA_KERNEL_NODE_PARAMS_v2 *))                             \
	F(cuGraphAddChildGraphNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph))  \
	F(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2 *)) \
	F(cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph))                   \
	F(cuGraphLaunch, (CUgraphExec, CUstream))                                                    \
	F(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                                       \
	F(cuGraphExecDestroy, (CUgraphExec))                                                         \
	F(cuGraphDestroy, (CUgraph))

// The numbers: N(name here, name in CUDA, value).
#define LORI_DRIVER_NUMBERS(N)                                                                       \
	N(ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1)                                          \
	N(ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                          \
	N(ERROR_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED, 4)                                          \
	N(ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                \
	N(ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE, 101)                                      \
	N(ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                        \
	N(ERROR_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                        \
	N(ERROR_ECC, CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                              \
	N(ERROR_NVLINK, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                        \
	N(ERROR_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                \
	N(ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE, 400)                                      \
	N(ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500)                                                \
	N(ERROR_NOT_READY, CUDA_ERROR_NOT_READY, 600)                                                \
	N(ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                    \
	N(ERROR_LAUNCH_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                           \
	N(ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                      \
	N(ERROR_PEER_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                           \
	N(ERROR_CONTEXT_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                             \
	N(ERROR_ASSERT, CUDA_ERROR_ASSERT, 710)                                                      \
	N(ERROR_HARDWARE_STACK, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                \
	N(ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                            \
	N(ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                              \
	N(ERROR_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                \
	N(ERROR_INVALID_PC, CUDA_ERROR_INVALID_PC, 718)                                              \
	N(ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719)                                        \
	N(ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, 801)                                        \
	N(ERROR_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                             \
	N(ERROR_COMPAT, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                              \
	N(ERROR_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                     \
	N(ERROR_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                         \
	N(ERROR_GRAPH_UPDATE, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)                             \
	N(DEVICE_MAX_THREADS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                          \
	N(DEVICE_MAX_BLOCK_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                                \
	N(DEVICE_MAX_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                  \
	N(DEVICE_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)               \
	N(DEVICE_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                       \
	N(DEVICE_REGISTERS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)               \
	N(DEVICE_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                  \
	N(DEVICE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                    \
	N(DEVICE_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)             \
	N(DEVICE_CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                         \
	N(DEVICE_CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                         \
	N(DEVICE_SHARED_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)        \
	N(DEVICE_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)            \
	N(DEVICE_POOLS, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                             \
	N(FUNC_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                              \
	N(FUNC_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                       \
	N(FUNC_LOCAL, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                         \
	N(FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                             \
	N(FUNC_BINARY_VERSION, CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                  \
	N(FUNC_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)               \
	N(FUNC_CARVEOUT, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)                      \
	N(STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                            \
	N(EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING, 2)                                          \
	N(HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                                                \
	N(CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                        \
	N(CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE, 0)                                            \
	N(ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                       \
	N(LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE, 1)                                           \
	N(ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                  \
	N(POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                              \
	N(POOL_RESERVED, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                                    \
	N(POOL_USED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                                            \
	N(POOL_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)                                          \
	N(LAUNCH_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                                    \
	N(LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                  \
	N(LAUNCH_OVERLAP, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)

#define LORI_NUMBER(name, cuda, value) LORI_##name = value,
enum { LORI_DRIVER_NUMBERS(LORI_NUMBER) };

#endif
