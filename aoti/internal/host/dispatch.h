// The dispatcher: ops by name, with their arguments as words on a stack, and the
// registry of the ops that libraries bring along (dispatch.go).
#ifndef LORI_DISPATCH_H
#define LORI_DISPATCH_H

#include "tensor.h"

// lori_kernel computes an op of a library: it takes over n_in words and puts n_out
// in their place.
typedef void (*lori_kernel)(uint64_t *stack, uint64_t n_in, uint64_t n_out);

lori_error lori_torch_library_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **ret);
lori_error lori_torch_library_init_def(const char *ns, const char *file, uint32_t line, void **ret);
lori_error lori_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, void **ret);
lori_error lori_torch_library_impl(void *library, const char *name, lori_kernel fn);
lori_error lori_torch_library_def(void *library, const char *schema);
lori_error lori_torch_delete_library_object(void *library);
lori_error lori_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack);

// lori_kernel_call calls a kernel.
void lori_kernel_call(lori_kernel fn, uint64_t *stack, uint64_t n_in, uint64_t n_out);
// lori_word_delete deletes a word that C++ code has made with new.
void lori_word_delete(uint64_t *word);

lori_error loriGoLibraryNew(char *ns, char *key, void **ret);
lori_error loriGoLibraryImpl(void *library, char *name, lori_kernel fn);
lori_error loriGoLibraryDef(void *library, char *schema);
lori_error loriGoLibraryDelete(void *library);
lori_error loriGoDispatch(char *name, char *overload, uint64_t *stack);

#endif
