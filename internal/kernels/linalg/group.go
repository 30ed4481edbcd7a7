package linalg

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
	"github.com/loris-ml/loris/internal/kernels/lanes"
)

// grouped is as kernel, but of a group of matrices in the lanes of vectors. Results do not begin as zeros, and
// the operands stay as they are. It reports false, and results are none, where the kernel has to compute the
// matrices one by one, such as where one of them is an error.
type grouped func(in, out [][]float64) bool

// group is memory for the operands and results of groups.
type group struct {
	in, out [][]float64
	kept    []int    // the element of the batch that all lanes of an operand are, or -1
	beside  [][]byte // elements of an operand that do not adjoin
}

// newGroup returns memory whose blocks are each in one line of the cache.
func (c *Call) newGroup() *group {
	g := &group{in: make([][]float64, len(c.in)), out: make([][]float64, len(c.out)), kept: make([]int, len(c.in)), beside: make([][]byte, len(c.in))}
	size := lanes.Width
	for _, o := range c.all() {
		size += lanes.Room(o.n)
	}
	room := make([]float64, size)
	if past := uintptr(unsafe.Pointer(&room[0])) % (8 * lanes.Width); past != 0 {
		room = room[lanes.Width-past/8:]
	}
	take := func(n int) []float64 {
		part := room[:lanes.Room(n)]
		room = room[len(part):]
		return part
	}
	for i, o := range c.in {
		g.in[i] = take(o.n)
	}
	for i, o := range c.out {
		g.out[i] = take(o.n)
	}
	return g
}

// all returns the operands and results.
func (c *Call) all() []operand { return append(c.in[:len(c.in):len(c.in)], c.out...) }

// groups reports whether an operand is of numbers that groups are made of.
func (o *operand) groups() bool {
	return o.n > 0 && (o.dtype == ir.F64 || o.dtype == ir.F32 || o.dtype == ir.I32)
}

// groupOf returns how groups are computed, nil if they aren't.
func (c *Call) groupOf(f family, a ir.Args) grouped {
	if f.group == nil || !lanes.Available() || c.Batch < lanes.Width {
		return nil
	}
	for _, o := range c.all() {
		if !o.groups() {
			return nil
		}
	}
	return f.group(a)
}

// runGroups computes the elements from lo on that make whole groups, by one where a group has none of its
// own, and returns which is the next.
func (c *Call) runGroups(in, out [][]byte, lo, hi int, one func(lo, hi int)) int {
	if c.group == nil || hi-lo < lanes.Width {
		return lo
	}
	g, _ := c.groups.Get().(*group)
	if g == nil {
		g = c.newGroup()
	}
	for i := range g.kept {
		g.kept[i] = -1
	}
	for ; lo+lanes.Width <= hi; lo += lanes.Width {
		for i := range c.in {
			g.gather(&c.in[i], i, in[i], lo)
		}
		if !c.group(g.in, g.out) {
			one(lo, lo+lanes.Width)
			continue
		}
		for i := range c.out {
			if o := &c.out[i]; !o.none {
				o.scatter(out[i], g.out[i], lo)
			}
		}
	}
	c.groups.Put(g)
	return lo
}

// gather reads the elements from b on of an operand.
func (g *group) gather(o *operand, i int, data []byte, b int) {
	size := o.n * o.dtype.Size()
	if o.from == nil {
		o.gather(g.in[i], data[b*size:], o.n)
		return
	}
	from := o.from[b:][:lanes.Width]
	alike, adjoin := true, true
	for l, e := range from {
		alike = alike && e == from[0]
		adjoin = adjoin && e == from[0]+l
	}
	switch {
	case alike && g.kept[i] == from[0]:
	case alike:
		o.gather(g.in[i], data[from[0]*size:], 0)
		g.kept[i] = from[0]
	case adjoin:
		o.gather(g.in[i], data[from[0]*size:], o.n)
		g.kept[i] = -1
	default:
		if g.beside[i] == nil {
			g.beside[i] = make([]byte, lanes.Width*size)
		}
		for l, e := range from {
			copy(g.beside[i][l*size:], data[e*size:][:size])
		}
		o.gather(g.in[i], g.beside[i], o.n)
		g.kept[i] = -1
	}
}

