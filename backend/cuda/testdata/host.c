// A host of tensors that are memory alone, on a stand-in for CUDA's driver, and a library of the package
//
//	y = x · w, n = n + 1    for x f32[3,4], the constant w f32[4], and n i64, which each run assigns
//
// of which it calls what keeps constants. Without a stand-in it says why no container can be made.
//
//	host LIBRARY [STAND-IN FOLDER]
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tensor {
	char *data, *owned;
	int32_t dtype, device, index;
	int64_t ndim, sizes[4], strides[4];
} tensor;
typedef tensor *handle;
typedef struct { const char *name; handle handle; } pair;
typedef void *box;

static long live, calls, failing = -1; // the call that fails
static void *driver, *stream;

#define NEED(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, why()); exit(1); } } while (0)
static int (*last_error)(const char **);
static const char *why(void) { const char *text = ""; last_error(&text); return text; }
static int fails(void) { return calls++ == failing; }
static int64_t width(int32_t dtype) { return dtype == 4 ? 8 : dtype == 0 ? 1 : 4; }

static handle over(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device, int32_t index)
{
	handle t = calloc(1, sizeof *t);
	*t = (tensor){data, NULL, dtype, device, index < 0 ? 0 : index, ndim, {0}, {0}};
	for (int64_t i = 0; i < ndim; i++)
		t->sizes[i] = sizes[i], t->strides[i] = strides[i];
	live++;
	return t;
}
int aoti_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device, int32_t index, handle *out)
{
	int64_t n = 1;
	if (fails())
		return 1;
	for (int64_t i = 0; i < ndim; i++)
		n *= sizes[i];
	void *p = aligned_alloc(256, (size_t)(n * width(dtype) + 255) / 256 * 256);
	*out = over(p, ndim, sizes, strides, dtype, device, index);
	(*out)->owned = p;
	return 0;
}
int aoti_torch_create_tensor_from_blob(void *p, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset, int32_t dtype, int32_t device, int32_t index, handle *out)
{
	if (fails())
		return 1;
	*out = over((char *)p + offset * width(dtype), ndim, sizes, strides, dtype, device, index);
	return 0;
}
int aoti_torch_delete_tensor_object(handle t) { free(t->owned); free(t); live--; return 0; }
int aoti_torch_assign_tensors_out(handle t, handle *out) { *out = over(t->data, t->ndim, t->sizes, t->strides, t->dtype, t->device, t->index); return 0; }
int aoti_torch_get_data_ptr(handle t, void **p) { *p = t->data; return fails(); }
int aoti_torch_get_sizes(handle t, int64_t **p) { *p = t->sizes; return fails(); }
int aoti_torch_get_strides(handle t, int64_t **p) { *p = t->strides; return fails(); }
int aoti_torch_get_dim(handle t, int64_t *p) { *p = t->ndim; return fails(); }
int aoti_torch_get_dtype(handle t, int32_t *p) { *p = t->dtype; return fails(); }
int aoti_torch_get_device_type(handle t, int32_t *p) { *p = t->device; return fails(); }
int aoti_torch_get_device_index(handle t, int32_t *p) { *p = t->index; return fails(); }
static int64_t bytes(handle t) { int64_t n = width(t->dtype); for (int64_t i = 0; i < t->ndim; i++) n *= t->sizes[i]; return n; }
int aoti_torch_copy_(handle to, handle from, int32_t later) { (void)later; if (fails()) return 1; memcpy(to->data, from->data, (size_t)bytes(to)); return 0; }
int aoti_torch_zero_(handle t) { if (fails()) return 1; memset(t->data, 0, (size_t)bytes(t)); return 0; }
int aoti_torch__reinterpret_tensor(handle t, int64_t n, const int64_t *a, const int64_t *b, int64_t o, handle *out) { (void)t, (void)n, (void)a, (void)b, (void)o, (void)out; return 1; }
bool aoti_torch_grad_mode_is_enabled(void) { return true; }
void aoti_torch_grad_mode_set_enabled(bool on) { (void)on; }

#ifdef WITH_DRIVER
static int guards;
int aoti_torch_create_cuda_guard(int32_t index, void **g) { *g = NULL; if (index || fails()) return 1; guards++; *g = &guards; return 0; }
int aoti_torch_delete_cuda_guard(void *g) { (void)g; guards--; return 0; }
int aoti_torch_create_cuda_stream_guard(void *s, int32_t index, void **g) { (void)s; return aoti_torch_create_cuda_guard(index, g); }
int aoti_torch_delete_cuda_stream_guard(void *g) { return aoti_torch_delete_cuda_guard(g); }

