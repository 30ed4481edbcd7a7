// Compiled libraries: opening one, and the calls of its container interface in
// every generation.
//
// Of the interface's two halves the loader uses the container to learn about a
// library and to fold its constants, and the poolless model to run: it takes a
// complete set of constants at once, folded ones included, without copying them,
// so that instances share one set.
#ifndef LORI_LIBRARY_H
#define LORI_LIBRARY_H

#include "tensor.h"

// The handles of the interface; what they point to is the library's own.
typedef void *lori_container;
typedef void *lori_model;
// The tensors that cross the boundary: lori_tensor, or at::Tensor when the
// library runs on a real libtorch.
typedef void *lori_handle;

// lori_pair is AOTInductorConstantMapEntry.
typedef struct lori_pair {
	const char *name;
	lori_handle handle;
} lori_pair;

// lori_tensor_api is what the loader itself asks of whoever provides the
// tensors: this host, or a real libtorch.
typedef struct lori_tensor_api {
	lori_error (*create_from_blob)(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
				       int64_t offset, int32_t dtype, int32_t device, int32_t index, lori_handle *out);
	lori_error (*remove)(lori_handle t);
	lori_error (*alias)(lori_handle t, lori_handle *out);
	lori_error (*data)(lori_handle t, void **out);
	lori_error (*dim)(lori_handle t, int64_t *out);
	lori_error (*sizes)(lori_handle t, int64_t **out);
	lori_error (*strides)(lori_handle t, int64_t **out);
	lori_error (*dtype)(lori_handle t, int32_t *out);
	bool own; // the handles are lori_tensor
} lori_tensor_api;

// lori_calls are the functions of the container interface. A generation that
// lacks one has NULL there.
typedef struct lori_calls {
	lori_error (*create)(lori_container *c, size_t models, const char *device, const char *dir);
	lori_error (*create_external)(lori_container *c, size_t models, const char *device, const char *dir,
				      const lori_pair *pairs, size_t n);
	lori_error (*destroy)(lori_container c);
	lori_error (*run)(lori_container c, lori_handle *in, size_t n_in, lori_handle *out, size_t n_out, void *stream,
			  void *proxy);
	lori_error (*num_inputs)(lori_container c, size_t *n);
	lori_error (*num_outputs)(lori_container c, size_t *n);
	lori_error (*input_name)(lori_container c, size_t i, const char **name);
	lori_error (*output_name)(lori_container c, size_t i, const char **name);
	lori_error (*call_spec)(lori_container c, const char **in, const char **out);
	lori_error (*num_constants)(lori_container c, size_t *n);
	lori_error (*constant_name)(lori_container c, size_t i, const char **name);
	lori_error (*constant_fqn)(lori_container c, size_t i, const char **name);
	lori_error (*constant_folded)(lori_container c, size_t i, bool *folded);
	lori_error (*constant_dtype)(lori_container c, size_t i, int32_t *dtype);
	lori_error (*constant_type)(lori_container c, size_t i, int32_t *type);
	lori_error (*constant_bytes)(lori_container c, size_t i, size_t *bytes);
	lori_error (*blob_size)(lori_container c, uint64_t *bytes);
	lori_error (*load_blob)(lori_container c, const uint8_t *blob);
	lori_error (*extract)(lori_container c, const lori_pair **pairs, size_t *n, bool inactive);
	lori_error (*fold)(lori_container c, bool inactive, void *stream, void *proxy);
	lori_error (*model_create)(lori_model *m, void *map);
	lori_error (*model_run)(lori_model m, lori_handle *in, lori_handle *out);
	lori_error (*model_outputs)(lori_model m, size_t *n);
	lori_error (*model_update)(lori_model m, void *map);
	lori_error (*model_update_pairs)(lori_model m, const lori_pair *pairs, int32_t n);
	lori_error (*model_destroy)(lori_model m);
	lori_error (*last_error)(const char **text);
} lori_calls;

// lori_library is one opened library. All but its calls is written only while it
// is opened.
typedef struct lori_library {
	void *handle;         // of dlopen
	const char *low, *high; // the addresses in which it lies
	int symbols;          // how many functions of the interface it exports
	bool old_strings;     // built with the string ABI of before GCC 5
	bool check_inputs;    // its own checks of inputs are on
	uintptr_t proxy;      // runs the ops that it calls by name, 0 for none
	lori_calls calls;
	lori_tensor_api tensors;
} lori_library;

// lori_library_open opens the file. libtorch, if not NULL, is the handle of the
// libtorch that provides the tensors. On failure it returns NULL with an error
// text.
lori_library *lori_library_open(const char *path, void *libtorch);
// lori_library_close unloads it. Nothing of the library may be in use.
lori_error lori_library_close(lori_library *l);
// lori_libtorch_open opens a real libtorch_cpu.so for the whole process, for
// good; NULL with an error text on failure.
void *lori_libtorch_open(const char *path);

