// Instances: running one model of a library.
#ifndef LORI_INSTANCE_H
#define LORI_INSTANCE_H

#include "device.h"
#include "library.h"

// lori_value is a dense tensor on its way in or out, at an address of the instance's
// device. The library gets an input
// that is strided in a copy with these strides.
typedef struct lori_value {
	void *data;
	int64_t nbytes;
	int32_t dtype, ndim;
	int64_t sizes[LORI_INLINE_DIMS], strides[LORI_INLINE_DIMS];
	bool strided;
} lori_value;

enum { LORI_INSTANCE_TEXT = 2048 };

// lori_instance is one instance. One thread at a time uses it.
typedef struct lori_instance {
	lori_library *library;
	lori_model model;         // of the poolless interface
	lori_container container; // instead of it where only a container folds
	lori_context context; // where it runs; without a GPU on the CPU
	int32_t inputs, outputs, pairs;
	lori_value *in, *out;
	lori_handle *in_handles, *out_handles; // of the library, during a run
	lori_tensor **lent;                    // what the inputs of a libtorch lie over
	lori_tensor **results;                 // of the last run, until lori_instance_drop
	lori_pair *pair; // one for each constant
	bool boxed;      // tell of each input that the library has dropped
	char text[LORI_INSTANCE_TEXT]; // why the last call failed
} lori_instance;

// lori_instance_new returns an instance that has no constants yet; NULL with an
// error text on failure.
lori_instance *lori_instance_new(lori_library *l, int32_t inputs, int32_t outputs, int32_t constants);
lori_error lori_instance_delete(lori_instance *m);

// lori_instance_bind gives the instance the first m->pairs pairs as its
// constants. It consumes the handles in any case.
lori_error lori_instance_bind(lori_instance *m);
// lori_instance_bind_container is lori_instance_bind for an instance that folds
// by itself.
lori_error lori_instance_bind_container(lori_instance *m, const char *device);

// lori_instance_unpair deletes the handles in the pairs.
void lori_instance_unpair(lori_instance *m);

// lori_instance_run computes the outputs. The inputs are m->in. Where
// m->out[i].data is set, output i must have its shape and is copied there;
// otherwise m->out[i] describes it afterwards, dense, and m->results[i] is the only
// handle that holds it.
lori_error lori_instance_run(lori_instance *m);
// lori_instance_drop deletes the results.
void lori_instance_drop(lori_instance *m);

// lori_input_dropped is called during a run of a boxed instance with its context's token
// when the library has no more need of the memory of input i.
extern void lori_input_dropped(uintptr_t token, int32_t i);

#endif
