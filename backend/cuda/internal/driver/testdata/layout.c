// Prints the sizes and places of what is passed to CUDA in memory. A test holds
// the output with the real headers against the one without.
#include <stdio.h>

#include "libs.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define PLACE(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))

int main(void)
{
	SIZE(CUresult);
	SIZE(CUdevice);
	SIZE(CUdeviceptr);
	SIZE(CUuuid);
	SIZE(CUmemPoolProps);
	PLACE(CUmemPoolProps, allocType);
	PLACE(CUmemPoolProps, handleTypes);
	PLACE(CUmemPoolProps, location.type);
	PLACE(CUmemPoolProps, location.id);
	PLACE(CUmemPoolProps, maxSize);
	SIZE(CUmemAccessDesc);
	PLACE(CUmemAccessDesc, location.id);
	PLACE(CUmemAccessDesc, flags);
	SIZE(CUlaunchAttribute);
	PLACE(CUlaunchAttribute, id);
	PLACE(CUlaunchAttribute, value);
	PLACE(CUlaunchAttribute, value.cooperative);
	PLACE(CUlaunchAttribute, value.clusterDim.z);
	PLACE(CUlaunchAttribute, value.programmaticStreamSerializationAllowed);
	SIZE(CUlaunchConfig);
	PLACE(CUlaunchConfig, gridDimX);
	PLACE(CUlaunchConfig, blockDimZ);
	PLACE(CUlaunchConfig, sharedMemBytes);
	PLACE(CUlaunchConfig, hStream);
	PLACE(CUlaunchConfig, attrs);
	PLACE(CUlaunchConfig, numAttrs);
	SIZE(CUDA_KERNEL_NODE_PARAMS_v2);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, func);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, extra);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, kern);
	PLACE(CUDA_KERNEL_NODE_PARAMS_v2, ctx);
#ifdef WITH_CUBLASLT
	SIZE(cublasStatus_t);
	SIZE(cublasLtMatmulAlgo_t);
	SIZE(cublasLtMatmulHeuristicResult_t);
	PLACE(cublasLtMatmulHeuristicResult_t, workspaceSize);
	PLACE(cublasLtMatmulHeuristicResult_t, state);
	PLACE(cublasLtMatmulHeuristicResult_t, wavesCount);
#endif
	return 0;
}
