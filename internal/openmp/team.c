// Teams and the pool of threads that run them.

#define _GNU_SOURCE
#include "omp.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	// How long a waiting thread spins before it sleeps. Threads of a run are woken
	// hundreds of times a second otherwise, which takes longer than many a region,
	// and in a virtual machine much longer.
	SPIN_NS = 200 * 1000,
	LOOKS = 64,         // pauses between looks at the clock
	PATIENCE = 16,      // of those before threads are had for others to wait for
	LEAST_STACK = 4 << 20,
	OWN_HELPERS = 64, // that a region can call back
};

_Thread_local self lomp_self;

// What a worker does. A call is CALLED and a number of its own in the upper bits,
// so that taking it back never takes back another.
enum { IDLE, ASLEEP, RUNNING, CALLED, KINDS };

typedef struct worker {
	struct worker *next; // in the list of idle ones
	atomic_uint state;
	team *team; // when it is called
} worker;

static struct pool {
	pthread_mutex_t lock; // guards idle
	worker *idle;
	atomic_int limit; // 0: the processors of the process
	atomic_int busy;  // threads that run in regions now
	atomic_int runs;  // of models, in progress
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lomp_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// A spin is a wait so far.
typedef struct spin {
	int pauses;
	int64_t until;
} spin;

static int64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// go_on pauses, and returns false when it is time to sleep.
static bool go_on(spin *s)
{
	lomp_pause();
	if (++s->pauses % LOOKS != 0)
		return true;
	int64_t now = clock_ns();
	if (s->until == 0)
		s->until = now + SPIN_NS;
	return now < s->until;
}

void lomp_futex_wait(atomic_uint *word, unsigned value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void lomp_wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

void lomp_wait(team *t, atomic_uint *word, unsigned value)
{
	for (spin s = {0}; atomic_load_explicit(word, memory_order_acquire) == value;) {
		bool more = go_on(&s);
		if (s.pauses == PATIENCE * LOOKS || !more)
			lomp_ensure_started(t);
		if (!more)
			break;
	}
	if (atomic_load_explicit(word, memory_order_acquire) != value)
		return;
	// Who changes the word looks at the sleepers after it.
	atomic_fetch_add(&t->sleepers, 1);
	while (atomic_load(word) == value)
		lomp_futex_wait(word, value);
	atomic_fetch_sub(&t->sleepers, 1);
}

// pass lets those through that wait at a team's barrier.
static void pass(team *t)
{
	atomic_fetch_add(&t->barriers, 1);
	if (atomic_load(&t->sleepers) > 0)
		lomp_wake(&t->barriers);
}

static int processors(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return CPU_COUNT(&set);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (int)n : 1;
}

int lomp_limit(void)
{
	int n = atomic_load_explicit(&pool.limit, memory_order_relaxed);
	if (n > 0)
		return n;
	static atomic_int procs;
	n = atomic_load_explicit(&procs, memory_order_relaxed);
	if (n == 0)
		atomic_store_explicit(&procs, n = processors(), memory_order_relaxed);
	return n;
}

void lomp_set_limit(int n) { atomic_store(&pool.limit, n < 0 ? 0 : n); }

// run_ids runs logical threads of a team until all have begun.
static void run_ids(team *t)
{
	self outer = lomp_self;
	jmp_buf out;
	for (;;) {
		int id = atomic_fetch_add(&t->next_id, 1);
		if (id >= t->size)
			break;
		lomp_self = (self){.team = t, .id = id, .level = outer.level + 1, .out = &out};
		if (_setjmp(out) == 0 && !atomic_load_explicit(&t->cancelled, memory_order_relaxed))
			t->fn(t->data);
	}
	lomp_self = outer;
}

static void push(worker *w)
{
	pthread_mutex_lock(&pool.lock);
	w->next = pool.idle;
	pool.idle = w;
	pthread_mutex_unlock(&pool.lock);
}

// WAITED_FOR is added to a team's count of helpers when its first thread sleeps
// until there are none.
#define WAITED_FOR (1u << 31)

// let_go is the last that a helper does with a team, which may be gone after it.
static void let_go(team *t)
{
	if (atomic_fetch_sub_explicit(&t->helpers, 1, memory_order_release) == WAITED_FOR + 1)
		lomp_wake(&t->helpers);
}

// crowded reports that there are enough runs in progress to employ all threads
// that may run: then helping one would only slow another down.
static bool crowded(void)
{
	return atomic_load_explicit(&pool.runs, memory_order_relaxed) >= lomp_limit();
}

void lomp_run_begin(void) { atomic_fetch_add_explicit(&pool.runs, 1, memory_order_relaxed); }
void lomp_run_end(void) { atomic_fetch_sub_explicit(&pool.runs, 1, memory_order_relaxed); }

// called waits until the worker is called and takes the call; a call may be
// taken back before.
static void called(worker *w)
{
	for (spin s = {0};;) {
		unsigned state = atomic_load_explicit(&w->state, memory_order_relaxed);
		if (state % KINDS == CALLED) {
			if (atomic_compare_exchange_strong_explicit(&w->state, &state, RUNNING, memory_order_acquire,
								    memory_order_relaxed))
				return;
		} else if (state != ASLEEP && !crowded() && go_on(&s)) {
			continue;
		} else if (state == ASLEEP || atomic_compare_exchange_strong(&w->state, &state, ASLEEP)) {
			lomp_futex_wait(&w->state, ASLEEP);
			s = (spin){0};
		}
	}
}

static void *work(void *arg)
{
	worker *w = arg;
	for (;;) {
		called(w);
		team *t = w->team;
		atomic_fetch_sub(&t->coming, 1);
		run_ids(t);
		atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_relaxed);
		atomic_store_explicit(&w->state, IDLE, memory_order_relaxed);
		push(w);
		let_go(t);
	}
	return NULL;
}

// new_worker starts a thread, with all signals blocked but for its own faults and
// those by which the Go runtime preempts and profiles a thread that runs Go: the
// others are for threads of the Go runtime.
static worker *new_worker(void)
{
	worker *w = calloc(1, sizeof *w);
	pthread_attr_t attr;
	pthread_t id;
	sigset_t all, old;
	size_t stack;
	if (!w)
		return NULL;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	sigdelset(&all, SIGURG);
	sigdelset(&all, SIGPROF);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_attr_getstacksize(&attr, &stack) == 0 && stack < LEAST_STACK)
		pthread_attr_setstacksize(&attr, LEAST_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&id, &attr, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err != 0) {
		free(w);
		return NULL;
	}
	return w;
}

