//go:build cuda && linux && cgo

#include "calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// Types and reductions of NCCL.
enum { INT8 = 0, FLOAT32 = 7, FLOAT64 = 8, SUM = 0 };
// What a call returns whose context cannot be made current: NCCL's error of CUDA.
enum { UNHANDLED_CUDA_ERROR = 1 };

#define FUNCTIONS(F)                                                                            \
	F(ncclGetVersion) F(ncclGetUniqueId) F(ncclCommInitRankConfig) F(ncclCommGetAsyncError) \
	F(ncclCommAbort) F(ncclCommDestroy) F(ncclGroupStart) F(ncclGroupEnd) F(ncclSend)       \
	F(ncclRecv) F(ncclAllGather) F(ncclBroadcast) F(ncclAllReduce) F(ncclGetErrorString)

static char *why(const char *what)
{
	char *text = NULL;
	return asprintf(&text, "%s", what ? what : "it cannot be opened") < 0 ? NULL : text;
}

char *lori_nccl_open(const char *path, lori_nccl *l)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), *p;
	if (!library)
		return why(dlerror());
#define FIND(name)                               \
	p = dlsym(library, #name);               \
	if (!p)                                  \
		return why(dlerror());           \
	memcpy(&l->name, &p, sizeof p);
	FUNCTIONS(FIND)
	return NULL;
}

int lori_nccl_version(const lori_nccl *l)
{
	int v = 0;
	return l->ncclGetVersion(&v) ? 0 : v;
}

const char *lori_nccl_text(const lori_nccl *l, int r) { return l->ncclGetErrorString(r); }

int lori_nccl_unique(const lori_nccl *l, lori_nccl_id *id) { return l->ncclGetUniqueId(id); }

// enter makes the context current in this thread.
static int enter(lori_gpu g)
{
	int (*set)(void *) = (int (*)(void *))(uintptr_t)g.set_current;
	return set((void *)(uintptr_t)g.context) ? UNHANDLED_CUDA_ERROR : 0;
}

// config is NCCL's ncclConfig_t of 2.14, which later versions take as well.
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking;
} config;

int lori_nccl_init(const lori_nccl *l, lori_gpu g, lori_comm *c, int size, const lori_nccl_id *id, int rank)
{
	config own = {sizeof own, 0xcafebeef, 21400, 0};
	int r = enter(g);
	return r ? r : l->ncclCommInitRankConfig(c, size, *id, rank, &own);
}

int lori_nccl_state(const lori_nccl *l, lori_comm c, int *state) { return l->ncclCommGetAsyncError(c, state); }

int lori_nccl_end(const lori_nccl *l, lori_gpu g, lori_comm c, int abort)
{
	int r = enter(g);
	return r ? r : abort ? l->ncclCommAbort(c) : l->ncclCommDestroy(c);
}

static int one(const lori_nccl *l, lori_comm c, void *s, const lori_nccl_op *o)
{
	void *in = (void *)(uintptr_t)o->in, *out = (void *)(uintptr_t)o->out;
	switch (o->kind) {
	case LORI_SEND:
		return l->ncclSend(in, o->bytes, INT8, o->peer, c, s);
	case LORI_RECV:
		return l->ncclRecv(out, o->bytes, INT8, o->peer, c, s);
	case LORI_GATHER:
		return l->ncclAllGather(in, out, o->bytes, INT8, c, s);
	case LORI_BROADCAST:
		return l->ncclBroadcast(in, out, o->bytes, INT8, o->peer, c, s);
	case LORI_SUM32:
		return l->ncclAllReduce(in, out, o->bytes / 4, FLOAT32, SUM, c, s);
	}
	return l->ncclAllReduce(in, out, o->bytes / 8, FLOAT64, SUM, c, s);
}

// failed reports whether a call has failed: one that goes on has not.
static int failed(int r) { return r && r != LORI_NCCL_IN_PROGRESS; }

int lori_nccl_issue(const lori_nccl *l, lori_gpu g, lori_comm c, uint64_t stream, const lori_nccl_op *ops, int n)
{
	int r = enter(g), end;
	if (r)
		return r;
	if (n == 1)
		return one(l, c, (void *)(uintptr_t)stream, ops);
	r = l->ncclGroupStart();
	for (int i = 0; i < n && !failed(r); i++)
		r = one(l, c, (void *)(uintptr_t)stream, &ops[i]);
	end = l->ncclGroupEnd(); // also of one that has failed
	return failed(r) ? r : end;
}
