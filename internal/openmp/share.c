// Work sharing: loops whose parts are handed out at run time, sections, single,
// ordered, critical, and tasks, which run at once.

#include "omp.h"

#include <sched.h>
#include <stdlib.h>

// A region of one: what a thread outside of regions is in.
static _Thread_local team solo = {.size = 1};

team *lomp_team(void)
{
	if (!lomp_self.team)
		lomp_self.team = &solo;
	return lomp_self.team;
}

static share *next_share(team *t, share *at)
{
	if (!at) {
		// The first share lies in the team, so that regions with one loop allocate
		// nothing.
		return &t->first;
	}
	share *next = atomic_load_explicit(&at->next, memory_order_acquire);
	if (next)
		return next;
	share *fresh = calloc(1, sizeof *fresh);
	if (!fresh)
		abort();
	if (atomic_compare_exchange_strong(&at->next, &next, fresh))
		return fresh;
	free(fresh);
	return next;
}

// leave counts the logical threads that are done with a share, which is freed
// after the last, when the team's list begins with it.
static void leave(team *t, share *s)
{
	if (atomic_fetch_add_explicit(&s->left, 1, memory_order_acq_rel) != t->size - 1 || s == &t->first)
		return;
	// The only reference left is the first share's, or none: shares are left in
	// order.
	atomic_store_explicit(&t->first.next, atomic_load(&s->next), memory_order_release);
	free(s);
}

share *lomp_enter(bool *first)
{
	team *t = lomp_team();
	share *at = lomp_self.at;
	share *s = next_share(t, at);
	lomp_self.at = s;
	if (at)
		leave(t, at);
	int state = 0;
	*first = atomic_compare_exchange_strong_explicit(&s->state, &state, 1, memory_order_acquire,
							 memory_order_acquire);
	while (!*first && atomic_load_explicit(&s->state, memory_order_acquire) != 2)
		lomp_pause();
	return s;
}

void lomp_ready(share *s) { atomic_store_explicit(&s->state, 2, memory_order_release); }

// The schedules, by libgomp's numbers.
enum { RUNTIME = 0, STATIC = 1, DYNAMIC = 2, GUIDED = 3 };

// iterations counts the steps of a loop from start to before end.
static uint64_t iterations(bool up, uint64_t start, uint64_t end, uint64_t incr, bool sign)
{
	bool empty = sign ? (up ? (int64_t)start >= (int64_t)end : (int64_t)start <= (int64_t)end)
			  : (up ? start >= end : start <= end);
	if (empty)
		return 0;
	return up ? (end - start + incr - 1) / incr : (start - end + (-incr) - 1) / (-incr);
}

// take hands out the next part of a loop.
static bool take(share *s, int schedule, uint64_t *from, uint64_t *to)
{
	self *me = &lomp_self;
	team *t = me->team;
	uint64_t n;
	if (schedule == STATIC) {
		n = me->next;
		if (n >= me->count)
			return false;
		uint64_t size = me->count - n < me->chunk ? me->count - n : me->chunk;
		me->next = me->count - n <= me->stride ? me->count : n + me->stride;
		*from = n;
		*to = n + size;
	} else if (schedule == GUIDED) {
		n = atomic_load_explicit(&s->taken, memory_order_relaxed);
		uint64_t size;
		do {
			if (n >= s->count)
				return false;
			size = (s->count - n + (uint64_t)t->size - 1) / (uint64_t)t->size;
			if (size < s->chunk)
				size = s->chunk < s->count - n ? s->chunk : s->count - n;
		} while (!atomic_compare_exchange_weak(&s->taken, &n, n + size));
		*from = n;
		*to = n + size;
	} else {
		n = atomic_fetch_add_explicit(&s->taken, s->chunk, memory_order_relaxed);
		if (n >= s->count)
			return false;
		*from = n;
		*to = s->count - n < s->chunk ? s->count : n + s->chunk;
	}
	me->from = *from;
	me->to = *to;
	return true;
}

