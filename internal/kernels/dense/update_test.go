package dense

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

func TestRowsOfMatrix(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, s := range [][2]int{{1, 8}, {3, 16}, {4, 24}, {7, 8}, {13, 40}} {
			rows, cols := s[0], s[1]
			a, columns, along := random(rows, cols), random(3, rows), random(3, cols)
			// The last of each ends where no memory may be touched.
			v, w, x := columns.row(0), columns.row(1), guarded.Slice[float64](rows)
			copy(x, columns.row(2))
			p, q, y := along.row(0), along.row(1), guarded.Slice[float64](cols)
			copy(y, along.row(2))
			want, sums := copied(a), append([]float64(nil), y...)
			for i := range rows {
				for j := range cols {
					want.at(i, j)[0] -= v[i]*p[j] + w[i]*q[j]
					sums[j] += x[i] * want.at(i, j)[0]
				}
			}
			update(a.Data, a.Stride, v, w, x, p, q, y, rows, cols)
			near(t, fmt.Sprint(s), a, want)
			near(t, fmt.Sprint(s, " sums"), matrixOf(y, 1, cols), matrixOf(sums, 1, cols))
			all = append(all, a.Data, append([]float64(nil), y...))
			down := guarded.Slice[float64](rows)
			copy(down, columns.row(0))
			wantDown := append([]float64(nil), down...)
			copy(sums, y)
			for i := range rows {
				for j := range cols {
					wantDown[i] += a.at(i, j)[0] * p[j]
					sums[j] += x[i] * a.at(i, j)[0]
				}
			}
			both(a.Data, a.Stride, x, down, p, y, rows, cols)
			near(t, fmt.Sprint(s, " both"), matrixOf(y, 1, cols), matrixOf(sums, 1, cols))
			near(t, fmt.Sprint(s, " down"), matrixOf(down, 1, rows), matrixOf(wantDown, 1, rows))
			all = append(all, y, down)
		}
		return all
	})
}
