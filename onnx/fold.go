package onnx

import (
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/elements"
)

// A fold computes an op while recording, for tensors so small that they are sizes, indices and
// numbers of the model. It returns nil where it leaves the op to a graph.

// small reports whether results of the shape are computed while recording.
func small(dims []int) bool { return bounded(dims, maxKnown) }

// bounded reports whether a shape has at most so many elements, whatever their product would be.
func bounded(dims []int, limit int) bool {
	if slices.Contains(dims, 0) {
		return true
	}
	n := 1
	for _, d := range dims {
		if d > limit/n {
			return false
		}
		n *= d
	}
	return true
}

// hostBytes and hostFactor bound the values that a call makes while recording, all together: windows,
// indices, elements that it waits for. It may make so many bytes, and the factor times what the model
// and its inputs have. So a file of some hundred bytes cannot ask for more than it is worth.
const (
	hostBytes  = 64 << 20
	hostFactor = 16
)

// perElement is what an element of a table takes: as it is made, encoded, and as a constant.
const perElement = 24

// table counts a table that is made while recording, and ends the call where it makes too much.
func (c *call) table(dims ...int) {
	for _, d := range dims {
		if d < 0 {
			c.fail("%v is no size", dims)
		}
	}
	if !bounded(dims, math.MaxInt/perElement) {
		c.unsupported("a table of %v elements", dims)
	}
	c.hold(product(dims) * perElement)
}

// hold counts bytes that are made while recording.
func (c *call) hold(bytes int) {
	if c.run.host -= bytes; c.run.host < 0 {
		c.unsupported("more than %d MiB of values that are computed while recording, for a model and inputs of %d bytes",
			c.run.model.hostLimit(c.run.inputs)>>20, c.run.model.bytes+c.run.inputs)
	}
}

// hostLimit is how many bytes a call may make while recording for inputs of so many bytes.
func (m *Model) hostLimit(inputs int) int { return hostBytes + hostFactor*(m.bytes+inputs) }

// numbers are the elements of a known value: ints for integers and bool, floats otherwise.
type numbers struct {
	ints   []int64
	floats []float64
}

func numbersOf(v *value) (n numbers, ok bool) {
	d := v.elem.dtype()
	switch {
	case d.IsIntegral():
		n.ints = elements.DecodeInts(d, v.data)
	case d.IsFloat():
		n.floats = elements.DecodeFloats(d, v.data)
	default:
		return n, false
	}
	return n, true
}

func foldedFloats(e elemType, dims []int, f []float64) *value {
	return &value{elem: e, dims: dims, data: elements.EncodeFloats(e.dtype(), f)}
}

// foldedInts brings integers to the range of their type.
func foldedInts(e elemType, dims []int, n []int64) *value {
	if info := e.info(); info.narrow {
		for i, v := range n {
			v &= 1<<info.bits - 1
			if info.signed && v>>(info.bits-1) == 1 {
				v -= 1 << info.bits
			}
			n[i] = v
		}
	}
	return hostOf(e, dims, n)
}

func foldUnary(f func(float64) float64, n func(int64) int64) func(c *call, in []*value) *value {
	return func(c *call, in []*value) *value {
		x, ok := numbersOf(in[0])
		switch {
		case !ok || !small(in[0].dims):
			return nil
		case x.floats != nil:
			for i, v := range x.floats {
				x.floats[i] = f(v)
			}
			return foldedFloats(in[0].elem, in[0].dims, x.floats)
		case n == nil || x.ints == nil:
			return nil
		}
		for i, v := range x.ints {
			x.ints[i] = n(v)
		}
		return foldedInts(in[0].elem, in[0].dims, x.ints)
	}
}

func foldNot(c *call, in []*value) *value {
	if in[0].elem != tBool || !small(in[0].dims) {
		return nil
	}
	n := elements.DecodeInts(in[0].elem.dtype(), in[0].data)
	for i := range n {
		n[i] = 1 - n[i]
	}
	return hostOf(tBool, in[0].dims, n)
}

// broadcast returns the shape that two shapes broadcast to; false where they do not, or it is large.
func broadcast(a, b []int) ([]int, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	dims := append([]int{}, a...)
	for i, d := range b {
		at := &dims[len(a)-len(b)+i]
		switch {
		case *at == 1:
			*at = d
		case d != 1 && d != *at:
			return nil, false
		}
	}
	return dims, small(dims)
}

