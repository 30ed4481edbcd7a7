package sharedmemory

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Service is a service whose requests may have tensors in shared memory.
func (r *Regions) Service(s inference.Service) inference.Service { return &service{s, r} }

type service struct {
	inference.Service
	regions *Regions
}

// Metadata adds the extension.
func (s *service) Metadata() inference.ServerMetadata {
	m := s.Service.Metadata()
	if s.regions != nil {
		m.Extensions = append(m.Extensions, "system_shared_memory")
	}
	return m
}

// Infer reads the inputs that are in shared memory, and writes the outputs that are to be
// there, whose data the answer does not have.
func (s *service) Infer(ctx context.Context, r *inference.Request) (*inference.Response, error) {
	taken := int64(0) // by inputs before, which may lie in the same place
	for i := range r.Inputs {
		t := &r.Inputs[i]
		if !t.Parameters.Shared() {
			continue
		}
		what := fmt.Sprintf("input %q", t.Name)
		p, err := s.regions.part(what, t.Parameters)
		if err != nil {
			return nil, err
		}
		if t.Data, err = p.read(what, s.regions.most-taken); err != nil {
			return nil, err
		}
		taken += p.size
	}
	parts, err := s.outputs(r)
	if err != nil {
		return nil, err
	}
	resp, err := s.Service.Infer(ctx, r)
	if err != nil || parts == nil {
		return resp, err
	}
	for i, p := range parts {
		if p.region == nil {
			continue
		}
		t := &resp.Outputs[i]
		if err := p.write(fmt.Sprintf("output %q", t.Name), t.Data); err != nil {
			resp.Release()
			return nil, err
		}
		t.Parameters = inference.Parameters{inference.SharedMemoryRegion: p.region.Name, sizeParameter: int64(len(t.Data))}
		if at := p.offset - int64(p.region.Offset); at != 0 {
			t.Parameters[offsetParameter] = at
		}
		t.Data = nil
	}
	return resp, nil
}

// outputs returns where outputs are to be put, before they have cost a run; nil if none
// is to be in shared memory.
func (s *service) outputs(r *inference.Request) ([]part, error) {
	var parts []part
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if !o.Parameters.Shared() {
			continue
		}
		p, err := s.regions.part(fmt.Sprintf("output %q", o.Name), o.Parameters)
		if err != nil {
			return nil, err
		}
		if parts == nil {
			parts = make([]part, len(r.Outputs))
		}
		parts[i] = p
	}
	return parts, nil
}
