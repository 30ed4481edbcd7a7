// A stand-in for CUDA's libraries, for tests on machines without a GPU: it
// records calls, keeps device memory on the host's heap and does the work of all
// streams in the order in which it was enqueued, on a thread of its own. Tests
// hold the work back, and inject faults.
//
// One lock guards everything.
#ifndef FAKE_H
#define FAKE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "libs.h"

// What is counted. The names are in core.c.
enum kind {
	CONTEXT, STREAM, EVENT, MODULE, POOL, MEMORY, HOST, GRAPH, EXEC, BLAS, DESC, LAYOUT, PREFERENCE, PROGRAM, COMMUNICATOR, GUARD, KINDS
};

// An object begins with its kind and whether it lives. Destroyed ones are kept,
// so that their use is noticed.
typedef struct object {
	enum kind kind;
	bool alive;
} object;

typedef struct context {
	object o;
	int device, retained;
	CUresult lost; // the error that every call repeats
} context;

typedef struct stream {
	object o;
	context *ctx;
	struct graph *capture; // NULL if it does not capture
	bool origin;           // the capture began here
	uint64_t issued, done;
} stream;

typedef struct event {
	object o;
	context *ctx;
	bool timed;
	struct graph *capture; // it was recorded in
	uint64_t issued, nanoseconds;
	uint64_t *pending; // the records that are not done
	int n_pending;
} event;

typedef struct kernel {
	context *ctx;
	const char *name;
	int params, max_dynamic, carveout;
	void (*run)(void *const *params); // NULL for those of kernel.c
	const unsigned *sizes;            // of the parameters; NULL: each is a slot
} kernel;

// An item is a piece of work. run returns an error that the context is lost by.
typedef struct item {
	CUresult (*run)(struct item *);
	bool (*ready)(struct item *); // whether it may run once it leads its stream; NULL: always
	const char *what;
	context *ctx;
	stream *s;
	event *e;        // it records, or waits for
	uint64_t ticket; // which record of the event
	kernel *k;
	fake_dim grid, block;
	uint64_t to, from, n;
	uint32_t value, size;
	void *host;
	struct item *next;
	void *node; // of a graph that was made node by node
	void *own; // freed with the item; own_size bytes. Of a kernel: its parameters.
	size_t own_size;
} item;

typedef struct graph {
	object o;
	context *ctx;
	item *first, **last;
	size_t nodes;
	bool ended; // its capture
	struct graph *from; // of an executable one
} graph;

// node is a piece of a graph.
typedef struct node {
	graph *g;
} node;

// core.c
extern pthread_mutex_t fake_lock;
extern struct fake_config {
	long version, devices, init, memory, peers, sms, shuffle, trap, algo1, algo2, idle;
} fake_config;
extern long fake_live[KINDS];

// fake_enter takes the lock, notes the call and returns 0, or a fault, without
// the lock. quiet calls are not noted.
CUresult fake_enter(const char *call, bool quiet, const char *format, ...) __attribute__((format(printf, 3, 4)));
// fake_leave releases the lock and returns r.
CUresult fake_leave(CUresult r);
void *fake_new(enum kind kind, size_t size);
bool fake_is(const void *object, enum kind kind);
void fake_end(void *object);
context *fake_current(void);
context *fake_device_context(int device);

// ENTER begins a call that needs a current context that is not lost.
#define ENTER(...)                                                     \
	do {                                                           \
		CUresult r_ = fake_enter(__func__, false, __VA_ARGS__); \
		if (r_)                                                \
			return r_;                                     \
		if (!fake_current())                                   \
			return fake_leave(201);                        \
		if (fake_current()->lost)                              \
			return fake_leave(fake_current()->lost);       \
	} while (0)
// ENTER_ANY begins a call that works with a lost context, too, or needs none.
#define ENTER_ANY(...)                                                 \
	do {                                                           \
		CUresult r_ = fake_enter(__func__, false, __VA_ARGS__); \
		if (r_)                                                \
			return r_;                                     \
	} while (0)
#define ENTER_QUIET()                                                  \
	do {                                                           \
		CUresult r_ = fake_enter(__func__, true, "%s", "");    \
		if (r_)                                                \
			return r_;                                     \
		if (fake_current() && fake_current()->lost)            \
			return fake_leave(fake_current()->lost);       \
	} while (0)
#define LEAVE(r) return fake_leave(r)
// NEED ends a call whose argument is wrong.
#define NEED(condition)                                      \
	do {                                                 \
		if (!(condition))                            \
			LEAVE(LORI_ERROR_INVALID_VALUE);     \
	} while (0)
#define NEED_OBJECT(p, kind)                                 \
	do {                                                 \
		if (!fake_is(p, kind))                       \
			LEAVE(LORI_ERROR_INVALID_HANDLE);    \
	} while (0)
// DESTROY ends an object; a lost context is reported all the same.
#define DESTROY(p, kind)                                                      \
	do {                                                                  \
		ENTER_ANY("%s", "");                                          \
		NEED_OBJECT(p, kind);                                         \
		fake_end(p);                                                  \
		LEAVE(fake_current() ? fake_current()->lost : 0);             \
	} while (0)

// engine.c
item *fake_item(stream *s, const char *what, CUresult (*run)(item *));
CUresult fake_enqueue(item *i);
graph *fake_capture(stream *s); // what it captures into, NULL for none
item *fake_clone(const item *i);
void fake_free(item *i);
item *fake_bare(context *ctx, const char *what, CUresult (*run)(item *)); // in no stream
extern uint64_t fake_skipped; // nanoseconds that work took besides those that it did
// fake_leading calls f for the items that lead their streams, until it returns true.
bool fake_leading(bool (*f)(item *, void *), void *of);
void fake_changed(void); // an item may be ready
void fake_wait(stream *s); // with the lock, which it releases meanwhile

// nvrtc.c
extern char fake_cache[]; // a folder for files
#define FAKE_PTX "// made of " // in PTX, before the library that it stands for

// kernel.c
struct gpu *fake_gpu(void); // on which the kernels of images run
CUresult fake_kernel_item(const CUDA_KERNEL_NODE_PARAMS_v2 *p, item **out);

// memory.c
bool fake_device_range(uint64_t p, uint64_t n);
uint64_t fake_device_alloc(size_t n);
void fake_forget(void);
void fake_lose(context *ctx); // frees what a lost context has left

#endif
