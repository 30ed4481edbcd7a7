// Compiled by a test with the real headers: every function and number that is
// declared in this package must be what they say.
#include "libs.h"

#ifdef LORI_CUDA_HEADERS
#define SAME(name, args) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) args), #name);
LORI_DRIVER_FUNCTIONS(SAME)
#define EQUAL(name, cuda, value) _Static_assert((long)cuda == value, #cuda);
LORI_DRIVER_NUMBERS(EQUAL)
#endif

#ifdef LORI_NVRTC_HEADERS
#define SAME_NVRTC(name, args) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), nvrtcResult(*) args), #name);
LORI_NVRTC_FUNCTIONS(SAME_NVRTC)
LORI_NVRTC_NUMBERS(EQUAL)
#endif

#ifdef LORI_CUBLASLT_HEADERS
#define SAME_LT(name, result, args) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) args), #name);
LORI_CUBLASLT_FUNCTIONS(SAME_LT)
LORI_CUBLASLT_NUMBERS(EQUAL)
#if CUBLAS_VERSION >= 120900
LORI_CUBLASLT_NEW_NUMBERS(EQUAL)
#endif
#endif
