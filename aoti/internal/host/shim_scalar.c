// Numbers out of tensors and into them.

#include "convert.h"
#include "shim.h"

static lori_error item(lori_tensor *t, int32_t dtype, void *ret)
{
	if (lori_tensor_check(t, "item"))
		return LORI_FAIL;
	if (t->numel != 1)
		return lori_fail("item: a tensor of %lld elements is not one number", (long long)t->numel);
	lori_tensor *h = lori_dense(t);
	if (!h)
		return LORI_FAIL;
	lori_store(ret, dtype, lori_load(lori_tensor_data(h), h->dtype));
	return lori_tensor_delete(h);
}

static lori_error scalar(const void *value, int32_t dtype, lori_tensor **ret)
{
	lori_tensor *t = lori_tensor_empty(0, NULL, NULL, dtype);
	if (!t)
		return LORI_FAIL;
	lori_store(lori_tensor_data(t), dtype, lori_load(value, dtype));
	*ret = t;
	return LORI_OK;
}

#define ITEM(name, type, dtype)                                                                                        \
	lori_error lori_torch_item_##name(lori_tensor *t, type *ret) { return item(t, dtype, ret); }

ITEM(float16, uint16_t, LORI_F16)
ITEM(float32, float, LORI_F32)
ITEM(float64, double, LORI_F64)
ITEM(uint8, uint8_t, LORI_U8)
ITEM(uint16, uint16_t, LORI_U16)
ITEM(uint32, uint32_t, LORI_U32)
ITEM(uint64, uint64_t, LORI_U64)
ITEM(int8, int8_t, LORI_I8)
ITEM(int16, int16_t, LORI_I16)
ITEM(int32, int32_t, LORI_I32)
ITEM(int64, int64_t, LORI_I64)
ITEM(bool, bool, LORI_BOOL)
ITEM(bfloat16, uint16_t, LORI_BF16)
ITEM(complex64, float _Complex, LORI_C64)

#define SCALAR(name, type, dtype)                                                                                      \
	lori_error lori_torch_scalar_to_tensor_##name(type value, lori_tensor **ret)                                   \
	{                                                                                                              \
		return scalar(&value, dtype, ret);                                                                     \
	}

SCALAR(float32, float, LORI_F32)
SCALAR(float64, double, LORI_F64)
SCALAR(uint8, uint8_t, LORI_U8)
SCALAR(uint16, uint16_t, LORI_U16)
SCALAR(uint32, uint32_t, LORI_U32)
SCALAR(uint64, uint64_t, LORI_U64)
SCALAR(int8, int8_t, LORI_I8)
SCALAR(int16, int16_t, LORI_I16)
SCALAR(int32, int32_t, LORI_I32)
SCALAR(int64, int64_t, LORI_I64)
SCALAR(bool, bool, LORI_BOOL)
SCALAR(complex64, float _Complex, LORI_C64)
SCALAR(complex128, double _Complex, LORI_C128)