func (o *operand) gather(group []float64, data []byte, stride int) {
	switch o.dtype {
	case ir.F64:
		lanes.Gather(group, numbers[float64](data), stride, o.n)
	case ir.F32:
		lanes.Gather(group, numbers[float32](data), stride, o.n)
	default:
		lanes.Gather(group, numbers[int32](data), stride, o.n)
	}
}

// scatter writes a group to the elements from b on.
func (o *operand) scatter(data []byte, group []float64, b int) {
	data = data[b*o.n*o.dtype.Size():]
	switch o.dtype {
	case ir.F64:
		lanes.Scatter(numbers[float64](data), group, o.n, o.n)
	case ir.F32:
		lanes.Scatter(numbers[float32](data), group, o.n, o.n)
	default:
		lanes.Scatter(numbers[int32](data), group, o.n, o.n)
	}
}

func choleskyGroup(a ir.Args) grouped {
	n, upper := a.In[0].Dim(-1), a.Bool("upper")
	if n > dense.Small {
		return nil
	}
	return func(in, out [][]float64) bool {
		x, l := in[0], out[0]
		clear(l)
		for i := range n {
			for j := i; j < n; j++ {
				from := i*n + j
				if !upper {
					from = j*n + i
				}
				*lanes.Block(l, i*n+j) = *lanes.Block(x, from)
			}
		}
		if !lanes.Cholesky(l, n) {
			return false
		}
		if !upper {
			transposeGroup(l, n)
		}
		clear(out[1])
		return true
	}
}

// transposeGroup exchanges rows and columns.
func transposeGroup(x []float64, n int) {
	for i := range n {
		for j := range i {
			p, q := lanes.Block(x, i*n+j), lanes.Block(x, j*n+i)
			*p, *q = *q, *p
		}
	}
}

func factorGroup(a ir.Args) grouped {
	m, n := sizes(a.In[0])
	check := a.Bool("check_errors")
	if max(m, n) > dense.Small {
		return nil
	}
	return func(in, out [][]float64) bool {
		copy(out[0], in[0])
		lanes.Factor(out[0], m, n, out[1], out[2])
		return !check || *lanes.Block(out[2], 0) == [lanes.Width]float64{}
	}
}

func determinantGroup(a ir.Args) grouped {
	n := a.In[0].Dim(-1)
	if n > dense.Small {
		return nil
	}
	return func(in, out [][]float64) bool {
		lu := out[1]
		copy(lu, in[0])
		transposeGroup(lu, n)
		var info [lanes.Width]float64
		lanes.Factor(lu, n, n, out[2], info[:])
		lanes.Determinant(lu, n, out[2], out[0])
		return true
	}
}

func solveFactoredGroup(a ir.Args) grouped {
	n, cols := sizes(a.In[2])
	adjoint := a.Bool("adjoint")
	if !a.Bool("left") || n > dense.Small || cols > 2*dense.Small {
		return nil
	}
	return func(in, out [][]float64) bool {
		lu, pivots, x := in[0], in[1], out[0]
		for _, p := range pivots[:n*lanes.Width] {
			if !(p >= 1 && p <= float64(n)) {
				return false
			}
		}
		copy(x, in[2])
		if adjoint {
			lanes.Solve(lu, n, 1, n, x, cols, false, false)
			lanes.Solve(lu, n, 1, n, x, cols, true, true)
			for i := n - 1; i >= 0; i-- {
				lanes.Exchange(x, cols, i, n, pivots[i*lanes.Width:])
			}
			return true
		}
		for i := range n {
			lanes.Exchange(x, cols, i, n, pivots[i*lanes.Width:])
		}
		lanes.Solve(lu, n, n, 1, x, cols, false, true)
		lanes.Solve(lu, n, n, 1, x, cols, true, false)
		return true
	}
}

func solveTriangularGroup(a ir.Args) grouped {
	m, n := sizes(a.In[1])
	upper, left, unit := a.Bool("upper"), a.Bool("left"), a.Bool("unitriangular")
	if !smallTriangle(a) {
		return nil
	}
	return func(in, out [][]float64) bool {
		copy(out[0], in[1])
		if left {
			lanes.Solve(in[0], m, m, 1, out[0], n, upper, unit)
		} else {
			lanes.SolveRows(in[0], n, 1, n, out[0], m, !upper, unit)
		}
		return true
	}
}
