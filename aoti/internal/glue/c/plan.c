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

typedef struct job {
	const lx_state *run;
	const lx_kernel *kernel;
	int64_t rows, cols; // counts of units
	int failed; // 1: no memory, 2: a division by zero
} job;

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
		f->ptr[i] = lx_address(j->run, o->place, o->at + at);
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

static lx_error run_kernel(const lx_state *r, const lx_kernel *k)
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

static lx_error run_steps(const lx_state *r, const int64_t *w, int64_t count)
{
	for (int64_t n = 0; n < count; n++) {
		const lx_step *s = (const lx_step *)w;
		if (s->kind == LX_KERNEL ? run_kernel(r, (const lx_kernel *)s) : lx_run_call(r, (const lx_call *)s))
			return LX_FAILED;
		w += s->length;
	}
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
	const lx_state r = {.words = loris_words, .set = set, .base = base, .functions = loris_functions, .level = lx_level()};
	if (run_steps(&r, loris_words + p->fold_at, p->folds)) {
		free(f);
		return NULL;
	}
	return f;
}

// An engine keeps memory of a run for the next one.
struct lx_engine {
	void *spare;
};

lx_engine *lx_open(const char *device)
{
	lx_engine *g = NULL;
	if (!device || strncmp(device, "cpu", 3))
		lx_fail("the model was exported for the CPU, not for %s", device ? device : "no device");
	else if (lx_level() < 0)
		lx_fail("the model needs a processor with AVX2, FMA, F16C and BMI2");
	else if (!(g = calloc(1, sizeof *g)))
		lx_fail("there is no memory for a container");
	return g;
}

void lx_close(lx_engine *g)
{
	if (g)
		free(g->spare);
	free(g);
}

int32_t lx_index(const lx_engine *g)
{
	(void)g;
	return 0;
}

lx_error lx_settle(const lx_engine *g)
{
	(void)g;
	return LX_OK;
}

lx_error lx_run(lx_engine *g, const lx_set *set, lx_fold *fold, void *stream, lx_handle *inputs, lx_handle *outputs)
{
	(void)stream;
	const lx_plan *p = lx_plan_of();
	const size_t in = (size_t)p->inputs, constants = (size_t)p->constants, out = (size_t)p->outputs, returned = (size_t)p->returned;
	char *base[in + constants + out + 3 + returned];
	lx_handle handles[in + returned + 1];
	memset(handles, 0, sizeof handles);
	memset(outputs, 0, out * sizeof *outputs);
	spare_header *h = __atomic_exchange_n(&g->spare, NULL, __ATOMIC_ACQUIRE);
	if (!h && (h = aligned_alloc(LX_LINE, LX_LINE + words_size(p) + lines(p->workspace))))
		h->filled = 0;
	char *workspace = (char *)h + LX_LINE + words_size(p);
	lx_state r = {.set = set, .base = base, .returned = handles + in, .functions = loris_functions, .level = lx_level()};
	lx_error e = LX_FAILED;
	if (!h) {
		lx_fail("there is no memory for %lld bytes of workspace", (long long)p->workspace);
	} else if ((r.words = words_for(inputs, h)) && !lx_take_inputs(&r, inputs, handles) && !lx_make_outputs(&r, outputs)) {
		memcpy(base + in, set->data, constants * sizeof *base);
		base[in + constants + out] = workspace;
		base[in + constants + out + 1] = (char *)loris_literals;
		base[in + constants + out + 2] = fold ? fold->memory : NULL;
		e = run_steps(&r, r.words + p->step_at, p->steps);
		if (!e)
			e = lx_assign(&r, inputs, workspace);
	}
	for (size_t n = 0; n < in + returned; n++)
		if (handles[n])
			aoti_torch_delete_tensor_object(handles[n]);
	for (size_t n = 0; e && n < out; n++)
		if (outputs[n]) {
			aoti_torch_delete_tensor_object(outputs[n]);
			outputs[n] = NULL;
		}
	free(__atomic_exchange_n(&g->spare, h, __ATOMIC_RELEASE));
	return e;
}
