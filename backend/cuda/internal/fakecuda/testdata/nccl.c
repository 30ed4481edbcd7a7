// NCCL, of ranks that are devices of this process: what a rank enqueues are moves of
// memory to and from others, each of which is done when the items of both lead their
// streams. So a rank that does not come, or comes with another operation, is waited for,
// until its communicator is aborted.
#include "fake.h"

enum { NCCL_OK, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5, NCCL_IN_PROGRESS = 7, ID_BYTES = 128 };
enum { INT8 = 0, F32 = 7, F64 = 8 };

typedef struct {
	char internal[ID_BYTES];
} ncclUniqueId;

// world is what the communicators of an id share.
typedef struct world {
	ncclUniqueId id;
	int size, came;
	struct world *next;
} world;

typedef struct comm {
	object o;
	context *ctx;
	world *w;
	int rank, error;
	bool aborted;
} comm;

typedef struct move {
	bool send, done;
	int peer;
	char *at;
	size_t bytes;
} move;

// op is what an item owns: moves, and for a sum where they go first.
typedef struct op {
	comm *c;
	int n, type;
	char *all, *out; // of a sum
	size_t count;
	move moves[];
} op;

static world *worlds;
static _Thread_local int depth;
static _Thread_local item *group; // of the calls since ncclGroupStart

static size_t size_of(int type) { return type == F32 ? 4 : type == F64 ? 8 : 1; }

static CUresult run(item *i);

typedef struct pair {
	item *i;
	move *m;
} pair;

// meet does a move with that of an item of the peer's, if there is one.
static bool meet(item *i, void *of)
{
	pair *p = of;
	op *mine = p->i->own, *other = i->own;
	if (i->run != run || other->c->aborted || other->c->w != mine->c->w || other->c->rank != p->m->peer)
		return false;
	for (move *m = other->moves; m < other->moves + other->n; m++) {
		if (m->done || m->send == p->m->send || m->peer != mine->c->rank)
			continue;
		move *from = m->send ? m : p->m, *to = m->send ? p->m : m;
		if (from->bytes != to->bytes)
			mine->c->error = other->c->error = NCCL_INVALID_USAGE;
		else
			memmove(to->at, from->at, from->bytes);
		m->done = p->m->done = true;
		return true;
	}
	return false;
}

static bool ready(item *i)
{
	op *o = i->own;
	bool all = true, any = false;
	for (move *m = o->moves; m < o->moves + o->n; m++) {
		if (m->done)
			continue;
		pair p = {i, m};
		if (!o->c->aborted && fake_leading(meet, &p))
			any = true;
		else
			all = false;
	}
	if (any)
		fake_changed(); // for the peers
	return all || o->c->aborted;
}

static CUresult run(item *i)
{
	op *o = i->own;
	if (!o->all)
		return 0;
	for (size_t k = 0; k < o->count && !o->c->aborted; k++) {
		double sum = 0;
		float narrow = 0;
		for (int r = 0; r < o->c->w->size; r++) {
			char *x = o->all + (r * o->count + k) * size_of(o->type);
			if (o->type == F64)
				sum += *(double *)x;
			else
				narrow += *(float *)x;
		}
		if (o->type == F64)
			((double *)o->out)[k] = sum;
		else
			((float *)o->out)[k] = narrow;
	}
	free(o->all);
	return 0;
}

// add adds a move to the calls of a group, or to one of its own.
static op *add(comm *c, stream *s, int more)
{
	if (!group) {
		group = fake_item(s, "nccl", run);
		group->ready = ready;
		group->own_size = sizeof(op);
		op *o = group->own = calloc(1, sizeof(op));
		o->c = c;
	}
	size_t size = group->own_size + more * sizeof(move);
	group->own = realloc(group->own, size);
	group->own_size = size;
	return group->own;
}

static void push(op *o, bool send, int peer, const void *at, size_t bytes)
{
	o->moves[o->n++] = (move){.send = send, .peer = peer, .at = (char *)at, .bytes = bytes};
}

static int submit(int r)
{
	if (group && !depth) {
		item *i = group;
		group = NULL;
		fake_enqueue(i);
	}
	return fake_leave(r);
}

// BEGIN begins a call of a communicator in a stream of its context.
#define BEGIN(c, s)                                                                            \
	do {                                                                                   \
		int r_ = fake_enter(__func__, false, "%s", "");                                \
		if (r_)                                                                        \
			return r_;                                                             \
		if (!fake_is(c, COMMUNICATOR) || !fake_is(s, STREAM) || fake_current() != (c)->ctx || \
		    (s)->ctx != (c)->ctx || (c)->w->came < (c)->w->size)                         \
			return fake_leave(NCCL_INVALID_ARGUMENT);                              \
	} while (0)

