package cpu_test

import (
	"bytes"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
)

const softmaxText = `program @softmax {
  %x = parameter "x" : f32[8,100]
  %0 = amax(%x, dim=[1], keepdim=true)
  %1 = exp(sub(%x, %0))
  %2 = div(%1, sum(%1, dim=[1], keepdim=true))
  return %2
}`

// A backend that is given an artefact compiles nothing, and computes the same.
func TestArtifact(t *testing.T) {
	ctx := t.Context()
	p, err := graph.Parse(softmaxText)
	if err != nil {
		t.Fatal(err)
	}
	p, _ = graph.Optimize(p, graph.Options{Supports: cpu.New().Supports})
	compile := func(b *cpu.Backend, artifact []byte) (fresh, result []byte) {
		t.Helper()
		m, fresh, err := b.CompileArtifact(ctx, p, cpu.Device, backend.CompileOptions{}, artifact)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		data := make([]byte, 3200)
		for i := range data {
			data[i] = byte(i % 60)
		}
		x, err := b.Upload(ctx, p.Params[0].Shape, cpu.Device, data)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		out, err := m.Run(ctx, []backend.Buffer{x}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer out[0].Release()
		result, err = out[0].Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return fresh, bytes.Clone(result)
	}
	if cpu.NewPortable().ArtifactID(cpu.Device) != "" {
		t.Error("a portable backend has artefacts")
	}
	levels := cpu.Levels()
	var ids []string
	for name, b := range levels {
		t.Run(name, func(t *testing.T) {
			ids = append(ids, b.ArtifactID(cpu.Device))
			artifact, want := compile(b, nil)
			if len(artifact) == 0 || cpu.Compiles(b) == 0 {
				t.Fatalf("an artefact of %d bytes, %d kernels", len(artifact), cpu.Compiles(b))
			}
			next := cpu.Levels()[name]
			fresh, got := compile(next, artifact)
			if fresh != nil || cpu.Compiles(next) != 0 {
				t.Errorf("with an artefact: another of %d bytes, %d kernels compiled", len(fresh), cpu.Compiles(next))
			}
			if !bytes.Equal(got, want) {
				t.Error("with an artefact the result is another")
			}
			// What the process has compiled already belongs into an artefact too.
			if again, _ := compile(b, nil); len(again) == 0 {
				t.Error("no artefact of a program whose kernels were there")
			}
			other := cpu.Levels()[name]
			for _, bad := range [][]byte{{}, []byte("something else"), artifact[:len(artifact)/2]} {
				if fresh, got := compile(other, bad); fresh == nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes that are no artefact: %d fresh bytes", len(bad), len(fresh))
				}
			}
		})
	}
	if len(ids) == 2 && ids[0] == ids[1] {
		t.Errorf("two levels have the ID %q", ids[0])
	}
}
