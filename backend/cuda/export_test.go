//go:build cuda && linux && cgo

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// exported is a package for a GPU, in this project's own host on a stand-in.
type exported struct {
	f      *fakecuda.Fake
	b      *cuda.Backend
	r      *aoti.Runner
	p      *graph.Program
	pkg    []byte
	values map[string][]byte
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exportProgram writes a package of a Program whose parameters with names that begin with w are
// constants, and loads it.
func exportProgram(t *testing.T, source string, archs []string, assign map[string]int, opts ...aoti.Option) *exported {
	t.Helper()
	f := fakecuda.New(t)
	f.Set("devices", 2)
	t.Setenv("LORIS_LIBNVRTC", f.Path)
	b := cuda.New(cuda.Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
	t.Cleanup(func() { check(t, b.Close()) })
	before := accelerator.Of("cuda")
	accelerator.Register("cuda", b)
	t.Cleanup(func() { accelerator.Register("cuda", before) })
	p, err := graph.Parse(source)
	check(t, err)
	e := &exported{f: f, b: b, p: p, values: map[string][]byte{}}
	constants := map[string]aoti.ConstantValue{}
	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range p.Params {
		var data []byte
		for range q.Shape.Numel() {
			if q.Shape.DType().IsFloat() {
				data = elements.AppendFloat(data, q.Shape.DType(), random.NormFloat64())
			} else {
				data = elements.AppendInt(data, q.Shape.DType(), 1+int64(random.IntN(4)))
			}
		}
		e.values[q.Name] = data
		if q.Name[0] == 'w' {
			constants[q.Name] = aoti.ConstantValue{Shape: q.Shape, Data: data}
		}
	}
	var out bytes.Buffer
	check(t, export.Program(t.Context(), &out, p, export.Options{Constants: constants, Device: "cuda", Architectures: archs, Assign: assign}))
	e.pkg = out.Bytes()
	e.r, err = aoti.LoadFrom(t.Context(), bytes.NewReader(e.pkg), int64(len(e.pkg)), opts...)
	check(t, err)
	t.Cleanup(func() { check(t, e.r.Close()) })
	return e
}

// on returns a parameter's value on a GPU, or on the host for a negative number.
func (e *exported) on(t testing.TB, gpu int, name string) backend.Buffer {
	t.Helper()
	for _, q := range e.p.Params {
		if q.Name == name {
			return e.put(t, gpu, q.Shape, e.values[name])
		}
	}
	t.Fatalf("there is no parameter %s", name)
	return nil
}

func (e *exported) put(t testing.TB, gpu int, s ir.Shape, data []byte) backend.Buffer {
	t.Helper()
	var b backend.Backend = cpu.New()
	d := cpu.Device
	if gpu >= 0 {
		b, d = e.b, ir.Device{Type: cuda.DeviceType, Index: uint8(gpu)}
	}
	buf, err := b.Upload(t.Context(), s, d, data)
	check(t, err)
	t.Cleanup(buf.Release)
	return buf
}

// inputs returns all inputs on a GPU.
func (e *exported) inputs(t testing.TB, gpu int) (in []backend.Buffer) {
	t.Helper()
	for _, q := range e.p.Params {
		if q.Name[0] != 'w' {
			in = append(in, e.on(t, gpu, q.Name))
		}
	}
	return in
}

// want returns what the CPU computes of the present values.
func (e *exported) want(t testing.TB) []backend.Buffer {
	t.Helper()
	b := cpu.New()
	p, _ := graph.Optimize(e.p, graph.Options{Supports: b.Supports})
	m, err := b.Compile(t.Context(), p, cpu.Device, backend.CompileOptions{})
	check(t, err)
	var all []backend.Buffer
	for _, q := range e.p.Params {
		all = append(all, e.on(t, -1, q.Name))
	}
	outs, err := m.Run(t.Context(), all, nil)
	check(t, err)
	return outs
}

// compare runs the package and holds it to what the CPU computes, to some units in the last place of
// the largest.
func (e *exported) compare(t testing.TB, gpu int, ulps float64) {
	t.Helper()
	got, err := e.r.Run(t.Context(), e.inputs(t, gpu)...)
	check(t, err)
	want := e.want(t)
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Shape() != want[i].Shape() || got[i].Device().Type != cuda.DeviceType {
			t.Fatalf("output %d is %v on %v, want %v", i, got[i].Shape(), got[i].Device(), want[i].Shape())
		}
		a, err := got[i].Bytes(context.Background())
		check(t, err)
		b, err := want[i].Bytes(context.Background())
		check(t, err)
		got[i].Release()
		d := want[i].Shape().DType()
		if !d.IsFloat() {
			if !bytes.Equal(a, b) {
				t.Errorf("output %d: %v, want %v", i, a, b)
			}
			continue
		}
		worst, largest := 0.0, 0.0
		for k := range want[i].Shape().Numel() {
			x, y := elements.Float(d, a, k), elements.Float(d, b, k)
			worst, largest = max(worst, math.Abs(x-y)), max(largest, math.Abs(y))
			if math.IsNaN(x) != math.IsNaN(y) {
				t.Fatalf("output %d: element %d is %v, want %v", i, k, x, y)
			}
		}
		if ulp := map[ir.DType]float64{ir.F32: 1.2e-7, ir.F64: 2.3e-16, ir.BF16: 8e-3, ir.F16: 1e-3}[d]; !(worst <= ulps*ulp*largest) {
			t.Errorf("output %d is off by %g, where the largest is %g", i, worst, largest)
		}
	}
}

// packaged is a Program of testdata of aoti/export.
func packaged(t testing.TB, name string) string {
	t.Helper()
	src, err := os.ReadFile("../../aoti/export/testdata/" + name + ".lir")
	check(t, err)
	return string(src)
}

// Packages for a GPU compute what the CPU does: loops and reductions, products by libtorch's functions,
// copies, indexing; with machine code for the GPU, and with PTX.
func TestExportedPackages(t *testing.T) {
	for _, c := range []struct {
		program string
		archs   []string
		ulps    float64
	}{
		{"norm", []string{"sm_90"}, 4},
		{"pointwise", []string{"compute_80"}, 4},
		{"mlp", []string{"compute_90", "sm_90", "sm_100"}, 4},
	} {
		t.Run(c.program, func(t *testing.T) {
			exportProgram(t, packaged(t, c.program), c.archs, nil, aoti.Instances(2), aoti.Device("cuda:1")).compare(t, 1, c.ulps)
		})
	}
}

var _ = errors.Is
