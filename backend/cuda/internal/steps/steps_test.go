package steps

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// recorder is the reference backend for Programs that can be lowered. Of one in so
// many it keeps what it is asked to run, with the results.
type recorder struct {
	*ref.Backend
	stride, count int

	mu   sync.Mutex // models run at once
	runs []recorded // guarded by mu
}

type recorded struct {
	p       *graph.Program
	s       *Sequence
	in, out [][]byte
	err     error
}

func (*recorder) Supports(op ir.Op) bool { return Supports(op) }

func (r *recorder) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	primitive := p
	if hasComposites(p) {
		primitive, _ = graph.Optimize(p, graph.Options{NoRules: true})
	}
	m, err := r.Backend.Compile(ctx, primitive, d, o)
	if r.count++; err != nil || r.count%r.stride != 0 {
		return m, err
	}
	s, err := Lower(p, Options{Limits: limits, Aliases: o.Aliases})
	if err != nil {
		return nil, err
	}
	return &recording{m, r, p, s}, nil
}

func hasComposites(p *graph.Program) bool {
	return slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { sp := in.Op.Spec(); return sp != nil && sp.Composite() })
}

type recording struct {
	backend.Model
	r *recorder
	p *graph.Program
	s *Sequence
}

func (m *recording) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	c := recorded{p: m.p, s: m.s}
	outs, err := m.Model.Run(ctx, inputs, donated)
	c.err = err
	if len(inputs) != len(m.p.Params) || ctx.Err() != nil {
		return outs, err
	}
	for i, b := range inputs {
		data, bytesErr := b.Bytes(ctx)
		if bytesErr != nil || len(data) != m.p.Params[i].Shape.Bytes() {
			return outs, err
		}
		c.in = append(c.in, append([]byte(nil), data...))
	}
	for _, b := range outs {
		data, err := b.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		c.out = append(c.out, append([]byte(nil), data...))
	}
	m.r.mu.Lock()
	m.r.runs = append(m.r.runs, c)
	m.r.mu.Unlock()
	return outs, err
}

// memory returns the memory of a run; what is not given has garbage.
func (c *recorded) memory() (all [][]byte) {
	garbage := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = 0xa5
		}
		return b
	}
	all = append(all, garbage(c.s.Workspace), c.s.Constants)
	all = append(all, c.in...)
	for _, s := range c.s.Outputs {
		all = append(all, garbage(s.Bytes()))
	}
	return append(all, make([]byte, FaultBytes*c.s.Faults))
}

// TestReductions are of dimensions that lie apart in memory, and of none.
func TestReductions(t *testing.T) {
	runPrograms(t, map[string]string{
		"three apart": `program @p {
			%x = parameter "x" : f32[3,4,5,6]
			%0 = permute(%x, dims=[3,1,0,2])
			%1 = sum(%0) : f32[]
			%2 = argmax(%0) : i64[]
			%3 = amax(%0, dim=[0,2]) : f32[4,5]
			%4 = prod(%x, dim=[0,2]) : f32[4,6]
			%5 = sum(%x, dim=[1,3], keepdim=true) : f32[3,1,5,1]
			return %1, %2, %3, %4, %5
		}`,
		"nothing": `program @p {
			%x = parameter "x" : i32[3,0]
			%0 = sum(%x, dim=[1])
			%1 = all(%x)
			%2 = prod(%x, dim=[0])
			return %0, %1, %2
		}`,
	})
}

