// What the loader shares with the C++ inside libraries: the text of exceptions,
// a std::cerr that says nothing, and an environment that says whether to check
// inputs.
//
// A library turns its exceptions into error codes and prints their text, and
// only the newest generation also keeps it. So the private copy of a library
// calls __lor_begin_catch where it called __cxa_begin_catch, which every handler
// of an exception does first, and writes to _LSt4cerr instead of std::cerr.

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1024, OSTREAM = 512 };

// The object that libraries know as std::cerr. It is a std::ostream without a
// buffer, which drops what is written.
_Alignas(64) char _LSt4cerr[OSTREAM];

static lori_cxx cxx;
static char cxx_error[256];
static _Thread_local char caught[TEXT];

const char *lori_caught(void) { return caught; }
void lori_caught_clear(void) { caught[0] = 0; }

static bool find(void *lib, const char *name, void *out)
{
	void *p = dlsym(lib, name);
	if (!p && !cxx_error[0])
		snprintf(cxx_error, sizeof cxx_error, "libstdc++.so.6 has no %s", name);
	memcpy(out, &p, sizeof p);
	return p != NULL;
}

static void cxx_init(void)
{
	void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!lib) {
		snprintf(cxx_error, sizeof cxx_error, "%s", dlerror());
		return;
	}
	void (*ostream)(void *self, void *streambuf);
	char *vtable;
	if (!find(lib, "_ZSt11_Hash_bytesPKvmm", &cxx.hash_bytes) || !find(lib, "__cxa_begin_catch", &cxx.begin_catch) ||
	    !find(lib, "__cxa_current_exception_type", &cxx.current_exception_type) ||
	    !find(lib, "_ZTVN10__cxxabiv120__si_class_type_infoE", &vtable) ||
	    !find(lib, "_ZNSoC1EPSt15basic_streambufIcSt11char_traitsIcEE", &ostream))
		return;
	cxx.single_inheritance = vtable + 2 * sizeof(void *);
	ostream(_LSt4cerr, NULL);
}

const lori_cxx *lori_cxx_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, cxx_init);
	if (cxx_error[0]) {
		lori_fail("%s", cxx_error);
		return NULL;
	}
	return &cxx;
}

// type_info as the Itanium C++ ABI lays it out; base is there if the class has
// exactly one, without virtual inheritance, so that both start at one address.
typedef struct type_info {
	void *vtable;
	const char *name;
	const struct type_info *base;
} type_info;

static bool is_exception(const type_info *t)
{
	while (t) {
		if (strcmp(t->name + (t->name[0] == '*'), "St9exception") == 0)
			return true;
		t = t->vtable == cxx.single_inheritance ? t->base : NULL;
	}
	return false;
}

// Libraries call this instead of __cxa_begin_catch.
void *__lor_begin_catch(void *exception)
{
	void *object = cxx.begin_catch(exception);
	if (!is_exception(cxx.current_exception_type()))
		return object;
	// The virtual functions of std::exception: two destructors, what.
	const char *(**methods)(void *) = *(const char *(***)(void *))object;
	snprintf(caught, sizeof caught, "%s", methods[2](object));
	return object;
}

_Thread_local bool lori_check_inputs;

// Libraries call this instead of getenv. They ask once, when they first run,
// whether inputs are to be checked; the answer is that of the library that runs.
char *lorenv(const char *name)
{
	static char on[] = "1";
	if (strcmp(name, "AOTI_RUNTIME_CHECK_INPUTS") == 0)
		return lori_check_inputs ? on : NULL;
	return getenv(name);
}
