package batch

import (
	"math/bits"
	"time"
)

// sizes remembers what a row costs in runs of about the same number of rows, those of as many binary
// digits, and says how large a run should be. For most models a row costs less the more rows a run
// has; for one whose activations leave the cache it may cost more.
type sizes struct {
	classes [32]struct {
		perRow float64 // seconds, smoothed; 0 before any run
	}
	smaller int // runs in a row that were made smaller than they could be
}

const (
	// recency is the weight of a run against those of its class before it.
	recency = 1. / 8
	// margin is by how much rows of smaller runs must be cheaper.
	margin = 1. / 32
	// tryAgain is after how many runs that were made smaller a large one is tried again.
	tryAgain = 256
)

// class is the number of binary digits of rows.
func class(rows int64) int { return min(bits.Len64(uint64(max(rows, 1))), 31) }

func (s *sizes) add(rows int64, took time.Duration) {
	c := &s.classes[class(rows)]
	perRow := took.Seconds() / float64(max(rows, 1))
	if c.perRow == 0 {
		c.perRow = perRow
	}
	c.perRow += recency * (perRow - c.perRow)
}

// best returns how many rows a run should have where there are so many: all, unless those of smaller
// runs are known to cost less. Then it is the size at which they cost least, or one that was never
// tried, and what is there is cut evenly.
func (s *sizes) best(there int64) int64 {
	most := class(there)
	whole := s.classes[most].perRow
	least, at := whole, most
	for c := most - 1; c > 0; c-- {
		if p := s.classes[c].perRow; p > 0 && p < least*(1-margin) {
			least, at = p, c
		}
	}
	if whole == 0 || at == most {
		s.smaller = 0
		return there
	}
	if s.smaller++; s.smaller > tryAgain {
		s.smaller = 0
		return there
	}
	for c := at + 1; c < most; c++ { // between one that is better and one that is not
		if s.classes[c].perRow == 0 {
			at = c
			break
		}
	}
	largest := int64(1)<<at - 1
	runs := (there + largest - 1) / largest
	return (there + runs - 1) / runs
}
