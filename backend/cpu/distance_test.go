package cpu

import (
	"fmt"
	"testing"
)

// TestDistances holds norms of differences and their gradients against ref, for shapes that do not
// divide into tiles, batches that are broadcast and operands that lie otherwise.
func TestDistances(t *testing.T) {
	for name, b := range map[string]*Backend{"native": New(), "portable": NewPortable()} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []string{"0", "0.5", "1", "2", "3", "inf"} {
				for _, d := range map[bool][]string{true: {"f32", "f64", "bf16"}, false: {"f32"}}[p == "1" || p == "2" || p == "inf"] {
					tolerance := map[string]float64{"f32": 1e-5, "f64": 1e-12, "bf16": 1e-2}[d]
					sameAsRef(t, b, fmt.Sprintf(`program @p {
						%%x = parameter "x" : %s[3,1,7,5]
						%%y = parameter "y" : %s[2,35,5]
						%%g = parameter "g" : %s[3,2,7,35]
						%%h = parameter "h" : %s[15]
						%%s = slice(%%x, 2, 0, 7, 2)
						%%z = permute(reshape(%%y, [10,35]), [1,0])
						%%few = slice(%%z, 0, 0, 6, 1)
						return cdist(%%x, %%y, %s), cdist(%%y, %%s, %s), _cdist_backward(%%g, %%x, %%y, %s, %%g), pdist(%%z, %s), _pdist_backward(%%h, %%few, %s, %%h)
					}`, d, d, d, d, p, p, p, p, p), tolerance, hashed(105), hashed(350), hashed(1470), hashed(15))
				}
			}
		})
	}
}
