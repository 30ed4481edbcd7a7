// Loops as gcc compiles them, with the names of the runtime replaced by the
// test's build. Each test returns NULL or what went wrong.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000 };

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			static char text[200];                                                                         \
			snprintf(text, sizeof text, "line %d: %s", __LINE__, #cond);                                   \
			return text;                                                                                   \
		}                                                                                                      \
	} while (0)

const char *test_threads(void *arg)
{
	int seen[64] = {0}, team = 0, inside = 0;
	(void)arg;
	CHECK(omp_get_num_threads() == 1 && omp_get_thread_num() == 0 && !omp_in_parallel());
#pragma omp parallel num_threads(7)
	{
#pragma omp atomic
		seen[omp_get_thread_num()]++;
#pragma omp critical
		{
			team = omp_get_num_threads();
			inside = omp_in_parallel();
		}
	}
	CHECK(team == 7 && inside);
	for (int i = 0; i < 64; i++)
		CHECK(seen[i] == (i < 7));
	CHECK(omp_get_num_threads() == 1 && omp_get_thread_num() == 0 && !omp_in_parallel());
	omp_set_num_threads(3);
	CHECK(omp_get_max_threads() == 3);
#pragma omp parallel
#pragma omp single
	team = omp_get_num_threads();
	CHECK(team == 3);
	omp_set_num_threads(omp_get_num_procs());
	return NULL;
}

static int hits[N];

static const char *each_once(int line)
{
	static char text[100];
	for (int i = 0; i < N; i++) {
		if (hits[i] != 1) {
			snprintf(text, sizeof text, "line %d: iteration %d ran %d times", line, i, hits[i]);
			return text;
		}
	}
	memset(hits, 0, sizeof hits);
	return NULL;
}

#define LOOP(...)                                                                                                      \
	do {                                                                                                           \
		_Pragma(__VA_ARGS__) for (int i = 0; i < N; i++)                                                       \
			__atomic_fetch_add(&hits[i], 1, __ATOMIC_RELAXED);                                             \
		const char *text = each_once(__LINE__);                                                                \
		if (text)                                                                                              \
			return text;                                                                                   \
	} while (0)

const char *test_loops(void *arg)
{
	(void)arg;
	LOOP("omp parallel for num_threads(4)");
	LOOP("omp parallel for num_threads(4) schedule(static, 3)");
	LOOP("omp parallel for num_threads(4) schedule(dynamic)");
	LOOP("omp parallel for num_threads(4) schedule(dynamic, 7)");
	LOOP("omp parallel for num_threads(4) schedule(monotonic: dynamic, 7)");
	LOOP("omp parallel for num_threads(4) schedule(guided)");
	LOOP("omp parallel for num_threads(4) schedule(guided, 5)");
	LOOP("omp parallel for num_threads(4) schedule(runtime)");
	LOOP("omp parallel for num_threads(1) schedule(dynamic, 2)");
	LOOP("omp parallel for num_threads(33) schedule(dynamic, 400)");
#pragma omp parallel num_threads(5)
	{
#pragma omp for schedule(dynamic, 3) nowait
		for (int i = N - 1; i >= 0; i -= 2)
			__atomic_fetch_add(&hits[i], 1, __ATOMIC_RELAXED);
#pragma omp for schedule(guided) nowait
		for (long i = 0; i < N; i += 2)
			__atomic_fetch_add(&hits[i], 1, __ATOMIC_RELAXED);
	}
	const char *text = each_once(__LINE__);
	if (text)
		return text;
#pragma omp parallel for num_threads(4) schedule(dynamic, 3)
	for (unsigned long long i = 1; i < N + 1ull; i++)
		__atomic_fetch_add(&hits[i - 1], 1, __ATOMIC_RELAXED);
	if ((text = each_once(__LINE__)))
		return text;
#pragma omp parallel for num_threads(4) schedule(guided)
	for (unsigned long long i = ~0ull - N; i < ~0ull; i++)
		__atomic_fetch_add(&hits[i - (~0ull - N)], 1, __ATOMIC_RELAXED);
	if ((text = each_once(__LINE__)))
		return text;
#pragma omp parallel for num_threads(4) collapse(2) schedule(dynamic)
	for (int i = 0; i < 10; i++)
		for (int j = 0; j < N / 10; j++)
			__atomic_fetch_add(&hits[i * (N / 10) + j], 1, __ATOMIC_RELAXED);
	if ((text = each_once(__LINE__)))
		return text;
	int none = 0;
#pragma omp parallel for num_threads(4) schedule(dynamic) reduction(+ : none)
	for (int i = 5; i < 5; i++)
		none++;
	CHECK(none == 0);
	return NULL;
}

const char *test_reduction(void *arg)
{
	double sum = 0, most = -1;
	long i;
	(void)arg;
#pragma omp parallel num_threads(6)
	{
		double mine = 0;
#pragma omp for nowait
		for (i = 1; i <= 100000; i++)
			mine += (double)i;
#pragma omp atomic
		sum += mine;
#pragma omp for reduction(max : most)
		for (i = 0; i < 5000; i++)
			most = most > (double)(i * 7 % 5000) ? most : (double)(i * 7 % 5000);
	}
	CHECK(sum == 5000050000.0 && most == 4999);
	return NULL;
}

