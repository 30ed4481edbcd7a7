package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveMatMul multiplies an m×k with a k×n matrix, both dense.
func naiveMatMul[T Number](a, b []T, m, n, k int) []T {
	c := make([]T, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				c[i*n+j] += a[i*k+p] * b[p*n+j]
			}
		}
	}
	return c
}

func randomInts[T Number](rng *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.IntN(19) - 9)
	}
	return x
}

func transposed[T any](x []T, rows, cols int) []T {
	out := make([]T, len(x))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = x[i*cols+j]
		}
	}
	return out
}

func TestMatMul(t *testing.T) {
	t.Run("float32", testMatMul[float32, float64])
	t.Run("float64", testMatMul[float64, float64])
	t.Run("int8", testMatMul[int8, int8])
	t.Run("int64", testMatMul[int64, int64])
}

// testMatMul multiplies small integers, which floats hold exactly.
func testMatMul[T, A Number](t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, c := range [][3]int{{1, 1, 1}, {2, 4, 3}, {3, 5, 1}, {5, 7, 9}, {8, 8, 8}, {1, 9, 30}, {17, 1, 6}, {4, 6, 0}, {13, 11, 600}, {3, 300, 20}} {
		m, n, k := c[0], c[1], c[2]
		a, b := randomInts[T](rng, m*k), randomInts[T](rng, k*n)
		want := naiveMatMul(a, b, m, n, k)
		at, bt := transposed(a, m, k), transposed(b, k, n)
		for _, layout := range []struct {
			name         string
			a, b         []T
			aRow, aK     int
			bK, bCol     int
			aOff, bOff   int
			rowsA, colsB int
		}{
			{"nn", a, b, k, 1, n, 1, 0, 0, m, n},
			{"tn", at, b, 1, m, n, 1, 0, 0, m, n},
			{"nt", a, bt, k, 1, 1, k, 0, 0, m, n},
			{"tt", at, bt, 1, m, 1, k, 0, 0, m, n},
		} {
			rows, cols := (m+MR-1)/MR, (n+NR-1)/NR
			pa, pb := make([]A, PackedLen(m, k, MR)), make([]A, PackedLen(n, k, NR))
			Pack(pa, layout.a, MR, m, k, layout.aOff, layout.aRow, layout.aK, 0, rows)
			Pack(pb, layout.b, NR, n, k, layout.bOff, layout.bCol, layout.bK, 0, cols)
			got := make([]T, m*n)
			for lo := 0; lo < rows; lo += 2 {
				MatMul(got, pa, pb, m, n, k, lo, min(lo+2, rows), 0, cols/2)
				MatMul(got, pa, pb, m, n, k, lo, min(lo+2, rows), cols/2, cols)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v %s packed: %v, want %v", c, layout.name, got, want)
			}
			clear(got)
			for i := range m {
				MatVec[T, A](got, layout.a, layout.b, n, k, layout.aOff, layout.aRow, layout.aK, layout.bOff, layout.bK, layout.bCol, i, i+1)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v %s unpacked: %v, want %v", c, layout.name, got, want)
			}
		}
	}
}

// naiveConv computes a convolution in two dimensions by its definition.
func naiveConv(x, w, bias []float64, g *Conv) []float64 {
	out := make([]float64, g.N*g.Groups*g.COut*g.positions())
	i := 0
	for n := range g.N {
		for oc := range g.Groups * g.COut {
			grp := oc / g.COut
			for y := range g.Out[1] {
				for z := range g.Out[2] {
					sum := 0.0
					if bias != nil {
						sum = bias[oc]
					}
					for c := range g.CIn {
						for ky := range g.Kernel[1] {
							for kz := range g.Kernel[2] {
								iy, iz := y*g.Stride[1]-g.Pad[1]+ky*g.Dilation[1], z*g.Stride[2]-g.Pad[2]+kz*g.Dilation[2]
								if iy%g.InStride[1] != 0 || iz%g.InStride[2] != 0 {
									continue
								}
								iy, iz = iy/g.InStride[1], iz/g.InStride[2]
								if iy < 0 || iz < 0 || iy >= g.In[1] || iz >= g.In[2] {
									continue
								}
								sum += x[((n*g.Groups+grp)*g.CIn+c)*g.In[1]*g.In[2]+iy*g.In[2]+iz] *
									w[((oc*g.CIn+c)*g.Kernel[1]+ky)*g.Kernel[2]+kz]
							}
						}
					}
					out[i] = sum
					i++
				}
			}
		}
	}
	return out
}

