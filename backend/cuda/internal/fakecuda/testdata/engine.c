// The thread that does the work of all streams: in the order in which it was
// enqueued, or, when told to shuffle, in any that streams and events allow.
#include "fake.h"

#include <signal.h>
#include <time.h>

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static item *first, **last = &first;
static bool held, started, busy;
uint64_t fake_skipped;

static void finish(item *i)
{
	if (!i->ctx->lost) {
		CUresult r = i->run(i); // kernels let go of the lock
		if (r)
			i->ctx->lost = r;
	}
	i->s->done++;
	fake_free(i);
	pthread_cond_broadcast(&changed);
}

// reached reports whether a record of an event is done, or was none.
static bool reached(const event *e, uint64_t ticket)
{
	for (int j = 0; j < e->n_pending; j++)
		if (e->pending[j] == ticket)
			return false;
	return true;
}

static CUresult pass(item *i)
{
	(void)i;
	return 0;
}

static bool may_run(item *i)
{
	if (i->ready && !i->ctx->lost)
		return i->ready(i);
	return i->run != pass || reached(i->e, i->ticket) || i->e->ctx->lost;
}

static bool leads(const item *i)
{
	for (item *before = first; before != i; before = before->next)
		if (before->s == i->s)
			return false;
	return true;
}

bool fake_leading(bool (*f)(item *, void *), void *of)
{
	for (item *i = first; i; i = i->next)
		if (leads(i) && f(i, of))
			return true;
	return false;
}

void fake_changed(void) { pthread_cond_broadcast(&changed); }

// next_item takes the item whose turn it is; NULL if none may run.
static item *next_item(void)
{
	static uint64_t random;
	item **chosen = NULL;
	uint64_t n = 0;
	if (fake_config.shuffle && !random)
		random = (uint64_t)fake_config.shuffle;
	for (item **at = &first; *at && (fake_config.shuffle || !chosen); at = &(*at)->next) {
		if (!leads(*at) || !may_run(*at))
			continue;
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (random % ++n == 0)
			chosen = at;
	}
	if (!chosen)
		return NULL;
	item *i = *chosen;
	*chosen = i->next;
	if (last == &i->next)
		last = chosen;
	return i;
}

static void *work(void *unused)
{
	(void)unused;
	sigset_t all; // handlers need more stack than fibers have
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_mutex_lock(&fake_lock);
	for (;;) {
		item *i;
		while (held || !(i = next_item()))
			pthread_cond_wait(&changed, &fake_lock);
		busy = true;
		finish(i);
		busy = false;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

item *fake_bare(context *ctx, const char *what, CUresult (*run)(item *))
{
	item *i = calloc(1, sizeof *i);
	i->run = run;
	i->what = what;
	i->ctx = ctx;
	return i;
}

item *fake_item(stream *s, const char *what, CUresult (*run)(item *))
{
	item *i = fake_bare(s->ctx, what, run);
	i->s = s;
	return i;
}

item *fake_clone(const item *i)
{
	item *c = malloc(sizeof *c);
	*c = *i;
	c->next = NULL;
	if (i->own) {
		c->own = malloc(i->own_size);
		memcpy(c->own, i->own, i->own_size);
	}
	return c;
}

void fake_free(item *i)
{
	free(i->own);
	free(i);
}

graph *fake_capture(stream *s)
{
	if (s->capture && s->capture->ended) // it joined another stream's
		s->capture = NULL;
	return s->capture;
}

CUresult fake_enqueue(item *i)
{
	stream *s = i->s;
	i->next = NULL;
	if (fake_capture(s)) {
		*s->capture->last = i;
		s->capture->last = &i->next;
		s->capture->nodes++;
		return 0;
	}
	if (!started) {
		pthread_t t;
		started = true;
		if (pthread_create(&t, NULL, work, NULL))
			return LORI_ERROR_OUT_OF_MEMORY;
		pthread_detach(t);
	}
	s->issued++;
	*last = i;
	last = &i->next;
	pthread_cond_broadcast(&changed);
	return 0;
}

void fake_wait(stream *s)
{
	uint64_t until = s->issued;
	while (s->done < until)
		pthread_cond_wait(&changed, &fake_lock);
}

// fake_drain waits until all work is done, lets it go on if it was held, and looks
// at freed memory.
void fake_drain(void)
{
	pthread_mutex_lock(&fake_lock);
	held = false;
	pthread_cond_broadcast(&changed);
	while (first || busy)
		pthread_cond_wait(&changed, &fake_lock);
	fake_forget();
	pthread_mutex_unlock(&fake_lock);
}

// fake_hold stops the work, or lets it go on.
void fake_hold(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	held = hold;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&fake_lock);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	ENTER("flags=%u priority=%d", flags, priority);
	stream *s = fake_new(STREAM, sizeof *s);
	s->ctx = fake_current();
	*out = (CUstream)s;
	LEAVE(0);
}

CUresult cuStreamDestroy_v2(CUstream s) { DESTROY(s, STREAM); }

CUresult cuStreamQuery(CUstream h)
{
	stream *s = (stream *)h;
	ENTER_QUIET();
	NEED_OBJECT(s, STREAM);
	if (fake_capture(s))
		LEAVE(LORI_ERROR_CAPTURE_UNSUPPORTED);
	LEAVE(s->done < s->issued ? LORI_ERROR_NOT_READY : 0);
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	ENTER("flags=%u", flags);
	event *e = fake_new(EVENT, sizeof *e);
	e->ctx = fake_current();
	e->timed = !(flags & LORI_EVENT_DISABLE_TIMING);
	*out = (CUevent)e;
	LEAVE(0);
}

CUresult cuEventDestroy_v2(CUevent e) { DESTROY(e, EVENT); }

static CUresult reach(item *i)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	event *e = i->e;
	for (int j = 0; j < e->n_pending; j++)
		if (e->pending[j] == i->ticket)
			e->pending[j] = e->pending[--e->n_pending];
	e->nanoseconds = t.tv_sec * 1000000000ull + t.tv_nsec + fake_skipped;
	return 0;
}

