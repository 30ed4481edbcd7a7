// Memory of the devices and the host, and copies.
#include "fake.h"

typedef struct pool {
	object o;
	context *ctx;
	uint64_t used, high, reserved, threshold;
} pool;

// The live allocations of all devices.
typedef struct block {
	uint64_t at, n;
	void *memory;
	pool *pool; // NULL for a module's variable
	struct block *next;
} block;

static block *blocks;

typedef struct pinned {
	char *at;
	size_t n;
	struct pinned *next;
} pinned;

static pinned *pins;

bool fake_device_range(uint64_t p, uint64_t n)
{
	for (block *b = blocks; b; b = b->next)
		if (p >= b->at && p - b->at <= b->n && n <= b->n - (p - b->at))
			return true;
	return n == 0;
}

// Around each block there are bytes that nobody may change.
enum { GUARD_BYTES = 256, GUARD_VALUE = 0xa5 };

static uint64_t add_block(pool *p, size_t n)
{
	block *b = calloc(1, sizeof *b);
	size_t all = (n + 255) / 256 * 256 + 2 * GUARD_BYTES;
	b->memory = aligned_alloc(256, all);
	memset(b->memory, GUARD_VALUE, all);
	b->at = (uint64_t)b->memory + GUARD_BYTES;
	memset((void *)b->at, 0xcd, n);
	b->n = n;
	b->pool = p;
	b->next = blocks;
	blocks = b;
	return b->at;
}

// intact reports whether nobody wrote around a block.
static bool intact(const block *b)
{
	const unsigned char *before = b->memory, *after = (unsigned char *)b->at + b->n;
	for (int i = 0; i < GUARD_BYTES; i++)
		if (before[i] != GUARD_VALUE || after[i] != GUARD_VALUE)
			return false;
	return true;
}

uint64_t fake_device_alloc(size_t n)
{
	return add_block(NULL, n);
}

static pool *pools[64];
static int n_pools;

// taken returns what pools took from a device.
static uint64_t taken(const context *ctx)
{
	uint64_t sum = 0;
	for (int i = 0; i < n_pools; i++)
		if (pools[i]->ctx == ctx)
			sum += pools[i]->reserved;
	return sum;
}

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
	ENTER("%s", "");
	*total = fake_config.memory;
	*unused = *total - taken(fake_current());
	LEAVE(0);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	ENTER("device=%d", props->location.id);
	NEED(props->allocType == LORI_ALLOCATION_PINNED && props->location.type == LORI_LOCATION_DEVICE);
	NEED(props->location.id == fake_current()->device && n_pools < 64);
	pool *p = fake_new(POOL, sizeof *p);
	p->ctx = fake_current();
	pools[n_pools++] = p;
	*out = (CUmemoryPool)p;
	LEAVE(0);
}

CUresult cuMemPoolDestroy(CUmemoryPool h)
{
	pool *p = (pool *)h;
	ENTER_ANY("%s", "");
	NEED_OBJECT(p, POOL);
	p->reserved = p->used;
	fake_end(p);
	LEAVE(fake_current()->lost);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool h, CUmemPool_attribute a, void *v)
{
	pool *p = (pool *)h;
	ENTER("%u=%llu", a, *(unsigned long long *)v);
	NEED_OBJECT(p, POOL);
	NEED(a == LORI_POOL_RELEASE_THRESHOLD);
	p->threshold = *(uint64_t *)v;
	LEAVE(0);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool h, CUmemPool_attribute a, void *v)
{
	pool *p = (pool *)h;
	ENTER("%u", a);
	NEED_OBJECT(p, POOL);
	switch (a) {
	case LORI_POOL_USED:
		*(uint64_t *)v = p->used;
		break;
	case LORI_POOL_USED_HIGH:
		*(uint64_t *)v = p->high;
		break;
	case LORI_POOL_RESERVED:
		*(uint64_t *)v = p->reserved;
		break;
	default:
		LEAVE(LORI_ERROR_INVALID_VALUE);
	}
	LEAVE(0);
}

