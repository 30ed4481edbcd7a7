// The proxy executor of the library that runs on this thread (proxy.go).
#ifndef LORI_PROXY_H
#define LORI_PROXY_H

#include <stdint.h>

#include "tensor.h"

// lori_proxy is the executor's handle, 0 for none. Libraries that run without a
// container pass none on, so that the thread has it.
extern _Thread_local uintptr_t lori_proxy;

lori_error loriGoProxy(uintptr_t proxy, int node, int n_ints, int64_t *ints, int n_tensors, lori_tensor **tensors);

#endif
