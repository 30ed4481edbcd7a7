// What a library says of itself, and the folding of its constants.

#include "device.h"
#include "library.h"
#include "proxy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

lori_error lori_container_delete(lori_library *l, lori_container c)
{
	if (!c)
		return LORI_OK;
	lori_call_begin();
	return lori_call_end(l, l->calls.destroy(c));
}

// load gives a container the weights that lie outside of the library. It knows
// how many bytes it will read, and must not read beyond what there is.
static lori_error load(lori_library *l, lori_container c, const lori_source *from)
{
	uint64_t size = 0;
	if (!l->calls.load_blob || !l->calls.blob_size)
		return lori_fail("the library takes no weights of its own file");
	if (l->calls.blob_size(c, &size))
		return LORI_FAIL;
	if (size > from->blob_size)
		return lori_fail("the weights have %llu bytes and the library reads %llu",
				 (unsigned long long)from->blob_size, (unsigned long long)size);
	return l->calls.load_blob(c, from->blob);
}

// create makes a container with one model; list gets the tensors that it makes
// over the constants it has loaded, in their order.
static lori_error create(lori_library *l, const lori_source *from, lori_container *c, lori_recorded *list)
{
	*c = NULL;
	lori_record_start(list);
	lori_error code = l->calls.create(c, 1, from->device, NULL);
	if (code == LORI_OK && from->blob)
		code = load(l, *c, from);
	lori_record_stop();
	return code;
}

typedef lori_error (*name_call)(lori_container, size_t, const char **);

static lori_error names(lori_container c, name_call call, size_t n, const char ***out)
{
	const char **list = calloc(n ? n : 1, sizeof *list);
	*out = list;
	if (!list)
		return lori_fail("out of memory");
	for (size_t i = 0; i < n; i++) {
		if (call(c, i, &list[i]) != LORI_OK)
			return LORI_FAIL;
	}
	return LORI_OK;
}

static lori_error describe_constant(const lori_calls *f, lori_container c, size_t i, lori_constant *k)
{
	size_t bytes = 0;
	k->bytes = -1;
	if (f->constant_name(c, i, &k->name) || f->constant_fqn(c, i, &k->fqn) || f->constant_folded(c, i, &k->folded) ||
	    f->constant_dtype(c, i, &k->dtype))
		return LORI_FAIL;
	if (f->constant_type && f->constant_type(c, i, &k->type))
		return LORI_FAIL;
	if (f->constant_bytes) {
		if (f->constant_bytes(c, i, &bytes))
			return LORI_FAIL;
		k->bytes = (int64_t)bytes;
	}
	return LORI_OK;
}

static lori_error describe(lori_library *l, lori_summary *s)
{
	const lori_calls *f = &l->calls;
	lori_container c = s->container;
	if (f->num_inputs(c, &s->inputs) || f->num_outputs(c, &s->outputs) || f->num_constants(c, &s->constants) ||
	    f->call_spec(c, &s->in_spec, &s->out_spec))
		return LORI_FAIL;
	if (names(c, f->input_name, s->inputs, &s->input_names) || names(c, f->output_name, s->outputs, &s->output_names))
		return LORI_FAIL;
	s->constant = calloc(s->constants ? s->constants : 1, sizeof *s->constant);
	if (!s->constant)
		return lori_fail("out of memory");
	for (size_t i = 0; i < s->constants; i++) {
		if (describe_constant(f, c, i, &s->constant[i]))
			return LORI_FAIL;
	}
	return LORI_OK;
}

// match gives each constant that is not folded the tensor that was recorded for
// it. A library that keeps its weights elsewhere has made none.
static lori_error match(lori_summary *s, lori_recorded *list)
{
	size_t unfolded = 0;
	for (size_t i = 0; i < s->constants; i++)
		unfolded += !s->constant[i].folded;
	if (list->failed)
		return lori_fail("out of memory");
	if (list->count == 0)
		return LORI_OK;
	if ((size_t)list->count != unfolded)
		return lori_fail("the library loaded %lld constants of %zu", (long long)list->count, unfolded);
	int64_t next = 0;
	for (size_t i = 0; i < s->constants; i++) {
		if (!s->constant[i].folded) {
			s->constant[i].initial = list->items[next];
			list->items[next++] = NULL;
		}
	}
	return LORI_OK;
}