CUresult cuMemPoolTrimTo(CUmemoryPool h, size_t keep)
{
	pool *p = (pool *)h;
	ENTER("%zu", keep);
	NEED_OBJECT(p, POOL);
	uint64_t least = p->used > keep ? p->used : keep;
	if (p->reserved > least)
		p->reserved = least;
	LEAVE(0);
}

CUresult cuMemPoolSetAccess(CUmemoryPool h, const CUmemAccessDesc *a, size_t n)
{
	ENTER("device=%d flags=%u", a->location.id, a->flags);
	NEED_OBJECT(h, POOL);
	NEED(n == 1 && a->location.type == LORI_LOCATION_DEVICE && a->flags == LORI_ACCESS_READ_WRITE);
	NEED(a->location.id >= 0 && a->location.id < fake_config.devices);
	LEAVE(0);
}

// run_alloc is where the memory begins to be: what was written before is lost.
static CUresult run_alloc(item *i)
{
	if (!fake_device_range(i->to, i->n))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	memset((void *)i->to, 0xcd, i->n);
	return 0;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t n, CUmemoryPool h, CUstream hs)
{
	pool *p = (pool *)h;
	stream *s = (stream *)hs;
	ENTER("%zu", n);
	NEED_OBJECT(p, POOL);
	NEED_OBJECT(s, STREAM);
	NEED(n && p->ctx == s->ctx);
	if (fake_capture(s))
		LEAVE(LORI_ERROR_CAPTURE_UNSUPPORTED);
	uint64_t more = p->used + n > p->reserved ? p->used + n - p->reserved : 0;
	if (more > fake_config.memory - taken(p->ctx))
		LEAVE(LORI_ERROR_OUT_OF_MEMORY);
	p->reserved += more;
	p->used += n;
	if (p->high < p->used)
		p->high = p->used;
	fake_live[MEMORY]++;
	*out = add_block(p, n);
	item *i = fake_item(s, "alloc", run_alloc);
	i->to = *out;
	i->n = n;
	LEAVE(fake_enqueue(i));
}

// Freed memory is kept for a while, so that who still uses it is noticed: reads
// give nonsense, writes are found.
enum { FREED = 256, FREED_BYTES = 16 << 20, FREED_VALUE = 0xdd };

static block *freed[FREED];
static uint64_t freed_bytes;
static int oldest, n_freed;

static void forget_oldest(void)
{
	block *b = freed[oldest];
	oldest = (oldest + 1) % FREED;
	n_freed--;
	freed_bytes -= b->n;
	bool used = false;
	for (uint64_t j = 0; j < b->n && !used; j++)
		used = ((unsigned char *)b->at)[j] != FREED_VALUE;
	fake_live[GUARD] += used || !intact(b);
	free(b->memory);
	free(b);
}

static void keep_freed(block *b)
{
	memset((void *)b->at, FREED_VALUE, b->n);
	if (n_freed == FREED)
		forget_oldest();
	freed[(oldest + n_freed++) % FREED] = b;
	freed_bytes += b->n;
	while (freed_bytes > FREED_BYTES)
		forget_oldest();
}

// fake_forget looks at all that is kept.
void fake_forget(void)
{
	while (n_freed)
		forget_oldest();
}

void fake_lose(context *ctx)
{
	for (block **b = &blocks; *b;) {
		block *gone = *b;
		if (!gone->pool || gone->pool->ctx != ctx) {
			b = &gone->next;
			continue;
		}
		*b = gone->next;
		gone->pool->used -= gone->n;
		free(gone->memory);
		free(gone);
		fake_live[MEMORY]--;
	}
}

static CUresult run_free(item *i)
{
	for (block **b = &blocks; *b; b = &(*b)->next)
		if ((*b)->at == i->to && (*b)->pool) {
			block *gone = *b;
			gone->pool->used -= gone->n;
			*b = gone->next;
			keep_freed(gone);
			fake_live[MEMORY]--;
			return 0;
		}
	return LORI_ERROR_ILLEGAL_ADDRESS;
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream hs)
{
	stream *s = (stream *)hs;
	ENTER("%s", "");
	NEED_OBJECT(s, STREAM);
	NEED(fake_device_range(p, 1));
	item *i = fake_item(s, "free", run_free);
	i->to = p;
	LEAVE(fake_enqueue(i));
}