// part is take in the program's numbers.
static bool part(share *s, int schedule, uint64_t *start, uint64_t *end)
{
	uint64_t from, to;
	lomp_check_cancelled(lomp_self.team);
	if (!take(s, schedule, &from, &to))
		return false;
	*start = lomp_self.base + from * lomp_self.step;
	*end = lomp_self.base + to * lomp_self.step;
	return true;
}

// turn waits until the ordered parts of all iterations before the thread's part
// have run.
static share *turn(void)
{
	self *me = &lomp_self;
	for (int i = 0; atomic_load_explicit(&me->at->ordered, memory_order_acquire) != me->from; i++) {
		if (i == 1000)
			lomp_ensure_started(me->team);
		lomp_check_cancelled(me->team);
		if (i < 1000)
			lomp_pause();
		else
			sched_yield();
	}
	return me->at;
}

// ordered_part is part for a loop with ordered parts: the turn goes to the
// iterations after this thread's.
static bool ordered_part(share *s, int schedule, uint64_t *start, uint64_t *end)
{
	atomic_store_explicit(&turn()->ordered, lomp_self.to, memory_order_release);
	return part(s, schedule, start, end);
}

static void begin(int schedule, uint64_t start, uint64_t incr, uint64_t count, uint64_t chunk)
{
	bool first;
	share *s = lomp_enter(&first);
	self *me = &lomp_self;
	uint64_t threads = (uint64_t)me->team->size;
	me->base = start;
	me->step = incr;
	me->count = count;
	if (schedule == STATIC && chunk == 0) {
		// One part each, of nearly equal size.
		uint64_t each = count / threads, more = count % threads, id = (uint64_t)me->id;
		me->next = id * each + (id < more ? id : more);
		me->chunk = each + (id < more);
		me->stride = count; // no second part
		if (me->chunk == 0)
			me->next = count;
	} else {
		if (chunk == 0)
			chunk = 1;
		me->chunk = chunk;
		bool wraps = __builtin_mul_overflow(chunk, (uint64_t)me->id, &me->next);
		if (__builtin_mul_overflow(chunk, threads, &me->stride))
			me->stride = UINT64_MAX;
		if (wraps)
			me->next = count;
	}
	if (first) {
		s->count = count;
		s->chunk = chunk == 0 ? 1 : chunk < count || count == 0 ? chunk : count;
		lomp_ready(s);
	}
}

static bool start_loop(int schedule, long start, long end, long incr, long chunk, long *istart, long *iend)
{
	uint64_t count = iterations(incr > 0, (uint64_t)start, (uint64_t)end, (uint64_t)incr, true);
	begin(schedule, (uint64_t)start, (uint64_t)incr, count, (uint64_t)chunk);
	return part(lomp_self.at, schedule, (uint64_t *)istart, (uint64_t *)iend);
}

static bool start_ull(int schedule, bool up, unsigned long long start, unsigned long long end, unsigned long long incr,
		      unsigned long long chunk, unsigned long long *istart, unsigned long long *iend)
{
	begin(schedule, start, incr, iterations(up, start, end, incr, false), chunk);
	return part(lomp_self.at, schedule, (uint64_t *)istart, (uint64_t *)iend);
}

void LOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags);
void LOMP_barrier(void);

// The functions of one schedule: loops of long and of unsigned long long, and
// those that begin a region as well. In the latter every logical thread calls
// the next function only, so the loop's bounds go through the region's data.
typedef struct loop_region {
	void (*fn)(void *);
	void *data;
	long start, end, incr, chunk;
	int schedule;
} loop_region;

static void enter_loop_region(void *arg)
{
	loop_region *r = arg;
	uint64_t count = iterations(r->incr > 0, (uint64_t)r->start, (uint64_t)r->end, (uint64_t)r->incr, true);
	begin(r->schedule, (uint64_t)r->start, (uint64_t)r->incr, count, (uint64_t)r->chunk);
	r->fn(r->data);
}

