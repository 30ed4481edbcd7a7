// The C part of libraries that Loris exports: the container interface of AOTInductor and an
// interpreter of plans. A library is this object, words that say what to do, and machine code.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t lx_error; // AOTIRuntimeError and AOTITorchError: 0 is success
typedef struct lx_tensor_opaque *lx_handle; // at::Tensor *

enum { LX_OK = 0, LX_FAILED = 1 };
enum { LX_MAX_DIMS = 16, LX_MAX_ARGS = 32, LX_LINE = 64 };

// The object is made twice: for models that run on the CPU, and for CUDA. LX_DEVICE is the type of the
// device that tensors are on, and LX_ALIGN what kernels want addresses to be multiples of.
#ifdef LORIS_CUDA
enum { LX_DEVICE = 1, LX_ALIGN = 256 };
#else
enum { LX_DEVICE = 0, LX_ALIGN = 1 };
#endif
enum { LX_ANYWHERE = -2 }; // in the place of the index of a device

typedef struct lx_pair {
	const char *name;
	lx_handle handle;
} lx_pair;

// What the exporter adds to this object. Words hold all numbers; places in texts, literals, code
// and weights are offsets there, so that nothing but loris_functions needs an address.
extern const int64_t loris_words[];
extern const char loris_text[];
extern const uint8_t loris_literals[];
extern const uint8_t loris_code[];
extern const uint8_t loris_weights[];
extern void *const loris_functions[];
extern const uint8_t loris_images[]; // for CUDA

// The first words.
typedef struct lx_plan {
	int64_t version, levels; // of code: bit 0 is AVX2, bit 1 AVX-512
	int64_t inputs, outputs, constants, places, steps, returned, assigned; // counts
	int64_t input_at, output_at, constant_at, place_at, step_at, assigned_at; // words
	int64_t in_spec, out_spec; // texts
	int64_t workspace, weights; // bytes
	int64_t words, symbols, symbol_at, patches, patch_at;
	int64_t folds, fold_at, folded; // steps before the first run, where they are, the bytes that they fill
	// For CUDA: counts, words, a place in the workspace, bytes.
	int64_t functions, function_at, kernels, kernel_at, faults, fault_at, fault_place, literals;
} lx_plan;

// A symbol is a size that varies: that of a dimension of an input. Words that depend on symbols hold
// what they are where each symbol is its origin. A patch says what one of them is elsewhere: the word,
// the number of terms, and for each term the orders i and j and a difference d. The word is the sum of
// d·(k over i)·(l over j) over the terms, where k and l are how far below their origins the symbols are.
typedef struct lx_symbol {
	int64_t name, input, dim, min, max, origin;
} lx_symbol;
enum { LX_MAX_SYMBOLS = 2 };

typedef struct lx_param {
	int64_t name, dtype, ndim, dims; // dims: where the sizes are
} lx_param;

typedef struct lx_constant {
	int64_t name, fqn, dtype, ndim, dims, at, bytes, type;
	int64_t state; // runs assign it
} lx_constant;

// An assignment, at the end of a run: what lies at a place of the workspace becomes the value of an
// input, which the caller sees, or of a constant, for the next run. target counts both, inputs first.
typedef struct lx_assigned {
	int64_t target, from, dtype, ndim, dims, bytes;
} lx_assigned;

// A place is where a buffer of the plan lies: an offset in the memory of an input, a constant, an
// output, the workspace, the literals, the folded constants or a tensor that a function returned, counted
// in this order.
typedef struct lx_place {
	int64_t base, at;
} lx_place;

// A step begins with its kind, its length in words, and the text that names it in errors.
typedef struct lx_step {
	int64_t kind, length, title;
} lx_step;
enum { LX_KERNEL = 0, LX_CALL = 1, LX_LAUNCH = 2, LX_MOVE = 3 };

// A kernel: code for each level, how the grid is cut, then the sizes of the outer dimensions and
// for each operand an lx_operand with a stride for each outer dimension behind it.
typedef struct lx_kernel {
	lx_step step;
	int64_t code[2], spill[2], scratch;
	int64_t rows, cols, row_size, col_size, parts; // parts: > 0 along rows, < 0 along columns
	int64_t grain, outer, operands;
} lx_kernel;

typedef struct lx_operand {
	int64_t place, at, row, col, part; // place -1: memory of the call
} lx_operand;

// A call: a function and its arguments, each of which begins with its kind.
typedef struct lx_call {
	lx_step step;
	int64_t function, arguments;
} lx_call;
enum {
	LX_INT = 0, // a value
	LX_FLOAT = 1, // the bits of a double
	LX_TENSOR = 2, // place, offset, dtype, dimensions, sizes, strides
	LX_RETURNED = 3, // number, dtype, dimensions, sizes, strides: where the function puts a handle
	LX_LIST = 4, // length, values: the address of the values
	LX_MEMORY = 5, // place, offset: an address
	LX_OPTIONAL = 6, // as LX_TENSOR: the address of a handle
	LX_IGNORED = 7, // where the function puts a handle that nobody needs
	LX_TEXT = 8, // a place in the texts: its address
	LX_SHARED = 9, // as LX_TENSOR, of a constant, whose storage the tensor shares: hosts keep with it what they make of weights
};

// A kernel of a GPU: its name, and so many images with it, the best first, as places in loris_images. The
// first that the driver loads counts.
typedef struct lx_gpu_kernel {
	int64_t entry, images, image_at; // image_at: where the places are
} lx_gpu_kernel;

