// The threads of a kernel's blocks are fibers, which change places at barriers and
// shuffles. Blocks run one after another, and a thread that meets no barrier runs
// to its end, so that a fiber serves many. This is C and C++; kernels see what
// device.h makes of it.
#ifndef FIBER_H
#define FIBER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { MAX_THREADS = 1024, STACK_BYTES = 128 << 10 };

typedef struct fake_dim {
	unsigned x, y, z;
} fake_dim;

enum thread_state { THREAD_READY, THREAD_AT_WARP, THREAD_AT_BLOCK, THREAD_DONE };

typedef struct fiber {
	ucontext_t start;
	jmp_buf here;
	char *stack;
	bool started;
	struct fiber *next; // free ones
} fiber;

typedef struct thread {
	enum thread_state state;
	fiber *on; // NULL before it started
	int parity;
} thread;

// A gpu is what runs a kernel.
typedef struct gpu {
	fake_dim threadIdx, blockIdx, blockDim, gridDim;
	void (*wait)(struct gpu *, enum thread_state);
	void (*trap)(struct gpu *);
	int current;
	thread threads[MAX_THREADS];
	unsigned exchange[2][MAX_THREADS];

	void (*kernel)(void *const *params);
	void *const *params;
	jmp_buf scheduler;
	fiber *idle;
	bool trapped;
} gpu;

static inline void fiber_die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	abort();
}

// fiber_wait is what a barrier of a kernel does.
static inline void fiber_wait(gpu *g, enum thread_state s)
{
	thread *t = &g->threads[g->current];
	t->state = s;
	if (!_setjmp(t->on->here))
		_longjmp(g->scheduler, 1);
}

// fiber_trap ends the launch.
static inline void fiber_trap(gpu *g)
{
	g->trapped = true;
	g->threads[g->current].state = THREAD_AT_BLOCK; // so that its fiber starts anew
	_longjmp(g->scheduler, 1);
}

// fiber_body runs one thread after another. makecontext passes integers only.
static inline void fiber_body(unsigned high, unsigned low)
{
	gpu *g = (gpu *)((unsigned long)high << 32 | low);
	for (;;) {
		g->kernel(g->params);
		thread *t = &g->threads[g->current];
		t->state = THREAD_DONE;
		if (!_setjmp(t->on->here))
			_longjmp(g->scheduler, 1);
	}
}

static inline fiber *fiber_new(void)
{
	fiber *f = (fiber *)calloc(1, sizeof *f);
	f->stack = (char *)malloc(STACK_BYTES);
	return f;
}

// fiber_resume runs a thread until it waits or ends.
static inline void fiber_resume(gpu *g, int i)
{
	thread *t = &g->threads[i];
	g->current = i;
	g->threadIdx.x = i % g->blockDim.x;
	g->threadIdx.y = i / g->blockDim.x % g->blockDim.y;
	g->threadIdx.z = i / g->blockDim.x / g->blockDim.y;
	if (!t->on) {
		t->on = g->idle ? g->idle : fiber_new();
		g->idle = t->on->next;
	}
	t->state = THREAD_READY;
	fiber *f = t->on;
	if (!_setjmp(g->scheduler)) {
		if (f->started)
			_longjmp(f->here, 1);
		f->started = true;
		getcontext(&f->start);
		f->start.uc_stack.ss_sp = f->stack;
		f->start.uc_stack.ss_size = STACK_BYTES;
		f->start.uc_link = NULL;
		makecontext(&f->start, (void (*)(void))fiber_body, 2, (unsigned)((unsigned long)g >> 32), (unsigned)(unsigned long)g);
		setcontext(&f->start);
	}
	t = &g->threads[g->current];
	if (t->state == THREAD_DONE || g->trapped) {
		t->on->started = !g->trapped;
		t->on->next = g->idle;
		g->idle = t->on;
		t->on = NULL;
	}
}

// fiber_warp runs the lanes of a warp until each waits for the block or is done.
static inline void fiber_warp(gpu *g, int lo, int hi)
{
	for (bool more = true; more;) {
		more = false;
		for (int i = lo; i < hi && !g->trapped; i++)
			if (g->threads[i].state == THREAD_READY || g->threads[i].state == THREAD_AT_WARP) {
				fiber_resume(g, i);
				more = more || g->threads[i].state == THREAD_AT_WARP;
			}
		if (g->trapped)
			return;
		int waiting = 0;
		for (int i = lo; i < hi; i++)
			waiting += g->threads[i].state == THREAD_AT_WARP;
		if (waiting && waiting != hi - lo)
			fiber_die("a shuffle without all lanes of the warp");
	}
}

static inline void fiber_block(gpu *g, int threads)
{
	memset(g->threads, 0, threads * sizeof *g->threads);
	for (int left = threads; left > 0 && !g->trapped;) {
		for (int i = 0; i < threads && !g->trapped; i += 32)
			fiber_warp(g, i, i + 32 < threads ? i + 32 : threads);
		left = 0;
		for (int i = 0; i < threads; i++)
			if (g->threads[i].state == THREAD_AT_BLOCK) {
				g->threads[i].state = THREAD_READY;
				left++;
			}
	}
	for (int i = 0; i < threads; i++) // those that a trap left
		if (g->threads[i].on) {
			g->threads[i].on->started = false;
			g->threads[i].on->next = g->idle;
			g->idle = g->threads[i].on;
		}
}

// fiber_launch runs a kernel on a grid; false if it trapped. wait is what its
// barriers do: fiber_wait, or something else if there should be none.
static inline bool fiber_launch(gpu *g, void (*kernel)(void *const *), void *const *params, fake_dim grid,
				fake_dim block, void (*wait)(gpu *, enum thread_state))
{
	g->wait = wait;
	g->trap = fiber_trap;
	g->kernel = kernel;
	g->params = params;
	g->gridDim = grid;
	g->blockDim = block;
	g->trapped = false;
	fake_dim *b = &g->blockIdx;
	for (b->z = 0; b->z < grid.z; b->z++)
		for (b->y = 0; b->y < grid.y; b->y++)
			for (b->x = 0; b->x < grid.x && !g->trapped; b->x++)
				fiber_block(g, block.x * block.y * block.z);
	return !g->trapped;
}

#endif