// lori_call_begin forgets the error texts of the thread before a call into a
// library; lori_call_end turns the call's code into a text: that of the library,
// of the exception that it caught, or of the host.
void lori_call_begin(void);
lori_error lori_call_end(lori_library *l, lori_error code);

// lori_source is what a container is made from.
typedef struct lori_source {
	const char *device;
	const uint8_t *blob; // the weights of a library that keeps them apart, or NULL
	uint64_t blob_size;
} lori_source;

// lori_constant is what a library says of one constant.
typedef struct lori_constant {
	const char *name, *fqn; // of the library; fqn may be NULL
	bool folded;
	int32_t dtype, type;
	int64_t bytes;        // -1: not told
	lori_tensor *initial; // a handle over the container's memory, NULL if there is none
} lori_constant;

// lori_summary is what a library says of itself through a container.
typedef struct lori_summary {
	lori_container container;
	size_t inputs, outputs, constants;
	const char **input_names, **output_names;
	const char *in_spec, *out_spec;
	lori_constant *constant;
} lori_summary;

// lori_library_describe makes a container with one model, which loads the
// constants: from the library, or from the blob if there is one. The result is
// freed with lori_summary_free, which leaves the container; on failure it is
// empty.
lori_error lori_library_describe(lori_library *l, const lori_source *from, lori_summary *out);
void lori_summary_free(lori_summary *s);

// lori_container_delete frees a container.
lori_error lori_container_delete(lori_library *l, lori_container c);

// lori_fold is what folding starts from.
typedef struct lori_fold {
	lori_source from;
	const lori_pair *pairs; // the constants that are not folded, in their order
	size_t n_pairs, constants;
} lori_fold;

// lori_library_fold computes the folded constants and writes to out, which has
// room for all constants, a handle for each folded one and NULL for the others.
// The pairs stay the caller's. Only one at a time may fold with a library that
// has no create_external: its own memory is the scratch.
lori_error lori_library_fold(lori_library *l, const lori_fold *f, lori_tensor **out);

// lori_tensor_of returns a handle of this host over the memory of a library's
// tensor, which must stay; NULL with an error text on failure.
lori_tensor *lori_tensor_of(const lori_library *l, lori_handle t);
// lori_tensor_hand makes a tensor of the library's libtorch over the memory of
// t, which must stay.
lori_error lori_tensor_hand(const lori_library *l, const lori_tensor *t, lori_handle *out);
// lori_tensor_raw returns a handle over lent memory, as lori_tensor_borrow with an
// offset; strides may be NULL.
lori_tensor *lori_tensor_raw(void *data, int64_t nbytes, int64_t ndim, const int64_t *sizes, const int64_t *strides,
			     int64_t offset, int32_t dtype);
// lori_tensor_copy returns a copy of the whole storage of t with the same view.
lori_tensor *lori_tensor_copy(const lori_tensor *t);
// lori_tensor_keep returns a handle that stays valid when the library goes: t
// itself if the memory is this host's, otherwise a copy of its storage.
lori_tensor *lori_tensor_keep(const lori_tensor *t);

// Touching: while a list is set for the thread, each tensor whose address a
// library asks for is added to it (lori_recorded_add).
extern _Thread_local lori_recorded *lori_touching;
void lori_touch_start(lori_recorded *list);
void lori_touch_stop(void);

// lori_map is a std::unordered_map<std::string, AtenTensorHandle> in the layout
// of libstdc++, for the calls of libraries that take nothing else.
typedef struct lori_map lori_map;

lori_map *lori_map_new(const lori_pair *pairs, size_t n, bool old_strings);
void *lori_map_pointer(lori_map *m);
void lori_map_free(lori_map *m);

// lori_cxx is what the loader takes from libstdc++, which it opens before any
// library so that it stays when the last one is unloaded.
typedef struct lori_cxx {
	size_t (*hash_bytes)(const void *, size_t, size_t);
	void *(*begin_catch)(void *);
	void *(*current_exception_type)(void);
	void *single_inheritance; // the vtable of its type_info class
} lori_cxx;

// lori_cxx_open returns it, or NULL with an error text.
const lori_cxx *lori_cxx_open(void);
// lori_caught is the text of the last exception that a library caught on this
// thread since lori_caught_clear, "" if none.
const char *lori_caught(void);
void lori_caught_clear(void);

// lori_check_inputs is what a library that runs on this thread is told.
extern _Thread_local bool lori_check_inputs;

#endif
