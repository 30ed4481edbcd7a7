package main

import (
	"math"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// makers has the workloads that GoMLX's Go backend runs in sensible time.
var makers = map[string]func(b backends.Backend) *workload{
	"pointwise-1M":   pointwise(1 << 20),
	"pointwise-16M":  pointwise(1 << 24),
	"softmax":        softmax,
	"layer-norm":     layerNorm,
	"matmul-256":     product([]int{256, 256}, []int{256, 256}),
	"matmul-1024":    product([]int{1024, 1024}, []int{1024, 1024}),
	"matmul-2048":    product([]int{2048, 2048}, []int{2048, 2048}),
	"matmul-batched": product([]int{16, 256, 64}, []int{16, 64, 256}),
	"conv3x3":        convolution,
	"encoder-block":  encoder,
	"mlp-step":       mlp,
	"chain-compiled": chain,
	"first-compile":  firstCompile,
}

// data makes tensors of the numbers that all systems have.
type data struct{ *workloads.Data }

func newData() data { return data{workloads.NewData(loris.With())} }

func (d data) tensor(scale float64, dims ...int) *tensors.Tensor {
	n := 1
	for _, k := range dims {
		n *= k
	}
	return tensors.FromFlatDataAndDimensions(d.Floats(n, float32(scale)), dims...)
}

func (d data) linear(in, out int) []*tensors.Tensor {
	scale := 1 / math.Sqrt(float64(in))
	return []*tensors.Tensor{d.tensor(scale, out, in), d.tensor(scale, out)}
}

func (d data) norm(n int) []*tensors.Tensor {
	w := d.Floats(n, 0.1)
	for i := range w {
		w[i]++
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(w, n), d.tensor(0.1, n)}
}

// function makes a workload of a graph with one result.
func function(b backends.Backend, f func([]*Node) *Node, in ...*tensors.Tensor) *workload {
	e := MustNewExec(b, f)
	args := make([]any, len(in))
	for i, t := range in {
		args[i] = t
	}
	var out *tensors.Tensor
	return &workload{
		run: func() {
			if out != nil {
				out.MustFinalizeAll()
			}
			out = e.MustExec1(args...)
		},
		results: func() []float32 { return tensors.MustCopyFlatData[float32](out) },
	}
}

func relu(x *Node) *Node { return Max(x, ZerosLike(x)) }

func pointwise(n int) func(backends.Backend) *workload {
	return func(b backends.Backend) *workload {
		d := newData()
		return function(b, func(in []*Node) *Node {
			x, w, b := in[0], in[1], in[2]
			return Add(Mul(Tanh(Add(Mul(x, w), b)), Sigmoid(x)), relu(Sub(x, w)))
		}, d.tensor(3, n), d.tensor(1, n), d.tensor(1, n))
	}
}

func softmax(b backends.Backend) *workload {
	return function(b, func(in []*Node) *Node { return Softmax(in[0], -1) }, newData().tensor(4, 4096, 1024))
}

func norm(x, w, b *Node) *Node {
	x = Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	v := ReduceAndKeep(Square(x), ReduceMean, -1)
	return Add(Mul(Mul(x, Rsqrt(AddScalar(v, 1e-5))), row(w, x)), row(b, x))
}

// row gives a vector the rank of x.
func row(v, x *Node) *Node { return ExpandLeftToRank(v, x.Rank()) }

func layerNorm(b backends.Backend) *workload {
	d := newData()
	return function(b, func(in []*Node) *Node { return norm(in[0], in[1], in[2]) },
		d.tensor(4, 4096, 1024), d.tensor(1, 1024), d.tensor(1, 1024))
}

func product(x, y []int) func(backends.Backend) *workload {
	return func(b backends.Backend) *workload {
		d := newData()
		return function(b, func(in []*Node) *Node { return MatMul(in[0], in[1]) }, d.tensor(1, x...), d.tensor(1, y...))
	}
}

func convolution(b backends.Backend) *workload {
	d := newData()
	return function(b, func(in []*Node) *Node {
		return Convolve(in[0], in[1]).ChannelsAxis(images.ChannelsFirst).Strides(1).PadSame().Done()
	}, d.tensor(1, 8, 64, 56, 56), d.tensor(1.0/24, 64, 64, 3, 3))
}

func linear(x, w, b *Node) *Node {
	y := DotGeneral(x, []int{x.Rank() - 1}, nil, w, []int{1}, nil)
	return Add(y, row(b, y))
}

func encoder(b backends.Backend) *workload {
	const batch, length, dim, heads = 4, 128, 512, 8
	d := newData()
	in := []*tensors.Tensor{d.tensor(1, batch, length, dim)}
	for _, w := range [][]*tensors.Tensor{d.linear(dim, 3*dim), d.linear(dim, dim), d.linear(dim, 2048), d.linear(2048, dim), d.norm(dim), d.norm(dim)} {
		in = append(in, w...)
	}
	return function(b, func(in []*Node) *Node {
		x, w := in[0], in[1:]
		qkv := Reshape(linear(x, w[0], w[1]), batch, length, 3, heads, dim/heads)
		var parts []*Node
		for i := range 3 {
			parts = append(parts, Squeeze(Slice(qkv, AxisRange(), AxisRange(), AxisRange(i, i+1)), 2))
		}
		s := MulScalar(Einsum("bqhd,bkhd->bhqk", parts[0], parts[1]), 1/math.Sqrt(dim/heads))
		a := Reshape(Einsum("bhqk,bkhd->bqhd", Softmax(s, -1), parts[2]), batch, length, dim)
		y := norm(Add(x, linear(a, w[2], w[3])), w[8], w[9])
		return norm(Add(y, linear(relu(linear(y, w[4], w[5])), w[6], w[7])), w[10], w[11])
	}, in...)
}

func mlp(b backends.Backend) *workload {
	d := newData()
	var state []*tensors.Tensor
	sizes := []int{784, 512, 512, 10}
	for i := range 3 {
		state = append(state, d.linear(sizes[i], sizes[i+1])...)
	}
	n := len(state)
	for _, p := range state[:n] {
		state = append(state, tensors.FromShape(p.Shape()))
	}
	x := d.tensor(1, 128, 784)
	y := tensors.FromFlatDataAndDimensions(d.Ints(128, 10), 128)
	e := MustNewExec(b, func(in []*Node) []*Node {
		params, momenta, h, y := in[:n], in[n:2*n], in[2*n], in[2*n+1]
		for i := 0; i < n; i += 2 {
			if h = linear(h, params[i], params[i+1]); i < n-2 {
				h = relu(h)
			}
		}
		loss := Neg(ReduceAllSum(Mul(LogSoftmax(h, -1), OneHot(y, 10, h.DType()))))
		var next, moved []*Node
		for i, g := range Gradient(MulScalar(loss, 1.0/128), params...) {
			m := Add(MulScalar(momenta[i], 0.9), g)
			moved = append(moved, m)
			next = append(next, Sub(params[i], MulScalar(m, 0.01)))
		}
		return append(next, moved...)
	})
	return &workload{
		run: func() {
			args := make([]any, 0, 2*n+2)
			for _, t := range state {
				args = append(args, t)
			}
			old := state
			state = e.MustExec(append(args, x, y)...)
			for _, t := range old {
				t.MustFinalizeAll()
			}
		},
		results: func() []float32 { return tensors.MustCopyFlatData[float32](state[n-2]) },
	}
}

// The chain of ops, and its length.
const chainOps, chainSize = 1000, 4

func chain(b backends.Backend) *workload {
	return function(b, func(in []*Node) *Node {
		y := in[0]
		for range chainOps {
			y = Add(y, in[0])
		}
		return y
	}, newData().tensor(1, chainSize))
}

func firstCompile(b backends.Backend) *workload {
	x := newData().tensor(1, chainSize)
	number := 0
	run := func(number int) *tensors.Tensor {
		e := MustNewExec(b, func(x *Node) *Node {
			y := x
			for i := range chainOps / 4 {
				if i < 32 && number>>i&1 == 1 {
					y = Sub(y, x)
				} else {
					y = Add(y, x)
				}
				y = Sigmoid(Mul(Tanh(y), x))
			}
			return y
		})
		return e.MustExec1(x)
	}
	return &workload{
		run:     func() { number++; run(number) },
		results: func() []float32 { return tensors.MustCopyFlatData[float32](run(0)) },
	}
}
