//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/kernels/quant"
)

// quantKernels are the products with weights of 4 bits, and what packs those.
var quantKernels = map[string]eagerFunc{
	"_weight_int4pack_mm_for_cpu":         func(v values) ([]*tensor, error) { return int4Product(v, "self", "mat2") },
	"_convert_weight_to_int4pack_for_cpu": packInt4,
	"_weight_int4pack_mm_cpu_tensor": func(v values) ([]*tensor, error) {
		size, err := v.tensor("qGroupSize")
		if err != nil {
			return nil, err
		}
		n, err := scalarOf(size, 0)
		if err != nil {
			return nil, fmt.Errorf("the size of groups: %w", err)
		}
		v["qGroupSize"] = int(n)
		return int4Product(v, "X", "w")
	},
	"_dyn_quant_pack_4bit_weight": packDynamic,
	"_dyn_quant_matmul_4bit":      dynamicProduct,
}

// nibbles is how PyTorch packs weights of 4 bits on this processor. It says so
// nowhere in a package: those that were packed on one processor are right on the
// like. The environment variable that tells PyTorch to behave as on an older one
// does so here.
var nibbles = sync.OnceValue(func() quant.Nibbles {
	if runtime.GOARCH != "amd64" {
		return quant.Nibbles{Block: 16}
	}
	switch as := os.Getenv("ATEN_CPU_CAPABILITY"); {
	case isa.AVX512() && as != "avx2" && as != "default":
		return quant.Nibbles{Block: 64, Halves: true}
	case isa.AVX2() && as != "default":
		return quant.Nibbles{Block: 32, Halves: true}
	}
	return quant.Nibbles{Block: 32}
})

// packInt4 packs weights [n, k] of numbers from 0 to 15.
func packInt4(v values) ([]*tensor, error) {
	_, w, err := argument[int64](v, "self")
	if err != nil {
		return nil, err
	}
	if len(w.dims) != 2 || w.dims[0]%16 != 0 || w.dims[1]%2 != 0 {
		return nil, fmt.Errorf("%w: weights %v of 4 bits, want a multiple of 16 rows and an even number of columns", ir.ErrShape, w.dims)
	}
	q := make([]uint8, len(w.data))
	for i, x := range w.data {
		if x < 0 || x > 15 {
			return nil, fmt.Errorf("%w: %d in 4 bits", ir.ErrArg, x)
		}
		q[i] = uint8(x)
	}
	t, err := newTensor(ir.MakeShape(ir.U8, w.dims[0], w.dims[1]/2))
	if err != nil {
		return nil, err
	}
	nibbles().Pack(tensorBytes(t), q, w.dims[0], w.dims[1])
	return []*tensor{t}, nil
}

// int4Key is what weights of 4 bits depend on besides their scales.
type int4Key struct {
	offset       int64
	groups, cols int64
	dtype        int32
}

// int4Scales are the scales and zeros of groups.
type int4Scales struct {
	scale, zero []float32
	err         error
}

// int4Product is x [m, k] times weights [n, k/2] packed by packInt4, whose scales
// and zeros are [k/group, n, 2].
func int4Product(v values, left, right string) ([]*tensor, error) {
	x, w, err := v.two(left, right)
	if err != nil {
		return nil, err
	}
	pairs, err := v.tensor("qScaleAndZeros")
	if err != nil {
		return nil, err
	}
	d := dtypeOf(x)
	if d != ir.F32 && d != ir.BF16 && d != ir.F16 || w.dtype != C.LORI_U8 {
		return nil, fmt.Errorf("%w: %v times weights of 4 bits in %v", ir.ErrDType, d, dtypeOf(w))
	}
	xs, ws, ps, group := sizesOf(x), sizesOf(w), sizesOf(pairs), int64(v.int("qGroupSize", 0))
	if len(xs) != 2 || len(ws) != 2 || group < 1 || ws[1]*2 != xs[1] || xs[1]%group != 0 ||
		len(ps) != 3 || ps[0] != xs[1]/group || ps[1] != ws[0] || ps[2] != 2 || ws[0]%2 != 0 {
		return nil, fmt.Errorf("%w: %v times weights of 4 bits %v with scales %v of groups of %d", ir.ErrShape, xs, ws, ps, group)
	}
	s := kept(pairs, int4Key{int64(pairs.offset), ps[0], ps[1], int32(pairs.dtype)}, func() int4Scales {
		all, err := floatsOf(pairs, int(pairs.numel))
		s := int4Scales{make([]float32, len(all)/2), make([]float32, len(all)/2), err}
		for i := range s.scale {
			s.scale[i], s.zero[i] = all[2*i], all[2*i+1]
		}
		return s
	})
	if s.err != nil {
		return nil, s.err
	}
	in, err := floatsOf(x, int(x.numel))
	if err != nil {
		return nil, err
	}
	dense, err := made(func() *tensor { return C.lori_dense(w) })
	if err != nil {
		return nil, err
	}
	defer release(dense)
	m := quant.Int4{
		Cols: int(ws[0]), Depth: int(xs[1]), Data: elements[byte](dense), Layout: nibbles(), Group: int(group), Scale: s.scale, Zero: s.zero,
	}
	wide, err := newTensor(ir.MakeShape(ir.F32, int(xs[0]), m.Cols))
	if err != nil {
		return nil, err
	}
	m.Mul(elements[float32](wide), in, int(xs[0]))
	if d == ir.F32 {
		return []*tensor{wide}, nil
	}
	defer release(wide)
	out, err := newTensor(ir.MakeShape(d, int(xs[0]), m.Cols))
	if err != nil {
		return nil, err
	}
	return all(copyTensor(out, wide), out)
}

