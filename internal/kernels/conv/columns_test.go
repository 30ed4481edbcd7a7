package conv

import "testing"

func TestColumns(t *testing.T) {
	for _, tc := range geometries {
		g := tc.g
		if g.N == 0 || g.Groups != 1 || g.Transposed {
			continue
		}
		x := random(1, g.N*g.CIn*volume(g.In))
		k, outs := volume(g.Kernel), volume(g.Out)
		for l := range layouts {
			img := lay[float32](x, g.N, g.CIn, g.In, l)
			got := make([]float32, g.CIn*k*outs)
			for i := range got {
				got[i] = 77
			}
			if g.CIn > 0 {
				Columns(got, img.data, &g, img.l, 1, g.CIn)
				Columns(got, img.data, &g, img.l, 0, 1)
			}
			each(g.CIn, k, g.Out, func(i, c, pos int, o [3]int) {
				at := [3]int{pos / (g.Kernel[1] * g.Kernel[2]), pos / g.Kernel[2] % g.Kernel[1], pos % g.Kernel[2]}
				want := float32(0)
				if in, ok := g.meets(o, at); ok {
					want = img.data[img.at(0, c, in)]
				}
				if got[i] != want {
					t.Fatalf("%s, %s: channel %d position %v output %v is %v, want %v", tc.name, layouts[l].name, c, at, o, got[i], want)
				}
			})
		}
	}
}
