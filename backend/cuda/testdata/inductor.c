// A model for CUDA as AOTInductor compiles one, by hand: y = 2·(x@w + b) of x [rows, 8],
// w [8, 4] and b [4], by a product of the host and a kernel of a file. Some numbers
// of rows make it fail, and some go through an op of the host.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 8, N = 4, F32 = 6 };
enum { TRAPS = 101, EXHAUSTS = 102, STRAYS = 103, LAUNCHES_NOTHING = 104, LACKS = 105, ADDS_UP = 106, TURNS = 107 };
enum { CONVOLVES = 108, ATTENDS = 109, PUTS = 110, PUTS_OUTSIDE = 111, COPIES = 112, COUNTS = 113, DECOMPOSES = 114, NAMES = 115, NAMES_YOURS = 116 };

typedef void *tensor;
typedef struct pair {
	const char *name;
	tensor handle;
} pair;

int aoti_torch_device_type_cuda(void);
int aoti_torch_empty_strided(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, tensor *);
int aoti_torch_create_tensor_from_blob_v2(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t,
					  int32_t, tensor *, int32_t, const uint8_t *, int64_t);
int aoti_torch_delete_tensor_object(tensor);
int aoti_torch_get_data_ptr(tensor, void **);
int aoti_torch_get_size(tensor, int64_t, int64_t *);
int aoti_torch_cuda_addmm_out(tensor, tensor, tensor, tensor, double, double);
int aoti_torch_cuda_cumsum(tensor, int64_t, int32_t *, tensor *);
int aoti_torch__reinterpret_tensor(tensor, int64_t, const int64_t *, const int64_t *, int64_t, tensor *);
int aoti_torch_cuda_convolution(tensor, tensor, tensor *, const int64_t *, int64_t, const int64_t *, int64_t, const int64_t *, int64_t,
				int32_t, const int64_t *, int64_t, int64_t, tensor *);
int aoti_torch_cuda__scaled_dot_product_flash_attention(tensor, tensor, tensor, double, int32_t, int32_t, double *, tensor *, tensor *,
							tensor *, tensor *, int64_t *, int64_t *, tensor *, tensor *, tensor *);
int aoti_torch_cuda_sort(tensor, int64_t, int32_t, tensor *, tensor *);
int aoti_torch_cuda_nonzero(tensor, tensor *);
int aoti_torch_cuda_geqrf(tensor, tensor *, tensor *);
int aoti_torch_index_put_out(tensor, tensor, const tensor *, uint32_t, tensor, _Bool);
int aoti_torch_copy_(tensor, tensor, int32_t);
int aoti_torch_new_uninitialized_tensor(tensor *);
int aoti_torch_proxy_executor_call_function(void *, int, int, int64_t *, int, tensor *);
int aoti_torch_create_cuda_guard(int32_t, void **);
int aoti_torch_delete_cuda_guard(void *);
int aoti_torch_create_cuda_stream_guard(void *, int32_t, void **);
int aoti_torch_delete_cuda_stream_guard(void *);
unsigned cudaMalloc(void **, size_t);
unsigned cudaFree(void *);
unsigned cudaMemcpy(void *, const void *, size_t, int);
unsigned cudaGetDevice(int *);
const char *cudaGetErrorString(unsigned);
unsigned cuModuleLoad(void **, const char *);
unsigned cuModuleUnload(void *);
unsigned cuModuleGetFunction(void **, void *, const char *);
unsigned cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static _Thread_local char text[256];

static int fail(const char *what, unsigned code)
{
	snprintf(text, sizeof text, "%s: %s", what, code ? cudaGetErrorString(code) : "failed");
	return 1;
}

int AOTInductorGetLastError(const char **out)
{
	*out = text;
	return 0;
}

typedef struct container {
	int device;
	float *blob;
	tensor constants[2];
} container;

#ifdef TRANSPOSED // the weight lies by columns
static const int64_t w_strides[] = {1, K};
#else
static const int64_t w_strides[] = {N, 1};
#endif
static const int64_t w_sizes[] = {K, N}, b_sizes[] = {N}, b_strides[] = {1};

