package attention

import (
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// pairs returns the tiles that compute the scores of a call from pairs of bfloat16, or nil. Keys are
// then read where they lie. Weights are not rounded to bfloat16, and so values are widened.
func (c *Call[T, A]) pairs() *tile.Set[A] {
	if _, ok := any(c.K.Data).([]vec.BF16); !ok || c.set != nil || c.Dim%2 != 0 || c.Q.Strides[3] != 1 || c.K.Strides[3] != 1 {
		return nil
	}
	pairs, _ := any(tile.Pairs()).(*tile.Set[A])
	return pairs
}
