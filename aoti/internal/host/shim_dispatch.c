// The dispatcher's C side.

#define _GNU_SOURCE
#include "dispatch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*operator_delete)(void *) = free;

static void find_delete(void)
{
	dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
	// The one that belongs to the libraries' operator new, which a sanitizer has
	// replaced, too.
	void *found = dlsym(RTLD_DEFAULT, "_ZdlPv");
	if (found)
		*(void **)&operator_delete = found;
}

void lori_word_delete(uint64_t *word)
{
	pthread_once(&once, find_delete);
	operator_delete(word);
}

void lori_kernel_call(lori_kernel fn, uint64_t *stack, uint64_t n_in, uint64_t n_out) { fn(stack, n_in, n_out); }

lori_error lori_torch_library_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **ret)
{
	(void)file, (void)line;
	return loriGoLibraryNew((char *)ns, (char *)key, ret);
}

lori_error lori_torch_library_init_def(const char *ns, const char *file, uint32_t line, void **ret)
{
	(void)file, (void)line;
	return loriGoLibraryNew((char *)ns, "", ret);
}

lori_error lori_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, void **ret)
{
	(void)file, (void)line;
	return loriGoLibraryNew((char *)ns, "", ret);
}

lori_error lori_torch_library_impl(void *library, const char *name, lori_kernel fn)
{
	return loriGoLibraryImpl(library, (char *)name, fn);
}

lori_error lori_torch_library_def(void *library, const char *schema) { return loriGoLibraryDef(library, (char *)schema); }

lori_error lori_torch_delete_library_object(void *library) { return loriGoLibraryDelete(library); }

lori_error lori_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack)
{
	if (lori_pending() && lori_take_pending())
		return LORI_FAIL;
	return loriGoDispatch((char *)name, (char *)overload, stack);
}
