package fuse_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
	"github.com/loris-ml/loris/internal/ref"
	"github.com/loris-ml/loris/internal/strided"
)

// planned is a backend that computes what Groups emit at once, kernels by their
// definition and all else as ref does.
type planned struct {
	*ref.Backend
	// parts is into how many parts lines are cut where they are long enough.
	parts int
	// short is up to which number of elements lines are computed beside each other.
	short int
	// most is how many instructions a kernel may have; 0 is any number.
	most int
	// without has ops that kernels don't.
	without []ir.Op
	seen    seen
	// templates are shared by all Programs.
	templates *fuse.Templates
	// trace, if it is not nil, is given what the Groups ask for, in order.
	trace *strings.Builder
}

// Templates returns those that all Programs share.
func (b *planned) Templates() *fuse.Templates {
	if b.templates == nil {
		b.templates = fuse.NewTemplates()
	}
	return b.templates
}

// note writes a line of the trace.
func (b *planned) note(format string, args ...any) {
	if b.trace != nil {
		fmt.Fprintf(b.trace, format+"\n", args...)
	}
}

// seen counts what Groups asked for.
type seen struct{ kernels, passes, parts, copies, unfused, placed int }

func (b *planned) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	m, err := b.Backend.Compile(ctx, p, d, o)
	return &model{m, b, p}, err
}

type model struct {
	backend.Model
	b *planned
	p *graph.Program
}

func (m *model) Run(ctx context.Context, in []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	r := &run{planned: m.b, p: m.p, vals: make([]fuse.Value, len(m.p.Shapes))}
	for i, x := range in {
		data, err := x.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		r.put(graph.ID(i), data)
	}
	r.plan = fuse.New(m.p, fuse.UsesOf(m.p), r)
	for i := range m.p.Instrs {
		if !r.plan.Add(int32(i)) {
			r.emit(int32(i))
		}
	}
	var out []backend.Buffer
	for _, id := range m.p.Returns {
		s := m.p.Shape(id)
		buf, err := m.b.Upload(ctx, s, ref.Device, r.dense(s.DType(), r.need(id)))
		if err != nil {
			return nil, err
		}
		out = append(out, buf)
	}
	return out, nil
}

// run is a run under way, and the backend of its Groups.
type run struct {
	*planned
	p    *graph.Program
	plan *fuse.Groups
	bufs [][]byte
	vals []fuse.Value
}

func (r *run) alloc(n int) int {
	r.bufs = append(r.bufs, unsafe.Slice((*byte)(looptest.Aligned(max(n, 1))), max(n, 1)))
	return len(r.bufs) - 1
}

// put makes a buffer of a value's elements.
func (r *run) put(id graph.ID, data []byte) {
	r.vals[id] = fuse.Value{Buf: r.alloc(len(data)), View: strided.Dense(r.p.Shape(id).Dims())}
	copy(r.bufs[r.vals[id].Buf], data)
}

func (r *run) need(id graph.ID) fuse.Value {
	r.plan.Need(id)
	return r.vals[id]
}

// each calls fn for each element of a view.
func each(v strided.View, fn func(i, pos int)) {
	i := 0
	var walk func(d, pos int)
	walk = func(d, pos int) {
		if d == v.Rank {
			fn(i, pos)
			i++
			return
		}
		for k := range v.Dims[d] {
			walk(d+1, pos+k*v.Strides[d])
		}
	}
	walk(0, v.Offset)
}

// dense returns the elements of a value in order.
func (r *run) dense(d ir.DType, v fuse.Value) []byte {
	size := d.Size()
	out := make([]byte, v.View.Len()*size)
	each(v.View, func(i, pos int) { copy(out[i*size:], r.bufs[v.Buf][pos*size:(pos+1)*size]) })
	return out
}

