package cpu

import (
	"fmt"
	"testing"
)

// Transforms by kernels are what the decompositions make of those of ref, in float64: along any
// dimensions, of few long lines and many short ones, with large primes, cut and padded.
func TestTransforms(t *testing.T) {
	for _, c := range []struct {
		shape  string
		n      int
		dims   string
		resize int
	}{
		{"33", 33, "[0]", 33}, {"1024", 1024, "[0]", 1024}, {"2048", 2048, "[0]", 4094}, {"2,1200", 2400, "[1]", 2398}, {"1030", 1030, "[0]", 1030}, {"5,7,6", 210, "[1]", 7}, {"5,7,6", 210, "[0,2]", 9},
		{"5,7,6", 210, "[2,0,1]", 6}, {"3,20,1", 60, "[1,2]", 1}, {"40,62", 2480, "[-1]", 60}, {"2,202", 404, "[1]", 101}, {"1", 1, "[0]", 2},
		{"2053", 2053, "[0]", 2053}, {"2,2062", 4124, "[1]", 4122}, {"2053,3", 6159, "[0]", 4099},
	} {
		for _, types := range [][2]string{{"f32", "c64"}, {"f64", "c128"}} {
			for norm := range 3 {
				tolerance := map[string]float64{"f32": 2e-6, "f64": 1e-14}[types[0]]
				sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %s[%s]
					%%y = parameter "y" : %s[%s]
					%%z = complex(%%x, %%y)
					%%0 = _fft_c2c(%%z, %s, %d, true)
					%%1 = _fft_c2c(%%z, %s, %d, false)
					%%2 = _fft_r2c(%%x, %s, %d, true)
					%%3 = _fft_r2c(%%x, %s, %d, false)
					%%4 = _fft_c2r(%%z, %s, %d, %d)
					return view_as_real(%%0), view_as_real(%%1), view_as_real(%%2), view_as_real(%%3), %%4 }`,
					types[0], c.shape, types[0], c.shape, c.dims, norm, c.dims, norm, c.dims, norm, c.dims, norm, c.dims, norm, c.resize),
					tolerance, hashed(c.n), hashed(2 * c.n)[c.n:])
			}
		}
	}
}
