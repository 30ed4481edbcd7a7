//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/loris-ml/loris/ir"
)

// scaledEvals are the products of scaled and of grouped matrices.
var scaledEvals = map[string]evalFunc{
	"_grouped_mm": groupedMM,
	"_efficientzerotensor": func(v values) ([]*tensor, error) {
		var dims []int
		for _, n := range v.ints("size") {
			dims = append(dims, int(n))
		}
		return one(save(array[float64]{make([]float64, product(dims)), dims}, v.dtype(ir.F32)))
	},
}

func resizeInPlace(c call) error {
	return resizeTensor(c.tensor(0), c.ints(1), memoryFormat(c, 3))
}

func resizeAsInPlace(c call) error {
	return resizeTensor(c.tensor(0), slices.Clone(sizesOf(c.tensor(1))), memoryFormat(c, 2))
}

func setSourceTensor(c call) error {
	return guarded(func() C.lori_error { return C.lori_tensor_assign(c.tensor(0), c.tensor(1)) })
}

// The memory formats of images with their channels innermost, as PyTorch numbers
// them.
const (
	formatLast   = 2
	formatLast3d = 3
)

func memoryFormat(c call, i int) int32 {
	f, _ := c.optBool32(i)
	return f
}

// resizeTensor gives a tensor other sizes. What it held stays in its memory; if
// that is too small it becomes larger, unless others hold it, too.
func resizeTensor(t *tensor, sizes []int64, format int32) error {
	strides, err := resizedStrides(sizes, format)
	if err != nil {
		return err
	}
	at := func(a []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(a))) }
	return guarded(func() C.lori_error { return C.lori_tensor_resize(t, C.int64_t(len(sizes)), at(sizes), at(strides)) })
}

// resizedStrides are dense strides in a memory format.
func resizedStrides(sizes []int64, format int32) ([]int64, error) {
	strides := make([]int64, len(sizes))
	step := int64(1)
	for i := range sizes {
		k := len(sizes) - 1 - i
		if format == formatLast || format == formatLast3d {
			if len(sizes) != int(format)+2 {
				return nil, fmt.Errorf("%w: %d dimensions with channels innermost", ir.ErrShape, len(sizes))
			}
			k = append([]int{1}, append(descending(len(sizes)-1, 2), 0)...)[i]
		}
		strides[k] = step
		step *= max(sizes[k], 1)
	}
	return strides, nil
}

// descending returns the numbers from hi down to lo.
func descending(hi, lo int) []int {
	var out []int
	for ; hi >= lo; hi-- {
		out = append(out, hi)
	}
	return out
}

// factors returns n numbers, of which the tensor holds all or one.
func factors(v values, name string, n int) ([]float64, error) {
	_, a, err := argument[float64](v, name)
	if err != nil {
		return nil, err
	}
	switch len(a.data) {
	case n:
		return a.data, nil
	case 1:
		return slices.Repeat(a.data, n), nil
	}
	return nil, fmt.Errorf("%w: %q has %v factors for %d", ir.ErrShape, name, a.dims, n)
}

func outDType(v values, otherwise ir.DType) ir.DType {
	if d, ok := v["out_dtype"].(ir.DType); ok {
		return d
	}
	return otherwise
}

// groupedMM multiplies groups of matrices. Those of an operand with two
// dimensions lie side by side, and offs says where they end.
func groupedMM(v values) ([]*tensor, error) {
	t, x, err := argument[float64](v, "self")
	if err != nil {
		return nil, err
	}
	_, y, err := argument[float64](v, "mat2")
	if err != nil {
		return nil, err
	}
	if v.has("bias") {
		return nil, fmt.Errorf("%w: grouped products with a bias", errUnimplemented)
	}
	flat := [2]bool{len(x.dims) == 2, len(y.dims) == 2}
	groups := 0
	var ends array[int64]
	switch {
	case flat[0] || flat[1]:
		if _, ends, err = argument[int64](v, "offs"); err != nil {
			return nil, err
		}
		groups = len(ends.data)
	case len(x.dims) == 3 && len(y.dims) == 3:
		groups = x.dims[0]
	}
	xr, xc, yr, yc := tail2(x.dims), tail1(x.dims), tail2(y.dims), tail1(y.dims)
	if len(x.dims) > 3 || len(y.dims) > 3 || xc != yr || !flat[0] && x.dims[0] != groups || !flat[1] && y.dims[0] != groups {
		return nil, fmt.Errorf("%w: %d products of %v and %v", ir.ErrShape, groups, x.dims, y.dims)
	}
	a, b := matrix{xr, xc, x.data}, matrix{yr, yc, y.data}
	dims := []int{xr, yc}
	if flat[0] == flat[1] {
		dims = []int{groups, xr, yc}
	}
	out := array[float64]{make([]float64, product(dims)), dims}
	from := 0
	for g := range groups {
		to := 0
		if len(ends.data) > 0 {
			to = int(ends.data[g])
		}
		if to < from || flat[0] && !flat[1] && to > xr || flat[1] && !flat[0] && to > yc || flat[0] && flat[1] && to > xc {
			return nil, fmt.Errorf("%w: groups that end at %v", ir.ErrShape, ends.data)
		}
		p, q, o := a, b, matrix{xr, yc, out.data}
		if !flat[0] {
			p.a = x.data[g*xr*xc:][:xr*xc]
		}
		if !flat[1] {
			q.a = y.data[g*yr*yc:][:yr*yc]
		}
		if flat[0] == flat[1] {
			o.a = out.data[g*xr*yc:][:xr*yc]
		}
		rows, inner, cols := [2]int{0, xr}, [2]int{0, xc}, [2]int{0, yc}
		switch {
		case flat[0] && flat[1]:
			inner = [2]int{from, to}
		case flat[0]:
			rows = [2]int{from, to}
		case flat[1]:
			cols = [2]int{from, to}
		}
		multiplyPart(o, p, q, rows, inner, cols)
		from = to
	}
	return savePadded(out, outDType(v, dtypeOf(t)))
}

func tail1(dims []int) int { return dims[len(dims)-1] }
func tail2(dims []int) int { return dims[len(dims)-2] }

// multiplyPart adds the product of parts of two matrices to a part of a third.
func multiplyPart(to, x, y matrix, rows, inner, cols [2]int) {
	for i := rows[0]; i < rows[1]; i++ {
		for k := inner[0]; k < inner[1]; k++ {
			f := x.at(i, k)
			for j := cols[0]; j < cols[1]; j++ {
				to.a[i*to.cols+j] += f * y.at(k, j)
			}
		}
	}
}

// savePadded is save with rows that begin at multiples of 16 bytes, as PyTorch's
// grouped products have them.
func savePadded(a array[float64], d ir.DType) ([]*tensor, error) {
	s, err := ir.NewShape(d, a.dims)
	if err != nil {
		return nil, err
	}
	align := max(16/d.Size(), 1)
	row := (tail1(a.dims) + align - 1) / align * align
	strides := []int64{int64(row), 1}
	if len(a.dims) == 3 {
		strides = []int64{int64(row * a.dims[1]), int64(row), 1}
	}
	t, err := newStrided(s, strides)
	if err != nil {
		return nil, err
	}
	return all(storeAll(t, a), t)
}
