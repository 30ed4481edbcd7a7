// Runs plans on a GPU: kernels that lie in the library as machine code and as PTX, and functions of
// libtorch. The driver and libtorch's part for CUDA are found when a container is made, so that a
// process without them can load the library and is told.
#include "glue.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t result; // CUresult

#define DRIVER(F)                                                                                              \
	F(text, cuGetErrorString, result, (result, const char **))                                             \
	F(get_context, cuCtxGetCurrent, result, (void **))                                                     \
	F(set_context, cuCtxSetCurrent, result, (void *))                                                      \
	F(synchronize, cuCtxSynchronize, result, (void))                                                       \
	F(wait, cuStreamSynchronize, result, (void *))                                                         \
	F(load, cuModuleLoadData, result, (void **, const void *))                                             \
	F(unload, cuModuleUnload, result, (void *))                                                            \
	F(function, cuModuleGetFunction, result, (void **, void *, const char *))                              \
	F(launch, cuLaunchKernel, result,                                                                      \
	  (void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **, void **))

#define TORCH(F)                                                                       \
	F(guard, aoti_torch_create_cuda_guard, lx_error, (int32_t, void **))           \
	F(end_guard, aoti_torch_delete_cuda_guard, lx_error, (void *))                 \
	F(turn, aoti_torch_create_cuda_stream_guard, lx_error, (void *, int32_t, void **)) \
	F(end_turn, aoti_torch_delete_cuda_stream_guard, lx_error, (void *))

// Where a host has these functions the loader binds them.
#define DECLARE(field, name, type, params) type name params __attribute__((weak));
DRIVER(DECLARE)
TORCH(DECLARE)

#define FIELD(field, name, type, params) type(*field) params;
struct lx_engine {
	DRIVER(FIELD)
	TORCH(FIELD)
	int32_t index;
	void *context;
	lx_handle literals;
	char *literal_data;
	void **modules, **kernels, **functions;
};

int32_t lx_index(const lx_engine *g) { return g->index; }

static void fail_with(const lx_engine *g, const char *what, const char *name, result r)
{
	const char *text = NULL;
	if (g->text(r, &text) || !text)
		text = "unknown error";
	lx_fail("%s%s: %s (CUDA error %u)", what, name, text, r);
}

// found returns a function that the loader bound, or that a library has. The driver is loaded for it;
// libtorch's part for CUDA only looked for: another copy would know nothing of the tensors.
static void *found(void *bound, const char *name, bool driver)
{
	if (bound)
		return bound;
	void *library = driver ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) : dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
	void *f = library ? dlsym(library, name) : NULL;
	if (!f)
		lx_fail("%s is missing: %s", name, library ? "the library that should have it is too old" : driver ? "there is no driver of CUDA" : "PyTorch is here without CUDA");
	return f;
}

