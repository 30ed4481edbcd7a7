// Whether the thread's grad mode is on.

#include <stdbool.h>

bool lori_torch_grad_mode_is_enabled(void);

const char *test_enabled(void *arg)
{
	(void)arg;
	return lori_torch_grad_mode_is_enabled() ? 0 : "grad mode is off";
}
