//go:build cuda && linux && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// counting returns an input of so many rows whose elements differ, and what the
// model makes of it before it calls an op of the host.
func counting(t *testing.T, b *Backend, rows int) (x backend.Buffer, product []float32) {
	t.Helper()
	data := make([]float32, rows*8)
	for i := range rows {
		sum := float32(1)
		for k := range 8 {
			v := float32((i*37+k*5)%101) / 64
			data[i*8+k] = v
			sum += v
		}
		for range 4 {
			product = append(product, 2*sum)
		}
	}
	bytes, err := aoti.FromSlice(data, rows, 8).Bytes(t.Context())
	check(t, err)
	x, err = b.Upload(t.Context(), ir.MakeShape(ir.F32, rows, 8), gpu(0), bytes)
	check(t, err)
	t.Cleanup(x.Release)
	return x, product
}

// computed returns what the definition makes of a vector p by a program's text.
func computed(t *testing.T, text string, p []float32) []float32 {
	t.Helper()
	program, err := graph.Parse(fmt.Sprintf("program @op {\n  %%p = parameter \"p\" : f32[%d]\n%s\n}", len(p), text))
	check(t, err)
	be := ref.New()
	program, _ = graph.Optimize(program, graph.Options{Supports: be.Supports})
	m, err := be.Compile(t.Context(), program, ir.Device{Type: be.DeviceType()}, backend.CompileOptions{})
	check(t, err)
	outs, err := m.Run(t.Context(), []backend.Buffer{aoti.FromSlice(p, len(p))}, nil)
	check(t, err)
	v, err := aoti.Float32s(outs[0])
	check(t, err)
	return v
}

// held runs a model while the device does nothing, so that who waited for it would
// wait for ever.
func held(t *testing.T, f *fakecuda.Fake, r *aoti.Runner, x backend.Buffer) backend.Buffer {
	t.Helper()
	f.Hold()
	type result struct {
		outs []backend.Buffer
		err  error
	}
	done := make(chan result, 1)
	go func() {
		outs, err := r.Run(t.Context(), x)
		done <- result{outs, err}
	}()
	var got result
	select {
	case got = <-done:
		f.Resume()
	case <-time.After(time.Minute):
		f.Resume()
		<-done
		t.Fatal("the run waits for the device")
	}
	check(t, got.err)
	t.Cleanup(got.outs[0].Release)
	return got.outs[0]
}

