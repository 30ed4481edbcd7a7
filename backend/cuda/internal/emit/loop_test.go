package emit

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// small is a device of few threads, so that loops go round and warps are several;
// medium has blocks of several lines of several warps each.
var small, medium = Limits{Processors: 1, Threads: 64}, Limits{Processors: 1, Threads: 256}

// gridOf is memory with dimensions around it.
type gridOf struct {
	*looptest.Grid
	outer []int
	args  []Place
}

func (g *gridOf) geometry() *Geometry {
	return &Geometry{Rows: g.Rows, Cols: g.Cols, First: g.Frame[0].First, Outer: g.outer, Args: g.args}
}

// eval computes what is wanted and reports whether an integer was divided by 0.
func (g *gridOf) eval(k *loop.Kernel) (fault bool) {
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !errors.Is(err, ir.ErrZeroDivision) {
				panic(r)
			}
			fault = true
		}
	}()
	n := 1
	for _, d := range g.outer {
		n *= d
	}
	for i := range n {
		f := g.Frame[1]
		for a := range k.Args {
			for d, rest := len(g.outer)-1, i; d >= 0; d-- {
				f.Ptr[a] = unsafe.Add(f.Ptr[a], rest%g.outer[d]*g.args[a].Outer[d])
				rest /= g.outer[d]
			}
		}
		loop.Eval(k, &f)
	}
	return false
}

// loop adds a case that runs a plan on a grid and compares with Eval.
func (d *device) loop(l *Loop, p *Plan, g *gridOf, ulps float64) {
	d.t.Helper()
	d.add(l.Name, l.Source(), l.Entries())
	c := &deviceCase{}
	for i := range l.k.Args {
		c.memory = append(c.memory, g.Data[0][i])
	}
	work := len(c.memory)
	c.memory = append(c.memory, make([]byte, p.Workspace), make([]byte, faultBytes))
	c.launches = d.launches(p, work)
	if l.k.Axis == loop.None {
		for i := range c.launches {
			c.launches[i].barriers = false
		}
	}
	fault := g.eval(l.k)
	c.check = func(memory [][]byte) {
		if got := binary.LittleEndian.Uint32(memory[work+1]); (got != 0) != fault {
			d.t.Errorf("fault %d, want %v\n%v", got, fault, l.k)
		}
		for i := range l.k.Args {
			if l.isScratch(i) {
				copy(memory[i], g.Data[1][i])
			}
			g.Data[0][i] = memory[i]
		}
		if why := g.Compare(l.k, ulps); !fault && why != "" {
			d.t.Errorf("%s: %s", p.Launches[0].Entry, why)
		}
	}
	d.cases = append(d.cases, c)
}

// plans returns all ways to compute a grid.
func plans(l *Loop, g *gridOf, dev Limits) (all []*Plan) {
	all = append(all, l.Plan(g.geometry(), dev))
	p := &planner{l, g.geometry(), dev, 1}
	for _, n := range g.outer {
		p.outers *= n
	}
	widths := []int{1}
	if p.aligned() {
		widths = append(widths, l.width)
	}
	for _, w := range widths {
		switch l.k.Axis {
		case loop.None:
			all = append(all, p.each(w))
		case loop.Rows:
			all = append(all, p.rows(w, 1), p.rows(w, 3))
		default:
			all = append(all, p.whole("whole", w), p.parted(w, 3))
		}
		if scheme := p.scheme(w); l.k.Axis == loop.Columns && scheme != "whole" {
			all = append(all, p.whole(scheme, w))
		}
	}
	return all
}

// newGrid makes a grid with outer dimensions; even makes its rows multiples of 16
// bytes.
func newGrid(k *loop.Kernel, rows, cols int, outer []int, fill looptest.Fill, even bool) *gridOf {
	r := rand.New(rand.NewPCG(uint64(rows*1000+cols), 1))
	n := 1
	for _, d := range outer {
		n *= d
	}
	g := &gridOf{Grid: looptest.NewGrid(r, k, rows*n, cols, 0, fill), outer: outer, args: make([]Place, len(k.Args))}
	g.Rows = rows
	for i, a := range k.Args {
		f := &g.Frame[0]
		if even {
			f.Row[i] = (f.Row[i] + 15) &^ 15
		}
		p := Place{Row: f.Row[i], Col: f.Col[i], Outer: make([]int, len(outer))}
		step := rows * p.Row
		for d := len(outer) - 1; d >= 0; d-- {
			p.Outer[d] = step
			step *= outer[d]
		}
		g.args[i] = p
		for side := range g.Frame {
			f := &g.Frame[side]
			data := make([]byte, p.Row*rows*n+64*a.DType.Size())
			copy(data, g.Data[side][i])
			g.Data[side][i], f.Ptr[i], f.Row[i], f.Rows = data, unsafe.Pointer(&data[0]), p.Row, rows
		}
	}
	return g
}

