package ref

import (
	"sort"

	"github.com/loris-ml/loris/internal/aten"
)

func init() { kernels[aten.Sort] = sortKernel }

// sortKernel orders each line; NaN counts as the largest and equal elements
// keep their order, also when descending.
func sortKernel(c *call) {
	x, values, indices := c.in[0], c.out[0], c.out[1]
	l := dimLine(c)
	descending := c.Bool("descending")
	l.each(func(pos func(int) int) {
		perm := make([]int, l.n)
		for k := range perm {
			perm[k] = k
		}
		sort.SliceStable(perm, func(i, j int) bool {
			p, q := pos(perm[i]), pos(perm[j])
			if descending {
				return greater(x, p, q)
			}
			return greater(x, q, p)
		})
		for k, from := range perm {
			values.copyFrom(pos(k), x, pos(from))
			indices.setInt(pos(k), int64(from))
		}
	})
}
