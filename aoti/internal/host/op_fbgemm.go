//go:build linux && cgo

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// fbgemmKernels are the layers with weights of 16 and of 8 bits that PyTorch keeps
// for fbgemm. What is packed here is unpacked here: no package holds it.
var fbgemmKernels = map[string]eagerFunc{
	"wrapped_fbgemm_pack_gemm_matrix_fp16": func(v values) ([]*tensor, error) {
		_, w, err := argument[float64](v, "weight")
		if err != nil {
			return nil, err
		}
		const most = 65504 // of a half
		for i, x := range w.data {
			w.data[i] = min(max(x, -most), most)
		}
		return one(save(w, ir.F16))
	},
	"wrapped_fbgemm_linear_fp16_weight":   halfLinear,
	"_wrapped_linear_prepack":             packQuantized,
	"_wrapped_quantized_linear_prepacked": quantizedLinear,
}

// rowsOfInput reads the input of a layer of k features as a matrix, and returns
// the dimensions of its output of n.
func rowsOfInput(v values, k, n int) (*tensor, matrix, []int, error) {
	t, x, err := argument[float64](v, "input")
	if err != nil {
		return nil, matrix{}, nil, err
	}
	last := len(x.dims) - 1
	if last < 0 || x.dims[last] != k {
		return nil, matrix{}, nil, fmt.Errorf("%w: a layer of %d features over %v", ir.ErrShape, k, x.dims)
	}
	dims := append(append([]int(nil), x.dims[:last]...), n)
	return t, matrix{product(x.dims[:last]), k, x.data}, dims, nil
}

func halfLinear(v values) ([]*tensor, error) {
	_, w, err := argument[float64](v, "weight")
	if err != nil {
		return nil, err
	}
	if len(w.dims) != 2 {
		return nil, fmt.Errorf("%w: weights %v", ir.ErrShape, w.dims)
	}
	t, x, dims, err := rowsOfInput(v, w.dims[1], w.dims[0])
	if err != nil {
		return nil, err
	}
	out := multiply(x, matrix{w.dims[0], w.dims[1], w.data}.transposed())
	if b, ok := v["bias"].(*tensor); ok {
		bias, err := expanded[float64](b, []int{w.dims[0]})
		if err != nil {
			return nil, err
		}
		for i := range out.rows {
			for j := range out.row(i) {
				out.row(i)[j] += bias.data[j]
			}
		}
	}
	return one(save(array[float64]{out.a, dims}, dtypeOf(t)))
}

// quantized are the weights of a layer in 8 bits.
type quantized struct {
	N, K, Zero int32
	Scale      float32
}

// errPacked says that weights were not packed by this host.
var errPacked = errors.New("the weights are not packed by this host")

const quantizedMagic = 0x4c6f7251

// quantize is the nearest number of a grid, of even steps where two are.
func quantize(x, scale float32, zero, lo, hi int32) int32 {
	q := math.RoundToEven(float64(x * (1 / scale)))
	return int32(min(max(q+float64(zero), float64(lo)), float64(hi)))
}

// gridOfScale reads a scale and a zero point.
func gridOfScale(v values, scale, zero string) (float32, int32, error) {
	s, err := factors(v, scale, 1)
	if err != nil {
		return 0, 0, err
	}
	z, err := factors(v, zero, 1)
	if err != nil {
		return 0, 0, err
	}
	if !(s[0] > 0) {
		return 0, 0, fmt.Errorf("%w: the scale %v", ir.ErrArg, s[0])
	}
	return float32(s[0]), int32(z[0]), nil
}

func packQuantized(v values) ([]*tensor, error) {
	_, w, err := argument[float64](v, "weight")
	if err != nil {
		return nil, err
	}
	if len(w.dims) != 2 {
		return nil, fmt.Errorf("%w: weights %v", ir.ErrShape, w.dims)
	}
	head := quantized{N: int32(w.dims[0]), K: int32(w.dims[1])}
	if head.Scale, head.Zero, err = gridOfScale(v, "weight_scale", "weight_zero_point"); err != nil {
		return nil, err
	}
	bias := array[float64]{make([]float64, w.dims[0]), w.dims[:1]}
	if b, ok := v["bias"].(*tensor); ok {
		if bias, err = expanded[float64](b, w.dims[:1]); err != nil {
			return nil, err
		}
	}
	le := binary.LittleEndian
	data := le.AppendUint32(nil, quantizedMagic)
	if data, err = binary.Append(data, le, head); err != nil {
		return nil, err
	}
	for _, x := range bias.data {
		data = le.AppendUint32(data, math.Float32bits(float32(x)))
	}
	for _, x := range w.data {
		data = append(data, byte(quantize(float32(x), head.Scale, head.Zero, math.MinInt8, math.MaxInt8)))
	}
	t, err := newTensor(ir.MakeShape(ir.U8, len(data)))
	if err != nil {
		return nil, err
	}
	copy(tensorBytes(t), data)
	return []*tensor{t}, nil
}

// unpackQuantized returns the weights, less their zero, and the bias.
func unpackQuantized(t *tensor) (head quantized, w []int32, bias []float32, err error) {
	data, le := tensorBytes(t), binary.LittleEndian
	if len(data) < 20 || le.Uint32(data) != quantizedMagic {
		return head, nil, nil, errPacked
	}
	n, err := binary.Decode(data[4:], le, &head)
	if err != nil {
		return head, nil, nil, err
	}
	data = data[4+n:]
	if head.N < 0 || head.K < 0 || int64(len(data)) != 4*int64(head.N)+int64(head.N)*int64(head.K) {
		return head, nil, nil, errPacked
	}
	for range head.N {
		bias = append(bias, math.Float32frombits(le.Uint32(data)))
		data = data[4:]
	}
	for _, b := range data {
		w = append(w, int32(int8(b))-head.Zero)
	}
	return head, w, bias, nil
}

// quantizedLinear quantises its input, multiplies in integers, quantises the
// result, and returns what that stands for.
func quantizedLinear(v values) ([]*tensor, error) {
	packed, err := v.tensor("weight")
	if err != nil {
		return nil, err
	}
	head, w, bias, err := unpackQuantized(packed)
	if err != nil {
		return nil, err
	}
	t, x, dims, err := rowsOfInput(v, int(head.K), int(head.N))
	if err != nil {
		return nil, err
	}
	xs, xz, err := gridOfScale(v, "input_scale", "input_zero_point")
	if err != nil {
		return nil, err
	}
	ys, yz, err := gridOfScale(v, "out_scale", "out_zeropoint")
	if err != nil {
		return nil, err
	}
	both, k := xs*head.Scale, int(head.K)
	out, row := newMatrix(x.rows, int(head.N)), make([]int32, k)
	for i := range x.rows {
		for j, f := range x.row(i) {
			row[j] = quantize(float32(f), xs, xz, 0, math.MaxUint8) - xz
		}
		for o := range int(head.N) {
			var sum int32
			for j, q := range w[o*k:][:k] {
				sum += q * row[j]
			}
			f := (float32(sum) + bias[o]/both) * (both / ys)
			q := min(max(int32(math.RoundToEven(float64(f)))+yz, 0), math.MaxUint8)
			out.set(i, o, float64(float32(q-yz)*ys))
		}
	}
	return one(save(array[float64]{out.a, dims}, dtypeOf(t)))
}