// everyWay adds cases of all plans on aligned rows and others.
func (d *device) everyWay(k *loop.Kernel, opt Options, rows, cols int, fill looptest.Fill, ulps float64) {
	d.t.Helper()
	l, err := WriteLoop(k, opt)
	if err != nil {
		d.t.Fatalf("%v\n%v", err, k)
	}
	outer := []int{3, 2}[:opt.Outer]
	for _, even := range []bool{false, true} {
		for i := range plans(l, newGrid(k, rows, cols, outer, fill, even), d.limits) {
			g := newGrid(k, rows, cols, outer, fill, even)
			d.loop(l, plans(l, g, d.limits)[i], g, ulps)
		}
	}
}

func TestRandomKernels(t *testing.T) {
	d := newDevice(t)
	n := 30
	if !longtest.Enabled() {
		n = 8
	}
	written := 0
	for seed := range uint64(n) {
		k := looptest.Random(rand.New(rand.NewPCG(seed, 1)))
		if len(k.Args) > loop.MaxArgs {
			continue
		}
		if _, err := WriteLoop(k, Options{}); errors.Is(err, ErrUnsupported) {
			continue
		}
		written++
		d.everyWay(k, Options{Outer: int(seed % 3)}, 1+int(seed%5), int(seed*7%97)+1, looptest.Elements, 0)
	}
	if written < n*3/4 {
		t.Errorf("only %d of %d kernels could be written", written, n)
	}
	d.run()
}

// softmax is the kernel of package loop's comment, with its scratch in an operand
// of its own.
func softmax(d ir.DType) *loop.Kernel {
	b := looptest.New(loop.Columns)
	c := loop.ComputeDType(d)
	x, y, e := b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, true), b.Arg(c, loop.Unit, true)
	most := b.Reduce(aten.Amax, c, b.Load(x))
	b.Passes = append(b.Passes, loop.Pass{})
	v := b.Op(aten.Exp, b.Op(aten.Sub, b.Load(x), most))
	b.Store(e, v)
	sum := b.Reduce(aten.Sum, c, v)
	inverse := b.Final(b.ApplyOf(aten.Reciprocal, c, sum))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(y, b.Op(aten.Mul, b.Load(e), inverse))
	return &b.Kernel
}

func TestSoftmax(t *testing.T) {
	d := newDevice(t)
	for i, dt := range []ir.DType{ir.F32, ir.BF16, ir.F64} {
		d.limits = []Limits{small, medium}[i%2]
		for _, cols := range []int{1, 5, 129, 700} {
			if !longtest.Enabled() && cols != 129 {
				continue
			}
			d.everyWay(softmax(dt), Options{Scratch: []bool{false, false, true}, Outer: cols % 2}, 3, cols, looptest.Moderate, 8)
		}
	}
	d.run()
}

// layerNorm is (x - mean)/√(var + ε)·w + b of rows, with the variance of a second
// pass.
func layerNorm(d ir.DType) *loop.Kernel {
	b := looptest.New(loop.Columns)
	c := loop.ComputeDType(d)
	x, w, bias, y := b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, true)
	share := b.F32(1. / 4096)
	mean := b.Final(b.ApplyOf(aten.Mul, c, b.Reduce(aten.Sum, c, b.Load(x)), share))
	b.Passes = append(b.Passes, loop.Pass{})
	off := b.Op(aten.Sub, b.Load(x), mean)
	v := b.Final(b.ApplyOf(aten.Mul, c, b.Reduce(aten.Sum, c, b.Op(aten.Mul, off, off)), share))
	inverse := b.Final(b.ApplyOf(aten.Rsqrt, c, b.Final(b.ApplyOf(aten.Add, c, v, b.F32(1e-5)))))
	b.Passes = append(b.Passes, loop.Pass{})
	z := b.Op(aten.Mul, b.Op(aten.Sub, b.Load(x), mean), inverse)
	b.Store(y, b.Op(aten.Add, b.Op(aten.Mul, z, b.Load(w)), b.Load(bias)))
	return &b.Kernel
}

