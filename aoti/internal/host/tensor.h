// Tensors as the C code of compiled models sees them: handles to a view of
// reference-counted storage. The handles that a library gets are opaque to it.
//
// Threads: storage is shared through an atomic count; a handle belongs to one
// thread at a time, as at::Tensor does.
#ifndef LORI_TENSOR_H
#define LORI_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t lori_error; // 0 is success, 1 is failure with a text (lori_error_text)

enum { LORI_OK = 0, LORI_FAIL = 1 };

// The numbers of c10::ScalarType that an artefact may ask for.
enum lori_dtype {
	LORI_U8 = 0,
	LORI_I8 = 1,
	LORI_I16 = 2,
	LORI_I32 = 3,
	LORI_I64 = 4,
	LORI_F16 = 5,
	LORI_F32 = 6,
	LORI_F64 = 7,
	LORI_C32 = 8,
	LORI_C64 = 9,
	LORI_C128 = 10,
	LORI_BOOL = 11,
	LORI_BF16 = 15,
	LORI_F8E5M2 = 23,
	LORI_F8E4M3FN = 24,
	LORI_F8E5M2FNUZ = 25,
	LORI_F8E4M3FNUZ = 26,
	LORI_U16 = 27,
	LORI_U32 = 28,
	LORI_U64 = 29,
	LORI_F8E8M0FNU = 44,
	LORI_F4E2M1FNX2 = 45,
};

enum { LORI_CPU = 0, LORI_CUDA = 1, LORI_XPU = 12, LORI_MPS = 13, LORI_META = 14, LORI_PRIVATEUSE1 = 20 };
enum { LORI_STRIDED = 0, LORI_MKLDNN = 3 };

// What a storage's memory is.
enum {
	LORI_OWNED = 1,    // of the allocator; freed with the last reference
	LORI_BORROWED = 2, // lent by the caller for one call, perhaps pinned Go memory
	LORI_FOREIGN = 4,  // of a library: its constants, its blobs
	LORI_CONSTANT = 8, // nobody writes it as long as it lives
	LORI_DEVICE = 16,  // of a device's allocator; release frees it (device.go)
};

// lori_storage is a piece of memory. Owned memory follows the struct in the same
// block.
typedef struct lori_storage {
	atomic_llong refs;
	void *data;
	int64_t nbytes;
	atomic_int flags;
	int32_t size_class;
	void (*release)(void *arg); // called with the last reference, may be NULL
	void *arg;
	atomic_uintptr_t cache; // what Go keeps with a constant (cache.go), 0 for nothing
	int32_t device_type, device_index; // where the memory is; the CPU can read that of LORI_CPU alone
} lori_storage;

enum { LORI_INLINE_DIMS = 8 };

// lori_tensor is one handle, with room for the sizes and strides of at least
// LORI_INLINE_DIMS dimensions behind it.
typedef struct lori_tensor {
	lori_storage *storage; // NULL: the tensor is undefined
	uint32_t magic;
	int32_t size_class;
	int32_t capacity; // of dims, in dimensions
	int32_t ndim;
	int32_t dtype;
	int32_t layout;
	int32_t device_type;
	int32_t device_index;
	int64_t offset; // in elements
	int64_t numel;
	int64_t *sizes;
	int64_t *strides;
	struct lori_opaque *opaque; // of layout LORI_MKLDNN: what the packed bytes are
	int64_t dims[];
} lori_tensor;

// lori_opaque is the description that comes with packed bytes, shared by the
// handles of one tensor.
typedef struct lori_opaque {
	atomic_int refs;
	int32_t size_class;
	int64_t size;
	uint8_t bytes[];
} lori_opaque;

// Memory (memory.c).

// lori_alloc returns nbytes of uninitialised memory aligned to 64 bytes as a
// storage with one reference, or NULL with an error text.
lori_storage *lori_alloc(int64_t nbytes);
// lori_storage_wrap returns a storage with one reference over memory that
// somebody else owns. release may be NULL.
lori_storage *lori_storage_wrap(void *data, int64_t nbytes, int32_t flags, void (*release)(void *), void *arg);
void lori_storage_retain(lori_storage *s);
// lori_storage_constant says that nobody writes the memory any more, so that what
// is computed from it may be kept with it.
void lori_storage_constant(lori_storage *s);
bool lori_storage_is_constant(lori_storage *s);
// lori_storage_cache returns what is kept with a constant, after setting it to
// fresh if it is 0; for storage that is no constant it returns 0.
uintptr_t lori_storage_cache(lori_storage *s, uintptr_t fresh);
void lori_storage_release(lori_storage *s);
// lori_block_take and lori_block_give are the allocator below it: blocks by size
// class. The block starts 64 bytes aligned.
void *lori_block_take(int64_t nbytes, int32_t *size_class);
void lori_block_give(void *block, int32_t size_class);

typedef struct lori_memory_stats {
	int64_t bytes;   // of live owned storage
	int64_t handles; // live tensor handles
	int64_t objects; // live objects of other kinds
	int64_t pooled;  // bytes kept for reuse
} lori_memory_stats;

void lori_memory(lori_memory_stats *out);
// lori_pool_limit sets how many bytes are kept for reuse and frees what is over.
void lori_pool_limit(int64_t bytes);
// lori_pool_trim frees all that is kept for reuse.
void lori_pool_trim(void);
void lori_count_handle(int64_t by);
void lori_count_object(int64_t by);

// Handles (tensor.c). All return NULL or LORI_FAIL with an error text.

