package grpcapi

import (
	"context"
	"encoding/base64"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

func (s *server) repositoryIndex(_ context.Context, r *inferencepb.RepositoryIndexRequest) (*inferencepb.RepositoryIndexResponse, error) {
	if err := onlyRepository(r.GetRepositoryName()); err != nil {
		return nil, err
	}
	entries, err := s.Index(r.GetReady())
	if err != nil {
		return nil, err
	}
	out := &inferencepb.RepositoryIndexResponse{}
	for _, e := range entries {
		out.Models = append(out.Models, &inferencepb.RepositoryIndexResponse_ModelIndex{Name: e.Name, Version: e.Version, State: e.State, Reason: e.Reason})
	}
	return out, nil
}

func onlyRepository(name string) error {
	if name != "" {
		return inference.Errorf(inference.Unimplemented, "repository %q: this server has one repository, which has no name", name)
	}
	return nil
}

func (s *server) load(ctx context.Context, r *inferencepb.RepositoryModelLoadRequest) (*inferencepb.RepositoryModelLoadResponse, error) {
	if err := onlyRepository(r.GetRepositoryName()); err != nil {
		return nil, err
	}
	if err := s.Load(ctx, r.GetModelName(), loadParameters(r.GetParameters())); err != nil {
		return nil, err
	}
	return &inferencepb.RepositoryModelLoadResponse{}, nil
}

// loadParameters returns the parameters as REST has them, where bytes are base64.
func loadParameters(in map[string]*inferencepb.ModelRepositoryParameter) inference.Parameters {
	out := inference.Parameters{}
	for k, p := range in {
		switch v := p.GetParameterChoice().(type) {
		case *inferencepb.ModelRepositoryParameter_BoolParam:
			out[k] = v.BoolParam
		case *inferencepb.ModelRepositoryParameter_Int64Param:
			out[k] = v.Int64Param
		case *inferencepb.ModelRepositoryParameter_StringParam:
			out[k] = v.StringParam
		case *inferencepb.ModelRepositoryParameter_BytesParam:
			out[k] = base64.StdEncoding.EncodeToString(v.BytesParam)
		}
	}
	return out
}

func (s *server) unload(ctx context.Context, r *inferencepb.RepositoryModelUnloadRequest) (*inferencepb.RepositoryModelUnloadResponse, error) {
	if err := onlyRepository(r.GetRepositoryName()); err != nil {
		return nil, err
	}
	if r.GetParameters()["unload_dependents"].GetBoolParam() {
		return nil, inference.Errorf(inference.Unimplemented, "unload_dependents: models here depend on no others")
	}
	if err := s.Unload(ctx, r.GetModelName()); err != nil {
		return nil, err
	}
	return &inferencepb.RepositoryModelUnloadResponse{}, nil
}
