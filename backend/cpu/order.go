package cpu

import "github.com/loris-ml/loris/internal/graph"

// resultFor is result, but with the elements in the order that the only user of
// the result brings them into, if that is one in which the op can make them:
// then nothing is moved. swap says which two dimensions, from the last, may
// change places.
func (c *call) resultFor(swap [2]int) (o operand, swapped bool) {
	s := c.Shapes[len(c.Results)]
	if c.Last == nil || s.Rank() < max(swap[0], swap[1]) {
		return c.result(), false
	}
	id := c.Last.Out + graph.ID(len(c.Results))
	x, y := s.Rank()-swap[0], s.Rank()-swap[1]
	if c.l.Kept[id] || len(c.l.Users[id]) != 1 || !c.l.Transposed(id, x, y) {
		return c.result(), false
	}
	return operand{c.ResultTransposed(x, y).Buf, 0, s.Numel()}, true
}
