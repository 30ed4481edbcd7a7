package grpcapi

import (
	"context"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

func (s *server) serverMetadata(context.Context, *inferencepb.ServerMetadataRequest) (*inferencepb.ServerMetadataResponse, error) {
	m := s.Metadata()
	return &inferencepb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (s *server) modelMetadata(_ context.Context, r *inferencepb.ModelMetadataRequest) (*inferencepb.ModelMetadataResponse, error) {
	m, err := s.ModelMetadata(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, err
	}
	return &inferencepb.ModelMetadataResponse{
		Name: m.Name, Versions: m.Versions, Platform: m.Platform, Properties: m.Properties,
		Inputs: tensorMetadata(m.Inputs), Outputs: tensorMetadata(m.Outputs),
	}, nil
}

func tensorMetadata(ts []inference.TensorMetadata) []*inferencepb.ModelMetadataResponse_TensorMetadata {
	out := make([]*inferencepb.ModelMetadataResponse_TensorMetadata, len(ts))
	for i, t := range ts {
		out[i] = &inferencepb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: string(t.Datatype), Shape: t.Shape}
	}
	return out
}

// modelConfig leaves out of the configuration what the message has no field for.
func (s *server) modelConfig(_ context.Context, r *inferencepb.ModelConfigRequest) (*inferencepb.ModelConfigResponse, error) {
	data, err := s.ModelConfig(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, err
	}
	config := &inferencepb.ModelConfig{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, config); err != nil {
		return nil, inference.Errorf(inference.Internal, "the configuration of model %q: %w", r.GetName(), err)
	}
	return &inferencepb.ModelConfigResponse{Config: config}, nil
}

func (s *server) modelStatistics(_ context.Context, r *inferencepb.ModelStatisticsRequest) (*inferencepb.ModelStatisticsResponse, error) {
	all, err := s.Statistics(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, err
	}
	out := &inferencepb.ModelStatisticsResponse{}
	for i := range all {
		m := &all[i]
		st := &m.InferenceStats
		stats := &inferencepb.ModelStatistics{
			Name: m.Name, Version: m.Version, LastInference: m.LastInference, InferenceCount: m.InferenceCount, ExecutionCount: m.ExecutionCount,
			InferenceStats: &inferencepb.InferStatistics{
				Success: duration(st.Success), Fail: duration(st.Fail), Queue: duration(st.Queue),
				ComputeInput: duration(st.ComputeInput), ComputeInfer: duration(st.ComputeInfer), ComputeOutput: duration(st.ComputeOutput),
				CacheHit: duration(st.CacheHit), CacheMiss: duration(st.CacheMiss),
			},
		}
		for _, b := range m.BatchStats {
			stats.BatchStats = append(stats.BatchStats, &inferencepb.InferBatchStatistics{
				BatchSize: b.BatchSize, ComputeInput: duration(b.ComputeInput), ComputeInfer: duration(b.ComputeInfer), ComputeOutput: duration(b.ComputeOutput),
			})
		}
		out.ModelStats = append(out.ModelStats, stats)
	}
	return out, nil
}

func duration(d inference.Duration) *inferencepb.StatisticDuration {
	return &inferencepb.StatisticDuration{Count: d.Count, Ns: d.NS}
}
