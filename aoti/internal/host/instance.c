// Instances: the path of a run. It is one call from Go, because the texts of
// errors belong to the thread.

#define _GNU_SOURCE
#include "instance.h"
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lori_instance *lori_instance_new(lori_library *l, int32_t inputs, int32_t outputs, int32_t constants)
{
	lori_instance *m = calloc(1, sizeof *m);
	if (!m) {
		lori_fail("out of memory");
		return NULL;
	}
	m->library = l;
	m->inputs = inputs;
	m->outputs = outputs;
	m->in = calloc((size_t)inputs + 1, sizeof *m->in);
	m->out = calloc((size_t)outputs + 1, sizeof *m->out);
	m->in_handles = calloc((size_t)inputs + 1, sizeof *m->in_handles);
	m->out_handles = calloc((size_t)outputs + 1, sizeof *m->out_handles);
	m->lent = calloc((size_t)inputs + 1, sizeof *m->lent);
	m->results = calloc((size_t)outputs + 1, sizeof *m->results);
	m->pair = calloc((size_t)constants + 1, sizeof *m->pair);
	if (!m->in || !m->out || !m->in_handles || !m->out_handles || !m->lent || !m->results || !m->pair) {
		lori_fail("out of memory");
		lori_instance_delete(m);
		return NULL;
	}
	return m;
}

// done keeps the text of a failure where Go finds it.
static lori_error done(lori_instance *m, lori_error code)
{
	if (code != LORI_OK)
		snprintf(m->text, sizeof m->text, "%s", lori_error_text());
	return code;
}

lori_error lori_instance_delete(lori_instance *m)
{
	lori_error code = LORI_OK;
	lori_context before = lori_enter(&m->context);
	lori_call_begin();
	if (m->model)
		code = m->library->calls.model_destroy(m->model);
	if (m->container && m->library->calls.destroy(m->container) != LORI_OK)
		code = LORI_FAIL;
	code = lori_call_end(m->library, code);
	lori_leave(&before);
	free(m->in);
	free(m->out);
	free(m->in_handles);
	free(m->out_handles);
	free(m->lent);
	free(m->results);
	free(m->pair);
	free(m);
	return code;
}

// make creates the model with no constants: an empty map keeps it from loading
// those of the library.
static lori_error make(lori_instance *m)
{
	lori_map *empty = lori_map_new(NULL, 0, m->library->old_strings);
	if (!empty)
		return LORI_FAIL;
	lori_error code = m->library->calls.model_create(&m->model, lori_map_pointer(empty));
	lori_map_free(empty);
	return code;
}

void lori_instance_unpair(lori_instance *m)
{
	for (int32_t i = 0; i < m->pairs; i++) {
		if (m->pair[i].handle)
			m->library->tensors.remove(m->pair[i].handle);
		m->pair[i].handle = NULL;
	}
}

static lori_error bind(lori_instance *m)
{
	const lori_calls *f = &m->library->calls;
	lori_call_begin();
	lori_error code = m->model ? LORI_OK : make(m);
	if (code != LORI_OK) {
		code = lori_call_end(m->library, code);
		lori_instance_unpair(m);
		return done(m, code);
	}
	if (f->model_update_pairs) {
		code = f->model_update_pairs(m->model, m->pair, m->pairs);
	} else {
		lori_map *map = lori_map_new(m->pair, (size_t)m->pairs, m->library->old_strings);
		if (!map) {
			lori_instance_unpair(m);
			return done(m, LORI_FAIL);
		}
		code = f->model_update(m->model, lori_map_pointer(map));
		lori_map_free(map);
	}
	return done(m, lori_call_end(m->library, code));
}

lori_error lori_instance_bind(lori_instance *m)
{
	lori_context before = lori_enter(&m->context);
	lori_error code = bind(m);
	lori_leave(&before);
	return code;
}

lori_error lori_instance_bind_container(lori_instance *m, const char *device)
{
	const lori_calls *f = &m->library->calls;
	lori_container c = NULL;
	if (!f->create_external) {
		lori_instance_unpair(m);
		return done(m, lori_fail("libraries of this generation cannot fold constants on a real libtorch"));
	}
	lori_call_begin();
	lori_error code = f->create_external(&c, 1, device, NULL, m->pair, (size_t)m->pairs);
	code = lori_call_end(m->library, code);
	lori_instance_unpair(m);
	if (code == LORI_OK) {
		if (m->container)
			f->destroy(m->container);
		m->container = c;
	}
	return done(m, code);
}

