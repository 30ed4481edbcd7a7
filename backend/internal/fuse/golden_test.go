package fuse_test

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/golden"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ref"
)

// TestPlanGoldens shows the kernels that Programs become, and what is computed outside of them.
func TestPlanGoldens(t *testing.T) {
	golden.Run(t, "testdata", func(t *testing.T, text string) string {
		p, err := graph.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b := &planned{Backend: ref.New(), parts: 1, trace: &strings.Builder{}}
		p, _ = graph.Optimize(p, graph.Options{})
		b.trace.WriteString(p.String())
		b.trace.WriteByte('\n')
		var in []backend.Buffer
		for _, q := range p.Params {
			x, err := b.Upload(t.Context(), q.Shape, ref.Device, make([]byte, q.Shape.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		m, err := b.Compile(t.Context(), p, ref.Device, backend.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Run(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
		program := len(p.String()) + 1
		built := b.trace.String()
		b.trace.Reset()
		if _, err := m.Run(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
		if again := b.trace.String(); again != built[program:] {
			t.Errorf("from templates:\n%s\nwant\n%s", again, built[program:])
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		return built
	})
}
