// Launching kernels: those of sources that were compiled, and by name some of
// images that are lines of text:
//   fill_u32(to, value, n), add_f32(to, a, b, n), trap(code).
#include "fake.h"

struct gpu *fake_gpu(void)
{
	static gpu g;
	return &g;
}

// run_image runs a kernel of an image, without the lock.
static CUresult run_image(item *i)
{
	const kernel *k = i->k;
	void *params[512];
	char *at = i->own;
	for (int j = 0; j < k->params; j++) {
		params[j] = at;
		at += (k->sizes[j] + 15) / 16 * 16;
	}
	pthread_mutex_unlock(&fake_lock);
	bool ok = fiber_launch(fake_gpu(), k->run, params, i->grid, i->block, fiber_wait);
	pthread_mutex_lock(&fake_lock);
	return ok ? 0 : LORI_ERROR_LAUNCH_FAILED;
}

static CUresult run_kernel(item *i)
{
	const uint64_t *p = i->own;
	if (fake_config.trap && !--fake_config.trap)
		return LORI_ERROR_LAUNCH_FAILED;
	if (fake_config.idle)
		return 0;
	if (i->k->run)
		return run_image(i);
	if (!strcmp(i->k->name, "trap"))
		return (CUresult)(uint32_t)p[0];
	if (!strcmp(i->k->name, "fill_u32")) {
		if (!fake_device_range(p[0], 4 * p[2]))
			return LORI_ERROR_ILLEGAL_ADDRESS;
		for (uint64_t j = 0; j < p[2]; j++)
			((uint32_t *)p[0])[j] = (uint32_t)p[1];
	}
	if (!strcmp(i->k->name, "add_f32")) {
		uint64_t n = 4 * p[3];
		if (!fake_device_range(p[0], n) || !fake_device_range(p[1], n) || !fake_device_range(p[2], n))
			return LORI_ERROR_ILLEGAL_ADDRESS;
		for (uint64_t j = 0; j < p[3]; j++)
			((float *)p[0])[j] = ((float *)p[1])[j] + ((float *)p[2])[j];
	}
	return 0;
}

// kernel_item makes the work of a kernel, or refuses it.
static CUresult kernel_item(kernel *k, const CUlaunchConfig *c, void **params, item **out)
{
	if (k->ctx != fake_current())
		return LORI_ERROR_INVALID_HANDLE;
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;
	if (!threads || threads > 1024 || !c->gridDimX || !c->gridDimY || !c->gridDimZ || c->gridDimY > 65535 ||
	    c->gridDimZ > 65535 || (int)c->sharedMemBytes > k->max_dynamic)
		return LORI_ERROR_INVALID_VALUE;
	item *i = *out = fake_bare(k->ctx, k->name, run_kernel);
	i->k = k;
	i->grid = (fake_dim){c->gridDimX, c->gridDimY, c->gridDimZ};
	i->block = (fake_dim){c->blockDimX, c->blockDimY, c->blockDimZ};
	for (int j = 0; j < k->params; j++)
		i->own_size += k->sizes ? (k->sizes[j] + 15) / 16 * 16 : sizeof(uint64_t);
	char *at = i->own = malloc(i->own_size + 1);
	for (int j = 0; j < k->params; j++) {
		memcpy(at, params[j], k->sizes ? k->sizes[j] : sizeof(uint64_t));
		at += k->sizes ? (k->sizes[j] + 15) / 16 * 16 : sizeof(uint64_t);
	}
	return 0;
}

CUresult fake_kernel_item(const CUDA_KERNEL_NODE_PARAMS_v2 *p, item **out)
{
	if (p->extra || p->kern || p->ctx)
		return LORI_ERROR_INVALID_VALUE;
	CUlaunchConfig c = {p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
			    p->sharedMemBytes, NULL, NULL, 0};
	return kernel_item((kernel *)p->func, &c, p->kernelParams, out);
}

static CUresult launch(kernel *k, const CUlaunchConfig *c, void **params)
{
	stream *s = (stream *)c->hStream;
	item *i;
	NEED_OBJECT(s, STREAM);
	if (s->ctx != fake_current())
		LEAVE(LORI_ERROR_INVALID_HANDLE);
	CUresult r = kernel_item(k, c, params, &i);
	if (r)
		LEAVE(r);
	i->s = s;
	LEAVE(fake_enqueue(i));
}

// describe writes the parameters of a call.
static const char *describe(char *out, size_t size, const kernel *k, void **params)
{
	size_t at = 0;
	*out = 0;
	for (int j = 0; j < k->params && j < 32 && at < size; j++)
		at += snprintf(out + at, size - at, " %#llx", *(unsigned long long *)params[j]);
	return out;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra)
{
	char text[768];
	kernel *k = (kernel *)f;
	ENTER("%s grid=%u,%u,%u block=%u,%u,%u shared=%u%s", k->name, gx, gy, gz, bx, by, bz, shared,
	      describe(text, sizeof text, k, params));
	NEED(!extra);
	CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
	return launch(k, &c, params);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	char text[768], attrs[128] = "";
	kernel *k = (kernel *)f;
	size_t at = 0;
	for (unsigned int j = 0; j < c->numAttrs; j++) {
		const CUlaunchAttribute *a = &c->attrs[j];
		if (a->id == LORI_LAUNCH_COOPERATIVE)
			at += sprintf(attrs + at, " cooperative=%d", a->value.cooperative);
		else if (a->id == LORI_LAUNCH_OVERLAP)
			at += sprintf(attrs + at, " overlap=%d", a->value.programmaticStreamSerializationAllowed);
		else if (a->id == LORI_LAUNCH_CLUSTER)
			at += sprintf(attrs + at, " cluster=%u,%u,%u", a->value.clusterDim.x, a->value.clusterDim.y,
				      a->value.clusterDim.z);
	}
	ENTER("%s grid=%u,%u,%u block=%u,%u,%u shared=%u%s%s", k->name, c->gridDimX, c->gridDimY, c->gridDimZ,
	      c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, attrs,
	      describe(text, sizeof text, k, params));
	NEED(!extra);
	return launch(k, c, params);
}
