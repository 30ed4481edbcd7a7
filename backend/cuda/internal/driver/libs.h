// The parts of NVRTC and cuBLASLt that this package calls; see api.h.
#ifndef LORI_CUDA_LIBS_H
#define LORI_CUDA_LIBS_H

#include "api.h"

#ifdef LORI_NVRTC_HEADERS
#include <nvrtc.h>
#else
typedef unsigned int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

// The functions of NVRTC: F(symbol, parameters). All return nvrtcResult.
#define LORI_NVRTC_FUNCTIONS(F)                                                                      \
	F(nvrtcVersion, (int *, int *))                                                              \
	F(nvrtcGetNumSupportedArchs, (int *))                                                        \
	F(nvrtcGetSupportedArchs, (int *))                                                           \
	F(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int, const char *const *, \
			       const char *const *))                                                 \
	F(nvrtcDestroyProgram, (nvrtcProgram *))                                                     \
	F(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                             \
	F(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                                          \
	F(nvrtcGetProgramLog, (nvrtcProgram, char *))                                                \
	F(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                               \
	F(nvrtcGetCUBIN, (nvrtcProgram, char *))                                                     \
	F(nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                                 \
	F(nvrtcGetPTX, (nvrtcProgram, char *))

#define LORI_NVRTC_NUMBERS(N)                                                                        \
	N(NVRTC_OUT_OF_MEMORY, NVRTC_ERROR_OUT_OF_MEMORY, 1)                                         \
	N(NVRTC_INVALID_OPTION, NVRTC_ERROR_INVALID_OPTION, 5)                                       \
	N(NVRTC_COMPILATION, NVRTC_ERROR_COMPILATION, 6)

#ifdef LORI_CUBLASLT_HEADERS
#include <cublasLt.h>
#else
typedef unsigned int cublasStatus_t;
typedef unsigned int cublasComputeType_t;
typedef unsigned int cudaDataType;
typedef unsigned int cublasLtMatmulDescAttributes_t;
typedef unsigned int cublasLtMatrixLayoutAttribute_t;
typedef unsigned int cublasLtMatmulPreferenceAttributes_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct lori_lt_desc *cublasLtMatmulDesc_t;
typedef struct lori_lt_layout *cublasLtMatrixLayout_t;
typedef struct lori_lt_preference *cublasLtMatmulPreference_t;
typedef CUstream cudaStream_t;

typedef struct {
	uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

// The functions of cuBLASLt: F(symbol, result, parameters).
#define LORI_CUBLASLT_FUNCTIONS(F)                                                                   \
	F(cublasLtGetVersion, size_t, (void))                                                        \
	F(cublasLtGetStatusName, const char *, (cublasStatus_t))                                     \
	F(cublasLtGetStatusString, const char *, (cublasStatus_t))                                   \
	F(cublasLtCreate, cublasStatus_t, (cublasLtHandle_t *))                                      \
	F(cublasLtDestroy, cublasStatus_t, (cublasLtHandle_t))                                       \
	F(cublasLtMatmulDescCreate, cublasStatus_t,                                                  \
	  (cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType))                               \
	F(cublasLtMatmulDescDestroy, cublasStatus_t, (cublasLtMatmulDesc_t))                         \
	F(cublasLtMatmulDescSetAttribute, cublasStatus_t,                                            \
	  (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, size_t))              \
	F(cublasLtMatrixLayoutCreate, cublasStatus_t,                                                \
	  (cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t, int64_t))                     \
	F(cublasLtMatrixLayoutDestroy, cublasStatus_t, (cublasLtMatrixLayout_t))                     \
	F(cublasLtMatrixLayoutSetAttribute, cublasStatus_t,                                          \
	  (cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, size_t))           \
	F(cublasLtMatmulPreferenceCreate, cublasStatus_t, (cublasLtMatmulPreference_t *))            \
	F(cublasLtMatmulPreferenceDestroy, cublasStatus_t, (cublasLtMatmulPreference_t))             \
	F(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t,                                      \
	  (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void *, size_t))  \
	F(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t,                                            \
	  (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,   \
	   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,          \
	   cublasLtMatmulHeuristicResult_t *, int *))                                                \
	F(cublasLtMatmul, cublasStatus_t,                                                            \
	  (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,                       \
	   cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, const void *, const void *, \
	   cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *,     \
	   void *, size_t, cudaStream_t))

// Headers of CUDA before 12.9 lack what scales by rows; it is told apart from what
// those declare when a product is made.
#define LORI_CUBLASLT_NEW_NUMBERS(N)                                                                 \
	N(DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)                                  \
	N(DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)                                  \
	N(SCALE_ROWS, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)

#define LORI_CUBLASLT_NUMBERS(N)                                                                     \
	N(BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED, 3)                                          \
	N(BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, 7)                                        \
	N(BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                       \
	N(R_32F, CUDA_R_32F, 0)                                                                      \
	N(R_64F, CUDA_R_64F, 1)                                                                      \
	N(R_16F, CUDA_R_16F, 2)                                                                      \
	N(R_8I, CUDA_R_8I, 3)                                                                        \
	N(R_32I, CUDA_R_32I, 10)                                                                     \
	N(R_16BF, CUDA_R_16BF, 14)                                                                   \
	N(R_8F_E4M3, CUDA_R_8F_E4M3, 28)                                                             \
	N(R_8F_E5M2, CUDA_R_8F_E5M2, 29)                                                             \
	N(COMPUTE_32F, CUBLAS_COMPUTE_32F, 68)                                                       \
	N(COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                            \
	N(COMPUTE_64F, CUBLAS_COMPUTE_64F, 70)                                                       \
	N(COMPUTE_32I, CUBLAS_COMPUTE_32I, 72)                                                       \
	N(OP_N, CUBLAS_OP_N, 0)                                                                      \
	N(OP_T, CUBLAS_OP_T, 1)                                                                      \
	N(DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA, 3)                                               \
	N(DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB, 4)                                               \
	N(DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                           \
	N(DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                   \
	N(DESC_A_SCALE, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)                                    \
	N(DESC_B_SCALE, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)                                    \
	N(DESC_D_SCALE, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20)                                    \
	N(DESC_FAST_ACCUM, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)                                      \
	N(DESC_BIAS_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)                                   \
	N(LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                                 \
	N(LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)                       \
	N(PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                         \
	N(PREFERENCE_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                         \
	N(PREFERENCE_ALIGN_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                         \
	N(PREFERENCE_ALIGN_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                         \
	N(PREFERENCE_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                         \
	N(EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT, 1)                                            \
	N(EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU, 2)                                                  \
	N(EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS, 4)                                                  \
	N(EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU, 32)

enum { LORI_NVRTC_NUMBERS(LORI_NUMBER) };
enum { LORI_CUBLASLT_NUMBERS(LORI_NUMBER) };
enum { LORI_CUBLASLT_NEW_NUMBERS(LORI_NUMBER) };

#endif
