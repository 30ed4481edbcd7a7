// The container interface of torch/csrc/inductor/aoti_runtime/interface.h. Runs share nothing but an
// immutable, counted set of constants, so there is no pool of models: a model is a container.
#include "source.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) lx_error

typedef struct box {
	pthread_mutex_t mu; // guards sets, active and pairs
	lx_set *sets[2];
	int active;
	bool affine; // has no meaning but is told when asked
	lx_pair *pairs; // of the last extraction
	lx_engine *engine;
} box;

// What becomes of a tensor that a caller gives: it is copied, kept and never changes, or may.
typedef enum { COPIED, KEPT, MANAGED } owner;

static size_t count(void) { return (size_t)lx_plan_of()->constants; }

static lx_set *new_set(const lx_engine *engine)
{
	lx_set *s = calloc(1, sizeof *s + 2 * count() * sizeof(void *));
	if (!s) {
		lx_fail("there is no memory for a set of constants");
		return NULL;
	}
	s->users = 1;
	s->engine = engine;
	pthread_mutex_init(&s->mu, NULL);
	pthread_mutex_init(&s->folding, NULL);
	s->tensors = (lx_handle *)(s->data + count());
	return s;
}

static void drop_fold(lx_fold *f)
{
	if (f && !__atomic_sub_fetch(&f->users, 1, __ATOMIC_ACQ_REL))
		free(f);
}

// take_fold returns what the constants of a set fold to, computed if it is not there or is to be computed
// again: the caller may have changed tensors that he manages. NULL is a failure.
static lx_fold *take_fold(lx_set *s, bool again)
{
	pthread_mutex_lock(&s->folding);
	if (again || !s->fold) {
		lx_fold *f = lx_fold_of(s);
		if (f) {
			drop_fold(s->fold);
			s->fold = f;
		} else if (again) {
			pthread_mutex_unlock(&s->folding);
			return NULL;
		}
	}
	lx_fold *f = s->fold;
	if (f)
		__atomic_add_fetch(&f->users, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->folding);
	return f;
}

static void drop(lx_set *s)
{
	if (!s || __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL))
		return;
	lx_settle(s->engine); // work that reads them may be under way
	for (size_t i = 0; i < count(); i++)
		if (s->tensors[i])
			aoti_torch_delete_tensor_object(s->tensors[i]);
	drop_fold(s->fold);
	pthread_mutex_destroy(&s->folding);
	pthread_mutex_destroy(&s->mu);
	free(s);
}

static lx_set *take(box *b, bool inactive)
{
	pthread_mutex_lock(&b->mu);
	lx_set *s = b->sets[b->active ^ (int)inactive];
	if (s)
		__atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&b->mu);
	return s;
}

static void put(box *b, bool inactive, lx_set *s)
{
	pthread_mutex_lock(&b->mu);
	lx_set **at = &b->sets[b->active ^ (int)inactive], *old = *at;
	*at = s;
	pthread_mutex_unlock(&b->mu);
	drop(old);
}

// copy_value gives a constant a copy of a tensor.
static lx_error copy_value(lx_set *s, size_t i, lx_handle h)
{
	const lx_constant *c = lx_constant_of(i);
	int64_t strides[LX_MAX_DIMS];
	lx_dense(c->ndim, loris_words + c->dims, strides);
	if (aoti_torch_empty_strided(c->ndim, loris_words + c->dims, strides, (int32_t)c->dtype, LX_DEVICE, lx_index(s->engine), &s->tensors[i]) ||
	    aoti_torch_copy_(s->tensors[i], h, 0) || aoti_torch_get_data_ptr(s->tensors[i], (void **)&s->data[i])) {
		lx_fail("constant %s: cannot be copied", lx_text(c->name));
		return LX_FAILED;
	}
	return LX_OK;
}

// show makes a tensor over the memory of a constant on a GPU, and frees it: hosts such as Loris's take
// what a new container makes over memory there for its constants, in their order.
static lx_error show(const lx_set *s, const lx_constant *c, const void *data)
{
	int64_t strides[LX_MAX_DIMS];
	lx_handle h;
	lx_dense(c->ndim, loris_words + c->dims, strides);
	if (aoti_torch_create_tensor_from_blob((void *)data, c->ndim, loris_words + c->dims, strides, 0, (int32_t)c->dtype, LX_DEVICE, lx_index(s->engine), &h))
		return LX_FAILED;
	return aoti_torch_delete_tensor_object(h);
}