func sumOf(axis loop.Axis) *loop.Kernel {
	b := looptest.New(axis)
	sum := b.Reduce(aten.Sum, ir.F32, b.Load(b.Arg(ir.F32, loop.Unit, false)))
	b.Final(b.StoreOf(b.Arg(ir.F32, loop.Unit, true), sum))
	return &b.Kernel
}

// softmaxInPlace is a softmax that keeps nothing but in registers.
func softmaxInPlace() *loop.Kernel {
	b := looptest.New(loop.Columns)
	x, y := b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, true)
	most := b.Reduce(aten.Amax, ir.F32, b.Load(x))
	b.Passes = append(b.Passes, loop.Pass{})
	sum := b.Reduce(aten.Sum, ir.F32, b.Op(aten.Exp, b.Op(aten.Sub, b.Load(x), most)))
	inverse := b.Final(b.ApplyOf(aten.Reciprocal, ir.F32, sum))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(y, b.Op(aten.Mul, b.Op(aten.Exp, b.Op(aten.Sub, b.Load(x), most)), inverse))
	return &b.Kernel
}

// TestNorms runs kernels of rows whose operands are held in registers or read
// again, and some that do not move along rows.
func TestNorms(t *testing.T) {
	d := newDevice(t)
	d.limits = medium
	for _, cols := range []int{6, 260} {
		if !longtest.Enabled() && cols == 6 {
			continue
		}
		d.everyWay(softmaxInPlace(), Options{}, 5, cols, looptest.Moderate, 8)
		d.everyWay(sumOf(loop.Columns), Options{}, 5, cols, looptest.Moderate, 1)
		for _, dt := range []ir.DType{ir.F32, ir.F16} {
			d.everyWay(layerNorm(dt), Options{}, 5, cols, looptest.Moderate, 64)
		}
	}
	d.run()
}

func TestUnsupported(t *testing.T) {
	stuck := looptest.New(loop.None)
	stuck.Store(stuck.Arg(ir.F32, loop.Fixed, true), stuck.Load(stuck.Arg(ir.F32, loop.Unit, false)))
	again := looptest.New(loop.None)
	y := again.Arg(ir.F32, loop.Unit, true)
	again.Store(y, again.Load(again.Arg(ir.F32, loop.Unit, false)))
	again.Store(again.Arg(ir.F32, loop.Unit, true), again.Load(y))
	for name, k := range map[string]*loop.Kernel{"a store that does not move": &stuck.Kernel, "a load of what was stored": &again.Kernel} {
		if _, err := WriteLoop(k, Options{}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := looptest.New(loop.None)
	broken.Add(loop.Instr{Code: loop.Load, DType: ir.F32, Arg: 3})
	if _, err := WriteLoop(&broken.Kernel, Options{}); !errors.Is(err, loop.ErrKernel) {
		t.Errorf("a malformed kernel: %v", err)
	}
}

// TestNames has equal names for equal structures only.
func TestNames(t *testing.T) {
	name := func(k *loop.Kernel, o Options) string {
		l, err := WriteLoop(k, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Entries() {
			if !strings.Contains(l.Source(), " "+e+"(const "+l.Frame()+" f)") || strings.Contains(l.Source(l.Entries()[0]), e+"(") != (e == l.Entries()[0]) {
				t.Errorf("entry %s", e)
			}
		}
		return l.Name
	}
	if a, b := name(softmax(ir.F32), Options{}), name(softmax(ir.F32), Options{}); a != b {
		t.Errorf("%s and %s", a, b)
	}
	seen := map[string]bool{}
	for _, n := range []string{name(softmax(ir.F32), Options{}), name(softmax(ir.F64), Options{}), name(softmax(ir.F32), Options{Outer: 1}),
		name(softmax(ir.F32), Options{Scratch: []bool{false, false, true}})} {
		if seen[n] {
			t.Errorf("%s is the name of two", n)
		}
		seen[n] = true
	}
}
