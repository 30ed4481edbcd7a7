package attention

import (
	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// scorer returns the tiles that compute the products of rows of x with rows of y, dim long, and how deep
// they are: those of pairs of bfloat16 where the processor is fast with them. The rows of y are then read
// where they lie. Weights are not rounded to bfloat16, and so what they are multiplied with is widened.
func (c *Call[T, A]) scorer(x, y *Tensor[T], dim int) (*tile.Set[A], int) {
	if _, ok := any(y.Data).([]vec.BF16); ok && isa.FastBF16Pairs() && c.set == nil && dim%2 == 0 && x.Strides[3] == 1 && y.Strides[3] == 1 {
		if pairs, _ := any(tile.Pairs()).(*tile.Set[A]); pairs != nil {
			return pairs, dim / 2
		}
	}
	return c.tiles(), dim
}
