// Tests of the tensor functions, from the side of a library.

#include "../../shim.h"
#include "check.h"

#include <pthread.h>
#include <string.h>

static lori_tensor *iota(int64_t n)
{
	lori_tensor *t;
	int64_t one = 1;
	float *p;
	if (lori_torch_empty_strided(1, &n, &one, LORI_F32, LORI_CPU, 0, &t) || lori_torch_get_data_ptr(t, (void **)&p))
		return NULL;
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)i;
	return t;
}

const char *test_make(void *arg)
{
	lori_tensor *t, *v;
	int64_t sizes[] = {2, 3}, strides[] = {1, 2}, n, *p;
	int32_t code;
	void *data;
	bool yes;
	(void)arg;
	OK(lori_torch_empty_strided(2, sizes, strides, lori_torch_dtype_float64(), lori_torch_device_type_cpu(), 0, &t));
	OK(lori_torch_get_dim(t, &n));
	CHECK(n == 2);
	OK(lori_torch_get_numel(t, &n));
	CHECK(n == 6);
	OK(lori_torch_get_storage_size(t, &n));
	CHECK(n == 48);
	OK(lori_torch_get_storage_numel(t, &n));
	CHECK(n == 6);
	OK(lori_torch_get_sizes(t, &p));
	CHECK(p[0] == 2 && p[1] == 3);
	OK(lori_torch_get_strides(t, &p));
	CHECK(p[0] == 1 && p[1] == 2);
	OK(lori_torch_get_size(t, -1, &n));
	CHECK(n == 3);
	OK(lori_torch_get_stride(t, 1, &n));
	CHECK(n == 2);
	FAILS(lori_torch_get_size(t, 2, &n), "dimension 2 of a tensor of 2");
	OK(lori_torch_get_dtype(t, &code));
	CHECK(code == 7 && lori_torch_dtype_element_size(code) == 8);
	OK(lori_torch_get_device_type(t, &code));
	CHECK(code == 0);
	OK(lori_torch_get_layout(t, &code));
	CHECK(code == lori_torch_layout_strided());
	OK(lori_torch_is_contiguous(t, &yes));
	CHECK(!yes);
	OK(lori_torch_get_data_ptr(t, &data));
	CHECK((uintptr_t)data % 64 == 0);
	OK(lori_torch_new_tensor_handle(t, &v));
	OK(lori_torch_delete_tensor_object(t));
#ifndef ASAN // which forbids to look at it
	FAILS(lori_torch_get_dim(t, &n), "after its deletion");
	FAILS(lori_torch_delete_tensor_object(t), "deleted already");
#endif
	OK(lori_torch_get_data_ptr(v, &data));
	memset(data, 0, 48);
	OK(lori_torch_delete_tensor_object(v));
	OK(lori_torch_new_uninitialized_tensor(&t));
	OK(lori_torch_is_defined(t, &yes));
	CHECK(!yes);
	FAILS(lori_torch_get_dim(t, &n), "undefined");
	v = iota(4);
	OK(lori_torch_assign_tensors(v, t));
	OK(lori_torch_is_defined(t, &yes));
	CHECK(yes);
	OK(lori_torch_delete_tensor_object(v));
	OK(lori_torch_get_data_ptr(t, &data));
	CHECK(((float *)data)[3] == 3);
	return lori_torch_delete_tensor_object(t) ? "delete" : NULL;
}

const char *test_refusals(void *arg)
{
	lori_tensor *t = NULL;
	int64_t huge[] = {INT64_C(1) << 40, INT64_C(1) << 40}, one[] = {1, 1}, negative[] = {-1, 1}, two = 2, n;
	(void)arg;
	FAILS(lori_torch_empty_strided(2, huge, one, 6, 0, 0, &t), "overflow");
	FAILS(lori_torch_empty_strided(2, negative, one, 6, 0, 0, &t), "negative size");
	FAILS(lori_torch_empty_strided(2, one, negative, 6, 0, 0, &t), "negative stride");
	FAILS(lori_torch_empty_strided(1, one, one, 12, 0, 0, &t), "unknown dtype");
	FAILS(lori_torch_empty_strided(1, one, one, 6, 1, 0, &t), "runs on the CPU");
	FAILS(lori_torch_empty_strided(65, one, one, 6, 0, 0, &t), "dimensions");
	FAILS(lori_torch_get_dim(NULL, &n), "NULL");
	t = iota(4);
	lori_tensor *v = NULL;
	FAILS(lori_torch__reinterpret_tensor(t, 1, &two, &two, 2, &v), "storage of 16 bytes");
	FAILS(lori_torch__reinterpret_tensor(t, 1, &two, &two, -1, &v), "negative offset");
	FAILS(lori_torch__alloc_from_pool(t, 3, 6, 1, &two, one, &v), "offset 3");
	OK(lori_torch_delete_tensor_object(t));
	return NULL;
}

