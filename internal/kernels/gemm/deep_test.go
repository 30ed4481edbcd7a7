package gemm

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"
)

// scalarTile is a deepTile as TDPBF16PS defines it: a step of the depth sums its even and its odd elements
// apart, and subnormal factors count as zero.
func scalarTile(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) {
	x := unsafe.Slice((*uint32)(unsafe.Pointer(a)), (rows-1)*aRow+depth)
	y := unsafe.Slice((*uint32)(unsafe.Pointer(b)), (depth-1)*bK+cols)
	out := unsafe.Slice(c, (rows-1)*ldc+cols)
	for i := range rows {
		for j := range cols {
			to := &out[i*ldc+j]
			if !add {
				*to = 0
			}
			for p0 := 0; p0 < depth; p0 += tileDepth {
				var even, odd float32
				for p := p0; p < min(p0+tileDepth, depth); p++ {
					l, r := x[i*aRow+p], y[p*bK+j]
					even += normal(uint16(l)) * normal(uint16(r))
					odd += normal(uint16(l>>16)) * normal(uint16(r>>16))
				}
				*to += even + odd
			}
		}
	}
}

// tilesFor returns a kernel of pairs that are multiplied by scalarTile, so that all but the loop of
// processors with tiles is tested on others, too.
func tilesFor[A Float](pairs *kernel[A]) *kernel[A] {
	return any(deepKernel("tiles", any(pairs).(*kernel[float32]), scalarTile)).(*kernel[A])
}

// TestMultiplies checks that the trial of a loop tells a right one from others.
func TestMultiplies(t *testing.T) {
	wrong := []struct {
		name string
		tile deepTile
	}{
		{"no last step", func(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) {
			scalarTile(rows, depth/tileDepth*tileDepth, a, aRow, b, bK, c, ldc, cols, add)
		}},
		{"no second rows", func(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) {
			scalarTile(min(rows, tileRows), depth, a, aRow, b, bK, c, ldc, cols, add)
		}},
		{"no second columns", func(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) {
			scalarTile(rows, depth, a, aRow, b, bK, c, ldc, min(cols, tileCols), add)
		}},
		{"no sums from before", func(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, _ bool) {
			scalarTile(rows, depth, a, aRow, b, bK, c, ldc, cols, false)
		}},
		{"nothing", func(int, int, *float32, int, *float32, int, *float32, int, int, bool) {}},
	}
	if !multiplies(scalarTile) {
		t.Error("the definition does not pass")
	}
	for _, w := range wrong {
		if multiplies(w.tile) {
			t.Errorf("%s passes", w.name)
		}
	}
}

// TestTiles says whether this processor's tiles are used, and requires it where LORIS_TILES asks for them.
func TestTiles(t *testing.T) {
	var name string
	if p := kernels32[0].pairs; p != nil {
		name = p.name
	}
	t.Logf("pairs of bfloat16 are multiplied by %q", name)
	if os.Getenv("LORIS_TILES") != "" && name != "amx" {
		t.Error("no AMX")
	}
}

// TestScaledSumsOfBF16 scales products of bfloat16 whose results are float32, and adds what was there.
func TestScaledSumsOfBF16(t *testing.T) {
	each(t, &kernels32, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, d := range [][3]int{{3, 40, 9}, {40, 1300, 50}, {350, 97, 70}, {7, 64, 100}} {
			for layout := range 4 {
				a, b := made[BF16](rng, d[0], d[1], layout%2), made[BF16](rng, d[1], d[2], layout/2)
				c := made[float32](rng, d[0], d[2], 0)
				x, y, before := a.numbers(), b.T().numbers(), c.numbers()
				Mul(c, a, b, &Options[float32]{Alpha: 0.5, Beta: 4})
				for r := range d[0] {
					for j := range d[2] {
						want := 4 * before[r*d[2]+j]
						for p, v := range x[r*d[1] : (r+1)*d[1]] {
							want += 0.5 * v * y[j*d[1]+p]
						}
						if got := c.get(r, j); got != want {
							t.Fatalf("%v, layout %d: element (%d, %d) is %v, want %v", d, layout, r, j, got, want)
						}
					}
				}
			}
		}
	})
}