// blob_value gives a constant a tensor over its place in weights that lie as the exporter laid them,
// or a copy of that if runs assign it or the device is another.
static lx_error blob_value(lx_set *s, size_t i, const uint8_t *blob)
{
	const lx_constant *c = lx_constant_of(i);
	int64_t strides[LX_MAX_DIMS];
	lx_handle h = NULL;
	lx_dense(c->ndim, loris_words + c->dims, strides);
	if (aoti_torch_create_tensor_from_blob((void *)(blob + c->at), c->ndim, loris_words + c->dims, strides, 0, (int32_t)c->dtype, 0, 0, &h)) {
		lx_fail("constant %s: no tensor can be made", lx_text(c->name));
		return LX_FAILED;
	}
	if (!c->state && !LX_DEVICE) {
		s->tensors[i] = h;
		s->data[i] = blob + c->at;
		return LX_OK;
	}
	lx_error e = copy_value(s, i, h);
	if (!e && LX_DEVICE)
		e = show(s, c, s->data[i]);
	aoti_torch_delete_tensor_object(h);
	return e;
}

static lx_error from_blob(lx_set *s, const uint8_t *blob)
{
	for (size_t i = 0; i < count(); i++)
		if (blob_value(s, i, blob))
			return LX_FAILED;
	return LX_OK;
}

// take_value gives a constant a value: the caller's tensor itself, where that is asked for and kernels
// can read it where it lies, or a copy of it.
static lx_error take_value(lx_set *s, size_t i, lx_handle h, owner whose)
{
	const lx_constant *c = lx_constant_of(i);
	const int64_t *sizes = loris_words + c->dims;
	int64_t strides[LX_MAX_DIMS];
	void *data;
	bool borrow;
	if (lx_check(h, "constant", lx_text(c->name), c->dtype, c->ndim, sizes, strides, LX_DEVICE ? LX_ANYWHERE : 0))
		return LX_FAILED;
	if (whose == COPIED || lx_usable(h, c->ndim, sizes, strides, &borrow, &data) || !borrow)
		return copy_value(s, i, h);
	if (aoti_torch_assign_tensors_out(h, &s->tensors[i]) || aoti_torch_get_data_ptr(s->tensors[i], (void **)&s->data[i])) {
		lx_fail("constant %s: cannot be taken over", lx_text(c->name));
		return LX_FAILED;
	}
	s->managed |= whose == MANAGED;
	return LX_OK;
}

// keep_value gives a constant the value that it has in another set: the tensor, or a copy of one that
// runs assign, so that sets do not see each other's runs.
static lx_error keep_value(lx_set *s, size_t i, lx_set *from)
{
	const lx_constant *c = lx_constant_of(i);
	if (c->state) {
		pthread_mutex_lock(&from->mu);
		const lx_error e = copy_value(s, i, from->tensors[i]);
		pthread_mutex_unlock(&from->mu);
		return e;
	}
	s->managed |= from->managed;
	s->data[i] = from->data[i];
	if (aoti_torch_assign_tensors_out(from->tensors[i], &s->tensors[i])) {
		lx_fail("constant %s: cannot be kept", lx_text(c->name));
		return LX_FAILED;
	}
	return LX_OK;
}

// fill makes a set of what the caller gives, and of another set where he gives nothing. Constants that
// runs assign need no value of his also where all are asked for: they go on from the active set.
static lx_error fill(lx_set *s, const lx_source *source, lx_set *from, lx_set *active, bool full, owner whose)
{
	for (size_t i = 0; i < count(); i++) {
		const lx_constant *c = lx_constant_of(i);
		const lx_handle h = lx_find(source, lx_text(c->name));
		lx_set *other = c->state ? active : from;
		lx_error e = LX_OK;
		if (h) {
			e = take_value(s, i, h, whose);
		} else if (full && !c->state) {
			lx_fail("constant %s: has no new value", lx_text(c->name));
			e = LX_FAILED;
		} else if (other && other->tensors[i]) {
			e = keep_value(s, i, other);
		} else if (full) {
			e = blob_value(s, i, loris_weights);
		} // else runs fail until it has a value
		if (e)
			return e;
	}
	return LX_OK;
}

static lx_error update(box *b, lx_source source, bool inactive, bool full, owner whose)
{
	lx_set *s = new_set(b->engine), *from = take(b, inactive), *active = take(b, false);
	lx_error e = s ? fill(s, &source, from ? from : active, active, full, whose) : LX_FAILED;
	if (!e)
		e = lx_settle(b->engine);
	drop(from);
	drop(active);
	if (e)
		drop(s);
	else
		put(b, inactive, s);
	return e;
}

static lx_source of_map(const lx_map *map)
{
	static const lx_pair none;
	return map ? (lx_source){.map = map} : (lx_source){.pairs = &none};
}

static lx_source of_pairs(const lx_pair *pairs, size_t n) { return (lx_source){.pairs = pairs, .count = pairs ? n : 0}; }

