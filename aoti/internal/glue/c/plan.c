// Runs plans: kernels of machine code over frames, and functions of the host.
#include "glue.h"

#include <stdlib.h>
#include <string.h>

// As loop.Frame of the exporter.
typedef struct frame {
	int64_t rows, cols, first;
	void *spill;
	void *ptr[LX_MAX_ARGS];
	int64_t row[LX_MAX_ARGS], col[LX_MAX_ARGS];
	uint8_t flush;
} frame;

enum { FAULT_AT = LX_MAX_ARGS * 8 + 24 }; // in the spill memory: the instruction that divided by 0, and 1
enum { ON_STACK = 16 << 10 };

typedef struct run {
	const int64_t *words; // for the sizes of this run
	const lx_set *set;
	char **base;
	lx_handle *returned;
	int level;
} run;

typedef struct job {
	const run *run;
	const lx_kernel *kernel;
	int64_t rows, cols; // counts of units
	int failed; // 1: no memory, 2: a division by zero
} job;

static char *address(const run *r, int64_t place, int64_t at)
{
	const lx_place *p = (const lx_place *)(loris_words + lx_plan_of()->place_at) + place;
	return r->base[p->base] + p->at + at;
}

#ifdef LORIS_COMPILED
// The exporter wrote kernels as functions for a compiler: code is their number.
extern void (*const loris_kernels[])(frame *);