static void parallel_loop(void (*fn)(void *), void *data, unsigned num_threads, long start, long end, long incr,
			  long chunk, unsigned flags, int schedule)
{
	loop_region r = {fn, data, start, end, incr, chunk, schedule};
	LOMP_parallel(enter_loop_region, &r, num_threads, flags);
}

#define LOOP(name, schedule, part_)                                                                                         \
	bool LOMP_loop_##name##_start(long start, long end, long incr, long chunk, long *istart, long *iend)           \
	{                                                                                                              \
		return start_loop(schedule, start, end, incr, chunk, istart, iend);                                    \
	}                                                                                                              \
	bool LOMP_loop_##name##_next(long *istart, long *iend)                                                         \
	{                                                                                                              \
		return part_(lomp_self.at, schedule, (uint64_t *)istart, (uint64_t *)iend);                            \
	}                                                                                                              \
	bool LOMP_loop_ull_##name##_start(bool up, unsigned long long start, unsigned long long end,                   \
					  unsigned long long incr, unsigned long long chunk,                           \
					  unsigned long long *istart, unsigned long long *iend)                        \
	{                                                                                                              \
		return start_ull(schedule, up, start, end, incr, chunk, istart, iend);                                 \
	}                                                                                                              \
	bool LOMP_loop_ull_##name##_next(unsigned long long *istart, unsigned long long *iend)                         \
	{                                                                                                              \
		return part_(lomp_self.at, schedule, (uint64_t *)istart, (uint64_t *)iend);                            \
	}                                                                                                              \
	void LOMP_parallel_loop_##name(void (*fn)(void *), void *data, unsigned num_threads, long start, long end,     \
				       long incr, long chunk, unsigned flags)                                          \
	{                                                                                                              \
		parallel_loop(fn, data, num_threads, start, end, incr, chunk, flags, schedule);                        \
	}

LOOP(static, STATIC, part)
LOOP(dynamic, DYNAMIC, part)
LOOP(guided, GUIDED, part)
LOOP(nonmonotonic_dynamic, DYNAMIC, part)
LOOP(nonmonotonic_guided, GUIDED, part)
LOOP(ordered_static, STATIC, ordered_part)
LOOP(ordered_dynamic, DYNAMIC, ordered_part)
LOOP(ordered_guided, GUIDED, ordered_part)

// A schedule that is chosen at run time is dynamic by single iterations.
#define RUNTIME_LOOP(name, part_)                                                                                           \
	bool LOMP_loop_##name##_start(long start, long end, long incr, long *istart, long *iend)                       \
	{                                                                                                              \
		return start_loop(DYNAMIC, start, end, incr, 1, istart, iend);                                         \
	}                                                                                                              \
	bool LOMP_loop_##name##_next(long *istart, long *iend)                                                         \
	{                                                                                                              \
		return part_(lomp_self.at, DYNAMIC, (uint64_t *)istart, (uint64_t *)iend);                             \
	}                                                                                                              \
	bool LOMP_loop_ull_##name##_start(bool up, unsigned long long start, unsigned long long end,                   \
					  unsigned long long incr, unsigned long long *istart,                         \
					  unsigned long long *iend)                                                    \
	{                                                                                                              \
		return start_ull(DYNAMIC, up, start, end, incr, 1, istart, iend);                                      \
	}                                                                                                              \
	bool LOMP_loop_ull_##name##_next(unsigned long long *istart, unsigned long long *iend)                         \
	{                                                                                                              \
		return part_(lomp_self.at, DYNAMIC, (uint64_t *)istart, (uint64_t *)iend);                             \
	}                                                                                                              \
	void LOMP_parallel_loop_##name(void (*fn)(void *), void *data, unsigned num_threads, long start, long end,     \
				       long incr, unsigned flags)                                                      \
	{                                                                                                              \
		parallel_loop(fn, data, num_threads, start, end, incr, 1, flags, DYNAMIC);                             \
	}

RUNTIME_LOOP(runtime, part)
RUNTIME_LOOP(nonmonotonic_runtime, part)
RUNTIME_LOOP(maybe_nonmonotonic_runtime, part)
RUNTIME_LOOP(ordered_runtime, ordered_part)

