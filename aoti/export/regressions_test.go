package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/sanitizer"
)

func parse(t testing.TB, src string) *graph.Program {
	t.Helper()
	p, err := graph.Parse(src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return p
}

// Packages hold and compute all real dtypes.
func TestDTypesInPackages(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.Bool} {
		t.Run(d.String(), func(t *testing.T) {
			body := "%0 = maximum(%x, %w) %1 = cat([%x, permute(%w, [1,0])], 0) %2 = sum(%x, [1]) return %0, %1, %2, gt(%x, %w)"
			if d.IsFloat() {
				body = "%0 = matmul(%x, %w) %1 = softmax(%0, -1) return %0, %1, tanh(%x), sum(%x)"
			}
			s := sampleOf(t, parse(t, fmt.Sprintf(`program @p { %%x = parameter "x" : %v[6,6] %%w = parameter "w" : %v[6,6] %s }`, d, d, body)), 3)
			got, err := load(t, s.export(t)).Run(context.Background(), s.in...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, s.want(t))
		})
	}
}

// All that cannot be exported is named at once, and nothing is written.
func TestUnsupportedOpsAreListed(t *testing.T) {
	p := parse(t, `program @p {
  %x = parameter "x" : f32[4,4]
  %i = parameter "i" : i64[4,4]
  %s = parameter "s" : i64[]
  %0, %1 = linalg_cholesky_ex(%x)
  %2 = uniform(%s, size=[4,4], dtype=f32, offset=0)
  return add(%0, %2)
}`)
	var pkg bytes.Buffer
	err := export.Program(context.Background(), &pkg, p, export.Options{})
	if err == nil || !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "linalg_cholesky_ex") || !strings.Contains(err.Error(), "uniform") || pkg.Len() > 0 {
		t.Errorf("%v, %d bytes", err, pkg.Len())
	}
}

// Options that do not fit are errors.
func TestWrongOptions(t *testing.T) {
	p := programs(t)["mlp"]
	s := sampleOf(t, p, 1)
	other := aoti.ConstantValue{Shape: ir.MakeShape(ir.F32, 2), Data: make([]byte, 8)}
	for want, o := range map[string]export.Options{
		"no parameter":  {Constants: map[string]aoti.ConstantValue{"nobody": other}},
		`constant "w1"`: {Constants: map[string]aoti.ConstantValue{"w1": other}},
		"1.13":          {Constants: s.constants, Torch: "1.13"},
		"name of files": {Constants: s.constants, Model: "../x"},
	} {
		if err := export.Program(context.Background(), &bytes.Buffer{}, p, o); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, "name of files", "that of files")) {
			t.Errorf("%s: %v", want, err)
		}
	}
	var none context.Context
	if err := export.Program(none, &bytes.Buffer{}, p, export.Options{}); err == nil {
		t.Error("a nil context is taken")
	}
}

// Runs beside updates and swaps compute with one complete set of constants: w - v is 0 in each.
func TestRunsSeeOneSetOfConstants(t *testing.T) {
	ctx := context.Background()
	s := sampleOf(t, parse(t, `program @p { %x = parameter "x" : f32[64] %w = parameter "w" : f32[64] %v = parameter "wv" : f32[64] return mul(%x, sub(%w, %v)) }`), 1)
	s.constants["wv"] = s.constants["w"]
	r := load(t, s.export(t))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, err := r.Run(ctx, s.in...)
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range floats(t, out[0]) {
					if v != 0 {
						t.Errorf("a run saw two sets: %g", v)
						return
					}
				}
				out[0].Release()
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		data := values(ir.MakeShape(ir.F32, 64), rng)
		b, err := aoti.FromBytes(data, ir.F32, 64)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Update(ctx, map[string]aoti.Buffer{"w": b, "wv": b}, aoti.Inactive); err != nil {
			t.Fatal(err)
		}
		if err := r.Swap(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}

// Archives for PyTorch 2.6 have no root folder.
func TestRootOfTheArchive(t *testing.T) {
	s := sampleOf(t, programs(t)["pointwise"], 1)
	for torch, want := range map[string]string{"2.6": "archive_format", "2.11": "net/archive_format", "": "net/archive_format"} {
		var out bytes.Buffer
		if err := export.Program(context.Background(), &out, s.p, export.Options{Constants: s.constants, Torch: torch, Model: "net"}); err != nil {
			t.Fatal(err)
		}
		if _, ok := members(t, out.Bytes())[want]; !ok {
			t.Errorf("%q: there is no %s", torch, want)
		}
		load(t, out.Bytes())
	}
}

// Texts of errors are those of the place that failed. The object's sources have local names in common.
func TestErrorsOfLibraries(t *testing.T) {
	s := sampleOf(t, parse(t, `program @p { %x = parameter "x" : f32[3,4] %i = parameter "i" : i64[2] return index_select(%x, 0, %i) }`), 1)
	r := load(t, s.export(t))
	bad, err := aoti.FromBytes([]byte{0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0}, ir.I64, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(context.Background(), s.in[0], bad); err == nil || !strings.Contains(err.Error(), "index_select: index 9 is out of range for 3 elements") {
		t.Errorf("%v", err)
	}
}

// Weights are written from where the variables have them: an export allocates nothing of their size, but
// for what a writer in memory needs, once.
func TestExportCopiesNoWeights(t *testing.T) {
	if sanitizer.Address {
		t.Skip("the address sanitizer doubles what is allocated")
	}
	ctx := context.Background()
	w := loris.NewVariable(loris.Zeros(1<<10, 1<<11)) // 8 MiB
	fn := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{in[0].Mul(w.Value())} }
	x := loris.Zeros(1 << 11)
	if err := loris.MarkStep(ctx); err != nil { // the weights are there
		t.Fatal(err)
	}
	const size = 8 << 20
	for name, c := range map[string]struct {
		to   io.Writer
		most uint64
	}{"a stream": {io.Discard, size / 2}, "memory": {new(bytes.Buffer), size * 3 / 2}} {
		if err := export.Function(ctx, io.Discard, fn, []*loris.Tensor{x}, export.Options{}); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := export.Function(ctx, c.to, fn, []*loris.Tensor{x}, export.Options{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
			t.Errorf("to %s: %d bytes allocated, for a constant of %d", name, n, size)
		}
	}
}