#define FIND_DRIVER(field, name, type, params)                                        \
	{                                                                             \
		void *f = found((void *)name, #name, true);                           \
		if (!f)                                                               \
			return LX_FAILED;                                             \
		memcpy(&g->field, &f, sizeof f);                                      \
	}
#define FIND_TORCH(field, name, type, params)                                         \
	{                                                                             \
		void *f = found((void *)name, #name, false);                          \
		if (!f)                                                               \
			return LX_FAILED;                                             \
		memcpy(&g->field, &f, sizeof f);                                      \
	}

static lx_error find_functions(lx_engine *g)
{
	const lx_plan *p = lx_plan_of();
	DRIVER(FIND_DRIVER)
	TORCH(FIND_TORCH)
	for (int64_t n = 0; n < p->functions; n++)
		if (!(g->functions[n] = found(loris_functions[n], lx_text(loris_words[p->function_at + n]), false)))
			return LX_FAILED;
	return LX_OK;
}

// put_literals makes a tensor of what plans read and no run writes. Without a number the device is
// libtorch's present one, which the tensor tells.
static lx_error put_literals(lx_engine *g)
{
	const int64_t n = lx_plan_of()->literals, sizes[] = {n > 0 ? n : 1}, strides[] = {1};
	lx_handle host = NULL;
	if (aoti_torch_empty_strided(1, sizes, strides, 0, LX_DEVICE, g->index, &g->literals) || aoti_torch_get_device_index(g->literals, &g->index) ||
	    aoti_torch_get_data_ptr(g->literals, (void **)&g->literal_data)) {
		lx_fail("there is no memory for %lld bytes on the GPU, or no GPU", (long long)sizes[0]);
		return LX_FAILED;
	}
	lx_error e = aoti_torch_create_tensor_from_blob((void *)loris_literals, 1, sizes, strides, 0, 0, 0, 0, &host);
	if (!e)
		e = aoti_torch_copy_(g->literals, host, 0);
	if (host)
		aoti_torch_delete_tensor_object(host);
	if (e)
		lx_fail("numbers of the model cannot be copied to the GPU");
	return e;
}

static lx_error load_kernel(lx_engine *g, int64_t n)
{
	const lx_plan *p = lx_plan_of();
	const lx_gpu_kernel *k = (const lx_gpu_kernel *)(loris_words + p->kernel_at) + n;
	result r = 0;
	for (int64_t i = 0; i < k->images; i++)
		if (!(r = g->load(&g->modules[n], loris_images + loris_words[k->image_at + i])))
			break;
	if (!r)
		r = g->function(&g->kernels[n], g->modules[n], lx_text(k->entry));
	if (r)
		fail_with(g, "kernel ", lx_text(k->entry), r);
	return r ? LX_FAILED : LX_OK;
}

// load_all loads the kernels. Copying to the device has made its context that of the thread.
static lx_error load_all(lx_engine *g)
{
	void *guard = NULL;
	if (g->guard(g->index, &guard)) {
		lx_fail("cuda:%d cannot be used", g->index);
		return LX_FAILED;
	}
	lx_error e = LX_OK;
	const result r = g->get_context(&g->context);
	if (r || !g->context) {
		fail_with(g, "the context of the GPU", "", r);
		e = LX_FAILED;
	}
	for (int64_t n = 0; n < lx_plan_of()->kernels && !e; n++)
		e = load_kernel(g, n);
	g->end_guard(guard);
	return e;
}

// device_of reads "cuda" and "cuda:N".
static lx_error device_of(const char *device, int32_t *index)
{
	*index = -1;
	if (!device || strncmp(device, "cuda", 4) || (device[4] && device[4] != ':')) {
		lx_fail("the model was exported for CUDA, not for %s", device ? device : "no device");
		return LX_FAILED;
	}
	if (device[4])
		*index = (int32_t)strtol(device + 5, NULL, 10);
	return LX_OK;
}

lx_engine *lx_open(const char *device)
{
	const lx_plan *p = lx_plan_of();
	int32_t index;
	if (device_of(device, &index))
		return NULL;
	lx_engine *g = calloc(1, sizeof *g + (size_t)(2 * p->kernels + p->functions) * sizeof(void *));
	if (!g) {
		lx_fail("there is no memory for a container");
		return NULL;
	}
	g->modules = (void **)(g + 1);
	g->kernels = g->modules + p->kernels;
	g->functions = g->kernels + p->kernels;
	g->index = index;
	if (find_functions(g) || put_literals(g) || load_all(g)) {
		lx_close(g);
		return NULL;
	}
	return g;
}

// lx_close frees an engine, whose runs have ended, but not all of their work on the device.
void lx_close(lx_engine *g)
{
	if (!g)
		return;
	if (g->context)
		lx_settle(g);
	for (int64_t n = 0; n < lx_plan_of()->kernels; n++)
		if (g->modules[n])
			g->unload(g->modules[n]);
	if (g->literals)
		aoti_torch_delete_tensor_object(g->literals);
	free(g);
}

lx_error lx_settle(const lx_engine *g)
{
	result r = g->set_context(g->context);
	if (!r)
		r = g->synchronize();
	if (r)
		fail_with(g, "the GPU", "", r);
	return r ? LX_FAILED : LX_OK;
}

// Values of constants are computed in each run.
lx_fold *lx_fold_of(const lx_set *set)
{
	(void)set;
	return NULL;
}

static lx_error launch(const lx_state *r, const lx_launch *l)
{
	const lx_engine *g = r->engine;
	uint64_t slots[LX_MAX_SLOTS];
	memcpy(slots, l + 1, (size_t)l->slots * sizeof *slots);
	const lx_slot *at = (const lx_slot *)((const int64_t *)(l + 1) + l->slots);
	for (int64_t n = 0; n < l->addresses; n++)
		slots[at[n].slot] = (uint64_t)lx_address(r, at[n].place, at[n].at);
	void *params[] = {slots};
	const result bad = g->launch(g->kernels[l->kernel], (uint32_t)l->grid[0], (uint32_t)l->grid[1], (uint32_t)l->grid[2], (uint32_t)l->block[0],
				     (uint32_t)l->block[1], (uint32_t)l->block[2], 0, r->stream, params, NULL);
	if (bad)
		fail_with(g, lx_text(l->step.title), "", bad);
	return bad ? LX_FAILED : LX_OK;
}

// bytes_at makes a tensor over bytes of the device, or of the host.
static lx_error bytes_at(const lx_state *r, void *data, int64_t n, bool host, lx_handle *out)
{
	const int64_t stride = 1;
	*out = NULL;
	return aoti_torch_create_tensor_from_blob(data, 1, &n, &stride, 0, 0, host ? 0 : LX_DEVICE, host ? 0 : r->index, out);
}

// copy_bytes copies in the order of the stream. It waits where the host gets them.
static lx_error copy_bytes(const lx_state *r, void *to, bool to_host, void *from, int64_t n)
{
	lx_handle a, b = NULL;
	lx_error e = bytes_at(r, to, n, to_host, &a);
	if (!e)
		e = bytes_at(r, from, n, false, &b);
	if (!e)
		e = aoti_torch_copy_(a, b, 0);
	if (a)
		aoti_torch_delete_tensor_object(a);
	if (b)
		aoti_torch_delete_tensor_object(b);
	return e;
}

static lx_error move(const lx_state *r, const lx_move *m)
{
	char *to = lx_address(r, m->to, m->to_at), *from = lx_address(r, m->from, m->from_at);
	const lx_error e = to == from ? LX_OK : copy_bytes(r, to, false, from, m->bytes);
	if (e)
		lx_fail("%s: cannot be copied", lx_text(m->step.title));
	return e;
}

static lx_error run_steps(const lx_state *r)
{
	const lx_plan *p = lx_plan_of();
	const int64_t *w = r->words + p->step_at;
	for (int64_t n = 0; n < p->steps; n++) {
		const lx_step *s = (const lx_step *)w;
		lx_error e = s->kind == LX_LAUNCH ? launch(r, (const lx_launch *)s)
			     : s->kind == LX_MOVE ? move(r, (const lx_move *)s)
						  : lx_run_call(r, (const lx_call *)s);
		if (e)
			return e;
		w += s->length;
	}
	return LX_OK;
}

static lx_error clear_faults(const lx_state *r, char *workspace)
{
	const lx_plan *p = lx_plan_of();
	lx_handle t;
	if (!p->faults)
		return LX_OK;
	lx_error e = bytes_at(r, workspace + p->fault_place, p->faults * LX_FAULT_BYTES, false, &t);
	if (!e)
		e = aoti_torch_zero_(t);
	if (t)
		aoti_torch_delete_tensor_object(t);
	if (e)
		lx_fail("the memory of faults cannot be cleared");
	return e;
}

// read_faults waits for the run and tells what launches found wrong.
static lx_error read_faults(const lx_state *r, char *workspace)
{
	const lx_plan *p = lx_plan_of();
	const lx_fault *f = (const lx_fault *)(loris_words + p->fault_at);
	char all[p->faults * LX_FAULT_BYTES + 1];
	if (!p->faults)
		return LX_OK;
	if (copy_bytes(r, all, true, workspace + p->fault_place, p->faults * LX_FAULT_BYTES)) {
		lx_fail("the run failed on the GPU");
		return LX_FAILED;
	}
	for (const char *at = all; f < (const lx_fault *)(loris_words + p->fault_at) + p->faults; f++, at += LX_FAULT_BYTES) {
		uint32_t code;
		int64_t index;
		memcpy(&code, at, sizeof code);
		memcpy(&index, at + 8, sizeof index);
		if (!code)
			continue;
		if (f->size)
			lx_fail("%s: index %lld is out of range for a dimension of size %lld", lx_text(f->title), (long long)index, (long long)f->size);
		else
			lx_fail("%s: integer division by zero", lx_text(f->title));
		return LX_FAILED;
	}
	return LX_OK;
}

// make_workspace takes memory from libtorch in the order of the stream, so that runs in several streams
// have some each, and the next run has the same again.
static lx_error make_workspace(const lx_state *r, lx_handle *out, char **data)
{
	const int64_t n = lx_plan_of()->workspace, sizes[] = {n > 0 ? n : 1}, strides[] = {1};
	if (aoti_torch_empty_strided(1, sizes, strides, 0, LX_DEVICE, r->index, out) || aoti_torch_get_data_ptr(*out, (void **)data)) {
		lx_fail("there is no memory for %lld bytes of workspace", (long long)n);
		return LX_FAILED;
	}
	if ((uintptr_t)*data % LX_ALIGN) {
		lx_fail("the workspace lies at %p, no multiple of %d", (void *)*data, LX_ALIGN);
		return LX_FAILED;
	}
	return LX_OK;
}

// compute does the run, with the device and the stream those of the thread. Runs that assign end with
// their work: the next one may be in another stream.
static lx_error compute(const lx_engine *g, const lx_set *set, void *stream, lx_handle *inputs, lx_handle *outputs)
{
	const lx_plan *p = lx_plan_of();
	const size_t in = (size_t)p->inputs, constants = (size_t)p->constants, out = (size_t)p->outputs, returned = (size_t)p->returned;
	char *base[in + constants + out + 3 + returned], *workspace = NULL;
	lx_handle handles[in + returned + 1];
	memset(handles, 0, sizeof handles);
	const lx_state r = {.words = loris_words, .set = set, .base = base, .returned = handles + in, .functions = g->functions, .index = g->index, .engine = g, .stream = stream};
	lx_error e = lx_take_inputs(&r, inputs, handles);
	if (!e)
		e = lx_make_outputs(&r, outputs);
	if (!e)
		e = make_workspace(&r, &handles[in + returned], &workspace);
	if (!e)
		e = clear_faults(&r, workspace);
	if (!e) {
		memcpy(base + in, set->data, constants * sizeof *base);
		base[in + constants + out] = workspace;
		base[in + constants + out + 1] = g->literal_data;
		base[in + constants + out + 2] = NULL;
		e = run_steps(&r);
	}
	if (!e)
		e = read_faults(&r, workspace);
	if (!e)
		e = lx_assign(&r, inputs, workspace);
	if (!e && p->assigned) {
		const result bad = g->wait(stream);
		if (bad) {
			fail_with(g, "the run", "", bad);
			e = LX_FAILED;
		}
	}
	for (size_t n = 0; n <= in + returned; n++)
		if (handles[n])
			aoti_torch_delete_tensor_object(handles[n]);
	return e;
}

lx_error lx_run(lx_engine *g, const lx_set *set, lx_fold *fold, void *stream, lx_handle *inputs, lx_handle *outputs)
{
	const size_t out = (size_t)lx_plan_of()->outputs;
	void *guard = NULL, *turn = NULL;
	lx_error e = LX_FAILED;
	(void)fold;
	memset(outputs, 0, out * sizeof *outputs);
	if (g->guard(g->index, &guard) || g->turn(stream, g->index, &turn) || g->set_context(g->context))
		lx_fail("cuda:%d or the stream cannot be used", g->index);
	else
		e = compute(g, set, stream, inputs, outputs);
	for (size_t n = 0; e && n < out; n++)
		if (outputs[n]) {
			aoti_torch_delete_tensor_object(outputs[n]);
			outputs[n] = NULL;
		}
	if (turn)
		g->end_turn(turn);
	if (guard)
		g->end_guard(guard);
	return e;
}