func TestConvolve(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	ones := [3]int{1, 1, 1}
	for name, g := range map[string]*Conv{
		"plain":   {N: 2, Groups: 1, CIn: 3, COut: 5, In: [3]int{1, 6, 7}, Kernel: [3]int{1, 3, 2}, Out: [3]int{1, 4, 6}, Stride: ones, Dilation: ones, InStride: ones},
		"padded":  {N: 1, Groups: 1, CIn: 1, COut: 2, In: [3]int{1, 5, 5}, Kernel: [3]int{1, 3, 3}, Out: [3]int{1, 5, 5}, Stride: ones, Pad: [3]int{0, 1, 1}, Dilation: ones, InStride: ones},
		"strided": {N: 1, Groups: 1, CIn: 2, COut: 1, In: [3]int{1, 9, 8}, Kernel: [3]int{1, 2, 3}, Out: [3]int{1, 4, 3}, Stride: [3]int{1, 2, 2}, Dilation: ones, InStride: ones},
		"dilated": {N: 1, Groups: 1, CIn: 2, COut: 3, In: [3]int{1, 9, 9}, Kernel: [3]int{1, 3, 2}, Out: [3]int{1, 5, 6}, Stride: ones, Dilation: [3]int{1, 2, 3}, InStride: ones},
		"groups":  {N: 2, Groups: 3, CIn: 2, COut: 2, In: [3]int{1, 4, 4}, Kernel: [3]int{1, 2, 2}, Out: [3]int{1, 3, 3}, Stride: ones, Dilation: ones, InStride: ones},
		"spread":  {N: 1, Groups: 1, CIn: 2, COut: 2, In: [3]int{1, 3, 4}, Kernel: [3]int{1, 3, 3}, Out: [3]int{1, 7, 9}, Stride: ones, Pad: [3]int{0, 2, 2}, Dilation: ones, InStride: [3]int{1, 2, 2}},
		"blocks":  {N: 1, Groups: 1, CIn: 1, COut: 3, In: [3]int{1, 20, 20}, Kernel: [3]int{1, 2, 2}, Out: [3]int{1, 19, 19}, Stride: ones, Dilation: ones, InStride: ones},
	} {
		t.Run(name, func(t *testing.T) {
			x := randomInts[float64](rng, g.N*g.Groups*g.CIn*g.In[1]*g.In[2])
			w := randomInts[float64](rng, g.Groups*g.COut*g.Depth())
			for _, bias := range [][]float64{nil, randomInts[float64](rng, g.Groups*g.COut)} {
				packed, scratch := make([]float64, g.PackedWeights()), make([]float64, g.Scratch())
				PackWeights(packed, w, g, 0, g.Groups)
				want := naiveConv(x, w, bias, g)
				got := make([]float64, len(want))
				for u := range g.Units() {
					Convolve(got, x, packed, bias, g, scratch, u, u+1)
				}
				if !slices.Equal(got, want) {
					t.Errorf("bias %v: got %v, want %v", bias, got, want)
				}
			}
		})
	}
}

func TestMaxPool(t *testing.T) {
	x := []float64{
		1, 5, 2,
		nan, 0, 3,
		4, 4, -1,
	}
	g := &Pool{In: [3]int{1, 3, 3}, Kernel: [3]int{1, 2, 2}, Out: [3]int{1, 2, 2}, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}
	values, at := make([]float64, 4), make([]int64, 4)
	MaxPool(values, at, x, g, -inf, 0, 1)
	wantV, wantAt := []float64{nan, 5, nan, 4}, []int64{3, 1, 3, 7}
	for i := range values {
		if !sameBits(values[i], wantV[i]) || at[i] != wantAt[i] {
			t.Errorf("window %d: %v at %d, want %v at %d", i, values[i], at[i], wantV[i], wantAt[i])
		}
	}
	// Stride 2 with padding 1: windows reach beyond the edges.
	g = &Pool{In: [3]int{1, 3, 3}, Kernel: [3]int{1, 2, 2}, Out: [3]int{1, 2, 2}, Stride: [3]int{1, 2, 2}, Pad: [3]int{0, 1, 1}, Dilation: [3]int{1, 1, 1}}
	MaxPool(values, at, []float64{-1, -2, -3, -4, -5, -6, -7, -8, -9}, g, -inf, 0, 1)
	if !slices.Equal(values, []float64{-1, -2, -4, -5}) || !slices.Equal(at, []int64{0, 1, 3, 4}) {
		t.Errorf("padded: %v at %v", values, at)
	}
}