// runPrograms runs Programs on the device of fibers, on numbers from -2 to 2.
func runPrograms(t *testing.T, programs map[string]string) {
	t.Helper()
	d := newDevice(t)
	r := &recorder{Backend: ref.New(), stride: 1}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, name := range slices.Sorted(maps.Keys(programs)) { // each has the same inputs in every run
		p, err := graph.Parse(programs[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var in []backend.Buffer
		for _, q := range p.Params {
			var data []byte
			for range q.Shape.Numel() {
				if q.Shape.DType().IsFloatOrF8() {
					data = elements.AppendFloat(data, q.Shape.DType(), 4*rng.Float64()-2)
				} else {
					data = elements.AppendInt(data, q.Shape.DType(), rng.Int64N(5)-2)
				}
			}
			b, err := r.Upload(t.Context(), q.Shape, ref.Device, data)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, b)
		}
		p, _ = graph.Optimize(p, graph.Options{Supports: r.Supports})
		m, err := r.Compile(t.Context(), p, ref.Device, backend.CompileOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := m.Run(t.Context(), in, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	r.check(t, d)
}

// TestConformance runs the conformance suites' Programs, all at once, on the device
// of fibers, and holds the results against the reference's.
func TestConformance(t *testing.T) {
	d := newDevice(t)
	r := &recorder{Backend: ref.New(), stride: 1}
	if !longtest.Enabled() {
		backendtest.RunSome(t, r, ref.Device, 100)
		backendtest.RunRules(t, r, ref.Device)
	} else {
		r.stride = 20 // a compiler takes minutes for all, of many alike
		backendtest.Run(t, r, ref.Device)
		backendtest.RunOpInfo(t, r, ref.Device)
	}
	r.check(t, d)
}

// check does on a device what the recorder was asked to run.
func (r *recorder) check(t *testing.T, d *device) {
	t.Helper()
	for i := range r.runs {
		d.add(r.runs[i].s, r.runs[i].memory())
	}
	out := d.run()
	for i := range r.runs {
		c := &r.runs[i]
		memory := c.memory()
		for i, m := range memory {
			memory[i], out = out[:len(m):len(m)], out[len(m):]
		}
		c.check(t, memory)
	}
	if len(out) != 0 {
		t.Errorf("%d bytes are left", len(out))
	}
}

func (c *recorded) check(t *testing.T, memory [][]byte) {
	t.Helper()
	faults := memory[len(memory)-1]
	for i := range c.s.Steps {
		s := &c.s.Steps[i]
		if s.Fault < 0 {
			continue
		}
		err := s.Failed(faults[FaultBytes*s.Fault:])
		if err == nil {
			continue
		}
		for _, is := range []error{ir.ErrIndex, ir.ErrZeroDivision} {
			if errors.Is(err, is) != errors.Is(c.err, is) {
				t.Errorf("got error %v, want %v in\n%s", err, c.err, c.p)
			}
		}
		return
	}
	if c.err != nil {
		t.Errorf("no error, want %v in\n%s", c.err, c.p)
		return
	}
	tolerance, part := 0.0, 0.01 // that of the narrowest float that takes part
	if hasComposites(c.p) {
		part = 0.3 // probabilities of attention, and their gradients, are rounded before they are added up
	}
	for _, s := range c.p.Shapes[len(c.p.Params):] {
		tolerance = max(tolerance, tolerances[s.DType()])
	}
	for i, want := range c.out {
		got, s := memory[c.s.Output(i)], c.s.Outputs[i]
		if at, x, y, ok := differ(s.DType(), got, want, tolerance, part); !ok {
			t.Errorf("output %d, element %d is %v, want %v in\n%s", i, at, x, y, c.p)
			return
		}
	}
}

// tolerances are roundings of sums and elementary functions.
var tolerances = map[ir.DType]float64{ir.F64: 1e-9, ir.F32: 2e-4, ir.F16: 4e-3, ir.BF16: 3e-2, ir.F8E4M3FN: 0.13, ir.F8E5M2: 0.26}

// differ finds the first element that is not close, beside itself and a part of the
// largest; x and y are what it is and should be.
func differ(d ir.DType, got, want []byte, tolerance, part float64) (at int, x, y any, ok bool) {
	size := d.Size()
	scale := 0.0
	for i := 0; d.IsFloatOrF8() && i < len(want); i += size {
		if v := math.Abs(elements.Float(d, want, i/size)); !math.IsInf(v, 0) && v > scale {
			scale = v
		}
	}
	for i := 0; i < len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if string(g) == string(w) {
			continue
		}
		if tolerances[d] == 0 {
			return i / size, g, w, false
		}
		a, b := elements.Float(d, g, 0), elements.Float(d, w, 0)
		close := math.Abs(a-b) <= tolerance*(math.Abs(b)+part*scale+1e-6) || math.IsNaN(a) && math.IsNaN(b)
		if !close {
			return i / size, a, b, false
		}
	}
	return 0, nil, nil, true
}