// eachIndex calls f for every element of a shape with its place in operands that are broadcast to it.
func eachIndex(dims []int, operands [][]int, f func(i int, at []int)) {
	n := product(dims)
	at := make([]int, len(operands))
	index := make([]int, len(dims))
	for i := range n {
		for k, op := range operands {
			place, lead := 0, len(dims)-len(op)
			for d, size := range op {
				x := index[lead+d]
				if size == 1 {
					x = 0
				}
				place = place*size + x
			}
			at[k] = place
		}
		f(i, at)
		for d := len(dims) - 1; d >= 0; d-- {
			if index[d]++; index[d] < dims[d] {
				break
			}
			index[d] = 0
		}
	}
}

func foldBinary(f func(x, y float64) float64, n func(x, y int64) (int64, bool)) func(c *call, in []*value) *value {
	return func(c *call, in []*value) *value {
		x, okX := numbersOf(in[0])
		y, okY := numbersOf(in[1])
		dims, ok := broadcast(in[0].dims, in[1].dims)
		if !okX || !okY || !ok || in[0].elem != in[1].elem || c.node.version < 7 {
			return nil
		}
		if in[0].elem.float() {
			res := make([]float64, product(dims))
			eachIndex(dims, [][]int{in[0].dims, in[1].dims}, func(i int, at []int) { res[i] = f(x.floats[at[0]], y.floats[at[1]]) })
			return foldedFloats(in[0].elem, dims, res)
		}
		if n == nil || in[0].elem == tBool {
			return nil
		}
		res, fine := make([]int64, product(dims)), true
		eachIndex(dims, [][]int{in[0].dims, in[1].dims}, func(i int, at []int) {
			v, ok := n(x.ints[at[0]], y.ints[at[1]])
			res[i], fine = v, fine && ok
		})
		if !fine || in[0].elem == tUint64 {
			return nil
		}
		return foldedInts(in[0].elem, dims, res)
	}
}

func foldMod(c *call, in []*value) *value {
	if c.bool("fmod", false) {
		return nil
	}
	return foldBinary(func(x, y float64) float64 { return x - y*math.Floor(x/y) }, func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		r := x % y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r, true
	})(c, in)
}

func foldVariadic(f func(x, y float64) float64, n func(x, y int64) int64) func(c *call, in []*value) *value {
	pair := foldBinary(f, func(x, y int64) (int64, bool) { return n(x, y), true })
	return func(c *call, in []*value) *value {
		v := in[0]
		for _, w := range in[1:] {
			if w == nil || v == nil {
				return nil
			}
			v = pair(c, []*value{v, w})
		}
		return v
	}
}

func foldCompare(f func(x, y float64) bool) func(c *call, in []*value) *value {
	return func(c *call, in []*value) *value {
		x, okX := numbersOf(in[0])
		y, okY := numbersOf(in[1])
		dims, ok := broadcast(in[0].dims, in[1].dims)
		if !okX || !okY || !ok || in[0].elem != in[1].elem || in[0].elem == tUint64 || c.node.version < 7 {
			return nil
		}
		res := make([]int64, product(dims))
		eachIndex(dims, [][]int{in[0].dims, in[1].dims}, func(i int, at []int) {
			if f(x.float(at[0]), y.float(at[1])) {
				res[i] = 1
			}
		})
		return hostOf(tBool, dims, res)
	}
}

// float returns an element as a float64; sizes and indices are far below where that rounds.
func (n numbers) float(i int) float64 {
	if n.floats != nil {
		return n.floats[i]
	}
	return float64(n.ints[i])
}

func foldWhere(c *call, in []*value) *value {
	dims, ok := broadcast(in[0].dims, in[1].dims)
	if ok {
		dims, ok = broadcast(dims, in[2].dims)
	}
	if !ok || in[0].elem != tBool || in[1].elem != in[2].elem {
		return nil
	}
	size := in[1].elem.dtype().Size()
	res := make([]byte, 0, product(dims)*size)
	eachIndex(dims, [][]int{in[0].dims, in[1].dims, in[2].dims}, func(i int, at []int) {
		from, place := in[2], at[2]
		if in[0].data[at[0]] != 0 {
			from, place = in[1], at[1]
		}
		res = append(res, from.data[place*size:(place+1)*size]...)
	})
	return &value{elem: in[1].elem, dims: dims, data: res}
}
