//go:build cuda && linux && cgo

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris"
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
	"github.com/loris-ml/loris/internal/longtest"
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

// onStandIn returns a stand-in with two GPUs, where packages for CUDA are loaded until the test ends.
func onStandIn(t *testing.T) *exported {
	t.Helper()
	e := &exported{f: fakecuda.New(t), values: map[string][]byte{}}
	e.f.Set("devices", 2)
	t.Setenv("LORIS_LIBNVRTC", e.f.Path)
	e.b = cuda.New(cuda.Libraries{Driver: e.f.Path, NVRTC: e.f.Path, CUBLASLt: e.f.Path})
	t.Cleanup(func() { check(t, e.b.Close()) })
	before := accelerator.Of("cuda")
	accelerator.Register("cuda", e.b)
	t.Cleanup(func() { accelerator.Register("cuda", before) })
	return e
}

// load loads the package.
func (e *exported) load(t *testing.T, pkg []byte, opts ...aoti.Option) {
	t.Helper()
	r, err := aoti.LoadFrom(t.Context(), bytes.NewReader(pkg), int64(len(pkg)), opts...)
	check(t, err)
	e.pkg, e.r = pkg, r
	t.Cleanup(func() { check(t, e.r.Close()) })
}

// exportFunction writes a package of a function, and loads it.
func exportFunction(t *testing.T, fn func(in ...*loris.Tensor) []*loris.Tensor, inputs ...*loris.Tensor) *exported {
	t.Helper()
	e := onStandIn(t)
	var out bytes.Buffer
	check(t, export.Function(t.Context(), &out, fn, inputs, export.Options{Device: "cuda", Architectures: []string{"sm_90"}}))
	e.load(t, out.Bytes())
	return e
}

