package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// fill makes the elements of a tensor of a dtype.
type fill struct {
	dtype ir.DType
	make  func(rng *rand.Rand, s ir.Shape) []byte
}

// fillOf returns how the elements are made that a recipe describes after the colon.
func (c *call) fillOf(what string) (fill, error) {
	if name, below, ok := strings.Cut(what, "<"); ok {
		d, err := ir.ParseDType(name)
		if err != nil {
			return fill{}, err
		}
		n, err := c.size.number(below)
		return ints(d, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(int64(n)) }), err
	}
	lo, hi := c.domain()
	switch what {
	case "":
		return c.sample(lo, hi), nil
	case "seed":
		return ints(ir.I64, func(*rand.Rand, int) int64 { return 42 }), nil
	case "perm":
		return fill{ir.I64, permutations}, nil
	case "lengths":
		return ints(ir.I64, func(*rand.Rand, int) int64 { return int64(c.size.letters["c"]) }), nil
	case "pivots":
		return fill{ir.I32, pivots}, nil
	case "unit":
		return c.floats(func(rng *rand.Rand, _ []int, _ int) float64 { return 0.01 + 0.98*rng.Float64() }), nil
	case "positive":
		return c.floats(func(rng *rand.Rand, _ []int, _ int) float64 { return 0.5 + rng.Float64() }), nil
	case "small":
		return c.floats(func(rng *rand.Rand, dims []int, _ int) float64 {
			return (rng.Float64() - 0.5) / math.Sqrt(float64(dims[0]))
		}), nil
	case "spd", "lower":
		return c.matrices(diagonallyDominant(what == "lower")), nil
	case "sorted":
		f := c.sample(lo, hi)
		return fill{f.dtype, func(rng *rand.Rand, s ir.Shape) []byte { return sorted(s.DType(), f.make(rng, s)) }}, nil
	}
	d, err := ir.ParseDType(what)
	return sampleOf(d, -2, 2), err
}

// domain is where the next operand of the op is drawn.
func (c *call) domain() (lo, hi float64) {
	if i := len(c.tensors); i < len(c.spec.Domain) {
		if r := c.spec.Domain[i]; r[0] < r[1] {
			return r[0], r[1]
		}
	}
	return -2, 2
}

func (c *call) uniform() fill { return c.sample(-1, 1) }

// sample has elements of the case's dtype; integers that divide are positive.
func (c *call) sample(lo, hi float64) fill {
	if c.dtype.IsInt() && len(c.tensors) > 0 {
		return ints(c.dtype, func(rng *rand.Rand, _ int) int64 { return 1 + rng.Int64N(5) })
	}
	return sampleOf(c.dtype, lo, hi)
}

func sampleOf(d ir.DType, lo, hi float64) fill {
	switch {
	case d.IsComplex():
		return fill{d, func(rng *rand.Rand, s ir.Shape) []byte {
			return repeated(s.Numel(), d.Size(), func(n int) []byte {
				v := make([]float64, 2*n)
				for i := range v {
					v[i] = lo + (hi-lo)*rng.Float64()
				}
				return elements.EncodeFloats(d.Part(), v)
			})
		}}
	case d.IsFloat():
		return floats(d, func(rng *rand.Rand, _ []int, _ int) float64 { return lo + (hi-lo)*rng.Float64() })
	case d == ir.Bool:
		return ints(d, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(2) })
	case d.IsSigned():
		return ints(d, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(101) - 50 })
	}
	return ints(d, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(101) })
}

// floats has elements of the case's dtype, which must be floating.
func (c *call) floats(element func(rng *rand.Rand, dims []int, i int) float64) fill {
	d := c.dtype
	if !d.IsFloat() {
		return sampleOf(d, 0, 1)
	}
	return floats(d, element)
}

func floats(d ir.DType, element func(rng *rand.Rand, dims []int, i int) float64) fill {
	return fill{d, func(rng *rand.Rand, s ir.Shape) []byte {
		dims := s.Dims()
		return repeated(s.Numel(), s.DType().Size(), func(n int) []byte {
			v := make([]float64, n)
			for i := range v {
				v[i] = element(rng, dims, i)
			}
			return elements.EncodeFloats(s.DType(), v)
		})
	}}
}

func ints(d ir.DType, element func(rng *rand.Rand, i int) int64) fill {
	return fill{d, func(rng *rand.Rand, s ir.Shape) []byte {
		return repeated(s.Numel(), s.DType().Size(), func(n int) []byte {
			v := make([]int64, n)
			for i := range v {
				v[i] = element(rng, i)
			}
			return elements.EncodeInts(s.DType(), v)
		})
	}}
}

// diagonallyDominant has elements of symmetric matrices that have an inverse, or of the lower half.
func diagonallyDominant(lower bool) func([]int, int) float64 {
	return func(dims []int, i int) float64 {
		n := dims[len(dims)-1]
		row, col := i/n%dims[len(dims)-2], i%n
		switch {
		case row == col:
			return 2
		case lower && col > row:
			return 0
		}
		return math.Sin(float64(row*col+row+col)) / float64(n)
	}
}

// matrices are floats of which each element is its own, so that all matrices of a batch are as they should be.
func (c *call) matrices(element func(dims []int, i int) float64) fill {
	if !c.dtype.IsFloat() {
		return sampleOf(c.dtype, 0, 1)
	}
	return fill{c.dtype, func(_ *rand.Rand, s ir.Shape) []byte {
		v := make([]float64, s.Numel())
		for i := range v {
			v[i] = element(s.Dims(), i)
		}
		return elements.EncodeFloats(s.DType(), v)
	}}
}

// pivots leave all rows of each matrix where they are.
func pivots(_ *rand.Rand, s ir.Shape) []byte {
	v := make([]int64, s.Numel())
	for i := range v {
		v[i] = int64(i%s.Dim(-1) + 1)
	}
	return elements.EncodeInts(s.DType(), v)
}

// permutations has an order of its own of the last dimension in each line.
func permutations(rng *rand.Rand, s ir.Shape) []byte {
	var v []int64
	dims := s.Dims()
	n := dims[len(dims)-1]
	for len(v) < s.Numel() {
		for _, p := range rng.Perm(n) {
			v = append(v, int64(p))
		}
	}
	return elements.EncodeInts(s.DType(), v)
}

// sorted orders what has an order.
func sorted(d ir.DType, data []byte) []byte {
	switch {
	case d.IsComplex():
		return data
	case d.IsFloat():
		v := elements.DecodeFloats(d, data)
		slices.Sort(v)
		return elements.EncodeFloats(d, v)
	}
	v := elements.DecodeInts(d, data)
	slices.Sort(v)
	return elements.EncodeInts(d, v)
}

// period is how many random elements are drawn of a tensor; it repeats them. No row of a power of
// two is another's repetition.
const period = 65521

// repeated returns n elements, the first of which are drawn.
func repeated(n, size int, draw func(n int) []byte) []byte {
	data := make([]byte, n*size)
	have := copy(data, draw(min(n, period)))
	for have > 0 && have < len(data) {
		have += copy(data[have:], data[:min(have, period*size)])
	}
	return data
}
