//go:build cuda && linux && cgo

package cuda

import (
	"bytes"
	"context"
	"encoding/gob"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

const oneProduct = `program @p {
	%x = parameter "x" : f32[2,4]
	%w = parameter "w" : f32[4,3]
	%b = parameter "b" : f32[3]
	return add(matmul(%x, %w), %b)
}`

// algorithms returns the choices of the products since the last time.
func algorithms(f *fakecuda.Fake) (all []string) {
	for _, c := range f.Calls() {
		if args, ok := strings.CutPrefix(c, "cublasLtMatmul algo="); ok {
			n, _, _ := strings.Cut(args, " ")
			all = append(all, n)
		}
	}
	return all
}

// slow makes the choices take so many milliseconds.
func slow(f *fakecuda.Fake, first, second int) {
	f.Set("algo1", first*1e6)
	f.Set("algo2", second*1e6)
}

// compileAndRun returns how many products ran to time them, and the choice of the
// model.
func compileAndRun(t *testing.T, f *fakecuda.Fake, b *Backend, o backend.CompileOptions, kept []byte) (timed int, chosen string, fresh []byte) {
	t.Helper()
	f.Calls()
	m, fresh, err := b.CompileArtifact(t.Context(), parse(t, oneProduct), gpu(0), o, kept)
	check(t, err)
	timed = len(algorithms(f))
	s := func(dims ...int) backend.Buffer {
		x := ir.MakeShape(ir.F32, dims...)
		return uploaded(t, b, x, elements.EncodeFloats(ir.F32, slices.Repeat([]float64{1}, x.Numel())))
	}
	outs, err := m.Run(t.Context(), []backend.Buffer{s(2, 4), s(4, 3), s(3)}, nil)
	check(t, err)
	if y := got(t, outs[0]); !slices.Equal(y, []float64{5, 5, 5, 5, 5, 5}) {
		t.Errorf("got %v", y)
	}
	check(t, m.Close())
	all := algorithms(f)
	if len(all) != 1 {
		t.Fatalf("the run computes %d products", len(all))
	}
	return timed, all[0], fresh
}

func TestTune(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(f *fakecuda.Fake, b *Backend)
		o       backend.CompileOptions
		timed   bool
		want    string
	}{
		{"the first is faster", func(f *fakecuda.Fake, _ *Backend) { slow(f, 100, 200) }, backend.CompileOptions{}, true, "1"},
		{"the second is faster", func(f *fakecuda.Fake, _ *Backend) { slow(f, 200, 100) }, backend.CompileOptions{}, true, "2"},
		{"hardly faster", func(f *fakecuda.Fake, _ *Backend) { slow(f, 1000, 985) }, backend.CompileOptions{}, true, "1"},
		{"it must be the same", func(f *fakecuda.Fake, _ *Backend) { slow(f, 200, 100) }, backend.CompileOptions{Deterministic: true}, false, "1"},
		{"off", func(f *fakecuda.Fake, b *Backend) {
			slow(f, 200, 100)
			b.TuneProducts(0)
		}, backend.CompileOptions{}, false, "1"},
		{"no time", func(f *fakecuda.Fake, b *Backend) {
			slow(f, 200, 100)
			b.TuneProducts(1)
		}, backend.CompileOptions{}, false, "1"},
		{"the first does not run", func(f *fakecuda.Fake, _ *Backend) {
			slow(f, 100, 200)
			f.Fail("cublasLtMatmul", 15, 0, true)
		}, backend.CompileOptions{}, true, "2"},
		{"none runs", func(f *fakecuda.Fake, _ *Backend) {
			f.Fail("cublasLtMatmul", 15, 0, true)
			f.Fail("cublasLtMatmul", 15, 0, true)
		}, backend.CompileOptions{}, true, "1"},
		{"no memory", func(f *fakecuda.Fake, _ *Backend) { f.Fail("cuMemAllocFromPoolAsync", 2, 0, true) }, backend.CompileOptions{}, false, "1"},
		{"no events", func(f *fakecuda.Fake, _ *Backend) { f.Fail("cuEventCreate", 2, 0, true) }, backend.CompileOptions{}, false, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, b := newFake(t, 1)
			c.prepare(f, b)
			timed, chosen, _ := compileAndRun(t, f, b, c.o, nil)
			if (timed > 0) != c.timed || chosen != c.want {
				t.Errorf("%d products were timed, choice %s; want %v, %s", timed, chosen, c.timed, c.want)
			}
		})
	}
}

// TestTuneRemembers checks that what was timed is not timed again: on the device, by
// the artefact, and only where that counts.
func TestTuneRemembers(t *testing.T) {
	f, b := newFake(t, 1)
	slow(f, 200, 100)
	timed, chosen, kept := compileAndRun(t, f, b, backend.CompileOptions{}, nil)
	if timed == 0 || chosen != "2" || kept == nil {
		t.Fatalf("%d timed, choice %s, artefact of %d bytes", timed, chosen, len(kept))
	}
	if again, chosen, fresh := compileAndRun(t, f, b, backend.CompileOptions{}, kept); again != 0 || chosen != "2" || fresh != nil {
		t.Errorf("on the device: %d timed, choice %s, fresh: %v", again, chosen, fresh != nil)
	}
	elsewhere := func(change func(*artifact)) []byte {
		var a artifact
		check(t, gob.NewDecoder(bytes.NewReader(kept)).Decode(&a))
		change(&a)
		var out bytes.Buffer
		check(t, gob.NewEncoder(&out).Encode(a))
		return out.Bytes()
	}
	for _, c := range []struct {
		name   string
		change func(*artifact)
		timed  bool
	}{
		{"kept", func(*artifact) {}, false},
		{"another version", func(a *artifact) { a.BLAS++ }, true},
		{"another device", func(a *artifact) { a.GPU += "x" }, true},
		{"a choice that there is not", func(a *artifact) {
			for spec := range a.Products {
				a.Products[spec] = 7
			}
		}, true},
		{"none", func(a *artifact) { a.Products = map[driver.MatmulSpec]int{} }, true},
	} {
		other := New(Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
		timed, chosen, fresh := compileAndRun(t, f, other, backend.CompileOptions{}, elsewhere(c.change))
		if (timed > 0) != c.timed || (fresh != nil) != c.timed || chosen != "2" {
			t.Errorf("%s: %d timed, choice %s, fresh: %v", c.name, timed, chosen, fresh != nil)
		}
		t.Cleanup(func() { check(t, other.Close()) })
	}
}

// TestTuneEnds checks what ends a compilation while it times.
func TestTuneEnds(t *testing.T) {
	f, b := newFake(t, 1)
	open(t, b, 0)
	ctx, cancel := context.WithCancel(t.Context())
	f.Hold()
	b.TuneProducts(1e15)
	done := make(chan error, 1)
	go func() {
		_, err := b.Compile(ctx, parse(t, oneProduct), gpu(0), backend.CompileOptions{})
		done <- err
	}()
	cancel()
	if err := <-done; err == nil || ctx.Err() == nil {
		t.Errorf("when it is given up: %v", err)
	}
	f.Resume()
	f.Fail("cublasLtMatmul", 14, 1, true)
	f.Fail("cuEventRecord", 719, 3, false)
	if _, err := b.Compile(t.Context(), parse(t, oneProduct), gpu(0), backend.CompileOptions{}); !driver.IsLost(err) {
		t.Errorf("when the device is lost: %v", err)
	}
	f.Heal()
}
