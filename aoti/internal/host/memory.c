// Storage: blocks by size class, pooled, counted.

#include "op.h"
#include "tensor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	ALIGN = 64,
	CLASSES = 4 * 50,
	DEFAULT_POOL = 256 << 20,
};

// A free block begins with the link to the next one of its class.
typedef struct block {
	struct block *next;
} block;

static struct pool {
	pthread_mutex_t lock; // guards head and pooled
	block *head[CLASSES];
	int64_t pooled;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

// With AddressSanitizer nothing is reused, so that it sees each block's end.
#ifdef __SANITIZE_ADDRESS__
static atomic_llong pool_limit = 0;
#else
static atomic_llong pool_limit = DEFAULT_POOL;
#endif

static atomic_llong live_bytes, live_handles, live_objects;

// The classes are 64 bytes times 1, 2, 3, 4 and then four steps to each power of
// two, so that at most a fifth of a block is unused.
static int32_t class_of(int64_t nbytes)
{
	uint64_t units = ((uint64_t)nbytes + ALIGN - 1) / ALIGN;
	if (units <= 4)
		return units == 0 ? 0 : (int32_t)units - 1;
	int shift = 61 - __builtin_clzll(units - 1);
	return 4 * shift + (int32_t)((units - 1) >> shift);
}

static size_t class_size(int32_t c)
{
	if (c < 4)
		return (size_t)(c + 1) * ALIGN;
	return ((size_t)(c % 4 + 5) << (c / 4 - 1)) * ALIGN;
}

void *lori_block_take(int64_t nbytes, int32_t *size_class)
{
	int32_t c = nbytes < 0 || nbytes > INT64_MAX / 4 ? CLASSES : class_of(nbytes);
	if (c >= CLASSES) {
		lori_fail("%lld bytes are more than there is", (long long)nbytes);
		return NULL;
	}
	*size_class = c;
	pthread_mutex_lock(&pool.lock);
	block *b = pool.head[c];
	if (b) {
		pool.head[c] = b->next;
		pool.pooled -= (int64_t)class_size(c);
	}
	pthread_mutex_unlock(&pool.lock);
	if (b)
		return b;
	void *fresh = aligned_alloc(ALIGN, class_size(c));
	if (!fresh)
		lori_fail("out of memory: %lld bytes", (long long)nbytes);
	return fresh;
}

void lori_block_give(void *p, int32_t c)
{
	int64_t size = (int64_t)class_size(c);
	bool keep = false;
	pthread_mutex_lock(&pool.lock);
	if (pool.pooled + size <= atomic_load_explicit(&pool_limit, memory_order_relaxed)) {
		block *b = p;
		b->next = pool.head[c];
		pool.head[c] = b;
		pool.pooled += size;
		keep = true;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!keep)
		free(p);
}

static void trim_to(int64_t limit)
{
	pthread_mutex_lock(&pool.lock);
	for (int32_t c = CLASSES - 1; c >= 0 && pool.pooled > limit; c--) {
		while (pool.head[c] && pool.pooled > limit) {
			block *b = pool.head[c];
			pool.head[c] = b->next;
			pool.pooled -= (int64_t)class_size(c);
			free(b);
		}
	}
	pthread_mutex_unlock(&pool.lock);
}

void lori_pool_limit(int64_t bytes)
{
	atomic_store(&pool_limit, bytes);
	trim_to(bytes);
}

void lori_pool_trim(void) { trim_to(0); }

void lori_memory(lori_memory_stats *out)
{
	out->bytes = atomic_load(&live_bytes);
	out->handles = atomic_load(&live_handles);
	out->objects = atomic_load(&live_objects);
	pthread_mutex_lock(&pool.lock);
	out->pooled = pool.pooled;
	pthread_mutex_unlock(&pool.lock);
}

void lori_count_handle(int64_t by) { atomic_fetch_add_explicit(&live_handles, by, memory_order_relaxed); }
void lori_count_object(int64_t by) { atomic_fetch_add_explicit(&live_objects, by, memory_order_relaxed); }

_Static_assert(sizeof(lori_storage) <= ALIGN, "the memory of a storage follows it 64 bytes aligned");

lori_storage *lori_alloc(int64_t nbytes)
{
	int32_t c;
	if (nbytes < 0) {
		lori_fail("a storage of %lld bytes", (long long)nbytes);
		return NULL;
	}
	char *b = lori_block_take(nbytes > INT64_MAX - ALIGN ? INT64_MAX : nbytes + ALIGN, &c);
	if (!b)
		return NULL;
	lori_storage *s = (lori_storage *)b;
	*s = (lori_storage){.data = b + ALIGN, .nbytes = nbytes, .size_class = c};
	atomic_init(&s->flags, LORI_OWNED);
	atomic_init(&s->refs, 1);
	atomic_fetch_add_explicit(&live_bytes, nbytes, memory_order_relaxed);
	return s;
}

lori_storage *lori_storage_wrap(void *data, int64_t nbytes, int32_t flags, void (*release)(void *), void *arg)
{
	int32_t c;
	lori_storage *s = lori_block_take(sizeof *s, &c);
	if (!s)
		return NULL;
	*s = (lori_storage){.data = data, .nbytes = nbytes, .size_class = c, .release = release, .arg = arg};
	atomic_init(&s->flags, flags);
	atomic_init(&s->refs, 1);
	return s;
}

void lori_storage_constant(lori_storage *s) { atomic_fetch_or(&s->flags, LORI_CONSTANT); }

bool lori_storage_is_constant(lori_storage *s)
{
	return atomic_load_explicit(&s->flags, memory_order_relaxed) & LORI_CONSTANT;
}

uintptr_t lori_storage_cache(lori_storage *s, uintptr_t fresh)
{
	if (!lori_storage_is_constant(s))
		return 0;
	uintptr_t had = 0;
	if (fresh == 0)
		return atomic_load_explicit(&s->cache, memory_order_acquire);
	return atomic_compare_exchange_strong(&s->cache, &had, fresh) ? fresh : had;
}

void lori_storage_retain(lori_storage *s) { atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed); }

void lori_storage_release(lori_storage *s)
{
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (atomic_load_explicit(&s->flags, memory_order_relaxed) & LORI_OWNED)
		atomic_fetch_sub_explicit(&live_bytes, s->nbytes, memory_order_relaxed);
	if (atomic_load_explicit(&s->cache, memory_order_relaxed))
		loriGoDropCache(atomic_load(&s->cache));
	if (s->release)
		s->release(s->arg);
	lori_block_give(s, s->size_class);
}