int AOTInductorModelContainerCreateWithDevice(container **out, size_t models, const char *device, const char *dir)
{
	float values[K * N + 16];
	container *c = calloc(1, sizeof *c);
	for (int i = 0; i < K * N + 16; i++)
		values[i] = 1;
	*out = c;
	if (strncmp(device, "cuda:", 5) || models != 1 || dir)
		return fail(device, 0);
	c->device = atoi(device + 5);
	unsigned r = cudaMalloc((void **)&c->blob, sizeof values);
	if (!r)
		r = cudaMemcpy(c->blob, values, sizeof values, 1);
	if (r)
		return fail("load the constants", r);
	int cuda = aoti_torch_device_type_cuda();
	return aoti_torch_create_tensor_from_blob_v2(c->blob, 2, w_sizes, w_strides, 0, F32, cuda, c->device, &c->constants[0], 0, NULL, 0) ||
	       aoti_torch_create_tensor_from_blob_v2(c->blob + K * N, 1, b_sizes, b_strides, 0, F32, cuda, c->device, &c->constants[1], 0, NULL, 0);
}

int AOTInductorModelContainerDelete(container *c)
{
	for (int i = 0; i < 2; i++)
		if (c->constants[i])
			aoti_torch_delete_tensor_object(c->constants[i]);
	unsigned r = cudaFree(c->blob);
	free(c);
	return r ? fail("free the constants", r) : 0;
}

int AOTInductorModelContainerRun(container *c, tensor *in, size_t n_in, tensor *out, size_t n_out, void *stream, void *proxy)
{
	return fail("the container does not run", 0);
}

#define COUNT(name, n)                                          \
	int AOTInductorModelContainer##name(container *c, size_t *out) \
	{                                                       \
		*out = n;                                       \
		return 0;                                       \
	}
COUNT(GetNumInputs, 1)
COUNT(GetNumOutputs, 1)
COUNT(GetNumConstants, 2)

#define OF(name, type, value)                                                \
	int AOTInductorModelContainer##name(container *c, size_t i, type *out) \
	{                                                                    \
		*out = value;                                                \
		return 0;                                                    \
	}
OF(GetInputName, const char *, "x")
OF(GetOutputName, const char *, "y")
OF(GetConstantName, const char *, i ? "b" : "w")
OF(GetConstantOriginalFQN, const char *, i ? "layer.bias" : "layer.weight")
OF(GetConstantFromFolded, _Bool, 0)
OF(GetConstantDtype, int32_t, F32)
OF(GetConstantType, int32_t, 1)
OF(GetConstantDataSize, size_t, 4 * (i ? N : K * N))

int AOTInductorModelContainerGetCallSpec(container *c, const char **in, const char **out)
{
	*in = *out = "";
	return 0;
}

int AOTInductorModelContainerRunConstantFolding(container *c, _Bool inactive, void *stream, void *proxy) { return 0; }

typedef struct model {
	int device;
	tensor w, b;
	void *module, *function, *trap;
} model;

int AOTInductorModelCreate(model **out, void *map)
{
	*out = calloc(1, sizeof **out);
	unsigned r = cudaGetDevice(&(*out)->device);
	return r ? fail("make the model", r) : 0;
}

static void forget(model *m)
{
	if (m->w)
		aoti_torch_delete_tensor_object(m->w);
	if (m->b)
		aoti_torch_delete_tensor_object(m->b);
	m->w = m->b = NULL;
}

int AOTInductorModelUpdateConstantsMap(model *m, void *map) { return fail("the model takes pairs", 0); }

int AOTInductorModelUpdateConstantsMapV2(model *m, const pair *pairs, int32_t n)
{
	forget(m);
	for (int i = 0; i < n; i++)
		*(strcmp(pairs[i].name, "w") ? &m->b : &m->w) = pairs[i].handle;
	return 0;
}