// emit computes an instruction that is in no kernel. Views are views, so that
// operands of kernels lie in many ways.
func (r *run) emit(i int32) {
	in := &r.p.Instrs[i]
	args := r.p.Args(in)
	if in.Op == aten.Cat {
		r.cat(in)
		return
	}
	view := func(v strided.View) { r.vals[in.Out] = fuse.Value{Buf: r.vals[in.Args[0]].Buf, View: v} }
	var x strided.View
	if len(in.Args) > 0 {
		x = r.need(in.Args[0]).View
	}
	switch in.Op {
	case aten.Permute:
		view(x.Permute(ir.PermuteDims(args)))
	case aten.Expand:
		view(x.Expand(r.p.Shape(in.Out).Dims()))
	case aten.Slice:
		view(x.Slice(ir.SliceBounds(args)))
	case aten.Flip:
		view(x.Flip(ir.FlipDims(args)))
	default:
		r.note("%v", in.Op)
		r.reference(in)
	}
}

var roles = map[fuse.Role]string{
	fuse.Input: "input", fuse.Statistic: "line input", fuse.Output: "output", fuse.Result: "line output", fuse.Part: "partial results", fuse.Scratch: "scratch",
}

// noteKernel writes a kernel to the trace, with what its operands are.
func (r *run) noteKernel(k *fuse.Kernel) {
	if r.trace == nil {
		return
	}
	r.trace.WriteString(k.Loop.String())
	for i, a := range k.Args {
		name := ""
		if a.Role != fuse.Scratch {
			name = " " + r.p.ValueNames()[a.ID]
		}
		r.note("  arg%d is %s%s %v strides %v", i, roles[a.Role], name, a.View.Dims[:a.View.Rank], a.View.Strides[:a.View.Rank])
	}
}

// cat has its operands computed in their places.
func (r *run) cat(in *graph.Instr) {
	s := r.p.Shape(in.Out)
	args := r.p.Args(in)
	dim := args.Dim("dim", s.Rank())
	r.put(in.Out, make([]byte, s.Bytes()))
	part := r.vals[in.Out]
	parts := make([]fuse.Value, len(in.Args))
	for k, id := range in.Args {
		for d, n := range r.p.Shape(id).Dims() {
			part.View.Dims[d] = n
		}
		parts[k] = part
		part.View.Offset += part.View.Dims[dim] * part.View.Strides[dim]
		r.plan.Place(id, parts[k])
	}
	for k, id := range in.Args {
		v := r.need(id)
		if v.Buf == parts[k].Buf {
			r.seen.placed++
			r.note("operand %d of cat is in its place", k)
			continue
		}
		d := s.DType()
		if kernel, ok := fuse.Move(in, d, parts[k], v); ok {
			r.compute(kernel)
			continue
		}
		data := r.dense(d, v)
		each(parts[k].View, func(i, pos int) { copy(r.bufs[parts[k].Buf][pos*d.Size():], data[i*d.Size():(i+1)*d.Size()]) })
	}
}

// reference computes one instruction by ref.
func (r *run) reference(in *graph.Instr) {
	p := &graph.Program{Name: "one", Instrs: []graph.Instr{*in}}
	one := &p.Instrs[0]
	one.Args = nil
	var data [][]byte
	for k, id := range in.Args {
		s := r.p.Shape(id)
		one.Args = append(one.Args, graph.ID(k))
		p.Params = append(p.Params, graph.Param{Name: fmt.Sprint("in", k), Shape: s})
		p.Shapes = append(p.Shapes, s)
		data = append(data, r.dense(s.DType(), r.need(id)))
	}
	one.Out = graph.ID(len(p.Shapes))
	for k, s := range r.p.Outs(in) {
		p.Shapes = append(p.Shapes, s)
		p.Returns = append(p.Returns, one.Out+graph.ID(k))
	}
	out, err := ref.Eval(p, data)
	if err != nil {
		panic(err)
	}
	for k := range out {
		r.put(in.Out+graph.ID(k), out[k])
	}
}

func (r *run) Supports(q fuse.Probe) bool {
	return !slices.Contains(r.without, q.Op) && q.Kernel().Validate() == nil
}

