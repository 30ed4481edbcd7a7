// The parts of NCCL that this package calls, by dlopen: it is compiled without NCCL's headers.
#ifndef LORI_NCCL_H
#define LORI_NCCL_H

#include <stddef.h>
#include <stdint.h>

enum { LORI_NCCL_IN_PROGRESS = 7, LORI_NCCL_ID = 128 };

typedef struct {
	char bytes[LORI_NCCL_ID];
} lori_nccl_id;

typedef void *lori_comm;

typedef struct {
	int (*ncclGetVersion)(int *);
	int (*ncclGetUniqueId)(lori_nccl_id *);
	int (*ncclCommInitRankConfig)(lori_comm *, int, lori_nccl_id, int, const void *);
	int (*ncclCommGetAsyncError)(lori_comm, int *);
	int (*ncclCommAbort)(lori_comm);
	int (*ncclCommDestroy)(lori_comm);
	int (*ncclGroupStart)(void);
	int (*ncclGroupEnd)(void);
	int (*ncclSend)(const void *, size_t, int, int, lori_comm, void *);
	int (*ncclRecv)(void *, size_t, int, int, lori_comm, void *);
	int (*ncclAllGather)(const void *, void *, size_t, int, lori_comm, void *);
	int (*ncclBroadcast)(const void *, void *, size_t, int, int, lori_comm, void *);
	int (*ncclAllReduce)(const void *, void *, size_t, int, int, lori_comm, void *);
	const char *(*ncclGetErrorString)(int);
} lori_nccl;

// What is done; the numbers are those of collective.DeviceOp.
enum { LORI_SEND, LORI_RECV, LORI_GATHER, LORI_BROADCAST, LORI_SUM32, LORI_SUM64 };

typedef struct {
	int kind, peer;
	uint64_t in, out;
	size_t bytes;
} lori_nccl_op;

// A gpu is a context of the driver and its cuCtxSetCurrent.
typedef struct {
	uint64_t set_current, context;
} lori_gpu;

// lori_nccl_open opens the library, or returns why it cannot be used, which the caller frees.
char *lori_nccl_open(const char *path, lori_nccl *l);
int lori_nccl_version(const lori_nccl *l);
const char *lori_nccl_text(const lori_nccl *l, int r);
int lori_nccl_unique(const lori_nccl *l, lori_nccl_id *id);
int lori_nccl_init(const lori_nccl *l, lori_gpu g, lori_comm *c, int size, const lori_nccl_id *id, int rank);
int lori_nccl_state(const lori_nccl *l, lori_comm c, int *state);
int lori_nccl_end(const lori_nccl *l, lori_gpu g, lori_comm c, int abort);
// lori_nccl_issue enqueues ops, all at once, in a stream.
int lori_nccl_issue(const lori_nccl *l, lori_gpu g, lori_comm c, uint64_t stream, const lori_nccl_op *ops, int n);

#endif