int AOTInductorModelDelete(model *m)
{
	forget(m);
	unsigned r = m->module ? cuModuleUnload(m->module) : 0;
	free(m);
	return r ? fail("unload the kernels", r) : 0;
}

int AOTInductorModelGetNumOutputs(model *m, size_t *n)
{
	*n = 1;
	return 0;
}

// compute is the model between its guards.
static int compute(model *m, tensor x, tensor *out)
{
	int64_t rows, cuda = aoti_torch_device_type_cuda();
	void *product = NULL, *from, *to;
	if (aoti_torch_get_size(x, 0, &rows))
		return fail("ask for the size", 0);
	if (!m->function) {
		unsigned r = cuModuleLoad(&m->module, rows == LACKS ? "/far/away/none.cubin" : "/far/away/kernels.cubin");
		if (r)
			return fail("load the kernels", r);
		if ((r = cuModuleGetFunction(&m->function, m->module, "add_f32")) || (r = cuModuleGetFunction(&m->trap, m->module, "trap")))
			return fail("find the kernels", r);
	}
	const int64_t sizes[] = {rows == EXHAUSTS ? (int64_t)1 << 40 : rows, N}, strides[] = {N, 1};
	if (aoti_torch_empty_strided(2, sizes, strides, F32, cuda, m->device, &product) ||
	    aoti_torch_cuda_addmm_out(product, m->b, x, m->w, 1, 1) ||
	    aoti_torch_empty_strided(2, sizes, strides, F32, cuda, m->device, out) ||
	    aoti_torch_get_data_ptr(product, &from) || aoti_torch_get_data_ptr(*out, &to)) {
		if (product)
			aoti_torch_delete_tensor_object(product);
		return fail("compute", 0);
	}
	uint64_t n = (uint64_t)rows * N, code = 719;
	void *params[] = {&to, &from, &from, &n}, *trap[] = {&code};
	unsigned r = cuLaunchKernel(rows == TRAPS ? m->trap : m->function, rows == LAUNCHES_NOTHING ? 0 : 1, 1, 1, 32, 1, 1, 0, NULL,
				    rows == TRAPS ? trap : params, NULL);
	aoti_torch_delete_tensor_object(product);
	return r ? fail("launch", r) : 0;
}

// look returns a view of a tensor's memory.
static tensor look(tensor t, int64_t n, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
	tensor view = NULL;
	return aoti_torch__reinterpret_tensor(t, n, sizes, strides, offset, &view) ? NULL : view;
}

static void drop(int n, tensor *list)
{
	for (int i = 0; i < n; i++)
		if (list[i])
			aoti_torch_delete_tensor_object(list[i]);
}

// convolve takes the result for an image with its channels innermost, and w for
// filters.
static int convolve(model *m, tensor before, tensor *out)
{
	const int64_t sizes[] = {1, 4, 9, 12}, strides[] = {432, 1, 48, 4}, filters[] = {2, 4, 2, 2}, rows[] = {16, 4, 2, 1};
	const int64_t one[] = {1, 1}, none[] = {0, 0};
	tensor t[] = {look(before, 4, sizes, strides, 0), look(m->w, 4, filters, rows, 0)};
	int code = aoti_torch_cuda_convolution(t[0], t[1], NULL, one, 2, none, 2, one, 2, 0, none, 2, 1, out);
	drop(2, t);
	return code;
}

// attend takes parts of the result for queries, keys and values.
static int attend(tensor before, tensor *out)
{
	const int64_t sizes[] = {1, 2, 5, 8}, strides[] = {80, 8, 16, 1};
	int64_t q, k;
	tensor t[] = {look(before, 4, sizes, strides, 0), look(before, 4, sizes, strides, 80), look(before, 4, sizes, strides, 160)}, more[6] = {0};
	int code = aoti_torch_cuda__scaled_dot_product_flash_attention(t[0], t[1], t[2], 0, 1, 0, NULL, out, &more[0], &more[1], &more[2], &q, &k,
								      &more[3], &more[4], &more[5]);
	code = code || q != 5 || k != 5;
	drop(3, t);
	drop(6, more);
	return code;
}