// Each round every thread reads what all wrote in the round before.
const char *test_barriers(void *arg)
{
	enum { T = 6, ROUNDS = 200 };
	int cells[2][T] = {{0}}, bad = 0;
	(void)arg;
#pragma omp parallel num_threads(T)
	{
		int me = omp_get_thread_num();
		for (int r = 1; r <= ROUNDS; r++) {
			cells[r % 2][me] = r;
#pragma omp barrier
			for (int j = 0; j < T; j++)
				if (cells[r % 2][j] != r)
					__atomic_store_n(&bad, r, __ATOMIC_RELAXED);
#pragma omp barrier
		}
	}
	CHECK(bad == 0);
	return NULL;
}

const char *test_shares(void *arg)
{
	int singles = 0, got = 0, mask = 0;
	(void)arg;
#pragma omp parallel num_threads(5)
	{
		for (int r = 0; r < 50; r++) {
#pragma omp single nowait
			__atomic_fetch_add(&singles, 1, __ATOMIC_RELAXED);
#pragma omp for schedule(dynamic) nowait
			for (int i = 0; i < 3; i++)
				__atomic_fetch_add(&got, 1, __ATOMIC_RELAXED);
		}
	}
	CHECK(singles == 50 && got == 150);
#pragma omp parallel num_threads(3)
	{
		int x = omp_get_thread_num();
#pragma omp single copyprivate(x)
		x = 42;
		if (x == 42)
			__atomic_fetch_add(&mask, 1, __ATOMIC_RELAXED);
	}
	CHECK(mask == 3);
	mask = 0;
#pragma omp parallel sections num_threads(2)
	{
#pragma omp section
		__atomic_fetch_or(&mask, 1, __ATOMIC_RELAXED);
#pragma omp section
		__atomic_fetch_or(&mask, 2, __ATOMIC_RELAXED);
#pragma omp section
		__atomic_fetch_or(&mask, 4, __ATOMIC_RELAXED);
	}
	CHECK(mask == 7);
	return NULL;
}

const char *test_ordered(void *arg)
{
	int order[100], at = 0;
	(void)arg;
#pragma omp parallel for num_threads(4) ordered schedule(dynamic, 3)
	for (int i = 0; i < 100; i++) {
#pragma omp ordered
		order[at++] = i;
	}
	for (int i = 0; i < 100; i++)
		CHECK(order[i] == i);
	at = 0;
#pragma omp parallel for num_threads(4) ordered schedule(static, 3)
	for (int i = 0; i < 100; i++) {
#pragma omp ordered
		order[at++] = i;
	}
	for (int i = 0; i < 100; i++)
		CHECK(order[i] == i);
	return NULL;
}

const char *test_critical(void *arg)
{
	int a = 0, b = 0, tasks = 0, nested = 0;
	(void)arg;
#pragma omp parallel num_threads(4)
	{
		for (int i = 0; i < 500; i++) {
#pragma omp critical(one)
			a++;
#pragma omp critical(two)
			b++;
		}
#pragma omp single
		for (int i = 0; i < 10; i++) {
#pragma omp task firstprivate(i)
			__atomic_fetch_add(&tasks, i, __ATOMIC_RELAXED);
		}
#pragma omp taskwait
#pragma omp parallel num_threads(3)
		__atomic_fetch_add(&nested, omp_get_num_threads(), __ATOMIC_RELAXED);
	}
	CHECK(a == 2000 && b == 2000 && tasks == 45);
	CHECK(nested == 4);
	return NULL;
}

// libtorch's loop, which other libraries call.
extern int loris_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void *), void *arg);

static void count_up(int64_t lo, int64_t hi, void *arg)
{
	for (int64_t i = lo; i < hi; i++)
		__atomic_add_fetch(&((int *)arg)[i], 1, __ATOMIC_RELAXED);
}

static void count_inside(int64_t lo, int64_t hi, void *arg)
{
	for (int64_t i = lo; i < hi; i++)
		loris_parallel_for(i * 10, i * 10 + 10, 1, count_up, arg);
}

const char *test_parallel_for(void *arg)
{
	static int seen[N];
	(void)arg;
	for (int64_t grain = -1; grain < N + 2; grain = grain < 4 ? grain + 1 : 3 * grain) {
		memset(seen, 0, sizeof seen);
		CHECK(!loris_parallel_for(3, N - 1, grain, count_up, seen));
		for (int i = 0; i < N; i++)
			CHECK(seen[i] == (i >= 3 && i < N - 1));
	}
	memset(seen, 0, sizeof seen);
	CHECK(!loris_parallel_for(0, N / 10, 1, count_inside, seen) && !loris_parallel_for(5, 5, 1, count_up, seen));
	for (int i = 0; i < N; i++)
		CHECK(seen[i] == 1);
	return NULL;
}
