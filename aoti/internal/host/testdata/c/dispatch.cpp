// Tests of the dispatcher, from the side of a library of C++.

extern "C" {
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
typedef int32_t lori_error;
typedef struct lori_tensor lori_tensor;
typedef void (*lori_kernel)(uint64_t *stack, uint64_t n_in, uint64_t n_out);
const char *lori_error_text(void);
lori_error lori_torch_library_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **ret);
lori_error lori_torch_library_init_def(const char *ns, const char *file, uint32_t line, void **ret);
lori_error lori_torch_library_impl(void *library, const char *name, lori_kernel fn);
lori_error lori_torch_library_def(void *library, const char *schema);
lori_error lori_torch_delete_library_object(void *library);
lori_error lori_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack);
lori_error lori_torch_scalar_to_tensor_float32(float value, lori_tensor **ret);
lori_error lori_torch_item_float32(lori_tensor *t, float *ret);
lori_error lori_torch_delete_tensor_object(lori_tensor *t);
}
#include "check.h"

static uint64_t word(double x)
{
	uint64_t w;
	memcpy(&w, &x, sizeof w);
	return w;
}

static uint64_t tensor(float x)
{
	lori_tensor *t = nullptr;
	lori_torch_scalar_to_tensor_float32(x, &t);
	return (uint64_t)t;
}

// item reads a result and deletes it.
static float item(uint64_t w)
{
	float x = -1;
	lori_torch_item_float32((lori_tensor *)w, &x);
	lori_torch_delete_tensor_object((lori_tensor *)w);
	return x;
}

static void plus(uint64_t *stack, uint64_t n_in, uint64_t n_out)
{
	if (n_in != 2 || n_out != 1)
		return;
	stack[0] = tensor(item(stack[0]) + (float)(int64_t)stack[1]);
}

extern "C" const char *test_library(void *arg)
{
	void *def, *impl, *other;
	(void)arg;
	OK(lori_torch_library_init_def("mine", __FILE__, __LINE__, &def));
	OK(lori_torch_library_init_impl("mine", "CPU", __FILE__, __LINE__, &impl));
	OK(lori_torch_library_init_impl("mine", "CUDA", __FILE__, __LINE__, &other));
	OK(lori_torch_library_def(def, "plus(Tensor x, int n=1) -> Tensor"));
	FAILS(lori_torch_library_def(def, "plus(Tensor x) -> Tensor"), "registered already");
	FAILS(lori_torch_library_def(def, "plus"), "no schema");
	OK(lori_torch_library_impl(impl, "plus", plus));
	OK(lori_torch_library_impl(other, "plus", nullptr));
	FAILS(lori_torch_library_impl(impl, "mine::plus", plus), "registered already");
	uint64_t stack[] = {tensor(40), 2};
	OK(lori_torch_call_dispatcher("mine::plus", "", stack));
	CHECK(item(stack[0]) == 42);
	OK(lori_torch_delete_library_object(impl));
	OK(lori_torch_delete_library_object(other));
	stack[0] = 0;
	FAILS(lori_torch_call_dispatcher("mine::plus", "", stack), "there is no op mine::plus");
	OK(lori_torch_delete_library_object(def));
	FAILS(lori_torch_delete_library_object(def), "no such library");
	return nullptr;
}

extern "C" const char *test_ops(void *arg)
{
	(void)arg;
	uint64_t two[] = {tensor(6), tensor(7)};
	OK(lori_torch_call_dispatcher("aten::mul", "Tensor", two));
	CHECK(item(two[0]) == 42);
	uint64_t add[] = {tensor(1), tensor(2), word(0.5)};
	OK(lori_torch_call_dispatcher("aten::add", "Tensor", add));
	CHECK(item(add[0]) == 2);
	uint64_t one[] = {tensor(-4)};
	OK(lori_torch_call_dispatcher("aten::relu", "", one));
	CHECK(item(one[0]) == 0);
	uint64_t custom[] = {tensor(8), word(0.25), (uint64_t) new uint64_t(3), 0};
	OK(lori_torch_call_dispatcher("host_test::scaled", "", custom));
	CHECK(item(custom[0]) == 2 + 3);
	CHECK(item(custom[1]) == 8);
	uint64_t none[] = {tensor(8), word(0.25), 0, 0};
	OK(lori_torch_call_dispatcher("host_test::scaled", "", none));
	CHECK(item(none[0]) == 2);
	CHECK(item(none[1]) == 8);
	uint64_t bad[] = {tensor(8), word(0), 0, 0};
	FAILS(lori_torch_call_dispatcher("host_test::scaled", "", bad), "by nothing");
	uint64_t lists[] = {tensor(8), 0};
	FAILS(lori_torch_call_dispatcher("aten::permute", "", lists), "dims");
	FAILS(lori_torch_call_dispatcher("aten::no_such_op", "", lists), "there is no op aten::no_such_op");
	FAILS(lori_torch_call_dispatcher("host_test::nameless", "", lists), "schema");
	return nullptr;
}
