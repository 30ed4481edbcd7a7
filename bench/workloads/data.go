package workloads

import (
	"context"

	"github.com/loris-ml/loris"
)

// Data makes the numbers of a workload, tensor by tensor: the same in every
// language, since element i of tensor k is a hash of both. Peers have their own
// copy of these few lines.
type Data struct {
	make   loris.Maker
	dtype  loris.DType
	tensor uint32
}

// NewData returns the source of a workload's numbers; tensors are made by m.
func NewData(m loris.Maker) *Data { return newDataOf(m, loris.F32) }

// newDataOf is NewData whose tensors are rounded to a dtype.
func newDataOf(m loris.Maker, dtype loris.DType) *Data { return &Data{make: m, dtype: dtype} }

// word returns the hash of element i of tensor k: the last steps of MurmurHash3.
func word(k, i uint32) uint32 {
	h := i + k*0x9E3779B9
	h ^= h >> 16
	h *= 0x85EBCA6B
	h ^= h >> 13
	h *= 0xC2B2AE35
	return h ^ h>>16
}

// Floats returns the next tensor's n elements, uniform in [-scale, scale).
func (d *Data) Floats(n int, scale float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = (float32(word(d.tensor, uint32(i))>>8)*0x1p-23 - 1) * scale
	}
	d.tensor++
	return out
}

// Ints returns the next tensor's n elements, uniform in [0, below).
func (d *Data) Ints(n int, below uint32) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(word(d.tensor, uint32(i)) % below)
	}
	d.tensor++
	return out
}

// Tensor returns the next tensor, of Floats.
func (d *Data) Tensor(scale float32, dims ...int) *loris.Tensor {
	n := 1
	for _, k := range dims {
		n *= k
	}
	return d.from(d.Floats(n, scale), dims...)
}

func (d *Data) from(x []float32, dims ...int) *loris.Tensor {
	t := d.make.FromSlice(x, dims...)
	if d.dtype != loris.F32 {
		t = t.Cast(d.dtype)
	}
	return t
}

// numbers returns a tensor's elements, of whatever dtype, as f32.
func numbers(ctx context.Context, t *loris.Tensor) ([]float32, error) {
	if t.DType() != loris.F32 {
		t = t.Cast(loris.F32)
	}
	return t.Float32s(ctx)
}

// Variable is Tensor as the value of a variable.
func (d *Data) Variable(scale float32, dims ...int) *loris.Variable {
	return loris.NewVariable(d.Tensor(scale, dims...))
}
