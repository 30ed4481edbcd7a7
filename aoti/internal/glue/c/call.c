// Calls of the host's functions, whose arguments are data.
#include "glue.h"

#include <string.h>

// Integer and floating arguments are passed apart, so that one type serves all functions with at most eight of the latter.
typedef lx_error (*function)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double, double, double, double, double, double, double, double, int64_t,
			     int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
enum { MAX_INTS = 20, MAX_FLOATS = 8 };

// share makes a tensor of a view of a constant over the constant's own storage.
static lx_error share(const lx_state *r, const int64_t *a, lx_handle *out)
{
	const lx_plan *p = lx_plan_of();
	const lx_place *at = (const lx_place *)(loris_words + p->place_at) + a[0];
	return aoti_torch__reinterpret_tensor(r->set->tensors[at->base - p->inputs], a[3], a + 4, a + 4 + a[3], (at->at + a[1]) / lx_dtype_size(a[2]), out);
}

// keep_returned takes a tensor that a function made; one that does not lie as the plan wants is copied.
static lx_error keep_returned(const lx_state *r, const int64_t *a)
{
	const lx_plan *p = lx_plan_of();
	const int64_t ndim = a[2], *sizes = a + 3, *want = sizes + ndim;
	lx_handle *slot = &r->returned[a[0]];
	int64_t strides[LX_MAX_DIMS];
	void *data;
	if (lx_check(*slot, "a result", "", a[1], ndim, sizes, strides, r->index))
		return LX_FAILED;
	for (int64_t d = 0; d < ndim; d++) {
		if (strides[d] == want[d] || sizes[d] == 1)
			continue;
		lx_handle copy;
		if (aoti_torch_empty_strided(ndim, sizes, want, (int32_t)a[1], LX_DEVICE, r->index, &copy))
			return LX_FAILED;
		const lx_error e = aoti_torch_copy_(copy, *slot, 0);
		aoti_torch_delete_tensor_object(*slot);
		*slot = copy;
		if (e)
			return e;
		break;
	}
	if (aoti_torch_get_data_ptr(*slot, &data))
		return LX_FAILED;
	r->base[p->inputs + p->constants + p->outputs + 3 + a[0]] = data;
	return LX_OK;
}

lx_error lx_run_call(const lx_state *r, const lx_call *c)
{
	int64_t i[MAX_INTS] = {0};
	double d[MAX_FLOATS] = {0};
	lx_handle own[MAX_INTS], ignored[MAX_INTS];
	const int64_t *returned[MAX_INTS];
	int ints = 0, floats = 0, owned = 0, results = 0, unused = 0;
	lx_error e = LX_OK;
	const int64_t *a = (const int64_t *)(c + 1);
	for (int64_t n = 0; n < c->arguments && !e; n++) {
		const int64_t kind = *a++;
		switch (kind) {
		case LX_INT:
			i[ints++] = *a++;
			break;
		case LX_FLOAT:
			memcpy(&d[floats++], a++, sizeof *d);
			break;
		case LX_TENSOR:
		case LX_OPTIONAL:
		case LX_SHARED:
			e = kind == LX_SHARED ? share(r, a, &own[owned])
					      : aoti_torch_create_tensor_from_blob(lx_address(r, a[0], a[1]), a[3], a + 4, a + 4 + a[3], 0, (int32_t)a[2], LX_DEVICE, r->index, &own[owned]);
			if (!e)
				i[ints++] = kind == LX_OPTIONAL ? (int64_t)&own[owned] : (int64_t)own[owned];
			owned += !e;
			a += 4 + 2 * a[3];
			break;
		case LX_RETURNED:
			returned[results++] = a;
			i[ints++] = (int64_t)&r->returned[a[0]];
			a += 3 + 2 * a[2];
			break;
		case LX_IGNORED:
			ignored[unused] = NULL;
			i[ints++] = (int64_t)&ignored[unused++];
			break;
		case LX_LIST:
			i[ints++] = (int64_t)(a + 1);
			a += 1 + a[0];
			break;
		case LX_TEXT:
			i[ints++] = (int64_t)lx_text(*a++);
			break;
		case LX_MEMORY:
			i[ints++] = (int64_t)lx_address(r, a[0], a[1]);
			a += 2;
			break;
		}
	}
	lx_fail("%s", "");
	if (!e)
		e = ((function)r->functions[c->function])(i[0], i[1], i[2], i[3], i[4], i[5], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], i[6], i[7], i[8],
							     i[9], i[10], i[11], i[12], i[13], i[14], i[15], i[16], i[17], i[18], i[19]);
	while (owned > 0)
		aoti_torch_delete_tensor_object(own[--owned]);
	while (unused > 0)
		if (ignored[--unused])
			aoti_torch_delete_tensor_object(ignored[unused]);
	for (int n = 0; n < results && !e; n++)
		e = keep_returned(r, returned[n]);
	if (e) {
		char why[128];
		const char *text = lx_last_error();
		strncpy(why, text[0] ? text : "the function that computes it failed", sizeof why - 1);
		why[sizeof why - 1] = 0;
		lx_fail("%s: %s", lx_text(c->step.title), why);
	}
	return e;
}