const char *test_views(void *arg)
{
	lori_tensor *t = iota(12), *v, *c;
	int64_t sizes[] = {3, 4}, turned[] = {1, 3}, *p, n;
	float *data, *copy;
	(void)arg;
	int64_t one = 1;
	OK(lori_torch__reinterpret_tensor(t, 2, sizes, turned, 0, &v));
	OK(lori_torch_clone(v, &c));
	OK(lori_torch_get_strides(c, &p));
	CHECK(p[0] == 1 && p[1] == 3);
	OK(lori_torch_delete_tensor_object(c));
	int64_t rows[] = {3, 2}, wide[] = {4, 2};
	OK(lori_torch_delete_tensor_object(v));
	OK(lori_torch__reinterpret_tensor(t, 2, rows, wide, 1, &v));
	OK(lori_torch_get_storage_offset(v, &n));
	CHECK(n == 1);
	OK(lori_torch_get_data_ptr(v, (void **)&data));
	CHECK(data[0] == 1);
	OK(lori_torch_clone(v, &c));
	OK(lori_torch_get_strides(c, &p));
	CHECK(p[0] == 2 && p[1] == 1);
	OK(lori_torch_get_data_ptr(c, (void **)&copy));
	for (int i = 0; i < 6; i++)
		CHECK(copy[i] == (float)(1 + i / 2 * 4 + i % 2 * 2));
	OK(lori_torch_zero_(v));
	CHECK(data[0] == 0 && data[1] == 2 && data[10 - 0] == 0);
	OK(lori_torch_copy_(v, c, 0));
	CHECK(data[0] == 1 && data[10] == 11);
	OK(lori_torch_delete_tensor_object(c));
	OK(lori_torch_clone_preserve_strides(v, &c));
	OK(lori_torch_get_strides(c, &p));
	CHECK(p[0] == 4 && p[1] == 2);
	OK(lori_torch_delete_tensor_object(c));
	OK(lori_torch_delete_tensor_object(v));
	OK(lori_torch__alloc_from_pool(t, 16, LORI_I32, 1, rows, &one, &v));
	OK(lori_torch_get_data_ptr(v, (void **)&copy));
	CHECK(copy[0] == 4);
	OK(lori_torch_delete_tensor_object(v));
	OK(lori_torch_delete_tensor_object(t));
	return NULL;
}

const char *test_convert(void *arg)
{
	static const struct {
		int32_t from, to;
		double in, out;
	} cases[] = {
		{LORI_F64, LORI_F32, 1e-50, 0},
		{LORI_F32, LORI_I32, -2.7, -2},
		{LORI_F32, LORI_U8, 258, 2},
		{LORI_F64, LORI_BOOL, 0.5, 1},
		{LORI_I64, LORI_F16, 2049, 2048},
		{LORI_F32, LORI_F16, 65520, __builtin_inf()},
		{LORI_F32, LORI_F16, 65519, 65504},
		{LORI_F32, LORI_F16, 0x1p-25, 0},
		{LORI_F32, LORI_F16, 0x1.8p-25, 0x1p-24},
		{LORI_F32, LORI_BF16, 1.00390625, 1},
		{LORI_F32, LORI_F8E4M3FN, 17, 16},
		{LORI_F32, LORI_F8E4M3FN, 448, 448},
		{LORI_F32, LORI_F8E5M2, 0x1p-17, 0},
		{LORI_I64, LORI_C64, -3, -3},
		{LORI_BOOL, LORI_F64, 1, 1},
	};
	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double got;
		lori_tensor *in = lori_tensor_borrow((void *)&cases[i].in, 8, 0, NULL, NULL, LORI_F64);
		lori_tensor *a = lori_tensor_empty(0, NULL, NULL, cases[i].from);
		lori_tensor *b = lori_tensor_empty(0, NULL, NULL, cases[i].to);
		lori_tensor *out = lori_tensor_borrow(&got, 8, 0, NULL, NULL, LORI_F64);
		OK(lori_torch_copy_(a, in, 0));
		OK(lori_torch_copy_(b, a, 0));
		OK(lori_torch_copy_(out, b, 0));
		static char text[200];
		if (got != cases[i].out) {
			snprintf(text, sizeof text, "case %zu: %g from %s to %s is %g, not %g", i, cases[i].in,
				 lori_dtype_name(cases[i].from), lori_dtype_name(cases[i].to), got, cases[i].out);
			return text;
		}
		lori_tensor_delete(in);
		lori_tensor_delete(a);
		lori_tensor_delete(b);
		lori_tensor_delete(out);
	}
	return NULL;
}