// A dropped input finds its instance again through this.
typedef struct boxed {
	uintptr_t token;
	int32_t index;
} boxed;

static void dropped(void *arg)
{
	boxed *b = arg;
	uintptr_t token = b->token;
	int32_t index = b->index;
	free(b);
	lori_input_dropped(token, index);
}

// lend makes a handle over the memory of input i, which the caller lends.
static lori_tensor *lend(lori_instance *m, int32_t i)
{
	const lori_value *v = &m->in[i];
	int64_t strides[LORI_INLINE_DIMS];
	boxed *b = NULL;
	if (m->boxed) {
		b = malloc(sizeof *b);
		if (!b) {
			lori_fail("out of memory");
			return NULL;
		}
		*b = (boxed){.token = m->context.instance, .index = i};
	}
	lori_storage *s = lori_storage_wrap(v->data, v->nbytes, LORI_BORROWED, b ? dropped : NULL, b);
	if (!s) {
		free(b);
		return NULL;
	}
	lori_device_mark(s, LORI_CUDA);
	lori_row_major(v->ndim, v->sizes, strides);
	return lori_tensor_over(s, v->ndim, v->sizes, strides, 0, v->dtype);
}

// restride replaces t by a copy with the strides that v asks for.
static lori_tensor *restride(lori_tensor *t, const lori_value *v)
{
	lori_tensor *k = lori_tensor_empty_like(t, v->strides);
	if (k && lori_copy(k, t) != LORI_OK) {
		lori_tensor_delete(k);
		k = NULL;
	}
	lori_tensor_delete(t);
	return k;
}

// take makes the handle of input i that the library gets.
static lori_error take(lori_instance *m, int32_t i)
{
	const lori_value *v = &m->in[i];
	lori_tensor *t = lend(m, i);
	if (t && v->strided)
		t = restride(t, v);
	if (!t)
		return LORI_FAIL;
	if (m->library->tensors.own) {
		m->in_handles[i] = t;
		return LORI_OK;
	}
	m->lent[i] = t;
	return lori_tensor_hand(m->library, t, &m->in_handles[i]);
}

// shape_error says that an output is not what there is room for.
static lori_error shape_error(const lori_tensor *t, const lori_value *v, int32_t i)
{
	char is[256] = "", want[256] = "";
	for (int d = 0, n = 0; d < t->ndim && n < 200; d++)
		n += snprintf(is + n, sizeof is - (size_t)n, "%s%lld", d ? "," : "", (long long)t->sizes[d]);
	for (int d = 0, n = 0; d < v->ndim && n < 200; d++)
		n += snprintf(want + n, sizeof want - (size_t)n, "%s%lld", d ? "," : "", (long long)v->sizes[d]);
	return lori_fail("output %d is %s[%s], and the buffer given for it is %s[%s]", i, lori_dtype_name(t->dtype), is,
			 lori_dtype_name(v->dtype), want);
}

static bool fits(const lori_tensor *t, const lori_value *v)
{
	return t->dtype == v->dtype && t->ndim == v->ndim &&
	       memcmp(t->sizes, v->sizes, (size_t)t->ndim * sizeof *t->sizes) == 0;
}

// fill copies t to the memory that v gives.
static lori_error fill(const lori_tensor *t, const lori_value *v)
{
	if (!lori_here.gpu)
		return lori_tensor_read(t, v->data, v->nbytes);
	int64_t strides[LORI_INLINE_DIMS];
	lori_storage *s = lori_storage_wrap(v->data, v->nbytes, LORI_BORROWED, NULL, NULL);
	if (!s)
		return LORI_FAIL;
	lori_device_mark(s, LORI_CUDA);
	lori_row_major(v->ndim, v->sizes, strides);
	lori_tensor *to = lori_tensor_over(s, v->ndim, v->sizes, strides, 0, v->dtype);
	lori_error code = to ? lori_copy(to, t) : LORI_FAIL;
	lori_tensor_delete(to);
	return code;
}

