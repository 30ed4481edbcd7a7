package backendtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// faults are Programs that fail when they run.
var faults = []struct {
	name  string
	in    []input
	build func(b *ir.Builder, x []ir.Value) []ir.Value
	want  error
	text  []string
}{
	{"index_select", []input{ints(ir.I64, 3, 4)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.IndexSelect(b.Iota(4, ir.F32), 0, x[0])}
	}, ir.ErrIndex, []string{"index_select", "4"}},
	{"negative index", []input{ints(ir.I32, -1)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.IndexSelect(b.Iota(4, ir.F32), 0, x[0])}
	}, ir.ErrIndex, []string{"index_select", "-1", "4"}},
	{"gather", []input{ints(ir.I64, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Gather(b.Iota(4, ir.F32), 0, x[0])}
	}, ir.ErrIndex, []string{"gather", "9", "4"}},
	{"scatter", []input{ints(ir.I64, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Scatter(b.Iota(4, ir.F32), 0, x[0], b.Iota(2, ir.F32))}
	}, ir.ErrIndex, []string{"scatter", "9", "4"}},
	{"scatter_reduce", []input{ints(ir.I64, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.ScatterReduce(b.Iota(4, ir.F32), 0, x[0], b.Iota(2, ir.F32), "sum")}
	}, ir.ErrIndex, []string{"scatter_reduce", "9", "4"}},
	{"index_add", []input{ints(ir.I64, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.IndexAdd(b.Iota(4, ir.F32), 0, x[0], b.Iota(2, ir.F32))}
	}, ir.ErrIndex, []string{"index_add", "9", "4"}},
	{"floor_divide", []input{ints(ir.I64, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Binary(aten.FloorDivide, b.Iota(2, ir.I64), x[0])}
	}, ir.ErrZeroDivision, []string{"floor_divide"}},
	{"cholesky", []input{ints(ir.I64, 1, -1)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return b.Call(aten.LinalgCholeskyEx, []any{b.Reshape(b.Cast(x[0], ir.F64), 2, 1, 1)}, ir.A("check_errors", true))[:1]
	}, ir.ErrLinAlg, []string{"linalg_cholesky_ex", "batch element 1", "not positive-definite"}},
	{"singular", []input{ints(ir.I64, 1, 0)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return b.Call(aten.LinalgLUFactorEx, []any{b.Reshape(b.Cast(x[0], ir.F64), 2, 1, 1)}, ir.A("check_errors", true))[:1]
	}, ir.ErrLinAlg, []string{"linalg_lu_factor_ex", "batch element 1", "singular"}},
	{"remainder", []input{ints(ir.I32, 0, 9)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Binary(aten.Remainder, b.Iota(2, ir.I32), x[0])}
	}, ir.ErrZeroDivision, []string{"remainder"}},
}

func ints(d ir.DType, v ...int64) input { return vector(d, elements.EncodeInts(d, v)) }

// errors checks that faults come back as errors that name the op, that the
// model still works afterwards, and that mistakes of the caller are refused.
func (s *suite) errors(t *testing.T) {
	ctx := context.Background()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			p, data, err := record(f.name, f.in, f.build)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { return in.Op.Spec().HostOnly && !s.b.Supports(in.Op) }) {
				t.Skip("computed on the host only")
			}
			m := s.compile(t, p)
			bad := s.mustUpload(t, p, data)
			for i := range data {
				data[i] = elements.EncodeInts(p.Params[i].Shape.DType(), []int64{1, 2}[:p.Params[i].Shape.Numel()])
			}
			good := s.mustUpload(t, p, data)
			for range 2 {
				_, err := finish(ctx, m, bad)
				if !errors.Is(err, f.want) {
					t.Fatalf("error %v, want one that wraps %v", err, f.want)
				}
				for _, w := range f.text {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("error %q does not name %q", err, w)
					}
				}
				out, err := finish(ctx, m, good)
				if err != nil {
					t.Fatalf("after a fault a good run fails: %v", err)
				}
				release(out)
			}
		})
	}
	t.Run("device", func(t *testing.T) {
		other := ir.Device{Type: s.d.Type, Index: 255}
		if _, err := s.b.Upload(ctx, ir.MakeShape(ir.F32), other, make([]byte, 4)); !errors.Is(err, ir.ErrDevice) {
			t.Errorf("upload to %v: error %v, want one that wraps %v", other, err, ir.ErrDevice)
		}
		if _, err := s.b.Compile(ctx, s.negate(t, 1), other, backend.CompileOptions{}); !errors.Is(err, ir.ErrDevice) {
			t.Errorf("compile for %v: error %v, want one that wraps %v", other, err, ir.ErrDevice)
		}
	})
	t.Run("inputs", func(t *testing.T) {
		p := s.negate(t, 3)
		m := s.compile(t, p)
		if _, err := m.Run(ctx, nil, nil); !errors.Is(err, ir.ErrArg) {
			t.Errorf("no inputs: error %v, want one that wraps %v", err, ir.ErrArg)
		}
		four := s.mustUpload(t, s.negate(t, 4), [][]byte{make([]byte, 16)})
		if _, err := m.Run(ctx, four, nil); !errors.Is(err, ir.ErrShape) {
			t.Errorf("wrong shape: error %v, want one that wraps %v", err, ir.ErrShape)
		}
		if _, err := s.b.Upload(ctx, ir.MakeShape(ir.F32, 2), s.d, make([]byte, 4)); !errors.Is(err, ir.ErrShape) {
			t.Errorf("upload of too few bytes: error %v, want one that wraps %v", err, ir.ErrShape)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		p := s.negate(t, 3)
		m := s.compile(t, p)
		in := s.mustUpload(t, p, [][]byte{make([]byte, 12)})
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := m.Run(done, in, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("run: error %v, want %v", err, context.Canceled)
		}
		if _, err := s.b.Compile(done, p, s.d, backend.CompileOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("compile: error %v, want %v", err, context.Canceled)
		}
	})
	t.Run("unsupported", func(t *testing.T) {
		p := s.negate(t, 3)
		p.Instrs[0].Op = 0
		if _, err := s.b.Compile(ctx, p, s.d, backend.CompileOptions{}); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("error %v, want one that wraps %v", err, backend.ErrUnsupported)
		}
	})
}

// negate returns the Program of -x for f32[n].
func (s *suite) negate(t *testing.T, n int) *graph.Program {
	t.Helper()
	p, _, err := record("negate", []input{{ir.MakeShape(ir.F32, n), nil}}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Neg(x[0])}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compile returns a model that is closed at the end of the test.
func (s *suite) compile(t *testing.T, p *graph.Program) backend.Model {
	t.Helper()
	m, err := s.b.Compile(context.Background(), p, s.d, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// mustUpload returns buffers that are released at the end of the test.
func (s *suite) mustUpload(t *testing.T, p *graph.Program, data [][]byte) []backend.Buffer {
	t.Helper()
	in, err := s.upload(context.Background(), p, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(in) })
	return in
}
