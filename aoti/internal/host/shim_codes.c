// The numbers that artefacts ask for by name instead of knowing them.

#include "shim.h"

#define CODE(name, value)                                                                                              \
	int32_t lori_torch_##name(void) { return value; }

CODE(device_type_cpu, LORI_CPU)
CODE(device_type_cuda, LORI_CUDA)
CODE(device_type_meta, LORI_META)
CODE(device_type_xpu, LORI_XPU)
CODE(device_type_mps, LORI_MPS)
CODE(device_type_privateuse1, LORI_PRIVATEUSE1)

CODE(dtype_float8_e5m2, LORI_F8E5M2)
CODE(dtype_float8_e4m3fn, LORI_F8E4M3FN)
CODE(dtype_float8_e5m2fnuz, LORI_F8E5M2FNUZ)
CODE(dtype_float8_e4m3fnuz, LORI_F8E4M3FNUZ)
CODE(dtype_float8_e8m0fnu, LORI_F8E8M0FNU)
CODE(dtype_float4_e2m1fn_x2, LORI_F4E2M1FNX2)
CODE(dtype_bfloat16, LORI_BF16)
CODE(dtype_float16, LORI_F16)
CODE(dtype_float32, LORI_F32)
CODE(dtype_float64, LORI_F64)
CODE(dtype_uint8, LORI_U8)
CODE(dtype_uint16, LORI_U16)
CODE(dtype_uint32, LORI_U32)
CODE(dtype_uint64, LORI_U64)
CODE(dtype_int8, LORI_I8)
CODE(dtype_int16, LORI_I16)
CODE(dtype_int32, LORI_I32)
CODE(dtype_int64, LORI_I64)
CODE(dtype_bool, LORI_BOOL)
CODE(dtype_complex32, LORI_C32)
CODE(dtype_complex64, LORI_C64)
CODE(dtype_complex128, LORI_C128)

CODE(layout_strided, LORI_STRIDED)
CODE(layout_sparse_coo, 1)
CODE(layout_sparse_csr, 2)
CODE(layout__mkldnn, LORI_MKLDNN)
CODE(layout_sparse_csc, 4)
CODE(layout_sparse_bsr, 5)
CODE(layout_sparse_bsc, 6)
CODE(layout_jagged, 7)

CODE(memory_format_contiguous_format, 0)
CODE(memory_format_preserve_format, 1)
CODE(memory_format_channels_last, 2)
CODE(memory_format_channels_last_3d, 3)

size_t lori_torch_dtype_element_size(int32_t dtype) { return (size_t)lori_dtype_size(dtype); }
