package cpu

import (
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

// resultFor is result, but with the elements in the order that the only user of
// the result brings them into, if that is one in which the op can make them:
// then nothing is moved. swap says which two dimensions, from the last, may
// change places.
func (c *call) resultFor(swap [2]int) (o operand, swapped bool) {
	s := c.outs[len(c.out)]
	if c.last == nil {
		return c.result(), false
	}
	id := c.last.Out + graph.ID(len(c.out))
	if s.Rank() < max(swap[0], swap[1]) || c.l.Kept[id] || len(c.l.Users[id]) != 1 {
		return c.result(), false
	}
	u := &c.l.p.Instrs[c.l.Users[id][0]]
	x, y := s.Rank()-swap[0], s.Rank()-swap[1]
	if u.Op != ir.OpPermute || !swaps(ir.PermuteDims(c.l.p.Args(u)), x, y) {
		return c.result(), false
	}
	dims := s.Dims()
	dims[x], dims[y] = dims[y], dims[x]
	v := c.l.newValue(s.WithDims(dims...))
	v.shape = s
	for _, a := range []*[strided.MaxRank]int{&v.view.Dims, &v.view.Strides} {
		a[x], a[y] = a[y], a[x]
	}
	c.out = append(c.out, v)
	return operand{v.buf, 0, s.Numel()}, true
}

// swaps reports whether a permutation changes two dimensions and no other.
func swaps(dims []int, x, y int) bool {
	for i, d := range dims {
		if i == x && d != y || i == y && d != x || i != x && i != y && d != i {
			return false
		}
	}
	return true
}