func (r *run) Parts(g fuse.Reduction) int {
	for d, n := range g.Shape.Dims() {
		if g.Mask[d] && n > 1 {
			return min(n, r.parts)
		}
	}
	return 1
}

func (r *run) Beside(g fuse.Reduction) bool { return g.Shape.Numel() <= g.Lines*r.short }

func (r *run) Value(id graph.ID) fuse.Value { return r.vals[id] }

func (r *run) SetValue(id graph.ID, v fuse.Value) { r.vals[id] = v }

func (r *run) Copy(d ir.DType, v fuse.Value) fuse.Value {
	r.seen.copies++
	r.note("copy %v", v.View.Dims[:v.View.Rank])
	data := r.dense(d, v)
	out := fuse.Value{Buf: r.alloc(len(data)), View: strided.Dense(v.View.Dims[:v.View.Rank])}
	copy(r.bufs[out.Buf], data)
	return out
}

// Unfused forgets what it should not be asked for again.
func (r *run) Unfused(instrs []int32, leaves func(id graph.ID) bool) {
	r.seen.unfused++
	for _, i := range instrs {
		r.note("unfused %v", r.p.Instrs[i].Op)
		r.emit(i)
	}
	for _, i := range instrs {
		if id := r.p.Instrs[i].Out; !leaves(id) {
			r.vals[id] = fuse.Value{Buf: fuse.None}
		}
	}
}

func (r *run) Kernel(k *fuse.Kernel) (emit func(), ok bool) {
	if err := k.Loop.Validate(); err != nil {
		panic(err)
	}
	return func() {
		r.seen.kernels++
		r.noteKernel(k)
		r.seen.passes = max(r.seen.passes, len(k.Loop.Passes))
		for i := range k.Args {
			if a := &k.Args[i]; a.Buf == fuse.None && a.Role != fuse.Scratch {
				a.Buf = r.alloc(k.Bytes(a))
			}
		}
		r.compute(k)
	}, r.most == 0 || len(k.Instrs) <= r.most
}

// compute runs a kernel, part by part.
func (r *run) compute(k *fuse.Kernel) {
	outer := 1
	for _, o := range k.Grid.Outer {
		outer *= o.N
	}
	if k.Grid.Rows.N*k.Grid.Cols.N == 0 {
		return
	}
	parts := max(k.Parts, 1)
	for part := range parts {
		r.seen.parts = max(r.seen.parts, part+1)
		for at := range outer {
			r.frame(k, part, parts, at)
		}
	}
}

// frame runs a part of a kernel at a place of the outer dimensions.
func (r *run) frame(k *fuse.Kernel, part, parts, at int) {
	f := &loop.Frame{Rows: k.Grid.Rows.N, Cols: k.Grid.Cols.N}
	row, col := 0, 0
	if k.Loop.Axis == loop.Columns {
		col = part * f.Cols / parts
		f.Cols = (part+1)*f.Cols/parts - col
	} else {
		row = part * f.Rows / parts
		f.Rows = (part+1)*f.Rows/parts - row
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.Role == fuse.Scratch {
			f.Ptr[i] = looptest.Aligned(f.Cols * a.DType.Size())
			continue
		}
		rows, cols := k.Grid.Rows.Steps[i], k.Grid.Cols.Steps[i]
		pos := a.View.Offset + row*rows + col*cols
		if a.Role == fuse.Part {
			pos = a.View.Offset + part*k.Lines
		}
		for d, rest := len(k.Grid.Outer)-1, at; d >= 0; d-- {
			o := &k.Grid.Outer[d]
			pos += rest % o.N * o.Steps[i]
			rest /= o.N
		}
		size := a.DType.Size()
		f.Row[i], f.Col[i] = rows*size, cols*size
		f.Ptr[i] = unsafe.Pointer(&r.bufs[a.Buf][pos*size])
	}
	loop.Eval(k.Loop, f)
}