// Ops of the host are computed on the device, in the stream of the run, which waits
// for nothing.
func TestInductorOps(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  int
		dims  []int
		text  string
		heavy bool
	}{
		{name: "cumsum", rows: 106, dims: []int{106, 4}, text: `
  %0 = cumsum(reshape(%p, shape=[106,4]), dim=1)
  return %0`},
		{name: "a view that is turned around", rows: 107, dims: []int{4, 107}, text: `
  %0 = transpose(reshape(%p, shape=[107,4]), dim0=0, dim1=1)
  return %0`},
		{name: "convolution with channels innermost", rows: 108, dims: []int{1, 2, 8, 11}, text: `
  %0 = permute(reshape(%p, shape=[1,9,12,4]), dims=[0,3,1,2])
  %1 = full(size=[2,4,2,2], fill_value=1.0, dtype=f32)
  %2 = convolution(%0, %1, None, stride=[1,1], padding=[0,0], dilation=[1,1], transposed=false, output_padding=[0,0], groups=1)
  return %2`},
		{name: "attention", rows: 109, dims: []int{1, 2, 5, 8}, heavy: true, text: `
  %0 = permute(reshape(slice(%p, dim=0, start=0, end=80), shape=[1,5,2,8]), dims=[0,2,1,3])
  %1 = permute(reshape(slice(%p, dim=0, start=80, end=160), shape=[1,5,2,8]), dims=[0,2,1,3])
  %2 = permute(reshape(slice(%p, dim=0, start=160, end=240), shape=[1,5,2,8]), dims=[0,2,1,3])
  %3 = scaled_dot_product_attention(%0, %1, %2, None, is_causal=true)
  return %3`},
		{name: "sort and index_put in place", rows: 110, dims: []int{110, 4}, text: `
  %0 = reshape(%p, shape=[110,4])
  %1, %2 = sort(select(%0, dim=1, index=0), dim=0, descending=true)
  %3 = index_put(%0, [%2], %0)
  return %3`},
		{name: "an op by its name", rows: 115, dims: []int{115, 4}, text: `
  %0 = reshape(%p, shape=[115,4])
  %1 = hypot(%0, %0)
  return %1`},
		{name: "copies between strides and dtypes", rows: 112, dims: []int{112, 4}, text: `
  %0 = reshape(%p, shape=[112,4])
  return %0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.heavy && !longtest.Enabled() {
				t.Skip("compiles many kernels")
			}
			f, b, r := loadModel(t, 1)
			x, p := counting(t, b, c.rows)
			out, err := r.Run(t.Context(), x)
			check(t, err)
			out[0].Release()
			f.Calls()
			last := held(t, f, r, x)
			if calls := f.Calls(); slices.ContainsFunc(calls, func(s string) bool { return strings.HasPrefix(s, "nvrtc") || strings.Contains(s, "cuModuleLoad") }) {
				t.Errorf("the second run compiles: %q", calls)
			}
			got, err := aoti.Float32s(last)
			check(t, err)
			if last.Device() != gpu(0) || last.Shape() != ir.MakeShape(ir.F32, c.dims...) {
				t.Errorf("got %v on %v", last.Shape(), last.Device())
			}
			want := computed(t, c.text, p)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5*max(1, math.Abs(float64(want[i]))) {
					t.Fatalf("element %d: %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// An index out of range is the error of who reads what the run made, and of who
// computes with that; the next run is as good as ever.
func TestInductorIndexOutOfRange(t *testing.T) {
	f, b, r := loadModel(t, 1)
	x, _ := counting(t, b, 111)
	for range 2 {
		out := held(t, f, r, x)
		for range 2 {
			if _, err := out.Bytes(t.Context()); !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), "index_put") && !strings.Contains(err.Error(), "scatter") {
				t.Fatalf("got %v", err)
			}
		}
	}
	wrong := held(t, f, r, x)
	narrow, err := b.Copy(t.Context(), wrong, gpu(0))
	check(t, err)
	t.Cleanup(narrow.Release)
	if _, err := narrow.Bytes(t.Context()); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("a copy: %v", err)
	}
	fine, p := counting(t, b, 112)
	v, err := aoti.Float32s(held(t, f, r, fine))
	check(t, err)
	if !slices.Equal(v, p) {
		t.Errorf("the next run: %v…, want %v…", v[:4], p[:4])
	}
}

// What depends on the data waits for it, and what has no way goes through the host.
func TestInductorOpsThatWait(t *testing.T) {
	_, b, r := loadModel(t, 1)
	if longtest.Enabled() { // it compiles many kernels
		x, _ := counting(t, b, 113)
		out, err := r.Run(t.Context(), x)
		check(t, err)
		defer out[0].Release()
		if s := out[0].Shape(); s != ir.MakeShape(ir.I64, 4*113, 2) {
			t.Errorf("nonzero: %v", s)
		}
		data, err := out[0].Bytes(t.Context())
		check(t, err)
		for i := range 4 * 113 {
			row, col := binary.LittleEndian.Uint64(data[16*i:]), binary.LittleEndian.Uint64(data[16*i+8:])
			if row != uint64(i/4) || col != uint64(i%4) {
				t.Fatalf("element %d that is not zero is at %d, %d", i, row, col)
			}
		}
	}
	z, _ := counting(t, b, 116)
	yours, err := r.Run(t.Context(), z)
	check(t, err)
	defer yours[0].Release()
	if v, err := same(t.Context(), yours[0]); v != 0 || err != nil || yours[0].Device() != gpu(0) {
		t.Errorf("an op of the user's: %v, %v on %v", v, err, yours[0].Device())
	}
	y, _ := counting(t, b, 114)
	through, err := r.Run(t.Context(), y)
	check(t, err)
	defer through[0].Release()
	if s := through[0].Shape(); s != ir.MakeShape(ir.F32, 114, 4) || through[0].Device() != gpu(0) {
		t.Errorf("geqrf: %v on %v", s, through[0].Device())
	}
}

// Runs leave nothing behind, those that fail neither.
func TestInductorOpsFree(t *testing.T) {
	_, b, r := loadModel(t, 1)
	var inputs []backend.Buffer
	for _, rows := range []int{106, 108, 110, 111, 112} {
		x, _ := counting(t, b, rows)
		inputs = append(inputs, x)
	}
	all := func() {
		for _, x := range inputs {
			out, err := r.Run(t.Context(), x)
			check(t, err)
			_, err = out[0].Bytes(t.Context())
			if x.Shape().Dim(0) != 111 {
				check(t, err)
			}
			out[0].Release()
		}
	}
	all()
	before := b.BytesInUse(gpu(0))
	for range 3 {
		all()
	}
	if now := b.BytesInUse(gpu(0)); now != before {
		t.Errorf("%d bytes in use, after the first runs %d", now, before)
	}
	check(t, r.Close())
	held := 0
	for _, x := range inputs {
		held += x.Shape().Bytes()
	}
	if now := b.BytesInUse(gpu(0)); now != int64(held) {
		t.Errorf("%d bytes in use after Close, the inputs have %d", now, held)
	}
}

// A model on the CPU takes no tensors of a GPU.
func TestTensorOfAGPUForTheCPU(t *testing.T) {
	_, b, _ := loadModel(t, 1)
	r, err := aoti.Load(t.Context(), "../../aoti/testdata/mlp.pt2", aoti.Device("cpu"))
	var target *aoti.TargetError
	if errors.As(err, &target) {
		t.Skip(err)
	}
	check(t, err)
	defer r.Close()
	x := filled(t, b, gpu(0), 1, 8, 16)
	var wrong *aoti.InputError
	if _, err := r.Run(t.Context(), x); !errors.As(err, &wrong) || wrong.What != "device" || wrong.Index != 0 {
		t.Errorf("got %v", err)
	}
}