const char *test_record(void *arg)
{
	static int64_t weights[6];
	lori_recorded list = {0};
	lori_tensor *t, *u;
	int64_t sizes[] = {2, 3}, strides[] = {3, 1};
	uint8_t opaque[772] = {1, 2, 3};
	opaque[4] = 1, opaque[104] = 3, opaque[112] = 8; // one dimension of f32, 8 long with padding
	(void)arg;
	lori_record_start(&list);
	OK(lori_torch_create_tensor_from_blob(weights, 2, sizes, strides, 0, LORI_I64, 0, 0, &t));
	OK(lori_torch_create_tensor_from_blob_v2(weights, 2, sizes, strides, 0, LORI_F32, 0, -1, &u, LORI_MKLDNN, opaque, sizeof opaque));
	lori_record_stop();
	OK(lori_torch_delete_tensor_object(t));
	OK(lori_torch_delete_tensor_object(u));
	CHECK(list.count == 2 && !list.failed);
	CHECK(list.items[0]->sizes[1] == 3 && list.items[0]->storage->data == weights);
	CHECK(list.items[0]->storage->nbytes == 48);
	CHECK(list.items[1]->layout == LORI_MKLDNN && list.items[1]->opaque->bytes[2] == 3);
	CHECK(list.items[1]->storage->nbytes == 32);
	lori_record_free(&list);
	return NULL;
}

static int ended;
static void end(void *obj) { ended += *(int *)obj; }

const char *test_atexit(void *arg)
{
	static int one = 1, ten = 10;
	char here, *far = &here + 4096;
	(void)arg;
	OK(__lor_thread_atexit(end, &one, &here));
	OK(__lor_thread_atexit(end, &ten, far));
	lori_thread_atexit_unload(&here, &here + 1);
	CHECK(ended == 1);
	lori_thread_atexit_unload(far, far + 1);
	CHECK(ended == 11);
	return NULL;
}

static void *other_thread(void *arg)
{
	*(const char **)arg = "grad mode is another thread's";
	if (!lori_torch_grad_mode_is_enabled())
		return NULL;
	*(const char **)arg = "the error text is another thread's";
	if (strcmp(lori_error_text(), ""))
		return NULL;
	lori_fail("of the other thread");
	lori_torch_grad_mode_set_enabled(true);
	*(const char **)arg = NULL;
	return NULL;
}

// Grad mode and the text of the last error are each thread's own.
const char *test_threads(void *arg)
{
	pthread_t thread;
	const char *problem = NULL;
	bool grad = lori_torch_grad_mode_is_enabled();
	(void)arg;
	lori_torch_grad_mode_set_enabled(false);
	lori_fail("of this thread");
	CHECK(!pthread_create(&thread, NULL, other_thread, &problem) && !pthread_join(thread, NULL));
	if (problem)
		return problem;
	CHECK(!strcmp(lori_error_text(), "of this thread"));
	CHECK(!lori_torch_grad_mode_is_enabled());
	lori_torch_grad_mode_set_enabled(grad);
	lori_error_clear();
	CHECK(!strcmp(lori_error_text(), ""));
	return NULL;
}
