#include "proxy.h"

#include "shim.h"

_Thread_local uintptr_t lori_proxy;

lori_error lori_torch_proxy_executor_call_function(void *proxy, int32_t node, int32_t n_ints, int64_t *ints,
						   int32_t n_tensors, lori_tensor **tensors)
{
	if (lori_pending() && lori_take_pending())
		return LORI_FAIL;
	return loriGoProxy(proxy ? (uintptr_t)proxy : lori_proxy, node, n_ints, ints, n_tensors, tensors);
}