// make makes a container with the constants of the library, or with those of a source.
static lx_error make(box **out, const char *device, const lx_source *source, bool full)
{
	lx_engine *engine = lx_open(device);
	if (!engine)
		return LX_FAILED;
	lx_set *s = new_set(engine);
	box *b = calloc(1, sizeof *b);
	if (!s || !b || (source ? fill(s, source, NULL, NULL, full, full ? MANAGED : KEPT) : from_blob(s, loris_weights)) || lx_settle(engine)) {
		drop(s);
		free(b);
		lx_close(engine);
		return LX_FAILED;
	}
	pthread_mutex_init(&b->mu, NULL);
	b->engine = engine;
	b->sets[0] = s;
	*out = b;
	return LX_OK;
}

API AOTInductorModelContainerCreateWithDevice(box **out, size_t models, const char *device, const char *folder)
{
	(void)folder;
	if (models == 0) {
		lx_fail("the number of models must be positive");
		return LX_FAILED;
	}
	return make(out, device, NULL, false);
}

API AOTInductorModelContainerCreate(box **out, size_t models, bool cpu, const char *folder)
{
	return AOTInductorModelContainerCreateWithDevice(out, models, cpu ? "cpu" : "cuda", folder);
}

API AOTInductorModelContainerCreateWithExternalConstants(box **out, size_t models, const char *device, const char *folder, const lx_pair *pairs, size_t n)
{
	const lx_source source = of_pairs(pairs, n);
	(void)models, (void)folder;
	return make(out, device, &source, true);
}

API AOTInductorModelContainerDelete(box *b)
{
	if (!b)
		return LX_OK;
	drop(b->sets[0]);
	drop(b->sets[1]);
	pthread_mutex_destroy(&b->mu);
	free(b->pairs);
	lx_close(b->engine);
	free(b);
	return LX_OK;
}

static bool complete(const lx_set *s)
{
	for (size_t i = 0; i < count(); i++)
		if (!s->tensors[i]) {
			lx_fail("constant %s: has no value yet", lx_text(lx_constant_of(i)->name));
			return false;
		}
	return true;
}

// Inputs belong to the library: each is freed and its slot cleared, since the caller frees what it
// still finds. Gradients are off, because functions that write to a given tensor refuse inputs that
// require them. Runs that assign wait for each other.
API AOTInductorModelContainerRun(box *b, lx_handle *in, size_t inputs, lx_handle *out, size_t outputs, void *stream, void *proxy)
{
	const lx_plan *p = lx_plan_of();
	lx_error e = LX_FAILED;
	(void)proxy;
	if (inputs != (size_t)p->inputs || outputs != (size_t)p->outputs) {
		lx_fail("%zu inputs and %zu outputs, want %lld and %lld", inputs, outputs, (long long)p->inputs, (long long)p->outputs);
	} else {
		lx_set *s = take(b, false);
		const bool grad = aoti_torch_grad_mode_is_enabled();
		aoti_torch_grad_mode_set_enabled(false);
		lx_fold *fold = NULL;
		if (complete(s) && (!p->folds || (fold = take_fold(s, s->managed)))) {
			if (p->assigned)
				pthread_mutex_lock(&s->mu);
			e = lx_run(b->engine, s, fold, stream, in, out);
			if (p->assigned)
				pthread_mutex_unlock(&s->mu);
		}
		aoti_torch_grad_mode_set_enabled(grad);
		drop_fold(fold);
		drop(s);
	}
	for (size_t i = 0; in && i < inputs; i++) {
		if (in[i])
			aoti_torch_delete_tensor_object(in[i]);
		in[i] = NULL;
	}
	return e;
}

API AOTInductorModelContainerRunSingleThreaded(box *b, lx_handle *in, size_t inputs, lx_handle *out, size_t outputs, void *stream, void *proxy)
{
	return AOTInductorModelContainerRun(b, in, inputs, out, outputs, stream, proxy);
}

#define UPDATE(name, source, inactive, full, whose, ...) \
	API AOTInductorModelContainer##name(box *b, __VA_ARGS__) { return update(b, source, inactive, full, whose); }
UPDATE(UpdateConstantBuffer, of_map(map), inactive, full, COPIED, const lx_map *map, bool inactive, bool full)
UPDATE(UpdateConstantBufferFromCpu, of_map(map), inactive, full, COPIED, const lx_map *map, bool inactive, bool full)
UPDATE(UpdateUserManagedConstantBuffer, of_map(map), inactive, full, MANAGED, const lx_map *map, bool inactive, bool full)
UPDATE(UpdateInactiveConstantBuffer, of_map(map), true, true, COPIED, const lx_map *map)
UPDATE(UpdateConstantBufferPairs, of_pairs(p, n), inactive, full, COPIED, const lx_pair *p, size_t n, bool inactive, bool full)
UPDATE(UpdateConstantBufferFromCpuPairs, of_pairs(p, n), inactive, full, COPIED, const lx_pair *p, size_t n, bool inactive, bool full)
UPDATE(UpdateUserManagedConstantBufferPairs, of_pairs(p, n), inactive, full, MANAGED, const lx_pair *p, size_t n, bool inactive, bool full)
UPDATE(UpdateInactiveConstantBufferPairs, of_pairs(p, n), true, true, COPIED, const lx_pair *p, size_t n)