lori_tensor *lori_tensor_of(const lori_library *l, lori_handle t)
{
	const lori_tensor_api *a = &l->tensors;
	void *data;
	int64_t ndim, *sizes, *strides, numel, reach;
	int32_t dtype;
	if (a->data(t, &data) || a->dim(t, &ndim) || a->sizes(t, &sizes) || a->strides(t, &strides) || a->dtype(t, &dtype) ||
	    lori_extent(ndim, sizes, strides, &numel, &reach))
		return NULL;
	lori_storage *s = lori_storage_wrap(data, reach * lori_dtype_size(dtype), LORI_FOREIGN, NULL, NULL);
	return s ? lori_tensor_over(s, ndim, sizes, strides, 0, dtype) : NULL;
}

// extract does what match does for a library on libtorch.
static lori_error extract(lori_library *l, lori_summary *s)
{
	const lori_pair *pairs;
	size_t n;
	if (!l->calls.extract)
		return LORI_OK;
	if (l->calls.extract(s->container, &pairs, &n, false))
		return LORI_FAIL;
	for (size_t p = 0, i = 0; p < n && i < s->constants; i++) {
		lori_constant *k = &s->constant[i];
		if (k->folded || !k->fqn || strcmp(k->fqn, pairs[p].name) != 0)
			continue;
		k->initial = lori_tensor_of(l, pairs[p++].handle);
		if (!k->initial)
			return LORI_FAIL;
	}
	return LORI_OK;
}

lori_error lori_library_describe(lori_library *l, const lori_source *from, lori_summary *out)
{
	*out = (lori_summary){0};
	lori_recorded list = {0};
	lori_call_begin();
	lori_error code = create(l, from, &out->container, &list);
	if (code == LORI_OK)
		code = describe(l, out);
	if (code == LORI_OK)
		code = l->tensors.own ? match(out, &list) : extract(l, out);
	code = lori_call_end(l, code);
	if (code != LORI_OK) {
		lori_summary_free(out);
		if (out->container)
			l->calls.destroy(out->container);
		*out = (lori_summary){0};
	}
	lori_record_free(&list);
	return code;
}

void lori_summary_free(lori_summary *s)
{
	for (size_t i = 0; s->constant && i < s->constants; i++) {
		if (s->constant[i].initial)
			lori_tensor_delete(s->constant[i].initial);
	}
	free(s->constant);
	free(s->input_names);
	free(s->output_names);
	s->constant = NULL;
	s->input_names = s->output_names = NULL;
}

// writable makes the library's own memory below a tensor writable; older ones
// keep weights where they were loaded.
static lori_error writable(const lori_library *l, const lori_tensor *t)
{
	const char *p = t->storage->data;
	if (p < l->low || p >= l->high || t->storage->nbytes == 0)
		return LORI_OK;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p & ~(page - 1);
	size_t size = (uintptr_t)p + (uintptr_t)t->storage->nbytes - from;
	return mprotect((void *)from, size, PROT_READ | PROT_WRITE) == 0 ? LORI_OK : lori_fail("mprotect: %m");
}

// fold_in_place overwrites the constants that a new container has loaded and
// folds them.
static lori_error fold_in_place(lori_library *l, const lori_fold *f, lori_container *c, lori_recorded *touched)
{
	lori_recorded loaded = {0};
	lori_error code = create(l, &f->from, c, &loaded);
	if (code == LORI_OK && (loaded.failed || (size_t)loaded.count != f->n_pairs))
		code = lori_fail("the library loaded %lld constants of %zu", (long long)loaded.count, f->n_pairs);
	for (size_t i = 0; i < f->n_pairs && code == LORI_OK; i++) {
		code = writable(l, loaded.items[i]);
		if (code == LORI_OK)
			code = lori_copy(loaded.items[i], f->pairs[i].handle);
	}
	lori_record_free(&loaded);
	if (code == LORI_OK) {
		lori_touch_start(touched);
		lori_proxy = l->proxy;
		code = l->calls.fold(*c, false, NULL, NULL);
		lori_touch_stop();
	}
	return code;
}

