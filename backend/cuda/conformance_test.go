//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// TestConformance runs the suites on the stand-in, which takes some tenths of a
// second to compile a kernel. What Programs compute is left to long tests, for one
// in so many of them, and for all if LORIS_CUDA_CONFORMANCE is set: package steps
// tests them all without the driver layer, and compiles their kernels at once.
func TestConformance(t *testing.T) {
	_, b := newFake(t, 1)
	t.Run("Rules", func(t *testing.T) { backendtest.RunRules(t, b, gpu(0)) })
	if !longtest.Enabled() {
		return
	}
	s := &sampling{Backend: b, host: ref.New(), every: 150}
	if os.Getenv("LORIS_CUDA_CONFORMANCE") != "" {
		s.every = 1
	}
	backendtest.Run(t, s, gpu(0))
	backendtest.RunOpInfo(t, s, gpu(0))
	t.Logf("%d of %d programs", s.ran, s.count)
}

// sampling is a Backend that has the reference compute all but a few Programs, those
// by their decomposition for which it has no kernels.
type sampling struct {
	*Backend
	host              *ref.Backend
	every, count, ran int
}

func (s *sampling) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	s.count++
	if _, err := s.of(d); err != nil || s.count%s.every == 0 {
		s.ran++
		return s.Backend.Compile(ctx, p, d, o)
	}
	m, err := s.host.Compile(ctx, p, ref.Device, o)
	if errors.Is(err, backend.ErrUnsupported) && !slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { return !s.Supports(in.Op) }) {
		p, _ = graph.Optimize(p, graph.Options{Supports: s.host.Supports, NoRules: true})
		m, err = s.host.Compile(ctx, p, ref.Device, o)
	}
	return &hostModel{m, s}, err
}

// hostModel runs a model of the reference on buffers of a GPU.
type hostModel struct {
	backend.Model
	s *sampling
}

func (m *hostModel) Run(ctx context.Context, inputs []backend.Buffer, _ []bool) (outs []backend.Buffer, err error) {
	in := make([]backend.Buffer, len(inputs))
	for i, b := range inputs {
		raw, err := b.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		if in[i], err = m.s.host.Upload(ctx, b.Shape(), ref.Device, raw); err != nil {
			return nil, err
		}
	}
	results, err := m.Model.Run(ctx, in, nil)
	for _, b := range in {
		b.Release()
	}
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		raw, err := r.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		b, err := m.s.Upload(ctx, r.Shape(), gpu(0), raw)
		if err != nil {
			return nil, err
		}
		outs = append(outs, b)
		r.Release()
	}
	return outs, nil
}