// deliver brings output i, as t, to where the caller wants it. It does not
// consume t.
static lori_error deliver(lori_instance *m, int32_t i, lori_tensor *t)
{
	lori_value *v = &m->out[i];
	if (!t || lori_tensor_check(t, "an output"))
		return LORI_FAIL;
	if (v->data)
		return fits(t, v) ? fill(t, v) : shape_error(t, v, i);
	if (t->ndim > LORI_INLINE_DIMS)
		return lori_fail("output %d has %d dimensions; %d are the most", i, t->ndim, LORI_INLINE_DIMS);
	lori_tensor *kept = lori_tensor_exclusive(t) ? lori_tensor_alias(t) : lori_tensor_empty_like(t, NULL);
	m->results[i] = kept;
	if (!kept || (kept->storage != t->storage && lori_copy(kept, t) != LORI_OK))
		return LORI_FAIL;
	v->data = lori_tensor_data(kept);
	v->nbytes = kept->numel * lori_dtype_size(kept->dtype);
	v->dtype = kept->dtype;
	v->ndim = kept->ndim;
	memcpy(v->sizes, kept->sizes, (size_t)kept->ndim * sizeof *kept->sizes);
	return LORI_OK;
}

// separate gives each output a handle of its own: a model that returns a tensor
// twice returns one handle twice.
static lori_error separate(lori_instance *m)
{
	for (int32_t i = 1; i < m->outputs; i++) {
		for (int32_t j = 0; j < i; j++) {
			if (m->out_handles[i] != m->out_handles[j] || !m->out_handles[i])
				continue;
			m->out_handles[i] = NULL;
			if (m->library->tensors.alias(m->out_handles[j], &m->out_handles[i]) != LORI_OK)
				return LORI_FAIL;
			break;
		}
	}
	return LORI_OK;
}

// deliver_all delivers the outputs of a run that succeeded and deletes the
// library's handles to them.
static lori_error deliver_all(lori_instance *m, lori_error code)
{
	const lori_library *l = m->library;
	if (code == LORI_OK)
		code = separate(m);
	for (int32_t i = 0; i < m->outputs; i++) {
		if (code == LORI_OK && l->tensors.own) {
			code = deliver(m, i, m->out_handles[i]);
		} else if (code == LORI_OK) {
			lori_tensor *t = lori_tensor_of(l, m->out_handles[i]);
			code = deliver(m, i, t);
			lori_tensor_delete(t);
		}
		if (m->out_handles[i])
			l->tensors.remove(m->out_handles[i]);
		m->out_handles[i] = NULL;
	}
	return code;
}

void lori_instance_drop(lori_instance *m)
{
	for (int32_t i = 0; i < m->outputs; i++) {
		lori_tensor_delete(m->results[i]);
		m->results[i] = NULL;
	}
}

static lori_error call(lori_instance *m)
{
	const lori_calls *f = &m->library->calls;
	if (!m->model && !m->container)
		return lori_fail("the model has no constants yet");
	for (int32_t i = 0; i < m->inputs; i++) {
		if (take(m, i) != LORI_OK)
			return LORI_FAIL;
	}
	if (m->container)
		return f->run(m->container, m->in_handles, (size_t)m->inputs, m->out_handles, (size_t)m->outputs, NULL, NULL);
	return f->model_run(m->model, m->in_handles, m->out_handles);
}

// Of the OpenMP runtime, which a program may be without.
void lomp_run_begin(void) __attribute__((weak));
void lomp_run_end(void) __attribute__((weak));

lori_error lori_instance_run(lori_instance *m)
{
	if (lomp_run_begin)
		lomp_run_begin();
	lori_context before = lori_enter(&m->context);
	lori_call_begin();
	lori_check_inputs = m->library->check_inputs;
	lori_proxy = m->library->proxy;
	lori_error code = lori_call_end(m->library, call(m));
	// A library takes all inputs or, where it fails early, none.
	for (int32_t i = 0; i < m->inputs; i++) {
		if (m->in_handles[i])
			m->library->tensors.remove(m->in_handles[i]);
		m->in_handles[i] = NULL;
	}
	code = deliver_all(m, code);
	for (int32_t i = 0; i < m->inputs; i++) { // outputs may have been views of these
		lori_tensor_delete(m->lent[i]);
		m->lent[i] = NULL;
	}
	if (code != LORI_OK)
		lori_instance_drop(m);
	lori_leave(&before);
	if (lomp_run_end)
		lomp_run_end();
	return done(m, code);
}