// lori_tensor_undefined returns a handle to no tensor.
lori_tensor *lori_tensor_undefined(void);
// lori_tensor_over returns a handle that takes over the reference to s, also
// when it fails. It checks that the view lies inside the storage.
lori_tensor *lori_tensor_over(lori_storage *s, int64_t ndim, const int64_t *sizes, const int64_t *strides,
			      int64_t offset, int32_t dtype);
// lori_tensor_empty returns a handle to new memory. strides may be NULL for the
// row-major ones.
lori_tensor *lori_tensor_empty(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype);
// lori_tensor_empty_in is lori_tensor_empty in memory of alloc.
lori_tensor *lori_tensor_empty_in(lori_storage *(*alloc)(int64_t nbytes), int64_t ndim, const int64_t *sizes,
				  const int64_t *strides, int32_t dtype);
// lori_tensor_borrow returns a handle over memory of nbytes that is lent for one
// call.
lori_tensor *lori_tensor_borrow(void *data, int64_t nbytes, int64_t ndim, const int64_t *sizes,
				const int64_t *strides, int32_t dtype);
// lori_tensor_alias returns another handle to the same view.
lori_tensor *lori_tensor_alias(const lori_tensor *t);
// lori_tensor_assign makes dst another handle to what src is; dst keeps nothing
// of what it was.
lori_error lori_tensor_assign(lori_tensor *dst, const lori_tensor *src);
lori_error lori_tensor_delete(lori_tensor *t);
// lori_tensor_resize gives t other sizes and strides in place, as at::resize_: its
// memory keeps what it held, and grows if it must and t alone holds it.
lori_error lori_tensor_resize(lori_tensor *t, int64_t ndim, const int64_t *sizes, const int64_t *strides);
// lori_tensor_check reports a NULL, deleted or undefined handle.
lori_error lori_tensor_check(const lori_tensor *t, const char *what);
bool lori_tensor_dense(const lori_tensor *t); // row-major without gaps
void *lori_tensor_data(const lori_tensor *t); // of the first element
// lori_tensor_exclusive reports that t is dense and alone holds memory of the
// allocator, most of which it needs.
bool lori_tensor_exclusive(const lori_tensor *t);
// lori_tensor_read copies the elements in row-major order to memory of exactly
// their size.
lori_error lori_tensor_read(const lori_tensor *t, void *dst, int64_t nbytes);
// lori_extent computes how many elements a view reaches over, or LORI_FAIL when
// a size is negative or the product overflows.
lori_error lori_extent(int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t *numel, int64_t *reach);
void lori_row_major(int64_t ndim, const int64_t *sizes, int64_t *strides);
int64_t lori_dtype_size(int32_t dtype); // 0 for one that is unknown
const char *lori_dtype_name(int32_t dtype);

// lori_tensor_empty_like returns a handle to new memory on the device of t, with
// its dtype and sizes. strides may be NULL for the row-major ones.
lori_tensor *lori_tensor_empty_like(const lori_tensor *t, const int64_t *strides);
// lori_on_device reports that the CPU cannot read the memory of t.
static inline bool lori_on_device(const lori_tensor *t) { return t->storage && t->storage->device_type != LORI_CPU; }

// lori_copy converts and copies elements between views that broadcast: the sizes
// are those of dst, a stride of 0 repeats an element of src (copy.c).
lori_error lori_copy(lori_tensor *dst, const lori_tensor *src);
// lori_opaque_set gives a handle the layout LORI_MKLDNN and its description, which
// is copied.
lori_error lori_opaque_set(lori_tensor *t, const uint8_t *bytes, int64_t size);
// lori_opaque_nbytes is the size of what a description describes, 0 if it is none.
int64_t lori_opaque_nbytes(const uint8_t *bytes, int64_t size);

// lori_host_elements returns the elements of t if it is dense and the CPU can read them, else NULL.
void *lori_host_elements(const lori_tensor *t);
// lori_dense returns t itself as a further handle if it is dense, or a dense copy.
lori_tensor *lori_dense(const lori_tensor *t);

// Recording (tensor.c): while a list is set for the thread, each tensor that a
// library makes over its own memory is added to it, as a handle of its own.
typedef struct lori_value_object lori_value_object; // a value of any kind (shim_value.c)

typedef struct lori_recorded {
	lori_tensor **items;
	int64_t count, capacity;
	bool failed; // memory ran out
} lori_recorded;

void lori_record_start(lori_recorded *list);
void lori_record_stop(void);
void lori_record_add(const lori_tensor *t);
// lori_recorded_add adds a handle of its own for t.
void lori_recorded_add(lori_recorded *r, const lori_tensor *t);
void lori_record_free(lori_recorded *list);

// Threads (thread.c).

// lori_fail keeps a text for the thread and returns LORI_FAIL.
lori_error lori_fail(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
// lori_fail_text is lori_fail for a text that is no format.
lori_error lori_fail_text(const char *text);
// lori_error_text is the text of the last failure on this thread, "" if none; it
// stays valid until the next failure.
const char *lori_error_text(void);
void lori_error_clear(void);

// lori_pending says that a check failed inside a parallel region that ended since
// on this thread; lori_take_pending makes that the thread's failure, once. What
// was computed after the check is worthless, so whoever runs a library asks after
// each run.
bool lori_pending(void);
lori_error lori_take_pending(void);

// Each library registers the destructors of its thread-local variables here
// instead of with libc, which would keep it loaded for ever. They run when
// their thread ends, or when lori_thread_atexit_unload is called with the range
// of addresses in which the library lies, right before it is unloaded.
int __lor_thread_atexit(void (*dtor)(void *), void *obj, void *dso);
int __lor_thread_atexit_impl(void (*dtor)(void *), void *obj, void *dso);
void lori_thread_atexit_unload(const void *low, const void *high);

#endif
