// What libraries call. The names are those of PyTorch's C shim with the prefix
// lori_torch_ in the place of its own: the private copies of artefacts ask for
// them by these names, so that they never meet those of a libtorch in the same
// process. The types of the arguments are the shim's.
#ifndef LORI_SHIM_H
#define LORI_SHIM_H

#include "shim_gen.h"
#include "tensor.h"

// lori_throw throws a std::runtime_error through the C++ code that called.
void lori_throw(const char *text) __attribute__((noreturn, cold));

// lori_on_warning sets who hears the warnings of compiled code; NULL prints them
// on stderr. It may be called on any thread.
typedef void (*lori_warn_fn)(const char *func, const char *file, uint32_t line, const char *msg);
void lori_on_warning(lori_warn_fn handler);

// lori_on_region sets who hears of the regions that profiled artefacts begin and
// end; NULL nobody.
typedef void (*lori_region_fn)(const char *name, bool begins);
void lori_on_region(lori_region_fn handler);
lori_error lori_record_function_start(const char *name, void *kwargs, lori_value_object *const *inputs,
				      uint64_t n_inputs, void **guard);
lori_error lori_record_function_end(void *guard);

#endif