// exportProgram writes a package of a Program whose parameters with names that begin with w are
// constants, and loads it.
func exportProgram(t *testing.T, source string, archs []string, assign map[string]int, opts ...aoti.Option) *exported {
	t.Helper()
	e := onStandIn(t)
	var err error
	e.p, err = graph.Parse(source)
	check(t, err)
	constants := map[string]aoti.ConstantValue{}
	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range e.p.Params {
		var data []byte
		for range q.Shape.Numel() {
			if q.Shape.DType().IsFloat() {
				data = elements.AppendFloat(data, q.Shape.DType(), random.NormFloat64())
			} else {
				data = elements.AppendInt(data, q.Shape.DType(), 1+int64(random.IntN(2)))
			}
		}
		e.values[q.Name] = data
		if q.Name[0] == 'w' {
			constants[q.Name] = aoti.ConstantValue{Shape: q.Shape, Data: data}
		}
	}
	var out bytes.Buffer
	check(t, export.Program(t.Context(), &out, e.p, export.Options{Constants: constants, Device: "cuda", Architectures: archs, Assign: assign}))
	e.load(t, out.Bytes(), opts...)
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

// Packages for a GPU compute what the CPU does: loops and reductions, products by libtorch's functions,
// convolutions, copies, indexing; with machine code for the GPU, and with PTX where that is for others.
func TestExportedPackages(t *testing.T) {
	for _, c := range []struct {
		program string
		archs   []string
		ulps    float64
		long    bool
	}{
		{"pointwise", []string{"compute_80"}, 4, false},
		{"mlp", []string{"compute_80", "sm_90", "sm_100"}, 40, false}, // a softmax of large sums
		{"driver", []string{"sm_90"}, 40, false},
		{"norm", []string{"sm_90"}, 4, true},
		{"linear", []string{"sm_90"}, 40, true},
		{"moves", []string{"sm_90"}, 4, true},
		{"scatter", []string{"sm_90"}, 4, true},
		{"conv", []string{"sm_90"}, 40, true},
		{"encoder", []string{"sm_90"}, 40, true},
		{"gpt", []string{"sm_90"}, 40, true},
	} {
		t.Run(c.program, func(t *testing.T) {
			if c.long && !longtest.Enabled() {
				t.Skip("one of the long suites")
			}
			src, err := os.ReadFile("../../aoti/export/testdata/" + c.program + ".lir")
			check(t, err)
			exportProgram(t, string(src), c.archs, nil, aoti.Instances(2), aoti.Device("cuda:1")).compare(t, 1, c.ulps)
		})
	}
}

const scaled = `program @p {
  %x = parameter "x" : f32[3,4]
  %w = parameter "w" : f32[4]
  return mul(%x, %w)
}`

// Constants of a package for a GPU are updated and swapped, from wherever the values are.
func TestExportedConstants(t *testing.T) {
	e := exportProgram(t, scaled, []string{"sm_90"}, nil)
	e.compare(t, 0, 0)
	s := ir.MakeShape(ir.F32, 4)
	for gpu := -1; gpu < 2; gpu++ {
		for _, managed := range []bool{false, true} {
			var opts []aoti.UpdateOption
			if managed {
				opts = append(opts, aoti.UserManaged())
			}
			fresh := elements.EncodeFloats(ir.F32, []float64{float64(gpu), 2, 3, 4})
			check(t, e.r.Update(t.Context(), map[string]backend.Buffer{"w": e.put(t, gpu, s, fresh)}, aoti.Inactive, opts...))
			e.compare(t, 0, 0)
			check(t, e.r.Swap(t.Context()))
			e.values["w"] = fresh
			e.compare(t, 0, 0)
		}
	}
	values, err := e.r.ExtractConstants(t.Context(), aoti.Active, true)
	check(t, err)
	got, err := aoti.Float32s(values["w"])
	check(t, err)
	if got[0] != 1 || got[3] != 4 {
		t.Errorf("the constant is %v", got)
	}
	if err := e.r.Update(t.Context(), map[string]backend.Buffer{"w": e.put(t, 0, ir.MakeShape(ir.F32, 5), make([]byte, 20))}, aoti.Active); !errors.Is(err, ir.ErrShape) {
		t.Errorf("a constant of another size: %v", err)
	}
	e.compare(t, 0, 0)
}

// Runs in several streams beside swaps see one set of constants each.
func TestExportedSwapUnderLoad(t *testing.T) {
	e := exportProgram(t, scaled, []string{"sm_90"}, nil, aoti.Instances(3))
	x := e.put(t, 0, ir.MakeShape(ir.F32, 3, 4), elements.EncodeFloats(ir.F32, slices.Repeat([]float64{1}, 12)))
	var sets [2]map[string]backend.Buffer
	for i := range sets {
		sets[i] = map[string]backend.Buffer{"w": e.put(t, 0, ir.MakeShape(ir.F32, 4), elements.EncodeFloats(ir.F32, slices.Repeat([]float64{float64(i + 1)}, 4)))}
	}
	check(t, e.r.Update(t.Context(), sets[0], aoti.Active))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				out, err := e.r.Run(t.Context(), x)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := aoti.Float32s(out[0])
				if out[0].Release(); err != nil || v[0] != 1 && v[0] != 2 || slices.Min(v) != slices.Max(v) {
					t.Errorf("got %v, %v", v, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		check(t, e.r.Update(t.Context(), sets[i%2], aoti.Inactive))
		check(t, e.r.Swap(t.Context()))
	}
	close(done)
	wg.Wait()
}

// What runs assign goes on from run to run: a constant, and the caller's tensor.
func TestExportedState(t *testing.T) {
	e := exportProgram(t, `program @p {
  %x = parameter "x" : f32[2]
  %c = parameter "cache" : f32[3,2]
  %n = parameter "wn" : i64[]
  %0 = add(%n, full([], 1, dtype=i64))
  %1 = cat([narrow(%c, 0, 1, 2), reshape(%x, [1,2])], 0)
  return %0, mul(%x, %x), %1, %n
}`, []string{"sm_90"}, map[string]int{"wn": 0, "cache": 2})
	x, cache := e.on(t, 0, "x"), e.on(t, 0, "cache")
	last, err := aoti.Float32s(x)
	check(t, err)
	first := elements.Int(ir.I64, e.values["wn"], 0)
	for n := range 4 {
		out, err := e.r.Run(t.Context(), x, cache)
		check(t, err)
		data, err := out[1].Bytes(t.Context())
		check(t, err)
		if got := elements.Int(ir.I64, data, 0); got != first+int64(n) {
			t.Errorf("run %d begins at %d, the first at %d", n, got, first)
		}
		for _, b := range out {
			b.Release()
		}
	}
	rows, err := aoti.Float32s(cache)
	check(t, err)
	for i, v := range rows {
		if v != last[i%2] {
			t.Errorf("the cache has %v at %d, want %v", v, i, last[i%2])
		}
	}
}

// Random numbers are drawn anew in each run, from the generator of the process.
func TestExportedRandomNumbers(t *testing.T) {
	fn := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{in[0].Dropout(0.5)} }
	e := exportFunction(t, fn, loris.Ones(4, 64))
	x := e.put(t, 0, ir.MakeShape(ir.F32, 4, 64), elements.EncodeFloats(ir.F32, slices.Repeat([]float64{1}, 256)))
	var runs [][]float32
	for range 2 {
		out, err := e.r.Run(t.Context(), x)
		check(t, err)
		v, err := aoti.Float32s(out[0])
		check(t, err)
		out[0].Release()
		kept := 0
		for _, y := range v {
			if y != 0 && y != 2 {
				t.Fatalf("an element is %v", y)
			}
			kept += int(y) / 2
		}
		if kept < 80 || kept > 176 {
			t.Errorf("%d of 256 elements were kept", kept)
		}
		runs = append(runs, v)
	}
	if slices.Equal(runs[0], runs[1]) {
		t.Error("both runs drew the same numbers")
	}
}

// What is wrong with inputs, and what kernels find wrong, is an error; the package goes on.
func TestExportedFaults(t *testing.T) {
	e := exportProgram(t, `program @p {
  %x = parameter "x" : f32[5,2]
  %i = parameter "i" : i64[3]
  %d = parameter "d" : i32[2]
  return index_select(%x, 0, %i), floor_divide(%d, %d)
}`, []string{"sm_90"}, nil)
	for _, c := range []struct {
		name string
		i    ir.Shape
		v    []int64
		gpu  int
		d    int64
		want string
	}{
		{"an index out of range", ir.MakeShape(ir.I64, 3), []int64{1, 7, 0}, 0, 1, "index_select"},
		{"a division by zero", ir.MakeShape(ir.I64, 3), []int64{1, 2, 0}, 0, 0, "integer division by zero"},
		{"another dtype", ir.MakeShape(ir.I32, 3), []int64{1, 2, 0}, 0, 1, "dtype"},
		{"another size", ir.MakeShape(ir.I64, 2), []int64{1, 2}, 0, 1, "must be 3"},
		{"the host", ir.MakeShape(ir.I64, 3), []int64{1, 2, 0}, -1, 1, "input 1"},
		{"another GPU", ir.MakeShape(ir.I64, 3), []int64{1, 2, 0}, 1, 1, "input 1"},
	} {
		var data []byte
		for _, v := range c.v {
			data = elements.AppendInt(data, c.i.DType(), v)
		}
		d := e.put(t, 0, ir.MakeShape(ir.I32, 2), elements.AppendInt(elements.AppendInt(nil, ir.I32, 1), ir.I32, c.d))
		_, err := e.r.Run(t.Context(), e.on(t, 0, "x"), e.put(t, c.gpu, c.i, data), d)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	e.compare(t, 0, 0)
}