CUresult cuMemHostAlloc(void **out, size_t n, unsigned int flags)
{
	ENTER("%zu flags=%u", n, flags);
	pinned *p = calloc(1, sizeof *p);
	p->at = *out = malloc(n);
	p->n = n;
	p->next = pins;
	pins = p;
	fake_live[HOST]++;
	LEAVE(0);
}

CUresult cuMemFreeHost(void *at)
{
	ENTER_ANY("%s", "");
	for (pinned **p = &pins; *p; p = &(*p)->next)
		if ((*p)->at == at) {
			pinned *gone = *p;
			*p = gone->next;
			free(gone->at);
			free(gone);
			fake_live[HOST]--;
			LEAVE(fake_current()->lost);
		}
	LEAVE(LORI_ERROR_INVALID_VALUE);
}

static bool is_pinned(const char *at, size_t n)
{
	for (pinned *p = pins; p; p = p->next)
		if (at >= p->at && at + n <= p->at + p->n)
			return true;
	return false;
}

static CUresult run_in(item *i)
{
	if (!fake_device_range(i->to, i->n))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	memcpy((void *)i->to, i->host, i->n);
	return 0;
}

static CUresult run_out(item *i)
{
	if (!fake_device_range(i->from, i->n))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	memcpy(i->host, (void *)i->from, i->n);
	return 0;
}

static CUresult run_copy(item *i)
{
	if (!fake_device_range(i->from, i->n) || !fake_device_range(i->to, i->n))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	memcpy((void *)i->to, (void *)i->from, i->n);
	return 0;
}

static CUresult run_set(item *i)
{
	if (!fake_device_range(i->to, i->n * i->size))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t j = 0; j < i->n; j++)
		memcpy((char *)i->to + j * i->size, &i->value, i->size);
	return 0;
}

// copy enqueues a copy. Memory that is not pinned is read, or written, before
// the call returns.
static CUresult copy(CUstream hs, const char *what, CUresult (*run)(item *), uint64_t to, uint64_t from, void *host,
		     size_t n)
{
	stream *s = (stream *)hs;
	NEED_OBJECT(s, STREAM);
	if (s->ctx != fake_current())
		LEAVE(LORI_ERROR_INVALID_HANDLE);
	if (host && fake_capture(s) && !is_pinned(host, n))
		LEAVE(LORI_ERROR_CAPTURE_UNSUPPORTED);
	item *i = fake_item(s, what, run);
	i->to = to;
	i->from = from;
	i->host = host;
	i->n = n;
	CUresult r = fake_enqueue(i);
	if (!r && host && !is_pinned(host, n)) {
		fake_wait(s);
		r = s->ctx->lost;
	}
	LEAVE(r);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
	ENTER("%zu", n);
	return copy(s, "copy in", run_in, to, 0, (void *)from, n);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
	ENTER("%zu", n);
	return copy(s, "copy out", run_out, 0, from, to, n);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
	ENTER("%zu", n);
	return copy(s, "copy", run_copy, to, from, NULL, n);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n, CUstream s)
{
	ENTER("%zu", n);
	NEED_OBJECT(tc, CONTEXT);
	NEED_OBJECT(fc, CONTEXT);
	return copy(s, "copy peer", run_copy, to, from, NULL, n);
}

static CUresult set(CUstream hs, uint64_t to, uint32_t v, uint32_t size, size_t n)
{
	stream *s = (stream *)hs;
	NEED_OBJECT(s, STREAM);
	item *i = fake_item(s, "set", run_set);
	i->to = to;
	i->value = v;
	i->size = size;
	i->n = n;
	LEAVE(fake_enqueue(i));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s)
{
	ENTER("%u %zu", v, n);
	return set(s, to, v, 1, n);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, CUstream s)
{
	ENTER("%u %zu", v, n);
	return set(s, to, v, 2, n);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int v, size_t n, CUstream s)
{
	ENTER("%u %zu", v, n);
	return set(s, to, v, 4, n);
}
