// The tensors that a run takes and makes.
#include "glue.h"

#include <string.h>

char *lx_address(const lx_state *r, int64_t place, int64_t at)
{
	const lx_place *p = (const lx_place *)(loris_words + lx_plan_of()->place_at) + place;
	return r->base[p->base] + p->at + at;
}

// lx_take_inputs finds the memory of the inputs. What does not lie as kernels read it is copied to
// tensors of copies.
lx_error lx_take_inputs(const lx_state *r, lx_handle *inputs, lx_handle *copies)
{
	const lx_plan *p = lx_plan_of();
	const lx_param *q = (const lx_param *)(r->words + p->input_at);
	for (int64_t n = 0; n < p->inputs; n++, q++) {
		const int64_t *sizes = r->words + q->dims;
		int64_t strides[LX_MAX_DIMS], want[LX_MAX_DIMS];
		bool usable;
		if (lx_check(inputs[n], "input", lx_text(q->name), q->dtype, q->ndim, sizes, strides, r->index))
			return LX_FAILED;
		if (lx_usable(inputs[n], q->ndim, sizes, strides, &usable, (void **)&r->base[n])) {
			lx_fail("input %s: has no memory", lx_text(q->name));
			return LX_FAILED;
		}
		if (usable)
			continue;
		lx_dense(q->ndim, sizes, want);
		if (aoti_torch_empty_strided(q->ndim, sizes, want, (int32_t)q->dtype, LX_DEVICE, r->index, &copies[n]) ||
		    aoti_torch_copy_(copies[n], inputs[n], 0) || aoti_torch_get_data_ptr(copies[n], (void **)&r->base[n])) {
			lx_fail("input %s: cannot be copied", lx_text(q->name));
			return LX_FAILED;
		}
	}
	return LX_OK;
}

lx_error lx_make_outputs(const lx_state *r, lx_handle *outputs)
{
	const lx_plan *p = lx_plan_of();
	const lx_param *q = (const lx_param *)(r->words + p->output_at);
	char **base = r->base + p->inputs + p->constants;
	for (int64_t n = 0; n < p->outputs; n++, q++) {
		int64_t strides[LX_MAX_DIMS];
		lx_dense(q->ndim, r->words + q->dims, strides);
		if (aoti_torch_empty_strided(q->ndim, r->words + q->dims, strides, (int32_t)q->dtype, LX_DEVICE, r->index, &outputs[n]) ||
		    aoti_torch_get_data_ptr(outputs[n], (void **)&base[n])) {
			lx_fail("output %s: there is no memory for it", lx_text(q->name));
			return LX_FAILED;
		}
	}
	return LX_OK;
}

// copy_to copies a computed value to a tensor.
static lx_error copy_to(const lx_state *r, lx_handle to, const lx_assigned *a, const char *workspace)
{
	int64_t strides[LX_MAX_DIMS];
	lx_handle value = NULL;
	lx_dense(a->ndim, r->words + a->dims, strides);
	lx_error e = aoti_torch_create_tensor_from_blob((void *)(workspace + a->from), a->ndim, r->words + a->dims, strides, 0, (int32_t)a->dtype,
							LX_DEVICE, r->index, &value);
	if (!e)
		e = aoti_torch_copy_(to, value, 0);
	if (value)
		aoti_torch_delete_tensor_object(value);
	return e;
}

// lx_assign gives inputs and constants the values that the steps have computed for them. What may fail,
// which is all that concerns the caller's inputs, comes first.
lx_error lx_assign(const lx_state *r, lx_handle *inputs, const char *workspace)
{
	const lx_plan *p = lx_plan_of();
	const lx_assigned *all = (const lx_assigned *)(r->words + p->assigned_at);
	for (const lx_assigned *a = all; a < all + p->assigned; a++)
		if (a->target < p->inputs && copy_to(r, inputs[a->target], a, workspace)) {
			const lx_param *q = (const lx_param *)(loris_words + p->input_at) + a->target;
			lx_fail("input %s: cannot be assigned", lx_text(q->name));
			return LX_FAILED;
		}
	for (const lx_assigned *a = all; a < all + p->assigned; a++) {
		const int64_t n = a->target - p->inputs;
		if (n < 0 || !a->bytes)
			continue;
		if (!LX_DEVICE) {
			memcpy((void *)r->set->data[n], workspace + a->from, (size_t)a->bytes);
		} else if (copy_to(r, r->set->tensors[n], a, workspace)) {
			lx_fail("constant %s: cannot be assigned", lx_text(lx_constant_of((size_t)n)->name));
			return LX_FAILED;
		}
	}
	return LX_OK;
}
