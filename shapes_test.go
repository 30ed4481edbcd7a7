package loris

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// resize is a step of a random program on x [a, b]: it returns another value of these dimensions.
var resize = []func(x *Tensor, a, b int) *Tensor{
	func(x *Tensor, a, b int) *Tensor { return x.Sigmoid().Mul(2) },
	func(x *Tensor, a, b int) *Tensor {
		return x.Add(x.Narrow(0, 0, min(a, 1)).Sum(Dim(0)))
	},
	func(x *Tensor, a, b int) *Tensor { return x.Sub(x.Sum(Dim(1), Keepdim(true))) },
	func(x *Tensor, a, b int) *Tensor { return x.Mul(x.Mean(Dim(0))) },
	func(x *Tensor, a, b int) *Tensor { return x.Softmax(1) },
	func(x *Tensor, a, b int) *Tensor { return x.LayerNorm([]int{b}) },
	func(x *Tensor, a, b int) *Tensor { return x.Transpose(0, 1).Tanh().Transpose(0, 1) },
	func(x *Tensor, a, b int) *Tensor { return x.MatMul(x.Transpose(0, 1)).MatMul(x).Add(x) },
	func(x *Tensor, a, b int) *Tensor {
		return Cat([]*Tensor{x, x.Neg()}).Narrow(0, a/2, a)
	},
	func(x *Tensor, a, b int) *Tensor { return x.Reshape(a*b).Flip(0).Reshape(a, b) },
	func(x *Tensor, a, b int) *Tensor { return x.Unsqueeze(1).Expand(a, 3, b).Sum(Dim(1)) },
	func(x *Tensor, a, b int) *Tensor {
		return x.ConstantPadNd([]int{1, 0, 0, 2}, 0.5).Narrow(0, 1, a).Narrow(1, 0, b)
	},
	func(x *Tensor, a, b int) *Tensor { return x.Gelu().Add(x.Cumsum(0)) },
	func(x *Tensor, a, b int) *Tensor {
		q := x.Reshape(1, 1, a, b)
		return ScaledDotProductAttention(q, q, q.Mul(0.5)).Reshape(a, b)
	},
}

// randomProgram returns a program of random steps; its result and its gradient are read.
func randomProgram(seed uint64) func(t *testing.T, s *Session, a, b int) (out []byte, mistake string) {
	r := rand.New(rand.NewPCG(seed, 1))
	var steps []int
	for range 3 + r.IntN(5) {
		steps = append(steps, r.IntN(len(resize)))
	}
	return func(t *testing.T, s *Session, a, b int) (out []byte, mistake string) {
		data := make([]float32, a*b)
		for i := range data {
			data[i] = float32(i%7)/8 - 0.25
		}
		v := NewVariable(s.With().FromSlice(data, a, b))
		var y *Tensor
		var grads []*Tensor
		err := Try(func() {
			y, grads = ValueAndGrad(func() *Tensor {
				x := v.Value()
				for _, i := range steps {
					x = resize[i](x, a, b)
				}
				return x.Mul(x).Sum()
			}, v)
		})
		if err != nil {
			return nil, err.Error()
		}
		elements, err := Fetch(t.Context(), append(grads, y)...)
		if err != nil {
			return nil, err.Error()
		}
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return bytes.Join(elements, nil), ""
	}
}

// A program computes the same bits with sizes that are new to a session that knows it with others as
// in a session that knows nothing.
func TestNewSizesComputeTheSame(t *testing.T) {
	seeds := uint64(12)
	if longtest.Enabled() {
		seeds = 400
	}
	sizes := []int{5, 1, 0, 2, 3, 16, 33}
	newSizes := int64(0)
	for seed := range seeds {
		program := randomProgram(seed)
		known := newSession(t)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 6 {
			a, b := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))]
			got, mistake := program(t, known, a, b)
			want, fresh := program(t, newSession(t), a, b)
			if mistake != fresh {
				t.Fatalf("seed %d, %d×%d: %q, in a fresh session %q", seed, a, b, mistake, fresh)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d, %d×%d: %x, in a fresh session %x", seed, a, b, got, want)
			}
		}
		newSizes += known.Report().NewSizes
	}
	if newSizes == 0 {
		t.Error("no compilation had new sizes only")
	}
}

// TestRepeatOfManyDimensions repeats more dimensions than are stretched together.
func TestRepeatOfManyDimensions(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	for _, c := range []struct{ dims, repeats []int }{
		{[]int{2, 3}, []int{2, 2}},
		{[]int{2, 1, 3, 2, 2}, []int{2, 3, 1, 2, 2}},
		{[]int{2, 1, 2, 1, 2, 1, 2, 2}, []int{2, 2, 2, 2, 2, 2, 2, 2}},
		{[]int{3, 2, 2, 2, 1, 2}, []int{1, 2, 1, 2, 2, 2}},
		{[]int{2, 2}, []int{2, 1, 3, 2, 2}},
		{[]int{2, 3, 2}, []int{1, 0, 2}},
		{[]int{}, []int{2, 3}},
	} {
		n := 1
		for _, d := range c.dims {
			n *= d
		}
		x := s.With().Arange(0, n, 1).Reshape(c.dims...)
		y := x.Repeat(c.repeats...)
		got, err := y.Int64s(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := y.Shape().Dims()
		off := len(out) - len(c.dims)
		for i, v := range got {
			want, step := 0, 1
			for d, rest := len(out)-1, i; d >= off; d-- {
				want += rest % out[d] % c.dims[d-off] * step
				step *= c.dims[d-off]
				rest /= out[d]
			}
			if v != int64(want) {
				t.Fatalf("%v repeated %v: element %d is %d, want %d", c.dims, c.repeats, i, v, want)
			}
		}
	}
}