API AOTInductorModelContainerRunConstantFolding(box *b, bool inactive, void *stream, void *proxy)
{
	(void)stream, (void)proxy;
	if (!lx_plan_of()->folds)
		return LX_OK;
	lx_set *s = take(b, inactive);
	if (!s) {
		lx_fail("the inactive set of constants is empty");
		return LX_FAILED;
	}
	const bool grad = aoti_torch_grad_mode_is_enabled();
	aoti_torch_grad_mode_set_enabled(false);
	lx_fold *f = complete(s) ? take_fold(s, true) : NULL;
	aoti_torch_grad_mode_set_enabled(grad);
	drop(s);
	if (!f)
		return LX_FAILED;
	drop_fold(f);
	return LX_OK;
}

API AOTInductorModelContainerSwapConstantBuffer(box *b)
{
	pthread_mutex_lock(&b->mu);
	const bool there = b->sets[1 - b->active] != NULL;
	if (there)
		b->active = 1 - b->active;
	pthread_mutex_unlock(&b->mu);
	if (!there)
		lx_fail("the inactive set of constants is empty");
	return there ? LX_OK : LX_FAILED;
}

API AOTInductorModelContainerFreeInactiveConstantBuffer(box *b)
{
	put(b, true, NULL);
	return LX_OK;
}

API AOTInductorModelUpdateConstantsFromBlob(box *b, const uint8_t *blob)
{
	lx_set *s = new_set(b->engine); // the caller keeps the blob mapped
	if (!s || from_blob(s, blob) || lx_settle(b->engine)) {
		drop(s);
		return LX_FAILED;
	}
	put(b, false, s);
	return LX_OK;
}

API AOTInductorModelContainerExtractConstantsMapEntries(box *b, const lx_pair **out, size_t *n, bool inactive)
{
	lx_set *s = take(b, inactive);
	lx_pair *pairs = s ? calloc(count() + 1, sizeof *pairs) : NULL;
	*n = 0;
	for (size_t i = 0; pairs && i < count(); i++)
		if (s->tensors[i])
			pairs[(*n)++] = (lx_pair){lx_text(lx_constant_of(i)->fqn), s->tensors[i]};
	pthread_mutex_lock(&b->mu);
	free(b->pairs);
	*out = b->pairs = pairs;
	pthread_mutex_unlock(&b->mu);
	drop(s);
	return LX_OK;
}

API AOTInductorModelContainerExtractConstantsMap(box *b, lx_map *map, bool inactive)
{
	lx_set *s = take(b, inactive);
	lx_error e = LX_OK;
	for (size_t i = 0; s && !e && i < count(); i++) {
		const char *fqn = lx_text(lx_constant_of(i)->fqn);
		const lx_source there = of_map(map);
		if (s->tensors[i] && !lx_find(&there, fqn))
			e = lx_insert(map, fqn, s->tensors[i]);
	}
	drop(s);
	return e;
}

// A model without a container around it.
API AOTInductorModelCreate(box **out, const lx_map *map)
{
	const lx_source source = of_map(map);
	return make(out, LX_DEVICE ? "cuda" : "cpu", map ? &source : NULL, false);
}

API AOTInductorModelCreateV2(box **out, const lx_pair *pairs, size_t n)
{
	const lx_source source = of_pairs(pairs, n);
	return make(out, LX_DEVICE ? "cuda" : "cpu", pairs ? &source : NULL, false);
}

API AOTInductorModelRun(box *b, lx_handle *in, lx_handle *out)
{
	const lx_plan *p = lx_plan_of();
	return AOTInductorModelContainerRun(b, in, (size_t)p->inputs, out, (size_t)p->outputs, NULL, NULL);
}

API AOTInductorModelDelete(box *b) { return AOTInductorModelContainerDelete(b); }
API AOTInductorModelUpdateConstantsMap(box *b, const lx_map *map) { return update(b, of_map(map), false, false, KEPT); }
API AOTInductorModelUpdateConstantsMapV2(box *b, const lx_pair *p, size_t n) { return update(b, of_pairs(p, n), false, false, KEPT); }

API AOTInductorModelContainerSetUseStreamAffinity(box *b, bool on)
{
	b->affine = on; // runs share nothing that a stream could keep
	return LX_OK;
}

API AOTInductorModelContainerGetStreamAffinityModelIndexForTesting(box *b, void *stream, int64_t *i)
{
	(void)stream;
	*i = b->affine ? -1 : -2;
	return LX_OK;
}
