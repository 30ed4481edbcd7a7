package grpcapi

import (
	"context"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
	"github.com/loris-ml/loris/serve/internal/sharedmemory"
)

// addSharedMemory adds the calls about shared memory. Of CUDA's this server has none: there
// are no regions, none can be registered, and so unregistering all of them, as clients do
// when they begin, is done.
func addSharedMemory(r *Registrar, regions *sharedmemory.Regions) {
	type (
		systemStatus = inferencepb.SystemSharedMemoryStatusResponse
		cudaStatus   = inferencepb.CudaSharedMemoryStatusResponse
	)
	AddUnary(r, serviceName, "SystemSharedMemoryStatus", inference.ScopeMetadata, func(_ context.Context, in *inferencepb.SystemSharedMemoryStatusRequest) (*systemStatus, error) {
		all, err := regions.Status(in.GetName())
		out := &systemStatus{Regions: map[string]*inferencepb.SystemSharedMemoryStatusResponse_RegionStatus{}}
		for _, x := range all {
			out.Regions[x.Name] = &inferencepb.SystemSharedMemoryStatusResponse_RegionStatus{Name: x.Name, Key: x.Key, Offset: x.Offset, ByteSize: x.Size}
		}
		return out, err
	})
	AddUnary(r, serviceName, "SystemSharedMemoryRegister", inference.ScopeSharedMemory, func(_ context.Context, in *inferencepb.SystemSharedMemoryRegisterRequest) (*inferencepb.SystemSharedMemoryRegisterResponse, error) {
		return &inferencepb.SystemSharedMemoryRegisterResponse{}, regions.Register(in.GetName(), in.GetKey(), in.GetOffset(), in.GetByteSize())
	})
	AddUnary(r, serviceName, "SystemSharedMemoryUnregister", inference.ScopeSharedMemory, func(_ context.Context, in *inferencepb.SystemSharedMemoryUnregisterRequest) (*inferencepb.SystemSharedMemoryUnregisterResponse, error) {
		return &inferencepb.SystemSharedMemoryUnregisterResponse{}, regions.Unregister(in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryStatus", inference.ScopeMetadata, func(_ context.Context, in *inferencepb.CudaSharedMemoryStatusRequest) (*cudaStatus, error) {
		return &cudaStatus{}, noRegion(in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryRegister", inference.ScopeSharedMemory, func(_ context.Context, in *inferencepb.CudaSharedMemoryRegisterRequest) (*inferencepb.CudaSharedMemoryRegisterResponse, error) {
		return nil, inference.Errorf(inference.Unimplemented, "region %q cannot be registered: this server does not offer memory of CUDA; send tensors in requests", in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryUnregister", inference.ScopeSharedMemory, func(_ context.Context, in *inferencepb.CudaSharedMemoryUnregisterRequest) (*inferencepb.CudaSharedMemoryUnregisterResponse, error) {
		return &inferencepb.CudaSharedMemoryUnregisterResponse{}, noRegion(in.GetName())
	})
}

func noRegion(name string) error {
	if name == "" {
		return nil
	}
	return inference.Errorf(inference.NotFound, "there is no region %q of CUDA's memory: this server does not offer any", name)
}
