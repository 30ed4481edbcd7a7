//go:build cuda && linux && cgo

// Calls of the driver.

#include "calls.h"

#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#define PLAIN(name, params, call) \
	CUresult lori_cu_##name(const lori_driver *d, LORI_UNPACK params) { return d->call; }
LORI_PLAIN(PLAIN)

#define CURRENT(name, params, call)                                                    \
	CUresult lori_cu_##name(const lori_driver *d, CUcontext c, LORI_UNPACK params) \
	{                                                                              \
		CUresult r = d->cuCtxSetCurrent(c);                                    \
		return r ? r : d->call;                                                \
	}
LORI_CURRENT(CURRENT)

void lori_cu_pause(uint64_t nanoseconds)
{
	struct timespec t = {.tv_nsec = (long)nanoseconds};
	// Threads are woken up to 50 µs late, lest they wake the processor too often.
	prctl(PR_SET_TIMERSLACK, 1UL);
	nanosleep(&t, NULL);
	prctl(PR_SET_TIMERSLACK, 0UL); // as it was
}

CUresult lori_cu_init(const lori_driver *d) { return d->cuInit(0); }

CUstream lori_cu_stream(uintptr_t handle) { return (CUstream)handle; }

CUevent lori_cu_event(uintptr_t handle) { return (CUevent)handle; }

void lori_cu_text(const lori_driver *d, CUresult r, const char **name, const char **text)
{
	if (d->cuGetErrorName(r, name) || !*name)
		*name = "";
	if (d->cuGetErrorString(r, text) || !*text)
		*text = "";
}

CUresult lori_cu_capturing(const lori_driver *d, CUcontext c, CUstream s, int *yes)
{
	CUstreamCaptureStatus status = LORI_CAPTURE_NONE;
	CUresult r = d->cuCtxSetCurrent(c);
	if (!r)
		r = d->cuStreamIsCapturing(s, &status);
	*yes = status != LORI_CAPTURE_NONE;
	return r;
}

CUresult lori_cu_pool_create(const lori_driver *d, CUcontext c, int device, CUmemoryPool *p)
{
	CUmemPoolProps props = {
		.allocType = LORI_ALLOCATION_PINNED,
		.location = {.type = LORI_LOCATION_DEVICE, .id = device},
	};
	CUresult r = d->cuCtxSetCurrent(c);
	return r ? r : d->cuMemPoolCreate(p, &props);
}

CUresult lori_cu_pool_access(const lori_driver *d, CUcontext c, CUmemoryPool p, int peer)
{
	CUmemAccessDesc access = {
		.location = {.type = LORI_LOCATION_DEVICE, .id = peer},
		.flags = LORI_ACCESS_READ_WRITE,
	};
	CUresult r = d->cuCtxSetCurrent(c);
	return r ? r : d->cuMemPoolSetAccess(p, &access, 1);
}

// launch_ex is for kernels that need more than a grid and blocks.
static CUresult launch_ex(const lori_driver *d, CUfunction f, CUstream s, const lori_launch *l, void **params)
{
	CUlaunchAttribute attrs[3] = {0};
	unsigned int n = 0;
	if (l->cooperative) {
		attrs[n].id = LORI_LAUNCH_COOPERATIVE;
		attrs[n++].value.cooperative = 1;
	}
	if (l->cluster[0]) {
		attrs[n].id = LORI_LAUNCH_CLUSTER;
		attrs[n].value.clusterDim.x = l->cluster[0];
		attrs[n].value.clusterDim.y = l->cluster[1];
		attrs[n++].value.clusterDim.z = l->cluster[2];
	}
	if (l->overlap) {
		attrs[n].id = LORI_LAUNCH_OVERLAP;
		attrs[n++].value.programmaticStreamSerializationAllowed = 1;
	}
	CUlaunchConfig config = {
		.gridDimX = l->grid[0],
		.gridDimY = l->grid[1],
		.gridDimZ = l->grid[2],
		.blockDimX = l->block[0],
		.blockDimY = l->block[1],
		.blockDimZ = l->block[2],
		.sharedMemBytes = l->shared,
		.hStream = s,
		.attrs = attrs,
		.numAttrs = n,
	};
	return d->cuLaunchKernelEx(&config, f, params, NULL);
}

// point makes params what the driver takes; false if there are too many.
static bool point(void **params, const uint64_t *slots, size_t n)
{
	if (n > LORI_MAX_SLOTS)
		return false;
	for (size_t i = 0; i < n; i++)
		params[i] = (void *)&slots[i];
	return true;
}

CUresult lori_cu_launch(const lori_driver *d, CUcontext c, CUfunction f, CUstream s, const lori_launch *l,
			const uint64_t *slots, size_t n)
{
	void *params[LORI_MAX_SLOTS];
	if (!point(params, slots, n))
		return LORI_ERROR_INVALID_VALUE;
	CUresult r = d->cuCtxSetCurrent(c);
	if (r)
		return r;
	if (l->cooperative || l->cluster[0] || l->overlap)
		return launch_ex(d, f, s, l, params);
	return d->cuLaunchKernel(f, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
				 l->shared, s, params, NULL);
}

// node_params are those of a kernel without attributes.
static CUDA_KERNEL_NODE_PARAMS_v2 node_params(CUfunction f, const lori_launch *l, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){
		.func = f,
		.gridDimX = l->grid[0],
		.gridDimY = l->grid[1],
		.gridDimZ = l->grid[2],
		.blockDimX = l->block[0],
		.blockDimY = l->block[1],
		.blockDimZ = l->block[2],
		.sharedMemBytes = l->shared,
		.kernelParams = params,
	};
}

CUresult lori_cu_graph_add_kernel(const lori_driver *d, CUcontext c, CUgraph g, CUgraphNode after, CUfunction f,
				  const lori_launch *l, const uint64_t *slots, size_t n, CUgraphNode *node)
{
	void *params[LORI_MAX_SLOTS];
	if (!point(params, slots, n))
		return LORI_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS_v2 how = node_params(f, l, params);
	CUresult r = d->cuCtxSetCurrent(c);
	return r ? r : d->cuGraphAddKernelNode_v2(node, g, &after, after != NULL, &how);
}

CUresult lori_cu_graph_set_kernel(const lori_driver *d, CUcontext c, CUgraphExec x, CUgraphNode node, CUfunction f,
				  const lori_launch *l, const uint64_t *slots, size_t n)
{
	void *params[LORI_MAX_SLOTS];
	if (!point(params, slots, n))
		return LORI_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS_v2 how = node_params(f, l, params);
	CUresult r = d->cuCtxSetCurrent(c);
	return r ? r : d->cuGraphExecKernelNodeSetParams_v2(x, node, &how);
}