// A helper is a worker and the call by which it serves a team.
typedef struct helper {
	worker *worker;
	unsigned call;
} helper;

// help gives a team one more thread; false if there is none to be had.
static bool help(team *t, helper *h)
{
	static atomic_uint calls;
	pthread_mutex_lock(&pool.lock);
	worker *w = pool.idle;
	if (w)
		pool.idle = w->next;
	pthread_mutex_unlock(&pool.lock);
	if (!w)
		w = new_worker();
	if (!w)
		return false;
	atomic_fetch_add_explicit(&t->helpers, 1, memory_order_relaxed);
	atomic_fetch_add(&t->coming, 1);
	atomic_fetch_add_explicit(&pool.busy, 1, memory_order_relaxed);
	w->team = t;
	*h = (helper){w, atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) * KINDS + CALLED};
	if (atomic_exchange_explicit(&w->state, h->call, memory_order_release) == ASLEEP)
		lomp_wake(&w->state);
	return true;
}

// call_back ends the help of a worker that has not begun: nothing is left to do.
static void call_back(team *t, helper h)
{
	if (!atomic_compare_exchange_strong(&h.worker->state, &h.call, IDLE))
		return;
	atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_relaxed);
	push(h.worker);
	let_go(t);
}

// Helpers that are called but have not begun will take a logical thread each;
// the rest needs more of them.
void lomp_ensure_started(team *t)
{
	int coming = atomic_load(&t->coming);
	for (int n = t->size - atomic_load(&t->next_id) - coming; n > 0; n--) {
		helper h;
		if (!help(t, &h)) {
			fprintf(stderr, "openmp: no thread can be had for a region that waits for %d more\n", n);
			abort();
		}
	}
}

static void free_shares(team *t)
{
	for (share *s = atomic_load(&t->first.next), *next; s; s = next) {
		next = atomic_load(&s->next);
		free(s);
	}
}

static _Thread_local char error_text[sizeof((team *)0)->text];
static _Thread_local bool error_pending;

bool lomp_failed(void) { return error_pending; }

const char *lomp_error(void)
{
	if (!error_pending)
		return NULL;
	error_pending = false;
	return error_text;
}

bool lomp_in_region(void) { return lomp_self.out != NULL; }

void lomp_check_cancelled(team *t)
{
	if (__builtin_expect(atomic_load_explicit(&t->cancelled, memory_order_acquire), 0) && lomp_self.out)
		_longjmp(*lomp_self.out, 1);
}

void lomp_cancel(const char *text)
{
	team *t = lomp_self.team;
	if (!atomic_flag_test_and_set(&t->failed))
		snprintf(t->text, sizeof t->text, "%s", text);
	atomic_store_explicit(&t->cancelled, true, memory_order_release);
	// Those that wait at the barrier leave it.
	pass(t);
	_longjmp(*lomp_self.out, 1);
}

