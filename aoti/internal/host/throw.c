// Checks inside generated code. A failing one is a C++ exception there, which the
// library itself catches at its boundary and turns into an error code; this file
// throws it without being C++.

#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The parts of libstdc++ that make and throw a std::runtime_error.
static struct cxx {
	pthread_once_t once;
	void *(*allocate)(size_t);
	void (*construct)(void *, const char *);
	void (*destroy)(void *);
	void *type;
	void (*throw)(void *, void *, void (*)(void *)) __attribute__((noreturn));
} cxx = {.once = PTHREAD_ONCE_INIT};

static void cxx_init(void)
{
	void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		return;
	*(void **)&cxx.allocate = dlsym(lib, "__cxa_allocate_exception");
	*(void **)&cxx.construct = dlsym(lib, "_ZNSt13runtime_errorC1EPKc");
	*(void **)&cxx.destroy = dlsym(lib, "_ZNSt13runtime_errorD1Ev");
	*(void **)&cxx.throw = dlsym(lib, "__cxa_throw");
	cxx.type = dlsym(lib, "_ZTISt13runtime_error");
}

enum { RUNTIME_ERROR_SIZE = 16 }; // a vtable and a string without its own room

void lori_throw(const char *text)
{
	pthread_once(&cxx.once, cxx_init);
	if (!cxx.allocate || !cxx.construct || !cxx.destroy || !cxx.throw || !cxx.type) {
		fprintf(stderr, "a check of compiled code failed and libstdc++ is missing: %s\n", text);
		abort();
	}
	void *e = cxx.allocate(RUNTIME_ERROR_SIZE);
	cxx.construct(e, text);
	cxx.throw(e, cxx.type, cxx.destroy);
}

// Inside a parallel region nothing can be thrown: compilers end the process when
// an exception leaves one. The region ends early instead, and the next call on
// the thread that began it fails. The OpenMP runtime is another package's.
bool lomp_in_region(void) __attribute__((weak));
void lomp_cancel(const char *text) __attribute__((weak, noreturn));
const char *lomp_error(void) __attribute__((weak));
bool lomp_failed(void) __attribute__((weak));

bool lori_pending(void) { return lomp_failed && lomp_failed(); }

lori_error lori_take_pending(void)
{
	const char *text = lomp_error ? lomp_error() : NULL;
	return text ? lori_fail_text(text) : LORI_OK;
}

void lori_torch_check(bool cond, const char *func, const char *file, uint32_t line, const char *msg)
{
	if (__builtin_expect(cond, 1))
		return;
	// The function is named for the ops that it computes; the file was on the machine
	// that compiled it, and is gone.
	(void)file, (void)line;
	lori_fail("%s (in %s)", msg, func);
	if (lomp_in_region && lomp_in_region())
		lomp_cancel(lori_error_text());
	lori_throw(lori_error_text());
}

// Warnings go to the handler that was set, or to stderr.
static _Atomic(lori_warn_fn) warn_handler;

void lori_on_warning(lori_warn_fn handler) { atomic_store(&warn_handler, handler); }

void lori_torch_warn(const char *func, const char *file, uint32_t line, const char *msg)
{
	lori_warn_fn handler = atomic_load(&warn_handler);
	if (handler)
		handler(func, file, line, msg);
	else
		fprintf(stderr, "warning: %s (%s at %s:%u)\n", msg, func, file, line);
}
