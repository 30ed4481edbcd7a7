// What gorgonia.org/cu needs of libcuda beside what the stand-in of package backend/cuda has
// (fakecuda), and where that finds its files. cu/test.sh compiles both to one libcuda.so.1.
#include "fake.h"

void fake_paths(const char *headers, const char *cache);

__attribute__((constructor)) static void paths(void)
{
	const char *headers = getenv("CU_STANDIN_HEADERS"), *cache = getenv("CU_STANDIN_CACHE");
	if (headers && cache)
		fake_paths(headers, cache);
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	ENTER_ANY("%s", "");
	*out = (CUcontext)fake_current();
	LEAVE(0);
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamSynchronize(CUstream s)
{
	ENTER("%s", "");
	NEED_OBJECT(s, STREAM);
	fake_wait((stream *)s);
	LEAVE(0);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t n)
{
	ENTER("%zu", n);
	*out = fake_device_alloc(n);
	LEAVE(0);
}

// cuMemFree_v2 keeps the memory and spoils its contents, so that who still reads it gets nonsense.
CUresult cuMemFree_v2(CUdeviceptr p)
{
	ENTER("%s", "");
	NEED(fake_device_range(p, 4));
	memset((void *)p, 0xdd, 4);
	LEAVE(0);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
	ENTER("%zu", n);
	NEED(fake_device_range(from, n));
	memcpy(to, (void *)from, n);
	LEAVE(0);
}
