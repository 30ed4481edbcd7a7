package kernels

import "testing"

func TestPlaces(t *testing.T) {
	for _, d := range [][2]int{{1, 1}, {4, 7}, {7, 4}, {5, 5}, {0, 3}, {3, 0}} {
		for offset := -9; offset < 10; offset++ {
			for _, upper := range []bool{false, true} {
				var wantRows, wantCols []int64
				for r := range d[0] {
					for c := range d[1] {
						if upper && c >= r+offset || !upper && c <= r+offset {
							wantRows, wantCols = append(wantRows, int64(r)), append(wantCols, int64(c))
						}
					}
				}
				rows, cols := make([]int64, len(wantRows)), make([]int64, len(wantRows))
				tr := Triangle{Cols: d[1], Offset: offset, Upper: upper}
				Places(rows, cols, tr, d[0]/2, d[0])
				Places(rows, cols, tr, 0, d[0]/2)
				for i := range rows {
					if rows[i] != wantRows[i] || cols[i] != wantCols[i] {
						t.Fatalf("%v offset %d upper %v: element %d is at %d, %d, want %d, %d", d, offset, upper, i, rows[i], cols[i], wantRows[i], wantCols[i])
					}
				}
			}
		}
	}
}