// packDynamic puts weights of 4 bits, their scales and the bias into one tensor
// of floats.
func packDynamic(v values) ([]*tensor, error) {
	var packed []float32
	for _, name := range []string{"weights", "scales_zeros", "bias"} {
		if name == "bias" && !v.has(name) {
			continue
		}
		t, err := v.tensor(name)
		if err != nil {
			return nil, err
		}
		f, err := floatsOf(t, int(t.numel))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		packed = append(packed, f...)
	}
	t, err := newTensor(ir.MakeShape(ir.F32, len(packed)))
	if err != nil {
		return nil, err
	}
	copy(elements[float32](t), packed)
	return []*tensor{t}, nil
}

// dynamicKey is what the weights that packDynamic packs depend on besides their
// contents.
type dynamicKey struct {
	offset               int64
	rows, cols, groupLen int
}

// dynamicWeights are weights of 4 bits and what belongs to them.
type dynamicWeights struct {
	w           *quant.Packed
	scale, bias []float32
	err         error
}

// dynamicProduct quantises the rows of its input to 8 bits, each by its own scale,
// and multiplies them by weights of 4 bits.
func dynamicProduct(v values) ([]*tensor, error) {
	x, packed, err := v.two("inp", "packed_weights")
	if err != nil {
		return nil, err
	}
	k, n, group := v.int("in_features", 0), v.int("out_features", 0), v.int("block_size", 0)
	d := dtypeOf(x)
	if d != ir.F32 && d != ir.BF16 || packed.dtype != C.LORI_F32 || d == ir.BF16 && group != k {
		return nil, fmt.Errorf("%w: %v times weights of 4 bits in %v and groups of %d", ir.ErrDType, d, dtypeOf(packed), group)
	}
	xs := sizesOf(x)
	if len(xs) != 2 || int(xs[1]) != k || n < 0 || group < 1 || k%2 != 0 || k%group != 0 || group != k && group%32 != 0 {
		return nil, fmt.Errorf("%w: %v times weights of 4 bits [%d, %d] in groups of %d", ir.ErrShape, xs, k, n, group)
	}
	w := kept(packed, dynamicKey{int64(packed.offset), k, n, group}, func() dynamicWeights { return unpackDynamic(packed, k, n, group) })
	if w.err != nil {
		return nil, w.err
	}
	in, err := floatsOf(x, int(x.numel))
	if err != nil {
		return nil, err
	}
	rows := int(xs[0])
	q, scales := make([]int16, rows*k), make([]float32, rows)
	for i := range rows {
		scales[i] = quantizeRow(q[i*k:][:k], in[i*k:][:k])
	}
	out, err := newTensor(ir.MakeShape(d, rows, n))
	if err != nil {
		return nil, err
	}
	var to []float32
	if d == ir.F32 {
		to = elements[float32](out)
	} else {
		to = make([]float32, rows*n)
	}
	f := quant.Finish{Factor: 1, Scale: w.scale, RowScale: scales, Bias: w.bias, Step: 1, Out: quant.F32s(to), Stride: n}
	quant.Mul(rows, func(dst []int16, i int) { copy(dst, q[i*k:]) }, w.w, &f)
	if d == ir.BF16 {
		for i, y := range to {
			elements[uint16](out)[i] = uint16(math.Float32bits(y) >> 16) // PyTorch cuts what does not fit
		}
	}
	return []*tensor{out}, nil
}

func unpackDynamic(t *tensor, k, n, group int) (w dynamicWeights) {
	all, err := floatsOf(t, int(t.numel))
	bytes, groups := n*k/2, k/group
	rest := len(all) - bytes - n*groups
	if err == nil && rest != 0 && rest != n {
		err = fmt.Errorf("%w: %d elements for weights of 4 bits [%d, %d] in groups of %d", ir.ErrShape, len(all), k, n, group)
	}
	if err != nil {
		return dynamicWeights{err: err}
	}
	q := make([]int8, n*k)
	for i, b := range all[:bytes] {
		q[2*i], q[2*i+1] = int8(uint8(b)&15)-8, int8(uint8(b)>>4)-8
	}
	scales := all[bytes : bytes+n*groups]
	if rest > 0 {
		w.bias = all[bytes+n*groups:]
	}
	if groups == 1 {
		w.w, w.scale = quant.Pack(q, n, k), scales
		return w
	}
	turned := make([]float32, len(scales))
	for j := range n {
		for g := range groups {
			turned[g*n+j] = scales[j*groups+g]
		}
	}
	w.w = quant.PackBlocks(q, n, k, group, turned)
	return w
}

// quantizeRow writes the nearest of 256 steps between the least and the greatest
// element, less the zero point, and returns the step.
func quantizeRow(dst []int16, x []float32) float32 {
	const qmin, qmax = math.MinInt8, math.MaxInt8
	var lo, hi float32
	for _, f := range x {
		lo, hi = min(lo, f), max(hi, f)
	}
	scale := float32(1)
	if lo != hi {
		scale = (qmax - qmin) / (hi - lo)
	}
	low, high := lo*scale, hi*scale
	zero := qmax - high
	if (qmin+low)+(qmax+high) > 0 {
		zero = qmin - low
	}
	z := int32(math.RoundToEven(float64(min(max(zero, qmin), qmax))))
	for i, f := range x {
		dst[i] = int16(min(max(int32(math.Round(float64(f*scale)))+z, qmin), qmax) - z)
	}
	return 1 / scale
}