// The driver's functions go to the stand-in. Work is done when a launch returns, as these copies do not wait.
#define TO(name) ((uint32_t (*)())dlsym(driver, #name))
uint32_t cuStreamSynchronize(void *s) { uint32_t r; s = s ? s : stream; while ((r = TO(cuStreamQuery)(s)) == 600); return r; }
uint32_t cuCtxSynchronize(void) { return fails() ? 700 : 0; }
uint32_t cuGetErrorString(uint32_t r, const char **t) { return TO(cuGetErrorString)(r, t); }
static void *context;
uint32_t cuCtxGetCurrent(void **c) { *c = context; return fails() ? 201 : 0; }
uint32_t cuCtxSetCurrent(void *c) { return TO(cuCtxSetCurrent)(c); }
uint32_t cuModuleLoadData(void **m, const void *p) { return fails() ? 209 : TO(cuModuleLoadData)(m, p); }
uint32_t cuModuleUnload(void *m) { return TO(cuModuleUnload)(m); }
uint32_t cuModuleGetFunction(void **f, void *m, const char *n) { return fails() ? 500 : TO(cuModuleGetFunction)(f, m, n); }
uint32_t cuLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared, void *s, void **params, void **extra)
{
	if (fails())
		return 719;
	s = s ? s : stream; // the stand-in has no default stream
	uint32_t r = ((uint32_t (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **, void **))dlsym(driver, "cuLaunchKernel"))(
	    f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
	return r ? r : cuStreamSynchronize(s);
}
#endif

static void *library;
#define CALL(name) ((int (*)())dlsym(library, "AOTInductor" name))
static const int64_t rows[] = {3, 4}, dense[] = {4, 1}, four[] = {4}, one[] = {1};

static handle floats(float first, int32_t device)
{
	handle t;
	const long at = failing;
	failing = -1;
	aoti_torch_empty_strided(1, four, one, 6, device, 0, &t);
	failing = at;
	for (int i = 0; i < 4; i++)
		((float *)t->data)[i] = first + (float)i;
	return t;
}

// run runs a container, or a model where it is one, on ones, and returns whether it succeeded, with the
// first element of y, whose columns are w, and n.
static bool run(box b, bool model, float *first, int64_t *n, int32_t device, int32_t index)
{
	handle in[1], out[2] = {NULL, NULL};
	const long at = failing;
	failing = -1;
	aoti_torch_empty_strided(2, rows, dense, 6, device, index, &in[0]);
	failing = at;
	for (int i = 0; i < 12; i++)
		((float *)in[0]->data)[i] = 1;
	int e = model ? CALL("ModelRun")(b, in, out) : CALL("ModelContainerRun")(b, in, (size_t)1, out, (size_t)2, stream, NULL);
	NEED(!in[0]);
	if (e) {
		NEED(!out[0] && !out[1]);
		return false;
	}
	const float *y = (float *)out[0]->data;
	for (int i = 0; i < 12; i++)
		NEED(y[i] == y[0] + (float)(i % 4));
	*first = y[0];
	*n = *(int64_t *)out[1]->data;
	aoti_torch_delete_tensor_object(out[0]);
	aoti_torch_delete_tensor_object(out[1]);
	return true;
}

#ifdef WITH_DRIVER
static float value(box b) { float f; int64_t n; NEED(run(b, false, &f, &n, 1, 0)); return f; }

static void updates(box b)
{
	const pair *all;
	size_t n;
	float f;
	int64_t before, after;
	handle host = floats(10, 0), there = floats(20, 1), short_ = floats(30, 1), far = floats(1, 1);
	pair w[] = {{"w", host}};
	NEED(!CALL("ModelContainerUpdateConstantBufferPairs")(b, w, (size_t)1, false, false) && value(b) == 10);
	NEED(run(b, false, &f, &before, 1, 0) && run(b, false, &f, &after, 1, 0) && after == before + 1);
	w[0].handle = there;
	NEED(!CALL("ModelContainerUpdateInactiveConstantBufferPairs")(b, w, (size_t)1) && value(b) == 10);
	NEED(!CALL("ModelContainerSwapConstantBuffer")(b) && value(b) == 20);
	NEED(!CALL("ModelContainerFreeInactiveConstantBuffer")(b) && CALL("ModelContainerSwapConstantBuffer")(b) && strstr(why(), "empty"));
	NEED(!CALL("ModelContainerUpdateUserManagedConstantBufferPairs")(b, w, (size_t)1, false, false) && value(b) == 20);
	for (int i = 0; i < 4; i++)
		((float *)there->data)[i] += 5;
	NEED(value(b) == 25); // the caller's own tensor
	float *aside = aligned_alloc(256, 512);
	memcpy(aside + 1, far->data, 16);
	handle unaligned = over(aside + 1, 1, four, one, 6, 1, 0);
	w[0].handle = unaligned;
	NEED(!CALL("ModelContainerUpdateUserManagedConstantBufferPairs")(b, w, (size_t)1, false, false) && value(b) == 1);
	aside[1] = 99;
	NEED(value(b) == 1);
	short_->sizes[0] = 3;
	w[0].handle = short_;
	NEED(CALL("ModelContainerUpdateConstantBufferPairs")(b, w, (size_t)1, false, false) && strstr(why(), "has sizes [3], want [4]") && value(b) == 1);
	NEED(CALL("ModelContainerUpdateConstantBufferPairs")(b, w, (size_t)0, false, true) && strstr(why(), "has no new value"));
	NEED(!CALL("ModelContainerExtractConstantsMapEntries")(b, &all, &n, false) && n == 2 && !strcmp(all[0].name, "w") && *(float *)all[0].handle->data == 1);
	float blob[64] = {7, 8, 9, 10};
	NEED(!CALL("ModelUpdateConstantsFromBlob")(b, blob) && value(b) == 7);
	NEED(!CALL("ModelContainerRunConstantFolding")(b, false, stream, NULL));
	aoti_torch_delete_tensor_object(host), aoti_torch_delete_tensor_object(there), aoti_torch_delete_tensor_object(short_);
	aoti_torch_delete_tensor_object(far), aoti_torch_delete_tensor_object(unaligned), free(aside);
}

static void models(void)
{
	box b;
	float f;
	int64_t n;
	handle w = floats(3, 1), count = over(calloc(1, 8), 0, NULL, NULL, 4, 0, 0);
	pair both[] = {{"w", w}, {"wn", count}};
	NEED(!CALL("ModelContainerCreateWithExternalConstants")(&b, (size_t)1, "cuda:0", NULL, both, (size_t)2) && value(b) == 3);
	CALL("ModelContainerDelete")(b);
	NEED(!CALL("ModelCreateV2")(&b, both, (size_t)2) && run(b, true, &f, &n, 1, 0) && f == 3 && n == 0);
	CALL("ModelDelete")(b);
	aoti_torch_delete_tensor_object(w), free(count->data), aoti_torch_delete_tensor_object(count);
}

// every has each function of the host and of the driver fail in turn.
static long every(void)
{
	long failures = 0;
	for (failing = 0;; failing++) {
		box b = NULL;
		float f;
		int64_t n;
		const long before = live;
		calls = 0;
		int e = CALL("ModelContainerCreateWithDevice")(&b, (size_t)1, "cuda", NULL);
		handle w = floats(4, 1);
		pair pairs[] = {{"w", w}};
		bool ok = !e && !CALL("ModelContainerUpdateConstantBufferPairs")(b, pairs, (size_t)1, false, false) && run(b, false, &f, &n, 1, 0);
		failures += !ok;
		NEED(ok || why()[0]);
		if (!e)
			CALL("ModelContainerDelete")(b);
		aoti_torch_delete_tensor_object(w);
		NEED(live == before && !guards);
		if (calls <= failing)
			break;
	}
	failing = -1;
	return failures;
}

static void on_stand_in(const char *path, const char *folder)
{
	box b;
	float f;
	int64_t n;
	int device;
	NEED(driver = dlopen(path, RTLD_NOW | RTLD_LOCAL));
	((void (*)(const char *, const char *))dlsym(driver, "fake_paths"))(folder, folder);
	NEED(!TO(cuInit)(0) && !TO(cuDeviceGet)(&device, 0) && !TO(cuDevicePrimaryCtxRetain)(&context, device) && !TO(cuCtxSetCurrent)(context) &&
	     !TO(cuStreamCreateWithPriority)(&stream, 1, 0));
	NEED(!CALL("ModelContainerCreateWithDevice")(&b, (size_t)1, "cuda", NULL));
	updates(b);
	NEED(!run(b, false, &f, &n, 0, 0) && strstr(why(), "is not on a GPU"));
	NEED(!run(b, false, &f, &n, 1, 2) && strstr(why(), "is on cuda:2, the model on cuda:0"));
	value(b);
	CALL("ModelContainerDelete")(b);
	models();
	NEED(CALL("ModelContainerCreateWithDevice")(&b, (size_t)1, "cuda:1", NULL));
	const long failures = every();
	NEED(live == 0 && !guards);
	printf("ok: %ld failures\n", failures);
}
#endif

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc < 2 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
		printf("%s\n", argc > 1 ? dlerror() : "no library is named");
		return 1;
	}
	last_error = (int (*)(const char **))dlsym(library, "AOTInductorGetLastError");
#ifdef WITH_DRIVER
	on_stand_in(argv[2], argv[3]);
#else
	for (int cpu = 0; cpu < 2; cpu++) {
		box b = NULL;
		int e = CALL("ModelContainerCreate")(&b, (size_t)1, (int)cpu, NULL);
		printf("%s: %d: %s\n", cpu ? "cpu" : "cuda", e, why());
	}
#endif
	return 0;
}
