// Objects that libraries hold besides tensors: values of any kind, as arguments
// of profiled regions; the regions; guards and streams of devices, of which the
// CPU has one each.

#include "shim.h"

#include <stdlib.h>
#include <string.h>

struct lori_value_object {
	enum { INT, STRING, STRINGS, TENSOR } kind;
	int64_t i;    // the int, or the number of strings
	char **texts; // one string or several
	lori_tensor *tensor;
};

static lori_value_object *new_value(int kind)
{
	lori_value_object *v = calloc(1, sizeof *v);
	if (!v) {
		lori_fail("out of memory");
		return NULL;
	}
	v->kind = kind;
	lori_count_object(1);
	return v;
}

lori_error lori_torch_delete_c10_value_object(lori_value_object *v)
{
	if (!v)
		return LORI_OK;
	for (int64_t i = 0; v->texts && i < v->i; i++)
		free(v->texts[i]);
	free(v->texts);
	lori_tensor_delete(v->tensor);
	free(v);
	lori_count_object(-1);
	return LORI_OK;
}

lori_error lori_torch_int64_to_ivalue(int64_t val, lori_value_object **ret)
{
	lori_value_object *v = *ret = new_value(INT);
	if (!v)
		return LORI_FAIL;
	v->i = val;
	return LORI_OK;
}

static lori_error strings(int kind, const char *const *val, int64_t len, lori_value_object **ret)
{
	if (len < 0)
		return lori_fail("a list of %lld strings", (long long)len);
	lori_value_object *v = new_value(kind);
	if (!v)
		return LORI_FAIL;
	v->texts = calloc((size_t)len + 1, sizeof *v->texts);
	for (; v->texts && v->i < len; v->i++) {
		v->texts[v->i] = strdup(val[v->i]);
		if (!v->texts[v->i])
			break;
	}
	if (!v->texts || v->i < len) {
		lori_torch_delete_c10_value_object(v);
		return lori_fail("out of memory");
	}
	*ret = v;
	return LORI_OK;
}

lori_error lori_torch_strlist_to_ivalue(const char *const *val, int64_t len, lori_value_object **ret)
{
	return strings(STRINGS, val, len, ret);
}

lori_error lori_torch_str_to_ivalue(const char *val, lori_value_object **ret) { return strings(STRING, &val, 1, ret); }

lori_error lori_torch_tensor_to_ivalue(lori_tensor *t, lori_value_object **ret)
{
	if (!t)
		return lori_fail("tensor_to_ivalue: the tensor handle is NULL");
	lori_value_object *v = new_value(TENSOR);
	if (!v)
		return LORI_FAIL;
	v->tensor = lori_tensor_alias(t);
	if (!v->tensor) {
		lori_torch_delete_c10_value_object(v);
		return LORI_FAIL;
	}
	*ret = v;
	return LORI_OK;
}

// A profiled region's guard is its name; who wants to hear of it sets
// lori_on_region.
static _Atomic(lori_region_fn) region_handler;

void lori_on_region(lori_region_fn handler) { atomic_store(&region_handler, handler); }

lori_error lori_record_function_start(const char *name, void *kwargs, lori_value_object *const *inputs,
				      uint64_t n_inputs, void **guard)
{
	(void)kwargs, (void)inputs, (void)n_inputs;
	char *region = strdup(name);
	if (!region)
		return lori_fail("out of memory");
	lori_count_object(1);
	lori_region_fn handler = atomic_load(&region_handler);
	if (handler)
		handler(region, true);
	*guard = region;
	return LORI_OK;
}

lori_error lori_record_function_end(void *guard)
{
	char *region = guard;
	if (!region)
		return LORI_OK;
	lori_region_fn handler = atomic_load(&region_handler);
	if (handler)
		handler(region, false);
	free(region);
	lori_count_object(-1);
	return LORI_OK;
}

// The CPU is one device with one stream; its guards have nothing to restore.
static char the_device, the_stream;

static lori_error only_device(const char *what, int32_t index)
{
	return index <= 0 ? LORI_OK : lori_fail("%s: device %d; this host has one CPU device", what, index);
}

lori_error lori_torch_create_device_guard(int32_t device_index, void **ret)
{
	*ret = &the_device;
	return only_device("create_device_guard", device_index);
}

lori_error lori_torch_delete_device_guard(void *guard)
{
	return guard == &the_device ? LORI_OK : lori_fail("delete_device_guard: no guard of this host");
}

lori_error lori_torch_device_guard_set_index(void *guard, int32_t device_index)
{
	return lori_torch_delete_device_guard(guard) ? LORI_FAIL : only_device("device_guard_set_index", device_index);
}

lori_error lori_torch_get_current_stream(int32_t device_index, void **ret)
{
	*ret = &the_stream;
	return only_device("get_current_stream", device_index);
}

lori_error lori_torch_stream_id(void *stream, int64_t *ret)
{
	*ret = 0;
	return stream == &the_stream ? LORI_OK : lori_fail("stream_id: no stream of this host");
}

lori_error lori_torch_delete_stream(void *stream)
{
	return stream == &the_stream ? LORI_OK : lori_fail("delete_stream: no stream of this host");
}

lori_error lori_torch_get_current_device_index(int32_t *ret)
{
	*ret = 0;
	return LORI_OK;
}

// The number of a shim's version, as TORCH_ABI_VERSION of 2.15.0.
uint64_t lori_torch_abi_version(void) { return (uint64_t)2 << 56 | (uint64_t)15 << 48; }
