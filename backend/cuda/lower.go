//go:build cuda && linux && cgo

package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Supports reports whether op is a primitive, or attention, which is decomposed where
// there is no kernel for it.
func (*Backend) Supports(op ir.Op) bool { return steps.Supports(op) }

// AllowTF32 says whether products of f32 matrices, and attention, may round their operands to
// TF32, which has 10 bits of precision and is several times as fast. It counts for
// what is compiled from now on, and is off at first.
func (b *Backend) AllowTF32(yes bool) { b.tf32.Store(yes) }

// Compile plans and compiles the kernels of a Program. An op or dtype without
// kernel is an error that wraps backend.ErrUnsupported; a device that cannot be
// used is one that wraps ir.ErrDevice.
func (b *Backend) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	m, _, err := b.compile(ctx, p, d, o, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// compile returns the model and what can be kept of it for another time. kept is
// what was kept before, or nil.
func (b *Backend) compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, kept *artifact) (*model, *artifact, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	g, err := b.of(d)
	if err != nil {
		return nil, nil, err
	}
	if kept == nil {
		kept = &artifact{}
	}
	m, made, err := newModel(ctx, g, p, o, kept)
	if err != nil {
		return nil, nil, fmt.Errorf("cuda: program %q: %w", p.Name, err)
	}
	return m, made, nil
}

func newModel(ctx context.Context, d *device, p *graph.Program, o backend.CompileOptions, kept *artifact) (*model, *artifact, error) {
	if err := d.enterModel(); err != nil {
		return nil, nil, err
	}
	m := &model{name: p.Name, dev: d}
	t := d.newTuner(o.Deterministic, d.fitting(kept))
	cubins, err := m.lower(ctx, p, steps.Options{Aliases: o.Aliases}, t, kept.Cubins, o.Progress)
	if err == nil {
		err = m.allocate(ctx)
	}
	if err != nil {
		_ = m.Close() // of what was made so far; the first error tells more
		return nil, nil, err
	}
	return m, d.artifactOf(cubins, t.used), nil
}

// lower plans the model and compiles its kernels, whose machine code it returns.
func (m *model) lower(ctx context.Context, p *graph.Program, o steps.Options, t *tuner, kept map[string][]byte, progress func(done, total int)) (map[string][]byte, error) {
	var blasErr error
	o.Limits, o.TF32, o.F8 = m.dev.limits, m.dev.backend.tf32.Load(), m.dev.props.Major*10+m.dev.props.Minor >= 89
	o.Product = func(q *steps.Product) (int, any, bool) {
		if blasErr != nil {
			return 0, nil, false
		}
		x, err := m.product(ctx, t, q)
		if err != nil {
			if !errors.Is(err, driver.ErrNotSupported) && !errors.Is(err, driver.ErrInvalid) {
				blasErr = err
			}
			return 0, nil, false
		}
		return int(x.mm.Choices()[x.choice].Workspace), x, true
	}
	if len(collective.Of(p)) > 0 {
		c, err := collective.From(ctx)
		if err != nil {
			return nil, err
		}
		o.Collectives, _ = c.(collective.DeviceCommunicator) // dist has no others
	}
	seq, err := steps.Lower(p, o)
	if err == nil {
		err = blasErr
	}
	if err != nil {
		return nil, err
	}
	m.describe(p, seq)
	return m.prepare(ctx, kept, progress)
}

// describe fills in the Spec.
func (m *model) describe(p *graph.Program, seq *steps.Sequence) {
	m.seq = seq
	for _, q := range p.Params {
		m.spec.Inputs = append(m.spec.Inputs, backend.Param{Name: q.Name, Shape: q.Shape})
	}
	for i, s := range seq.Outputs {
		m.spec.Outputs = append(m.spec.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: s})
	}
}

// dataTypes are cuBLASLt's names of dtypes.
var dataTypes = map[ir.DType]driver.DataType{
	ir.F16: driver.F16, ir.BF16: driver.BF16, ir.F32: driver.F32, ir.F64: driver.F64,
	ir.F8E4M3FN: driver.F8E4M3, ir.F8E5M2: driver.F8E5M2, ir.I8: driver.I8, ir.I32: driver.I32,
}

// activations are cuBLASLt's.
var activations = map[fuse.Activation]driver.Activation{fuse.ReLU: driver.ReLU, fuse.GELUTanh: driver.GELU}

// productWorkspace is how many bytes of workspace a product may use.
const productWorkspace = 32 << 20

// product is a product with the choice that was made of the ways to compute it.
type product struct {
	mm     *driver.Matmul
	choice int
}