// report passes the failure of a region on: to the region around it, or to the
// thread, which the host asks for it.
static void report(team *t)
{
	if (lomp_self.out)
		lomp_cancel(t->text);
	memcpy(error_text, t->text, sizeof error_text);
	error_pending = true;
}

// wanted is how many threads a region gets: one inside of another, else those
// that it asks for, or as many as there may be.

static _Thread_local int chosen; // by lmp_set_num_threads

static int wanted(unsigned num_threads)
{
	if (lomp_self.level > 0)
		return 1;
	if (num_threads > 0)
		return num_threads > 1024 ? 1024 : (int)num_threads;
	return chosen > 0 ? chosen : lomp_limit();
}

void LOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags)
{
	(void)flags;
	team t = {.fn = fn, .data = data, .size = wanted(num_threads), .failed = ATOMIC_FLAG_INIT};
	helper helpers[OWN_HELPERS];
	int have = 0;
	if (t.size > 1) {
		int others = atomic_fetch_add_explicit(&pool.busy, 1, memory_order_relaxed);
		int runs = atomic_load_explicit(&pool.runs, memory_order_relaxed);
		int spare = lomp_limit() - (runs > others + 1 ? runs : others + 1);
		while (have < t.size - 1 && have < spare && have < OWN_HELPERS && help(&t, &helpers[have]))
			have++;
	}
	run_ids(&t);
	// All logical threads have begun here. What has no helper has ended, too.
	while (have > 0)
		call_back(&t, helpers[--have]);
	spin s = {0};
	while (atomic_load_explicit(&t.helpers, memory_order_acquire) > 0 && go_on(&s))
		;
	unsigned left = atomic_load_explicit(&t.helpers, memory_order_acquire);
	if (left > 0) {
		left = atomic_fetch_add_explicit(&t.helpers, WAITED_FOR, memory_order_acquire) + WAITED_FOR;
		for (; left != WAITED_FOR; left = atomic_load_explicit(&t.helpers, memory_order_acquire))
			lomp_futex_wait(&t.helpers, left);
	}
	if (t.size > 1)
		atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_relaxed);
	free_shares(&t);
	if (__builtin_expect(atomic_load(&t.cancelled), 0))
		report(&t);
}

// go_work is work of Go that a region runs: each logical thread calls it until
// one has returned, because then nothing is left to begin.
typedef struct go_work {
	uintptr_t work;
	atomic_bool done;
} go_work;

static void run_go(void *arg)
{
	go_work *g = arg;
	if (atomic_load_explicit(&g->done, memory_order_relaxed))
		return;
	lompGoWork(g->work);
	atomic_store_explicit(&g->done, true, memory_order_relaxed);
}

void lomp_run_go(int threads, uintptr_t work)
{
	go_work g = {.work = work};
	LOMP_parallel(run_go, &g, (unsigned)threads, 0);
}

void LOMP_barrier(void)
{
	team *t = lomp_self.team;
	if (!t || t->size == 1)
		return;
	unsigned passed = atomic_load_explicit(&t->barriers, memory_order_acquire);
	lomp_check_cancelled(t);
	if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) == t->size - 1) {
		atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
		pass(t);
	} else {
		lomp_wait(t, &t->barriers, passed);
	}
	lomp_check_cancelled(t);
}

int lmp_get_num_threads(void) { return lomp_self.team ? lomp_self.team->size : 1; }
int lmp_get_thread_num(void) { return lomp_self.id; }
int lmp_get_max_threads(void) { return chosen > 0 ? chosen : lomp_limit(); }
int lmp_get_num_procs(void) { return lomp_limit(); }
int lmp_get_thread_limit(void) { return INT32_MAX; }
int lmp_in_parallel(void) { return lomp_self.team && lomp_self.team->size > 1; }
int lmp_get_level(void) { return lomp_self.level; }
int lmp_get_active_level(void) { return lmp_in_parallel(); }
int lmp_get_dynamic(void) { return 0; }
void lmp_set_dynamic(int dynamic) { (void)dynamic; }
int lmp_get_nested(void) { return 0; }
void lmp_set_nested(int nested) { (void)nested; }
int lmp_get_max_active_levels(void) { return 1; }
void lmp_set_max_active_levels(int n) { (void)n; }
void lmp_set_num_threads(int n) { chosen = n > 0 ? n : 0; }

double lmp_get_wtime(void) { return 1e-9 * (double)clock_ns(); }

double lmp_get_wtick(void) { return 1e-9; }
