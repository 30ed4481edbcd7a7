// What the definitions of package cxx need of CUDA.

#pragma nv_diag_suppress 177

#define INLINE __device__ __forceinline__

