package strided

import (
	"slices"
	"testing"
)

// TestPad pads images by every kind of axis, narrow and wide, from every row on, against the places of single
// elements.
func TestPad(t *testing.T) {
	pads[uint8](t)
	pads[uint16](t)
	pads[uint32](t)
	pads[uint64](t)
}

func pads[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	const planes, rows = 2, 9
	for _, cols := range []int{1, 5, 19, 40} {
		src := make([]T, planes*rows*cols)
		for i := range src {
			src[i] = T(i * 37)
		}
		for kind, axis := range []func(size, before, after int) Axis{Reflected, Replicated, Wrapped} {
			for _, pad := range [][4]int{{0, 0, 1, 2}, {2, 1, 3, 0}, {-1, 3, -2, 1}, {4, -2, 17, 18}, {0, 0, 0, 0}} {
				if kind != 1 && (pad[2] >= cols || pad[3] >= cols) {
					continue
				}
				if pad[2]+pad[3]+cols <= 0 || cols+min(pad[2], 0)+min(pad[3], 0) < 1 {
					continue
				}
				axes := []Axis{Wrapped(planes, 0, 0), axis(rows, pad[0], pad[1]), axis(cols, pad[2], pad[3])}
				height, width := axes[1].len(), axes[2].len()
				var want []T
				for r := range planes * height {
					for c := range width {
						want = append(want, src[(r/height*rows+axes[1].place(r%height))*cols+axes[2].place(c)])
					}
				}
				for lo := range planes * height {
					for _, hi := range []int{min(lo+1, planes*height), planes * height} {
						got := make([]T, len(want))
						Pad(got, src, axes, lo, hi)
						if !slices.Equal(got[lo*width:hi*width], want[lo*width:hi*width]) {
							t.Fatalf("rows %d to %d of %d columns, kind %d, padded by %v", lo, hi, cols, kind, pad)
						}
						for i, x := range got {
							if x != 0 && (i < lo*width || i >= hi*width) {
								t.Fatalf("element %d is written, of rows %d to %d", i, lo, hi)
							}
						}
					}
				}
			}
		}
	}
}