// A launch: the kernel, blocks and threads, and its parameter, 64-bit slots that lie behind it; behind
// those an lx_slot for each that is an address.
typedef struct lx_launch {
	lx_step step;
	int64_t kernel, grid[3], block[3], slots, addresses;
} lx_launch;
typedef struct lx_slot {
	int64_t slot, place, at;
} lx_slot;
enum { LX_MAX_SLOTS = 512 };

// A copy on a GPU.
typedef struct lx_move {
	lx_step step;
	int64_t to, to_at, from, from_at, bytes;
} lx_move;

// What launches find wrong while they run, each in so many bytes of its own at fault_place: a u32 that is
// not 0, and at byte 8 an index. A fault with a size is an index, of a dimension of that size, the others
// are divisions by zero.
typedef struct lx_fault {
	int64_t title, size;
} lx_fault;
enum { LX_FAULT_BYTES = 16 };

// What steps have made of constants alone. It counts its users and never changes.
typedef struct lx_fold {
	_Alignas(LX_LINE) long users;
	_Alignas(LX_LINE) char memory[];
} lx_fold;

// A set of constants, which counts its users and never changes, but for the constants that runs
// assign, which have tensors of the set's own. The data of tensors lies behind it.
typedef struct lx_engine lx_engine;
typedef struct lx_set {
	long users;
	const lx_engine *engine;
	pthread_mutex_t mu; // held by runs that assign constants, and by who reads those
	pthread_mutex_t folding; // guards fold, while it is computed, too
	lx_fold *fold; // or NULL
	bool managed; // a tensor is the caller's, who may write to it
	lx_handle *tensors;
	const void *data[];
} lx_set;

const lx_plan *lx_plan_of(void);
const lx_constant *lx_constant_of(size_t i);
const char *lx_text(int64_t at);
void lx_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *lx_last_error(void);
const char *lx_dtype_name(int64_t dtype);
int64_t lx_dtype_size(int64_t dtype); // of an element, in bytes
void lx_dense(int64_t ndim, const int64_t *sizes, int64_t *strides);
int lx_level(void); // which code runs here: 0, 1, or -1 if none does
// lx_check compares a tensor with what the library was exported for; strides, of ndim numbers, get those of
// the tensor. index is that of its device, or LX_ANYWHERE.
lx_error lx_check(lx_handle tensor, const char *what, const char *name, int64_t dtype, int64_t ndim, const int64_t *sizes, int64_t *strides, int32_t index);
// lx_usable tells whether kernels can read a tensor where it lies, and where that is.
lx_error lx_usable(lx_handle tensor, int64_t ndim, const int64_t *sizes, const int64_t *strides, bool *usable, void **data);
// Functions that plans call beside those of the host.
lx_error lx_index_select(char *to, const char *from, const void *index, int64_t index_bytes, int64_t outer, int64_t count, int64_t size, int64_t row);
lx_error lx_gather(char *to, const char *from, const void *index, int64_t index_bytes, int64_t element, int64_t rank, const int64_t *sizes,
		   const int64_t *strides, int64_t dim, int64_t size);

// An engine is what runs share: the device, and what is loaded there. lx_open returns NULL if it fails.
// lx_settle waits until the device has done what is under way, such as copies of constants.
lx_engine *lx_open(const char *device);
void lx_close(lx_engine *g);
int32_t lx_index(const lx_engine *g); // of the device
lx_error lx_settle(const lx_engine *g);

// A run under way.
typedef struct lx_state {
	const int64_t *words; // for the sizes of this run
	const lx_set *set;
	char **base; // memories
	lx_handle *returned;
	void *const *functions;
	int32_t index; // of the device
	int level; // of machine code
	const lx_engine *engine;
	void *stream;
} lx_state;

char *lx_address(const lx_state *r, int64_t place, int64_t at);
lx_error lx_run_call(const lx_state *r, const lx_call *c);
lx_error lx_take_inputs(const lx_state *r, lx_handle *inputs, lx_handle *copies);
lx_error lx_make_outputs(const lx_state *r, lx_handle *outputs);
lx_error lx_assign(const lx_state *r, lx_handle *inputs, const char *workspace);

lx_fold *lx_fold_of(const lx_set *set); // computes; NULL if that fails
// lx_run borrows the inputs. On an error no output is left.
lx_error lx_run(lx_engine *g, const lx_set *set, lx_fold *fold, void *stream, lx_handle *inputs, lx_handle *outputs);

// The functions of the host.
lx_error aoti_torch_get_data_ptr(lx_handle, void **);
lx_error aoti_torch_get_sizes(lx_handle, int64_t **);
lx_error aoti_torch_get_strides(lx_handle, int64_t **);
lx_error aoti_torch_get_dim(lx_handle, int64_t *);
lx_error aoti_torch_get_dtype(lx_handle, int32_t *);
lx_error aoti_torch_get_device_type(lx_handle, int32_t *);
lx_error aoti_torch_get_device_index(lx_handle, int32_t *);
lx_error aoti_torch_zero_(lx_handle);
lx_error aoti_torch_empty_strided(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, lx_handle *);
lx_error aoti_torch_create_tensor_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t, lx_handle *);
lx_error aoti_torch__reinterpret_tensor(lx_handle, int64_t, const int64_t *, const int64_t *, int64_t, lx_handle *);
lx_error aoti_torch_assign_tensors_out(lx_handle, lx_handle *);
lx_error aoti_torch_copy_(lx_handle self, lx_handle src, int32_t non_blocking);
lx_error aoti_torch_delete_tensor_object(lx_handle);
bool aoti_torch_grad_mode_is_enabled(void);
void aoti_torch_grad_mode_set_enabled(bool);
uint64_t aoti_torch_abi_version(void) __attribute__((weak));
lx_error torch_parallel_for(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *) __attribute__((weak));