// product asks cuBLASLt for ways to compute a product, and chooses one.
func (m *model) product(ctx context.Context, tune *tuner, p *steps.Product) (*product, error) {
	h, err := m.dev.blas()
	if err != nil {
		return nil, err
	}
	t := dataTypes[p.DType]
	matrix := func(x steps.Matrix, d ir.DType) driver.Matrix {
		return driver.Matrix{Type: dataTypes[d], Trans: x.Trans, LD: x.LD, Stride: x.Stride}
	}
	spec := driver.MatmulSpec{
		M: p.M, N: p.N, K: p.K, Batch: p.Batch, A: matrix(p.A, p.Left), B: matrix(p.B, p.Right), D: driver.Matrix{Type: t, Stride: p.Stride},
		Bias: p.Bias, BiasType: t, Activation: activations[p.Act], ScaleRows: p.Scales == steps.ScaledRows, FastAccum: p.Fast,
		TF32: m.dev.backend.tf32.Load(), Workspace: productWorkspace, Align: p.Align,
	}
	mm, err := h.NewMatmul(spec)
	if err != nil {
		return nil, m.dev.check(err)
	}
	m.products = append(m.products, mm)
	if len(mm.Choices()) == 0 {
		return nil, driver.ErrNotSupported
	}
	choice, err := tune.choose(ctx, mm, spec)
	return &product{mm, choice}, err
}

// command is one thing that a run enqueues: a launch, a product or a copy.
type command struct {
	f      *driver.Function
	how    driver.Launch
	params []uint64 // of f; the slots of fixes are set for each run
	fixes  []fix

	product      *product
	scaled       bool // the product, and what more it has
	bias, addend bool
	alpha        float64     // its factor
	refs         []steps.Ref // of the product or copy
	work         steps.Ref   // of the product
	copy         int         // bytes
}

// fix is a slot that has an address in a memory of the run.
type fix struct{ slot, memory, offset int }

// prepare compiles the kernels.
func (m *model) prepare(ctx context.Context, kept map[string][]byte, progress func(done, total int)) (map[string][]byte, error) {
	launches := map[string]*emit.Launch{}
	for i := range m.seq.Steps {
		if p := m.seq.Steps[i].Kernels; p != nil {
			for k := range p.Launches {
				launches[p.Launches[k].Entry] = &p.Launches[k]
			}
		}
	}
	found, err := m.dev.kernelsOf(ctx, launches, kept, progress)
	if err != nil {
		return nil, err
	}
	m.kernels = found
	cubins := make(map[string][]byte, len(found))
	for entry, k := range found {
		cubins[entry] = k.cubin
	}
	m.parts = []part{{}}
	for i := range m.seq.Steps {
		m.commandsOf(&m.seq.Steps[i], found)
	}
	m.bases = make([]driver.DevicePtr, m.seq.Memories()+1)
	if len(m.parts) > 1 {
		m.mems = make([]*memory, len(m.bases))
	}
	return cubins, nil
}

// faults is the number of the memory that has the faults: the one after those of
// the Sequence.
func (m *model) faults() int { return m.seq.Memories() }

// commandsOf appends what a step does.
func (m *model) commandsOf(s *steps.Step, found map[string]*kernel) {
	p := &m.parts[len(m.parts)-1]
	switch {
	case s.Call != nil:
		p.call = s
		m.parts = append(m.parts, part{})
		return
	case s.Begin != nil || s.Wait != nil:
		p.transfer = s
		m.parts = append(m.parts, part{})
		return
	case s.Product != nil:
		p.commands = append(p.commands, command{
			product: s.Product.Handle.(*product), scaled: s.Product.Scales != steps.Unscaled, bias: s.Product.Bias, addend: s.Product.Addend, alpha: cmp.Or(s.Product.Alpha, 1), refs: s.Refs, work: s.Work,
		})
		return
	case s.Copy > 0:
		p.commands = append(p.commands, command{copy: s.Copy, refs: s.Refs})
		return
	}
	for k := range s.Kernels.Launches {
		l := &s.Kernels.Launches[k]
		c := command{f: found[l.Entry].f, how: driver.Launch{Grid: dim(l.Grid), Block: dim(l.Block)}, params: l.Params}
		for _, a := range l.Addresses {
			r := s.Work
			switch {
			case a.Operand == emit.Fault && s.Fault < 0:
				continue // the kernel leaves nothing there
			case a.Operand == emit.Fault:
				r = steps.Ref{Memory: m.faults(), Offset: steps.FaultBytes * s.Fault}
			case a.Operand >= 0:
				r = s.Refs[a.Operand]
			}
			c.fixes = append(c.fixes, fix{a.Slot, r.Memory, r.Offset + a.Offset})
		}
		p.commands = append(p.commands, c)
	}
}

func dim(d [3]int) driver.Dim {
	return driver.Dim{X: uint32(d[0]), Y: uint32(d[1]), Z: uint32(d[2])}
}
