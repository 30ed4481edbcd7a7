// libtorch's parallel loop (torch/csrc/stable/c/shim.h) for libraries that call it instead of OpenMP's.

#include "omp.h"

extern void LOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags);
extern int lmp_get_max_threads(void);

typedef struct torch_loop {
	atomic_llong next;
	int64_t end, chunk;
	void (*body)(int64_t, int64_t, void *);
	void *arg;
} torch_loop;

static void run_chunks(void *data)
{
	torch_loop *l = data;
	for (;;) {
		int64_t lo = atomic_fetch_add_explicit(&l->next, l->chunk, memory_order_relaxed);
		if (lo >= l->end)
			return;
		l->body(lo, l->end - lo < l->chunk ? l->end : lo + l->chunk, l->arg);
	}
}

// Each thread takes chunks of at least grain iterations, some chunks a thread. A loop inside of
// another runs on the thread that enters it.
int32_t loris_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void *), void *arg)
{
	if (begin >= end)
		return 0;
	if (grain < 1)
		grain = 1;
	const int64_t n = end - begin, most = lmp_get_max_threads(), chunks = (n + grain - 1) / grain;
	const int64_t threads = lomp_self.level > 0 ? 1 : chunks < most ? chunks : most;
	if (threads <= 1) {
		body(begin, end, arg);
		return 0;
	}
	const int64_t part = (n + 4 * threads - 1) / (4 * threads);
	torch_loop l = {.end = end, .chunk = part > grain ? part : grain, .body = body, .arg = arg};
	atomic_init(&l.next, begin);
	LOMP_parallel(run_chunks, &l, (unsigned)threads, 0);
	return 0;
}
