// Devices, contexts, modules and kernels.
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

CUresult cuDriverGetVersion(int *v)
{
	*v = (int)fake_config.version;
	return 0;
}

CUresult cuInit(unsigned int flags)
{
	ENTER_ANY("%u", flags);
	if (fake_config.init)
		LEAVE((CUresult)fake_config.init);
	LEAVE(fake_config.devices ? 0 : LORI_ERROR_NO_DEVICE);
}

static const struct {
	CUresult code;
	const char *name, *text;
} texts[] = {
	{LORI_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{LORI_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{LORI_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{LORI_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{LORI_ERROR_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	{LORI_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{LORI_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{LORI_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static CUresult text_of(CUresult code, const char **out, bool name)
{
	*out = NULL;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].code == code) {
			*out = name ? texts[i].name : texts[i].text;
			return 0;
		}
	return LORI_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char **out) { return text_of(code, out, true); }

CUresult cuGetErrorString(CUresult code, const char **out) { return text_of(code, out, false); }

CUresult cuDeviceGetCount(int *n)
{
	ENTER_ANY("%s", "");
	*n = (int)fake_config.devices;
	LEAVE(0);
}

static bool is_device(CUdevice d) { return d >= 0 && d < fake_config.devices; }

CUresult cuDeviceGet(CUdevice *d, int i)
{
	ENTER_ANY("%d", i);
	*d = i;
	LEAVE(is_device(i) ? 0 : LORI_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetName(char *name, int n, CUdevice d)
{
	ENTER_ANY("%d", d);
	NEED(is_device(d));
	snprintf(name, n, "Fake GPU %d", d);
	LEAVE(0);
}

CUresult cuDeviceGetUuid_v2(CUuuid *id, CUdevice d)
{
	ENTER_ANY("%d", d);
	NEED(is_device(d));
	for (int i = 0; i < 16; i++)
		id->bytes[i] = (char)(0xa0 + i + d);
	LEAVE(0);
}

CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d)
{
	ENTER_ANY("%d", d);
	NEED(is_device(d));
	*n = fake_config.memory;
	LEAVE(0);
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	static const int values[][2] = {
		{LORI_DEVICE_MAX_THREADS, 1024}, {LORI_DEVICE_MAX_BLOCK_X, 1024},
		{LORI_DEVICE_MAX_GRID_X, 2147483647}, {LORI_DEVICE_SHARED_PER_BLOCK, 49152},
		{LORI_DEVICE_WARP_SIZE, 32}, {LORI_DEVICE_REGISTERS_PER_BLOCK, 65536},
		{LORI_DEVICE_L2_BYTES, 50 << 20},
		{LORI_DEVICE_THREADS_PER_SM, 2048}, {LORI_DEVICE_CC_MAJOR, 9},
		{LORI_DEVICE_CC_MINOR, 0}, {LORI_DEVICE_SHARED_PER_SM, 233472},
		{LORI_DEVICE_SHARED_OPTIN, 232448}, {LORI_DEVICE_POOLS, 1},
	};
	ENTER_ANY("%u %d", a, d);
	NEED(is_device(d));
	if (a == LORI_DEVICE_SMS) {
		*v = (int)fake_config.sms;
		LEAVE(0);
	}
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if ((int)a == values[i][0]) {
			*v = values[i][1];
			LEAVE(0);
		}
	LEAVE(LORI_ERROR_INVALID_VALUE);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer)
{
	ENTER_ANY("%d %d", d, peer);
	NEED(is_device(d) && is_device(peer));
	*can = d != peer && fake_config.peers;
	LEAVE(0);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d)
{
	ENTER_ANY("%d", d);
	NEED(is_device(d));
	context *c = fake_device_context(d);
	if (!c->retained++) {
		*c = (context){.o = {CONTEXT, true}, .device = d, .retained = 1};
		fake_live[CONTEXT]++;
	}
	*out = (CUcontext)c;
	LEAVE(0);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	ENTER_ANY("%d", d);
	NEED(is_device(d));
	context *c = fake_device_context(d);
	if (!fake_is(c, CONTEXT))
		LEAVE(201);
	if (!--c->retained) {
		if (c->lost)
			fake_lose(c);
		fake_end(c);
	}
	LEAVE(0);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	static bool enabled[16][16];
	ENTER("flags=%u", flags);
	NEED_OBJECT(peer, CONTEXT);
	bool *e = &enabled[fake_current()->device][((context *)peer)->device];
	if (*e)
		LEAVE(LORI_ERROR_PEER_ENABLED);
	*e = true;
	LEAVE(0);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER("%s", "");
	*least = 0;
	*greatest = -5;
	LEAVE(0);
}

// What device.h and nvrtc.c put into a library of kernels.
typedef struct image_kernel {
	const char *name;
	void (*run)(void *const *params);
	const unsigned *sizes;
} image_kernel;

typedef struct fake_image {
	int arch;
	const image_kernel *kernels;
	struct gpu **here;
} fake_image;

typedef struct module {
	object o;
	int n_kernels, n_globals;
	kernel *kernels;
	struct global {
		char name[64];
		size_t bytes;
		uint64_t p;
	} globals[8];
} module;

static void add_kernel(module *m, kernel k)
{
	k.ctx = fake_current();
	k.max_dynamic = 49152;
	m->kernels = realloc(m->kernels, (m->n_kernels + 1) * sizeof k);
	m->kernels[m->n_kernels++] = k;
}

// load_text loads an image of the lines "FAKE 90", "kernel NAME PARAMS", "global
// NAME BYTES" behind an ELF header.
static CUresult load_text(module **out, const char *text)
{
	int arch = 0, skip = 0;
	if (sscanf(text, "FAKE %d%n", &arch, &skip) != 1)
		return LORI_ERROR_INVALID_IMAGE;
	if (arch > 90)
		return LORI_ERROR_NO_BINARY;
	module *m = *out = fake_new(MODULE, sizeof *m);
	char name[64];
	long v;
	for (text += skip; (text = strchr(text, '\n')); text++) {
		if (sscanf(text, " kernel %63s %ld", name, &v) == 2) {
			add_kernel(m, (kernel){.name = strdup(name), .params = (int)v});
		} else if (sscanf(text, " global %63s %ld", name, &v) == 2 && m->n_globals < 8) {
			struct global *g = &m->globals[m->n_globals++];
			strcpy(g->name, name);
			g->bytes = v;
			g->p = fake_device_alloc(v);
		}
	}
	return 0;
}

// load_library loads what nvrtc.c compiled. Each load is a copy with variables of
// its own, which stays: work that is under way may still run in it.
static CUresult load_library(module **out, const Elf64_Ehdr *elf)
{
	static int count; // the loader takes one name for one library, in all of the process
	size_t size = elf->e_shoff + (size_t)elf->e_shentsize * elf->e_shnum;
	char path[5000];
	snprintf(path, sizeof path, "%s/load-%d-%p-%d", fake_cache, (int)getpid(), (void *)&count, count++);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
	if (fd < 0)
		return LORI_ERROR_OUT_OF_MEMORY;
	bool ok = write(fd, elf, size) == (ssize_t)size;
	void *handle = close(fd) || !ok ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	const fake_image *image = handle ? dlsym(handle, "fake_image") : NULL;
	if (!image)
		return LORI_ERROR_INVALID_IMAGE;
	if (image->arch > 90)
		return LORI_ERROR_NO_BINARY;
	*image->here = fake_gpu();
	module *m = *out = fake_new(MODULE, sizeof *m);
	for (const image_kernel *k = image->kernels; k->name; k++) {
		int n = 0;
		while (k->sizes[n])
			n++;
		add_kernel(m, (kernel){.name = k->name, .params = n, .run = k->run, .sizes = k->sizes});
	}
	return 0;
}

// load_ptx loads the library that PTX of nvrtc.c stands for.
static CUresult load_ptx(module **out, const char *ptx)
{
	char path[5000];
	struct stat st;
	const char *at = strstr(ptx, FAKE_PTX);
	if (strncmp(ptx, ".version", 8) || !at || sscanf(at + strlen(FAKE_PTX), "%4999[^\n]", path) != 1)
		return LORI_ERROR_INVALID_IMAGE;
	int fd = open(path, O_RDONLY);
	CUresult r = LORI_ERROR_INVALID_IMAGE;
	if (fd >= 0 && !fstat(fd, &st)) {
		void *elf = malloc(st.st_size);
		if (read(fd, elf, st.st_size) == st.st_size)
			r = load_library(out, elf);
		free(elf);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	ENTER("%s", "");
	const Elf64_Ehdr *elf = image;
	module *m = NULL;
	if (memcmp(elf->e_ident, ELFMAG, SELFMAG)) {
		CUresult r = load_ptx(&m, image);
		*out = (CUmodule)m;
		LEAVE(r);
	}
	CUresult r = elf->e_shnum ? load_library(&m, elf) : load_text(&m, (const char *)(elf + 1));
	*out = (CUmodule)m;
	LEAVE(r);
}

CUresult cuModuleUnload(CUmodule m) { DESTROY(m, MODULE); }

CUresult cuModuleGetFunction(CUfunction *f, CUmodule h, const char *name)
{
	module *m = (module *)h;
	ENTER("%s", name);
	NEED_OBJECT(m, MODULE);
	for (int i = 0; i < m->n_kernels; i++)
		if (!strcmp(m->kernels[i].name, name)) {
			*f = (CUfunction)&m->kernels[i];
			LEAVE(0);
		}
	LEAVE(LORI_ERROR_NOT_FOUND);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule h, const char *name)
{
	module *m = (module *)h;
	ENTER("%s", name);
	NEED_OBJECT(m, MODULE);
	for (int i = 0; i < m->n_globals; i++)
		if (!strcmp(m->globals[i].name, name)) {
			*p = m->globals[i].p;
			*n = m->globals[i].bytes;
			LEAVE(0);
		}
	LEAVE(LORI_ERROR_NOT_FOUND);
}

CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f)
{
	kernel *k = (kernel *)f;
	ENTER("%s %u", k->name, a);
	switch (a) {
	case LORI_FUNC_MAX_THREADS:
		*v = 1024;
		break;
	case LORI_FUNC_REGISTERS:
		*v = 32;
		break;
	case LORI_FUNC_LOCAL:
	case LORI_FUNC_SHARED:
		*v = 0;
		break;
	case LORI_FUNC_BINARY_VERSION:
		*v = 90;
		break;
	case LORI_FUNC_MAX_DYNAMIC_SHARED:
		*v = k->max_dynamic;
		break;
	default:
		LEAVE(LORI_ERROR_INVALID_VALUE);
	}
	LEAVE(0);
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v)
{
	kernel *k = (kernel *)f;
	ENTER("%s %u=%d", k->name, a, v);
	if (a == LORI_FUNC_CARVEOUT) {
		NEED(v >= -1 && v <= 100);
		k->carveout = v;
		LEAVE(0);
	}
	NEED(a == LORI_FUNC_MAX_DYNAMIC_SHARED && v <= 232448);
	k->max_dynamic = v;
	LEAVE(0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared)
{
	ENTER("%s %d %zu", ((kernel *)f)->name, threads, shared);
	NEED(threads > 0 && threads <= 1024);
	*n = 2048 / threads;
	if (shared && *n > (int)(233472 / shared))
		*n = (int)(233472 / shared);
	LEAVE(0);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, CUoccupancyB2DSize b2d, size_t shared,
					  int limit)
{
	ENTER("%s %d %zu %d", ((kernel *)f)->name, b2d != NULL, shared, limit);
	*block = limit > 0 && limit < 1024 ? limit : 1024;
	*grid = 132 * (2048 / *block);
	LEAVE(0);
}