static void call_code(int64_t code, frame *f) { loris_kernels[code](f); }
#else
// The code keeps rsp, rbp and r14 and nothing else, and uses no stack.
static void call_code(int64_t at, frame *f)
{
	const uint8_t *code = loris_code + at;
	__asm__ volatile("call *%[code]"
			 : "+D"(f), [code] "+a"(code)
			 :
			 : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
			   "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#endif

static void piece(int64_t i, int64_t n, int64_t count, int64_t size, int64_t *lo, int64_t *hi)
{
	if (!size) {
		*lo = i * n / count;
		*hi = (i + 1) * n / count;
		return;
	}
	*lo = i * size;
	*hi = *lo + size < n ? *lo + size : n;
}

static void place_unit(const job *j, frame *f, char *scratch, int64_t unit)
{
	const lx_kernel *k = j->kernel;
	const int64_t *outer = (const int64_t *)(k + 1);
	const int64_t *operand = outer + k->outer;
	int64_t col = unit % j->cols, rest = unit / j->cols, row = rest % j->rows, r0, r1, c0, c1;
	const int64_t part = k->parts > 0 ? row : k->parts < 0 ? col : 0;
	rest /= j->rows;
	piece(row, k->rows, j->rows, k->row_size, &r0, &r1);
	piece(col, k->cols, j->cols, k->col_size, &c0, &c1);
	f->rows = r1 - r0;
	f->cols = c1 - c0;
	for (int64_t i = 0; i < k->operands; i++, operand += sizeof(lx_operand) / 8 + k->outer) {
		const lx_operand *o = (const lx_operand *)operand;
		const int64_t *steps = (const int64_t *)(o + 1);
		if (o->place < 0) {
			f->ptr[i] = scratch + o->at;
			continue;
		}
		int64_t at = o->part ? part * o->part : r0 * o->row + c0 * o->col;
		for (int64_t d = k->outer - 1, left = rest; d >= 0; d--) {
			at += left % outer[d] * steps[d];
			left /= outer[d];
		}
		f->ptr[i] = address(j->run, o->place, o->at + at);
	}
}

static void run_units(int64_t lo, int64_t hi, void *arg)
{
	job *j = arg;
	const lx_kernel *k = j->kernel;
	const int level = j->run->level;
	const int64_t spill = (k->spill[level] + LX_LINE - 1) & -LX_LINE, bytes = spill + k->scratch;
	char stack[bytes <= ON_STACK ? bytes + LX_LINE : 1], *heap = NULL;
	if (bytes > ON_STACK && !(heap = malloc((size_t)bytes + LX_LINE))) {
		__atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
		return;
	}
	char *memory = (char *)(((uintptr_t)(heap ? heap : stack) + LX_LINE - 1) & -(uintptr_t)LX_LINE);
	frame f;
	f.first = 0;
	f.spill = memory;
	f.flush = 0;
	const int64_t *operand = (const int64_t *)(k + 1) + k->outer;
	for (int64_t i = 0; i < k->operands; i++, operand += sizeof(lx_operand) / 8 + k->outer) {
		f.row[i] = ((const lx_operand *)operand)->row;
		f.col[i] = ((const lx_operand *)operand)->col;
	}
	for (int64_t unit = lo; unit < hi; unit++) {
		place_unit(j, &f, memory + spill, unit);
		call_code(k->code[level], &f);
		if (*(int64_t *)(memory + FAULT_AT))
			__atomic_store_n(&j->failed, 2, __ATOMIC_RELAXED);
	}
	free(heap);
}

static lx_error run_kernel(const run *r, const lx_kernel *k)
{
	job j = {.run = r, .kernel = k, .rows = 1, .cols = 1};
	const int64_t *outer = (const int64_t *)(k + 1);
	if (k->rows == 0 || k->cols == 0)
		return LX_OK;
	j.rows = k->parts > 0 ? k->parts : (k->rows + k->row_size - 1) / k->row_size;
	j.cols = k->parts < 0 ? -k->parts : (k->cols + k->col_size - 1) / k->col_size;
	int64_t n = j.rows * j.cols;
	for (int64_t d = 0; d < k->outer; d++)
		n *= outer[d];
	if (n > k->grain && torch_parallel_for) {
		if (torch_parallel_for(0, n, k->grain, run_units, &j))
			j.failed = 1;
	} else if (n > 0) {
		run_units(0, n, &j);
	}
	if (j.failed)
		lx_fail("%s: %s", lx_text(k->step.title), j.failed == 1 ? "out of memory" : "integer division by zero");
	return j.failed ? LX_FAILED : LX_OK;
}

// Integer and floating arguments are passed apart, so that one type serves all functions with at most eight of the latter.
typedef lx_error (*function)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double, double, double, double, double, double, double, double, int64_t,
			     int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
enum { MAX_INTS = 20, MAX_FLOATS = 8 };

// share makes a tensor of a view of a constant over the constant's own storage.
static lx_error share(const run *r, const int64_t *a, lx_handle *out)
{
	const lx_plan *p = lx_plan_of();
	const lx_place *at = (const lx_place *)(loris_words + p->place_at) + a[0];
	return aoti_torch__reinterpret_tensor(r->set->tensors[at->base - p->inputs], a[3], a + 4, a + 4 + a[3], (at->at + a[1]) / lx_dtype_size(a[2]), out);
}

// keep_returned takes a tensor that a function made; one that does not lie as the plan wants is copied.
static lx_error keep_returned(const run *r, const int64_t *a)
{
	const lx_plan *p = lx_plan_of();
	const int64_t ndim = a[2], *sizes = a + 3, *want = sizes + ndim;
	lx_handle *slot = &r->returned[a[0]];
	int64_t strides[LX_MAX_DIMS];
	void *data;
	if (lx_check(*slot, "a result", "", a[1], ndim, sizes, strides))
		return LX_FAILED;
	for (int64_t d = 0; d < ndim; d++) {
		if (strides[d] == want[d] || sizes[d] == 1)
			continue;
		lx_handle copy;
		if (aoti_torch_empty_strided(ndim, sizes, want, (int32_t)a[1], 0, 0, &copy))
			return LX_FAILED;
		const lx_error e = aoti_torch_copy_(copy, *slot, 0);
		aoti_torch_delete_tensor_object(*slot);
		*slot = copy;
		if (e)
			return e;
		break;
	}
	if (aoti_torch_get_data_ptr(*slot, &data))
		return LX_FAILED;
	r->base[p->inputs + p->constants + p->outputs + 3 + a[0]] = data;
	return LX_OK;
}

static lx_error run_call(const run *r, const lx_call *c)
{
	int64_t i[MAX_INTS] = {0};
	double d[MAX_FLOATS] = {0};
	lx_handle own[MAX_INTS], ignored[MAX_INTS];
	const int64_t *returned[MAX_INTS];
	int ints = 0, floats = 0, owned = 0, results = 0, unused = 0;
	lx_error e = LX_OK;
	const int64_t *a = (const int64_t *)(c + 1);
	for (int64_t n = 0; n < c->arguments && !e; n++) {
		const int64_t kind = *a++;
		switch (kind) {
		case LX_INT:
			i[ints++] = *a++;
			break;
		case LX_FLOAT:
			memcpy(&d[floats++], a++, sizeof *d);
			break;
		case LX_TENSOR:
		case LX_OPTIONAL:
		case LX_SHARED:
			e = kind == LX_SHARED ? share(r, a, &own[owned])
					      : aoti_torch_create_tensor_from_blob(address(r, a[0], a[1]), a[3], a + 4, a + 4 + a[3], 0, (int32_t)a[2], 0, 0, &own[owned]);
			if (!e)
				i[ints++] = kind == LX_OPTIONAL ? (int64_t)&own[owned] : (int64_t)own[owned];
			owned += !e;
			a += 4 + 2 * a[3];
			break;
		case LX_RETURNED:
			returned[results++] = a;
			i[ints++] = (int64_t)&r->returned[a[0]];
			a += 3 + 2 * a[2];
			break;
		case LX_IGNORED:
			ignored[unused] = NULL;
			i[ints++] = (int64_t)&ignored[unused++];
			break;
		case LX_LIST:
			i[ints++] = (int64_t)(a + 1);
			a += 1 + a[0];
			break;
		case LX_TEXT:
			i[ints++] = (int64_t)lx_text(*a++);
			break;
		case LX_MEMORY:
			i[ints++] = (int64_t)address(r, a[0], a[1]);
			a += 2;
			break;
		}
	}
	lx_fail("%s", "");
	if (!e)
		e = ((function)loris_functions[c->function])(i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], i[6], i[7], i[8],
							     i[9], i[10], i[11], i[12], i[13], i[14], i[15], i[16], i[17], i[18], i[19]);
	while (owned > 0)
		aoti_torch_delete_tensor_object(own[--owned]);
	while (unused > 0)
		if (ignored[--unused])
			aoti_torch_delete_tensor_object(ignored[unused]);
	for (int n = 0; n < results && !e; n++)
		e = keep_returned(r, returned[n]);
	if (e) {
		char why[128];
		const char *text = lx_last_error();
		strncpy(why, text[0] ? text : "the function that computes it failed", sizeof why - 1);
		why[sizeof why - 1] = 0;
		lx_fail("%s: %s", lx_text(c->step.title), why);
	}
	return e;
}

// take_inputs finds the memory of the inputs. What does not lie dense is copied to tensors of copies.
static lx_error take_inputs(const int64_t *words, char **base, lx_handle *inputs, lx_handle *copies)
{
	const lx_plan *p = lx_plan_of();
	const lx_param *q = (const lx_param *)(words + p->input_at);
	for (int64_t n = 0; n < p->inputs; n++, q++) {
		const int64_t *sizes = words + q->dims;
		int64_t strides[LX_MAX_DIMS], want[LX_MAX_DIMS];
		lx_handle x = inputs[n];
		if (lx_check(x, "input", lx_text(q->name), q->dtype, q->ndim, sizes, strides))
			return LX_FAILED;
		lx_dense(q->ndim, sizes, want);
		for (int64_t d = 0; d < q->ndim; d++) {
			if (strides[d] == want[d] || sizes[d] == 1)
				continue;
			if (aoti_torch_empty_strided(q->ndim, sizes, want, (int32_t)q->dtype, 0, 0, &copies[n]) || aoti_torch_copy_(copies[n], x, 0)) {
				lx_fail("input %s: cannot be copied", lx_text(q->name));
				return LX_FAILED;
			}
			x = copies[n];
			break;
		}
		if (aoti_torch_get_data_ptr(x, (void **)&base[n])) {
			lx_fail("input %s: has no memory", lx_text(q->name));
			return LX_FAILED;
		}
	}
	return LX_OK;
}

static lx_error make_outputs(const int64_t *words, char **base, lx_handle *outputs)
{
	const lx_plan *p = lx_plan_of();
	const lx_param *q = (const lx_param *)(words + p->output_at);
	for (int64_t n = 0; n < p->outputs; n++, q++) {
		int64_t strides[LX_MAX_DIMS];
		lx_dense(q->ndim, words + q->dims, strides);
		if (aoti_torch_empty_strided(q->ndim, words + q->dims, strides, (int32_t)q->dtype, 0, 0, &outputs[n]) ||
		    aoti_torch_get_data_ptr(outputs[n], (void **)&base[n])) {
			lx_fail("output %s: there is no memory for it", lx_text(q->name));
			return LX_FAILED;
		}
	}
	return LX_OK;
}

static lx_error run_steps(const run *r, const int64_t *w, int64_t count)
{
	for (int64_t n = 0; n < count; n++) {
		const lx_step *s = (const lx_step *)w;
		if (s->kind == LX_KERNEL ? run_kernel(r, (const lx_kernel *)s) : run_call(r, (const lx_call *)s))
			return LX_FAILED;
		w += s->length;
	}
	return LX_OK;
}

// assign gives inputs and constants the values that the steps have computed for them. What may fail,
// which is all that concerns the caller's inputs, comes first.
static lx_error assign(const int64_t *words, const lx_set *set, lx_handle *inputs, const char *workspace)
{
	const lx_plan *p = lx_plan_of();
	const lx_assigned *all = (const lx_assigned *)(words + p->assigned_at);
	for (const lx_assigned *a = all; a < all + p->assigned; a++) {
		int64_t strides[LX_MAX_DIMS];
		lx_handle value = NULL;
		if (a->target >= p->inputs)
			continue;
		lx_dense(a->ndim, words + a->dims, strides);
		lx_error e = aoti_torch_create_tensor_from_blob((void *)(workspace + a->from), a->ndim, words + a->dims, strides, 0,
								(int32_t)a->dtype, 0, 0, &value);
		if (!e)
			e = aoti_torch_copy_(inputs[a->target], value, 0);
		if (value)
			aoti_torch_delete_tensor_object(value);
		if (e) {
			const lx_param *q = (const lx_param *)(loris_words + p->input_at) + a->target;
			lx_fail("input %s: cannot be assigned", lx_text(q->name));
			return LX_FAILED;
		}
	}
	for (const lx_assigned *a = all; a < all + p->assigned; a++)
		if (a->target >= p->inputs && a->bytes)
			memcpy((void *)set->data[a->target - p->inputs], workspace + a->from, (size_t)a->bytes);
	return LX_OK;
}

// What a run leaves to the next one: the words as they are for some sizes, if sizes vary, and behind
// them the workspace, each from a line on.
typedef struct spare {
	int64_t filled, values[LX_MAX_SYMBOLS];
} spare_header;

static size_t lines(int64_t bytes) { return ((size_t)bytes + LX_LINE - 1) & -(size_t)LX_LINE; }
static size_t words_size(const lx_plan *p) { return p->symbols ? lines(p->words * (int64_t)sizeof(int64_t)) : 0; }

// read_sizes finds the values of the symbols and compares them with their bounds.
static lx_error read_sizes(lx_handle *inputs, int64_t *values)
{
	const lx_plan *p = lx_plan_of();
	const lx_symbol *s = (const lx_symbol *)(loris_words + p->symbol_at);
	for (int64_t n = 0; n < p->symbols; n++, s++) {
		const lx_param *q = (const lx_param *)(loris_words + p->input_at) + s->input;
		int64_t ndim, *sizes;
		if (!inputs[s->input] || aoti_torch_get_dim(inputs[s->input], &ndim) || aoti_torch_get_sizes(inputs[s->input], &sizes)) {
			lx_fail("input %s: there is no tensor", lx_text(q->name));
			return LX_FAILED;
		}
		if (ndim != q->ndim) {
			lx_fail("input %s: has %lld dimensions, want %lld", lx_text(q->name), (long long)ndim, (long long)q->ndim);
			return LX_FAILED;
		}
		values[n] = sizes[s->dim];
		if (values[n] < s->min || values[n] > s->max) {
			lx_fail("input %s: dimension %lld (%s) has size %lld, want %lld to %lld", lx_text(q->name), (long long)s->dim, lx_text(s->name),
				(long long)values[n], (long long)s->min, (long long)s->max);
			return LX_FAILED;
		}
	}
	return LX_OK;
}

static int64_t choose(int64_t k, int64_t i) { return i == 0 ? 1 : i == 1 ? k : k * (k - 1) / 2; }

// patch writes words as they are for some sizes.
static void patch(int64_t *words, const int64_t *values)
{
	const lx_plan *p = lx_plan_of();
	const lx_symbol *s = (const lx_symbol *)(loris_words + p->symbol_at);
	const int64_t *w = loris_words + p->patch_at;
	int64_t below[LX_MAX_SYMBOLS] = {0};
	for (int64_t n = 0; n < p->symbols; n++)
		below[n] = s[n].origin - values[n];
	memcpy(words, loris_words, (size_t)p->words * sizeof *words);
	for (int64_t n = 0; n < p->patches; n++) {
		int64_t *word = words + *w++, terms = *w++;
		for (*word = 0; terms > 0; terms--, w += 3)
			*word += w[2] * choose(below[0], w[0]) * choose(below[1], w[1]);
	}
}

// words_for returns the words for the sizes of the inputs, or NULL.
static const int64_t *words_for(lx_handle *inputs, spare_header *h)
{
	int64_t values[LX_MAX_SYMBOLS] = {0}, *words = (int64_t *)((char *)h + LX_LINE);
	if (!lx_plan_of()->symbols)
		return loris_words;
	if (read_sizes(inputs, values))
		return NULL;
	if (!h->filled || memcmp(h->values, values, sizeof values)) {
		patch(words, values);
		memcpy(h->values, values, sizeof values);
		h->filled = 1;
	}
	return words;
}

// Steps that fold constants read and write nothing else, but for literals, and make no tensors.
lx_fold *lx_fold_of(const lx_set *set)
{
	const lx_plan *p = lx_plan_of();
	const size_t in = (size_t)p->inputs, constants = (size_t)p->constants, out = (size_t)p->outputs;
	char *base[in + constants + out + 3];
	lx_fold *f = aligned_alloc(LX_LINE, sizeof *f + lines(p->folded));
	if (!f) {
		lx_fail("there is no memory for %lld bytes of folded constants", (long long)p->folded);
		return NULL;
	}
	f->users = 1;
	memset(base, 0, sizeof base);
	memcpy(base + in, set->data, constants * sizeof *base);
	base[in + constants + out + 1] = (char *)loris_literals;
	base[in + constants + out + 2] = f->memory;
	const run r = {loris_words, set, base, NULL, lx_level()};
	if (run_steps(&r, loris_words + p->fold_at, p->folds)) {
		free(f);
		return NULL;
	}
	return f;
}

// lx_run borrows the inputs. spare keeps memory for the next run. On an error no output is left.
lx_error lx_run(const lx_set *set, lx_fold *fold, void **spare, lx_handle *inputs, lx_handle *outputs)
{
	const lx_plan *p = lx_plan_of();
	const size_t in = (size_t)p->inputs, constants = (size_t)p->constants, out = (size_t)p->outputs, returned = (size_t)p->returned;
	char *base[in + constants + out + 3 + returned];
	lx_handle handles[in + returned + 1];
	memset(handles, 0, sizeof handles);
	memset(outputs, 0, out * sizeof *outputs);
	spare_header *h = __atomic_exchange_n(spare, NULL, __ATOMIC_ACQUIRE);
	if (!h && (h = aligned_alloc(LX_LINE, LX_LINE + words_size(p) + lines(p->workspace))))
		h->filled = 0;
	char *workspace = (char *)h + LX_LINE + words_size(p);
	run r = {NULL, set, base, handles + in, lx_level()};
	lx_error e = LX_FAILED;
	if (!h) {
		lx_fail("there is no memory for %lld bytes of workspace", (long long)p->workspace);
	} else if ((r.words = words_for(inputs, h)) && !take_inputs(r.words, base, inputs, handles) && !make_outputs(r.words, base + in + constants, outputs)) {
		memcpy(base + in, set->data, constants * sizeof *base);
		base[in + constants + out] = workspace;
		base[in + constants + out + 1] = (char *)loris_literals;
		base[in + constants + out + 2] = fold ? fold->memory : NULL;
		e = run_steps(&r, r.words + p->step_at, p->steps);
		if (!e)
			e = assign(r.words, set, inputs, workspace);
	}
	for (size_t n = 0; n < in + returned; n++)
		if (handles[n])
			aoti_torch_delete_tensor_object(handles[n]);
	for (size_t n = 0; e && n < out; n++)
		if (outputs[n]) {
			aoti_torch_delete_tensor_object(outputs[n]);
			outputs[n] = NULL;
		}
	free(__atomic_exchange_n(spare, h, __ATOMIC_RELEASE));
	return e;
}