int ncclGetVersion(int *v)
{
	*v = 23002;
	return 0;
}

const char *ncclGetErrorString(int r) { return r == NCCL_INVALID_USAGE ? "invalid usage" : r ? "an error made for a test" : "no error"; }

int ncclGetUniqueId(ncclUniqueId *id)
{
	int r = fake_enter(__func__, false, "%s", "");
	if (r)
		return r;
	static int made;
	memset(id, 0, sizeof *id);
	snprintf(id->internal, sizeof id->internal, "fake %d", ++made);
	return fake_leave(0);
}

int ncclCommInitRankConfig(comm **out, int size, ncclUniqueId id, int rank, const void *config)
{
	int r = fake_enter(__func__, false, "size=%d rank=%d", size, rank);
	if (r)
		return r;
	if (!fake_current() || !config || rank < 0 || rank >= size || memcmp(id.internal, "fake ", 5))
		return fake_leave(NCCL_INVALID_ARGUMENT);
	world *w = worlds;
	while (w && memcmp(&w->id, &id, sizeof id))
		w = w->next;
	if (!w) {
		w = calloc(1, sizeof *w);
		w->id = id;
		w->size = size;
		w->next = worlds;
		worlds = w;
	}
	comm *c = fake_new(COMMUNICATOR, sizeof *c);
	c->ctx = fake_current();
	c->w = w;
	c->rank = rank;
	w->came++;
	*out = c;
	return fake_leave(NCCL_IN_PROGRESS);
}

int ncclCommGetAsyncError(comm *c, int *error)
{
	int r = fake_enter(__func__, true, "%s", "");
	if (r)
		return r;
	*error = c->error ? c->error : c->w->came < c->w->size ? NCCL_IN_PROGRESS : 0;
	return fake_leave(0);
}

int ncclCommAbort(comm *c)
{
	int r = fake_enter(__func__, false, "%s", "");
	if (r)
		return r;
	c->aborted = true;
	fake_end(c);
	fake_changed();
	return fake_leave(0);
}

int ncclCommDestroy(comm *c)
{
	int r = fake_enter(__func__, false, "%s", "");
	if (r)
		return r;
	fake_end(c);
	return fake_leave(0);
}

int ncclGroupStart(void)
{
	depth++;
	return 0;
}

int ncclGroupEnd(void)
{
	depth--;
	int r = fake_enter(__func__, false, "%s", "");
	if (r && group) {
		fake_free(group);
		group = NULL;
	}
	return r ? r : submit(0);
}

int ncclSend(const void *buf, size_t n, int type, int peer, comm *c, stream *s)
{
	BEGIN(c, s);
	push(add(c, s, 1), true, peer, buf, n * size_of(type));
	return submit(0);
}

int ncclRecv(void *buf, size_t n, int type, int peer, comm *c, stream *s)
{
	BEGIN(c, s);
	push(add(c, s, 1), false, peer, buf, n * size_of(type));
	return submit(0);
}

int ncclAllGather(const void *in, void *out, size_t n, int type, comm *c, stream *s)
{
	BEGIN(c, s);
	size_t bytes = n * size_of(type);
	op *o = add(c, s, 2 * c->w->size);
	for (int r = 0; r < c->w->size; r++) {
		push(o, true, r, in, bytes);
		push(o, false, r, (char *)out + r * bytes, bytes);
	}
	return submit(0);
}

int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, comm *c, stream *s)
{
	BEGIN(c, s);
	op *o = add(c, s, c->w->size + 1);
	for (int r = 0; r < c->w->size && c->rank == root; r++)
		push(o, true, r, in, n * size_of(type));
	push(o, false, root, out, n * size_of(type));
	return submit(0);
}

// Sums are in the order of the ranks, which is no tree.
int ncclAllReduce(const void *in, void *out, size_t n, int type, int how, comm *c, stream *s)
{
	BEGIN(c, s);
	if (how || (type != F32 && type != F64) || depth)
		return fake_leave(NCCL_INVALID_ARGUMENT);
	size_t bytes = n * size_of(type);
	op *o = add(c, s, 2 * c->w->size);
	o->all = malloc(bytes * c->w->size);
	o->out = out;
	o->count = n;
	o->type = type;
	for (int r = 0; r < c->w->size; r++) {
		push(o, true, r, in, bytes);
		push(o, false, r, o->all + r * bytes, bytes);
	}
	return submit(0);
}
