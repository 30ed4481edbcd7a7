package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
)

// resultFor is result, but with the elements in the order that the only user of
// the result brings them into, if that is one in which the op can make them:
// then nothing is moved. swap says which two dimensions, from the last, may
// change places. Gradients of attention read its result in either order.
func (c *call) resultFor(swap [2]int) (o operand, swapped bool) {
	s := c.Shapes[len(c.Results)]
	if c.Last == nil || s.Rank() < max(swap[0], swap[1]) {
		return c.result(), false
	}
	id := c.Last.Out + graph.ID(len(c.Results))
	x, y := s.Rank()-swap[0], s.Rank()-swap[1]
	if c.l.Kept[id] || c.usersInOrder(id) != 1 || !c.l.Transposed(id, x, y) {
		return c.result(), false
	}
	return operand{c.ResultTransposed(x, y).Buf, 0, s.Numel()}, true
}

// usersInOrder counts the uses of a value but for those by gradients of attention as the result of that.
func (c *call) usersInOrder(id graph.ID) int {
	n := 0
	for _, i := range c.l.Users[id] {
		u := &c.l.Program.Instrs[i]
		gradients := u.Op == aten.AttentionBackward || u.Op == aten.AttentionMaskBackward
		if !gradients || u.Args[0] == id || slices.Contains(u.Args[2:], id) {
			n++
		}
	}
	return n
}