// keep writes to out a handle for each folded constant. touched holds the
// tensors that the library has asked the address of while it folded: last of all
// it did so for each constant, in their order.
static lori_error keep(lori_library *l, lori_container c, const lori_recorded *touched, lori_tensor **out, size_t n)
{
	if (touched->failed)
		return lori_fail("out of memory");
	if ((size_t)touched->count < n)
		return lori_fail("the folding left %lld constants of %zu", (long long)touched->count, n);
	lori_tensor **last = touched->items + touched->count - n;
	for (size_t i = 0; i < n; i++) {
		bool folded;
		if (l->calls.constant_folded(c, i, &folded))
			return LORI_FAIL;
		if (!folded)
			continue;
		out[i] = lori_tensor_keep(last[i]);
		if (!out[i])
			return LORI_FAIL;
	}
	return LORI_OK;
}

lori_error lori_library_fold(lori_library *l, const lori_fold *f, lori_tensor **out)
{
	lori_container c = NULL;
	lori_recorded touched = {0};
	memset(out, 0, f->constants * sizeof *out);
	lori_call_begin();
	lori_error code;
	if (l->calls.create_external) {
		lori_touch_start(&touched);
		code = l->calls.create_external(&c, 1, f->from.device, NULL, f->pairs, f->n_pairs);
		lori_touch_stop();
	} else {
		code = fold_in_place(l, f, &c, &touched);
	}
	if (code == LORI_OK)
		code = keep(l, c, &touched, out, f->constants);
	code = lori_call_end(l, code);
	lori_record_free(&touched);
	for (size_t i = 0; i < f->constants && code != LORI_OK; i++) {
		if (out[i])
			lori_tensor_delete(out[i]);
		out[i] = NULL;
	}
	if (c)
		l->calls.destroy(c);
	return code;
}

lori_tensor *lori_tensor_raw(void *data, int64_t nbytes, int64_t ndim, const int64_t *sizes, const int64_t *strides,
			     int64_t offset, int32_t dtype)
{
	int64_t dense[LORI_INLINE_DIMS];
	if (!strides) {
		lori_row_major(ndim, sizes, dense);
		strides = dense;
	}
	lori_storage *s = lori_storage_wrap(data, nbytes, LORI_BORROWED, NULL, NULL);
	return s ? lori_tensor_over(s, ndim, sizes, strides, offset, dtype) : NULL;
}

lori_tensor *lori_tensor_copy(const lori_tensor *t)
{
	bool there = lori_on_device(t);
	lori_storage *s = there ? lori_device_alloc(t->storage->nbytes) : lori_alloc(t->storage->nbytes);
	if (!s)
		return NULL;
	if (lori_device_move(s->data, there, t->storage->data, there, s->nbytes) != LORI_OK) {
		lori_storage_release(s);
		return NULL;
	}
	lori_tensor *k = lori_tensor_over(s, t->ndim, t->sizes, t->strides, t->offset, t->dtype);
	if (k && t->opaque && lori_opaque_set(k, t->opaque->bytes, t->opaque->size) != LORI_OK) {
		lori_tensor_delete(k);
		return NULL;
	}
	return k;
}

lori_tensor *lori_tensor_keep(const lori_tensor *t)
{
	return t->storage->flags & (LORI_OWNED | LORI_DEVICE) ? lori_tensor_alias(t) : lori_tensor_copy(t);
}

lori_error lori_tensor_hand(const lori_library *l, const lori_tensor *t, lori_handle *out)
{
	return l->tensors.create_from_blob(lori_tensor_data(t), t->ndim, t->sizes, t->strides, 0, t->dtype, LORI_CPU, 0, out);
}

_Thread_local lori_recorded *lori_touching;

void lori_touch_start(lori_recorded *list) { lori_touching = list; }
void lori_touch_stop(void) { lori_touching = NULL; }
