// What libraries call. The names are those of PyTorch's C shim with the prefix
// lori_torch_ in the place of its own: the private copies of artefacts ask for
// them by these names, so that they never meet those of a libtorch in the same
// process. The types of the arguments are the shim's.
#ifndef LORI_SHIM_H
#define LORI_SHIM_H

#include "tensor.h"

bool lori_torch_grad_mode_is_enabled(void);
void lori_torch_grad_mode_set_enabled(bool enabled);
size_t lori_torch_dtype_element_size(int32_t dtype);
int32_t lori_torch_device_type_cpu(void);
int32_t lori_torch_device_type_cuda(void);
int32_t lori_torch_device_type_meta(void);
int32_t lori_torch_device_type_xpu(void);
int32_t lori_torch_device_type_mps(void);
int32_t lori_torch_device_type_privateuse1(void);
int32_t lori_torch_dtype_float8_e5m2(void);
int32_t lori_torch_dtype_float8_e4m3fn(void);
int32_t lori_torch_dtype_float8_e5m2fnuz(void);
int32_t lori_torch_dtype_float8_e4m3fnuz(void);
int32_t lori_torch_dtype_float8_e8m0fnu(void);
int32_t lori_torch_dtype_float4_e2m1fn_x2(void);
int32_t lori_torch_dtype_bfloat16(void);
int32_t lori_torch_dtype_float16(void);
int32_t lori_torch_dtype_float32(void);
int32_t lori_torch_dtype_float64(void);
int32_t lori_torch_dtype_uint8(void);
int32_t lori_torch_dtype_uint16(void);
int32_t lori_torch_dtype_uint32(void);
int32_t lori_torch_dtype_uint64(void);
int32_t lori_torch_dtype_int8(void);
int32_t lori_torch_dtype_int16(void);
int32_t lori_torch_dtype_int32(void);
int32_t lori_torch_dtype_int64(void);
int32_t lori_torch_dtype_bool(void);
int32_t lori_torch_dtype_complex32(void);
int32_t lori_torch_dtype_complex64(void);
int32_t lori_torch_dtype_complex128(void);
int32_t lori_torch_layout_strided(void);
int32_t lori_torch_layout_sparse_coo(void);
int32_t lori_torch_layout_sparse_csr(void);
int32_t lori_torch_layout__mkldnn(void);
int32_t lori_torch_layout_sparse_csc(void);
int32_t lori_torch_layout_sparse_bsr(void);
int32_t lori_torch_layout_sparse_bsc(void);
int32_t lori_torch_layout_jagged(void);
int32_t lori_torch_memory_format_contiguous_format(void);
int32_t lori_torch_memory_format_preserve_format(void);
int32_t lori_torch_memory_format_channels_last(void);
int32_t lori_torch_memory_format_channels_last_3d(void);
lori_error lori_torch_get_size(lori_tensor *t, int64_t d, int64_t *ret);
lori_error lori_torch_get_stride(lori_tensor *t, int64_t d, int64_t *ret);
lori_error lori_torch_is_contiguous(lori_tensor *t, bool *ret);
lori_error lori_torch_is_defined(lori_tensor *t, bool *ret);
lori_error lori_torch_delete_tensor_object(lori_tensor *t);
lori_error lori_torch_new_tensor_handle(lori_tensor *t, lori_tensor **ret);
lori_error lori_torch_new_uninitialized_tensor(lori_tensor **ret);
lori_error lori_torch_assign_tensors(lori_tensor *src, lori_tensor *dst);
lori_error lori_torch_assign_tensors_out(lori_tensor *src, lori_tensor **ret);
lori_error lori_torch__reinterpret_tensor(lori_tensor *t, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t storage_offset, lori_tensor **ret);
lori_error lori_torch__alloc_from_pool(lori_tensor *t, int64_t offset_bytes, int32_t dtype, int64_t ndim, const int64_t *sizes, const int64_t *strides, lori_tensor **ret);
lori_error lori_torch_as_strided(lori_tensor *t, const int64_t *sizes, const int64_t *strides, lori_tensor **ret);
lori_error lori_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type, int32_t device_index, lori_tensor **ret);
lori_error lori_torch_empty_strided_pinned(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type, int32_t device_index, lori_tensor **ret);
lori_error lori_torch_create_tensor_from_blob_v2(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index, lori_tensor **ret, int32_t layout, const uint8_t *opaque_metadata, int64_t opaque_metadata_size);
lori_error lori_torch_create_tensor_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index, lori_tensor **ret);
lori_error lori_torch_clone(lori_tensor *t, lori_tensor **ret);
lori_error lori_torch_clone_preserve_strides(lori_tensor *t, lori_tensor **ret);
lori_error lori_torch_copy_(lori_tensor *self, lori_tensor *src, int32_t non_blocking);
lori_error lori_torch_tensor_copy_(lori_tensor *src, lori_tensor *dst);
lori_error lori_torch_zero_(lori_tensor *t);
lori_error lori_torch_get_data_ptr(lori_tensor *t, void **ret);
lori_error lori_torch_get_storage_size(lori_tensor *t, int64_t *ret);
lori_error lori_torch_get_dim(lori_tensor *t, int64_t *ret);
lori_error lori_torch_get_numel(lori_tensor *t, int64_t *ret);
lori_error lori_torch_get_storage_numel(lori_tensor *t, int64_t *ret);
lori_error lori_torch_get_sizes(lori_tensor *t, int64_t **ret);
lori_error lori_torch_get_strides(lori_tensor *t, int64_t **ret);
lori_error lori_torch_get_dtype(lori_tensor *t, int32_t *ret);
lori_error lori_torch_get_device_type(lori_tensor *t, int32_t *ret);
lori_error lori_torch_get_device_index(lori_tensor *t, int32_t *ret);
lori_error lori_torch_get_layout(lori_tensor *t, int32_t *ret);
lori_error lori_torch_get_storage_offset(lori_tensor *t, int64_t *ret);
void lori_torch_check(bool cond, const char *func, const char *file, uint32_t line, const char *msg);
void lori_torch_warn(const char *func, const char *file, uint32_t line, const char *msg);

// lori_throw throws a std::runtime_error through the C++ code that called.
void lori_throw(const char *text) __attribute__((noreturn, cold));

// lori_on_warning sets who hears the warnings of compiled code; NULL prints them
// on stderr. It may be called on any thread.
typedef void (*lori_warn_fn)(const char *func, const char *file, uint32_t line, const char *msg);
void lori_on_warning(lori_warn_fn handler);

#endif
