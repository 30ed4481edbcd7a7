//go:build cuda && linux && cgo

// Opening the libraries and finding their functions.

#include "calls.h"

#include <dlfcn.h>
#include <string.h>

void *lori_cu_open(const char *path, char **why)
{
	*why = NULL;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library) {
		const char *text = dlerror();
		*why = strdup(text ? text : "it cannot be opened");
	}
	return library;
}

// find puts the address of a symbol into a slot of a table.
static int find(void *library, const char *name, void *slot)
{
	void *p = dlsym(library, name);
	memcpy(slot, &p, sizeof p);
	return p != NULL;
}

uintptr_t lori_cu_symbol(void *library, const char *name) { return (uintptr_t)dlsym(library, name); }

#define FIND(name, ...)                            \
	if (!find(library, #name, &table->name))   \
		return #name;

#define RESOLVE(kind, functions)                                                       \
	const char *lori_cu_resolve_##kind(void *library, lori_##kind *table)          \
	{                                                                              \
		functions(FIND) return NULL;                                           \
	}

RESOLVE(driver, LORI_DRIVER_FUNCTIONS)
RESOLVE(nvrtc, LORI_NVRTC_FUNCTIONS)
RESOLVE(cublaslt, LORI_CUBLASLT_FUNCTIONS)
