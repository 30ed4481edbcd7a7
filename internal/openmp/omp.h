// The inside of the runtime. A team runs one parallel region.
#ifndef LOMP_H
#define LOMP_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// A share is one work-sharing construct (a loop, sections, single) as a team
// meets it. The logical threads pass the shares in the same order, each at its
// own pace; the last to leave one frees it.
typedef struct share {
	_Atomic(struct share *) next;
	atomic_int state; // 0 new, 1 being set up, 2 ready
	atomic_int left;  // logical threads that have gone on
	atomic_ullong taken;  // iterations handed out
	uint64_t count;       // iterations in all
	uint64_t chunk;
	atomic_ullong ordered; // the iteration whose ordered part is next
	_Atomic(void *) copy;  // of single with copyprivate
} share;

typedef struct team {
	void (*fn)(void *);
	void *data;
	int size;
	atomic_int next_id;   // the first logical thread that has not begun
	atomic_int coming;    // workers that are called but have not begun one
	atomic_uint helpers;  // workers that have not let go of the team
	atomic_int arrived;   // at the barrier
	atomic_uint barriers; // passed
	atomic_int sleepers;  // at the barrier
	atomic_bool cancelled;
	atomic_flag failed; // text is being written, or is
	char text[512];
	share first;
} team;

// self is the logical thread that runs on an OS thread.
typedef struct self {
	team *team;
	int id;
	int level;    // regions around, serial ones included
	share *at;    // the share that it is in, or was in last; NULL before the first
	// Of a loop: how iterations become the program's numbers.
	uint64_t base, step;
	// Of a static loop: the next iteration and the distance to the one after.
	uint64_t next, stride, chunk;
	uint64_t count;
	uint64_t from, to; // the part of a loop that is being run
	jmp_buf *out;     // leaves the region
} self;

extern _Thread_local self lomp_self;

// lomp_wait waits until *word is no longer value, spinning before it sleeps. The
// logical threads of the team that have not begun are given threads first. Who
// changes the word wakes those that are among the team's sleepers.
void lomp_wait(team *t, atomic_uint *word, unsigned value);
void lomp_wake(atomic_uint *word);
void lomp_futex_wait(atomic_uint *word, unsigned value);
// lomp_ensure_started gives every logical thread of a team an OS thread.
void lomp_ensure_started(team *t);
void lomp_pause(void);
// lomp_check_cancelled leaves the region if it was cancelled.
void lomp_check_cancelled(team *t);

// lomp_enter returns the next share of the calling logical thread's team, and
// whether it is the first to be there; then it must set it up and call
// lomp_ready.
share *lomp_enter(bool *first);
void lomp_ready(share *s);
// lomp_solo returns the team of a thread outside of any region: itself.
team *lomp_team(void);

// The limit on threads that run at once.
int lomp_limit(void);
void lomp_set_limit(int n);

// lomp_run_go runs work of Go in a region of its own: on so many threads at most,
// each of which calls lompGoWork with it.
void lomp_run_go(int threads, uintptr_t work);
extern void lompGoWork(uintptr_t work);

// lomp_run_begin and lomp_run_end tell of a run of a model. When there are as many
// as threads may run, regions call no helpers and these do not spin.
void lomp_run_begin(void);
void lomp_run_end(void);

// For the host: a check that fails inside a region cannot throw through it.
// lomp_in_region says whether the thread is in one, lomp_cancel ends it, and
// lomp_error returns the text on the thread that began it, once, or NULL.
bool lomp_in_region(void);
void lomp_cancel(const char *text) __attribute__((noreturn));
const char *lomp_error(void);
bool lomp_failed(void);

#endif
