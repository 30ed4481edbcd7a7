package grpcapi

import (
	"context"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// addSharedMemory adds the calls about shared memory, which this server does not
// offer: there are no regions, none can be registered, and so unregistering all of
// them, as clients do when they begin, is done.
func addSharedMemory(r *Registrar) {
	type (
		systemStatus = inferencepb.SystemSharedMemoryStatusResponse
		cudaStatus   = inferencepb.CudaSharedMemoryStatusResponse
	)
	AddUnary(r, serviceName, "SystemSharedMemoryStatus", inference.ScopeMetadata, func(_ context.Context, in *inferencepb.SystemSharedMemoryStatusRequest) (*systemStatus, error) {
		return &systemStatus{}, noRegion(in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryStatus", inference.ScopeMetadata, func(_ context.Context, in *inferencepb.CudaSharedMemoryStatusRequest) (*cudaStatus, error) {
		return &cudaStatus{}, noRegion(in.GetName())
	})
	AddUnary(r, serviceName, "SystemSharedMemoryRegister", inference.ScopeInference, func(_ context.Context, in *inferencepb.SystemSharedMemoryRegisterRequest) (*inferencepb.SystemSharedMemoryRegisterResponse, error) {
		return nil, noSharedMemory(in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryRegister", inference.ScopeInference, func(_ context.Context, in *inferencepb.CudaSharedMemoryRegisterRequest) (*inferencepb.CudaSharedMemoryRegisterResponse, error) {
		return nil, noSharedMemory(in.GetName())
	})
	AddUnary(r, serviceName, "SystemSharedMemoryUnregister", inference.ScopeInference, func(_ context.Context, in *inferencepb.SystemSharedMemoryUnregisterRequest) (*inferencepb.SystemSharedMemoryUnregisterResponse, error) {
		return &inferencepb.SystemSharedMemoryUnregisterResponse{}, noRegion(in.GetName())
	})
	AddUnary(r, serviceName, "CudaSharedMemoryUnregister", inference.ScopeInference, func(_ context.Context, in *inferencepb.CudaSharedMemoryUnregisterRequest) (*inferencepb.CudaSharedMemoryUnregisterResponse, error) {
		return &inferencepb.CudaSharedMemoryUnregisterResponse{}, noRegion(in.GetName())
	})
}

func noRegion(name string) error {
	if name == "" {
		return nil
	}
	return inference.Errorf(inference.NotFound, "there is no region %q of shared memory: this server does not offer shared memory", name)
}

func noSharedMemory(name string) error {
	return inference.Errorf(inference.Unimplemented, "region %q cannot be registered: this server does not offer shared memory; send tensors in requests", name)
}