// put moves the rows of the result, of which there are fewer than indices where one
// is to be outside, to where sorting the first column would have them.
static int put(int64_t rows, int outside, tensor before, tensor *out)
{
	const int64_t column[] = {rows}, step[] = {N}, sizes[] = {outside ? rows - 1 : rows, N}, strides[] = {N, 1};
	tensor t[4] = {look(before, 1, column, step, 0)};
	int code = aoti_torch_cuda_sort(t[0], 0, 1, &t[1], &t[2]);
	t[3] = look(before, 2, sizes, strides, 0);
	tensor value = look(before, 1, (const int64_t[]){N}, (const int64_t[]){1}, 0), index[] = {t[2]};
	code = code || aoti_torch_index_put_out(t[3], t[3], index, 1, outside ? value : before, 0);
	*out = look(before, 2, sizes, strides, 0);
	drop(4, t);
	drop(1, &value);
	return code;
}

// copy takes the result to another dtype and order, and back.
static int copy(model *m, int64_t rows, tensor before, tensor *out)
{
	const int64_t sizes[] = {rows, N}, columns[] = {1, rows}, strides[] = {N, 1};
	int32_t cuda = aoti_torch_device_type_cuda();
	tensor wide = NULL;
	int code = aoti_torch_empty_strided(2, sizes, columns, 7, cuda, m->device, &wide) || aoti_torch_copy_(wide, before, 0) ||
		   aoti_torch_empty_strided(2, sizes, strides, F32, cuda, m->device, out) || aoti_torch_copy_(*out, wide, 0);
	drop(1, &wide);
	return code;
}

// finish replaces the result by what an op of the host makes of it, or by a view that
// is turned around.
static int finish(model *m, int64_t rows, tensor *out)
{
	const int64_t sizes[] = {N, rows}, strides[] = {1, N};
	tensor before = *out, more = NULL;
	int code = 0;
	*out = NULL;
	switch (rows) {
	case ADDS_UP:
		code = aoti_torch_cuda_cumsum(before, 1, NULL, out);
		break;
	case TURNS:
		code = aoti_torch__reinterpret_tensor(before, 2, sizes, strides, 0, out);
		break;
	case CONVOLVES:
		code = convolve(m, before, out);
		break;
	case ATTENDS:
		code = attend(before, out);
		break;
	case PUTS:
	case PUTS_OUTSIDE:
		code = put(rows, rows == PUTS_OUTSIDE, before, out);
		break;
	case COPIES:
		code = copy(m, rows, before, out);
		break;
	case COUNTS:
		code = aoti_torch_cuda_nonzero(before, out);
		break;
	case DECOMPOSES:
		code = aoti_torch_cuda_geqrf(before, out, &more);
		drop(1, &more);
		break;
	case NAMES:
	case NAMES_YOURS:
		code = aoti_torch_new_uninitialized_tensor(out) ||
		       aoti_torch_proxy_executor_call_function(NULL, rows == NAMES_YOURS, 0, NULL, 3, (tensor[]){before, before, *out});
	}
	return aoti_torch_delete_tensor_object(before) || code;
}

int AOTInductorModelRun(model *m, tensor *in, tensor *out)
{
	void *guard, *stream_guard;
	int64_t rows;
	tensor x = in[0];
	in[0] = NULL;
	int code = aoti_torch_get_size(x, 0, &rows);
	code = code || aoti_torch_create_cuda_guard(rows == STRAYS ? 3 : m->device, &guard);
	if (!code) {
		code = aoti_torch_create_cuda_stream_guard(NULL, m->device, &stream_guard);
		code = code || compute(m, x, &out[0]);
		code = code || (rows >= ADDS_UP && rows <= NAMES_YOURS && finish(m, rows, &out[0]));
		aoti_torch_delete_cuda_stream_guard(stream_guard);
		aoti_torch_delete_cuda_guard(guard);
	}
	aoti_torch_delete_tensor_object(x);
	return code;
}