CUresult cuEventRecord(CUevent h, CUstream hs)
{
	event *e = (event *)h;
	stream *s = (stream *)hs;
	ENTER("%s", "");
	NEED_OBJECT(e, EVENT);
	NEED_OBJECT(s, STREAM);
	if (e->ctx != s->ctx)
		LEAVE(LORI_ERROR_INVALID_HANDLE);
	e->capture = fake_capture(s);
	if (s->capture)
		LEAVE(0);
	item *i = fake_item(s, "record", reach);
	i->e = e;
	i->ticket = ++e->issued;
	e->pending = realloc(e->pending, (e->n_pending + 1) * sizeof *e->pending);
	e->pending[e->n_pending++] = i->ticket;
	LEAVE(fake_enqueue(i));
}

CUresult cuEventQuery(CUevent h)
{
	event *e = (event *)h;
	ENTER_QUIET();
	NEED_OBJECT(e, EVENT);
	if (e->capture)
		LEAVE(LORI_ERROR_CAPTURE_UNSUPPORTED);
	LEAVE(reached(e, e->issued) ? 0 : LORI_ERROR_NOT_READY);
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	event *a = (event *)from, *b = (event *)to;
	ENTER("%s", "");
	NEED_OBJECT(a, EVENT);
	NEED_OBJECT(b, EVENT);
	NEED(a->timed && b->timed && a->issued && b->issued);
	if (!reached(a, a->issued) || !reached(b, b->issued))
		LEAVE(LORI_ERROR_NOT_READY);
	*ms = (float)(((double)b->nanoseconds - (double)a->nanoseconds) / 1e6);
	LEAVE(0);
}

// A wait for an event of a capture spreads that.
CUresult cuStreamWaitEvent(CUstream hs, CUevent he, unsigned int flags)
{
	stream *s = (stream *)hs;
	event *e = (event *)he;
	ENTER("flags=%u", flags);
	NEED_OBJECT(s, STREAM);
	NEED_OBJECT(e, EVENT);
	if (e->capture && !fake_capture(s))
		s->capture = e->capture;
	if (fake_capture(s))
		LEAVE(0);
	item *i = fake_item(s, "wait", pass);
	i->e = e;
	i->ticket = e->issued;
	LEAVE(fake_enqueue(i));
}