void LOMP_loop_end(void) { LOMP_barrier(); }
void LOMP_loop_end_nowait(void) {}

// Sections are the iterations 1 to count; 0 is the end.
unsigned LOMP_sections_next(void)
{
	uint64_t from, to;
	lomp_check_cancelled(lomp_self.team);
	return take(lomp_self.at, DYNAMIC, &from, &to) ? (unsigned)from + 1 : 0;
}

unsigned LOMP_sections_start(unsigned count)
{
	begin(DYNAMIC, 1, 1, count, 1);
	return LOMP_sections_next();
}

void LOMP_sections_end(void) { LOMP_barrier(); }
void LOMP_sections_end_nowait(void) {}

typedef struct section_region {
	void (*fn)(void *);
	void *data;
	unsigned count;
} section_region;

static void enter_section_region(void *arg)
{
	section_region *r = arg;
	begin(DYNAMIC, 1, 1, r->count, 1);
	r->fn(r->data);
}

void LOMP_parallel_sections(void (*fn)(void *), void *data, unsigned num_threads, unsigned count, unsigned flags)
{
	section_region r = {fn, data, count};
	LOMP_parallel(enter_section_region, &r, num_threads, flags);
}

bool LOMP_single_start(void)
{
	bool first;
	share *s = lomp_enter(&first);
	if (first)
		lomp_ready(s);
	return first;
}

// A single with copyprivate: the first gets NULL and calls the end with its data,
// the others get these.
void *LOMP_single_copy_start(void)
{
	bool first;
	share *s = lomp_enter(&first);
	if (first) {
		lomp_ready(s);
		return NULL;
	}
	LOMP_barrier(); // with the one in the end function
	return atomic_load_explicit(&s->copy, memory_order_relaxed);
}

void LOMP_single_copy_end(void *data)
{
	atomic_store_explicit(&lomp_self.at->copy, data, memory_order_relaxed);
	LOMP_barrier();
}

void LOMP_ordered_start(void) { turn(); }
void LOMP_ordered_end(void) {}

// A lock of one word: 0 free, 1 held, 2 held and waited for.
static void lock(atomic_uint *word)
{
	unsigned was = 0;
	if (atomic_compare_exchange_strong(word, &was, 1))
		return;
	while (atomic_exchange(word, 2) != 0)
		lomp_futex_wait(word, 2);
}

static void unlock(atomic_uint *word)
{
	if (atomic_exchange(word, 0) == 2)
		lomp_wake(word);
}

static atomic_uint critical, atomics;

void LOMP_critical_start(void) { lock(&critical); }
void LOMP_critical_end(void) { unlock(&critical); }
// A named section's lock lies in the pointer that the program has for it.
void LOMP_critical_name_start(void **p) { lock((atomic_uint *)p); }
void LOMP_critical_name_end(void **p) { unlock((atomic_uint *)p); }
void LOMP_atomic_start(void) { lock(&atomics); }
void LOMP_atomic_end(void) { unlock(&atomics); }

// Tasks run at once, on the thread that makes them.
void LOMP_task(void (*fn)(void *), void *data, void (*copy)(void *, void *), long size, long align, bool if_clause,
	       unsigned flags, void **depend, int priority, void *detach)
{
	(void)if_clause, (void)flags, (void)depend, (void)priority, (void)detach;
	if (!copy) {
		fn(data);
		return;
	}
	char buffer[1024], *room = buffer, *heap = NULL;
	if (size + align > (long)sizeof buffer && !(room = heap = malloc((size_t)(size + align))))
		abort();
	char *arg = (char *)(((uintptr_t)room + (uintptr_t)align - 1) & ~((uintptr_t)align - 1));
	copy(arg, data);
	fn(arg);
	free(heap);
}

void LOMP_taskwait(void) {}
void LOMP_taskyield(void) {}
void LOMP_taskgroup_start(void) {}
void LOMP_taskgroup_end(void) {}
