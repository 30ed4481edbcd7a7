package onnx

import (
	"math"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// shapeRows are the ops about shapes, and those that lay elements out anew.
var shapeRows = map[string]*row{
	"Shape":           one(1, 1, shapeOf),
	"Size":            one(1, 1, func(c *call, in []*value) *value { return hostIntsOf([]int{}, []int64{int64(in[0].numel())}) }),
	"Constant":        one(0, 0, constant),
	"ConstantOfShape": one(1, 1, constantOfShape),
	"Range":           one(3, 3, rangeOf),
	"EyeLike":         one(1, 1, eyeLike),
	"Reshape":         one(1, 2, func(c *call, in []*value) *value { return c.reshape(in[0], c.newShape(in)) }),
	"Flatten": one(1, 1, func(c *call, in []*value) *value {
		axis := c.int("axis", 1)
		if axis != in[0].rank() {
			axis = c.axis(axis, in[0].rank())
		}
		return c.reshape(in[0], []int{product(in[0].dims[:axis]), product(in[0].dims[axis:])})
	}),
	"Squeeze":       one(1, 2, squeeze),
	"Unsqueeze":     one(1, 2, unsqueeze),
	"Transpose":     one(1, 1, transpose),
	"Concat":        one(1, -1, concat),
	"Split":         many(1, 2, split),
	"Slice":         one(1, 5, slice),
	"Expand":        one(2, 2, expand),
	"Tile":          one(1, 3, tile),
	"Pad":           one(1, 4, pad),
	"Trilu":         one(1, 2, trilu),
	"DepthToSpace":  one(1, 1, depthToSpace),
	"SpaceToDepth":  one(1, 1, spaceToDepth),
	"CenterCropPad": one(2, 2, centerCropPad),
}

func shapeOf(c *call, in []*value) *value {
	v := in[0]
	rank := v.rank()
	bound := func(i int) int {
		if i < 0 {
			i += rank
		}
		return min(max(i, 0), rank)
	}
	from, to := bound(c.int("start", 0)), bound(c.int("end", rank))
	dims := make([]int64, 0, rank)
	for i := from; i < to; i++ {
		dims = append(dims, int64(v.dims[i]))
	}
	return hostInts(dims...)
}

// constant returns the value of an attribute.
func constant(c *call, _ []*value) *value {
	if v := c.node.constant; v != nil {
		own := *v
		return &own
	}
	switch {
	case c.has("value"):
		a := c.typed("value", pb.AttrTensor)
		t, err := (&externals{}).read(a.T)
		if err != nil {
			c.fail("attribute value: %v", err)
		}
		return &value{elem: t.elem, dims: t.dims, data: t.data}
	case c.has("value_float"):
		return hostFloat(tFloat, c.float("value_float", 0))
	case c.has("value_floats"):
		f := c.floatList("value_floats")
		return foldedFloats(tFloat, []int{len(f)}, f)
	case c.has("value_int"):
		return hostIntsOf([]int{}, []int64{int64(c.int("value_int", 0))})
	case c.has("value_ints"):
		return hostInts(c.typed("value_ints", pb.AttrInts).Ints...)
	}
	c.unsupported("a constant that is no dense tensor of numbers")
	return nil
}

func constantOfShape(c *call, in []*value) *value {
	dims := c.intList(in[0])
	v := hostFloat(tFloat, 0)
	if a := c.typed("value", pb.AttrTensor); a != nil {
		t, err := (&externals{}).read(a.T)
		if err != nil || len(t.data) != t.elem.dtype().Size() {
			c.fail("attribute value is no tensor of one element: %v", err)
		}
		v = &value{elem: t.elem, dims: []int{}, data: t.data}
	}
	c.checkShape(dims)
	if small(dims) {
		return &value{elem: v.elem, dims: dims, data: slices.Repeat(v.data, product(dims))}
	}
	return out(v.elem, c.tensor(&value{elem: v.elem, dims: []int{}, data: v.data}).Expand(dims...))
}

// checkShape refuses dimensions that are no shape.
func (c *call) checkShape(dims []int) {
	wide := make([]int64, len(dims))
	for i, d := range dims {
		wide[i] = int64(d)
	}
	if _, ok := numel(wide); !ok {
		c.fail("%v is no shape", dims)
	}
}

func rangeOf(c *call, in []*value) *value {
	e := in[0].elem
	if e.integer() {
		start, limit, delta := c.oneInt(in[0]), c.oneInt(in[1]), c.oneInt(in[2])
		if delta == 0 {
			c.fail("the step is 0")
		}
		n := max(0, int(math.Ceil((float64(limit)-float64(start))/float64(delta))))
		if n > maxKnown {
			return out(e, c.run.make.With(loris.As(e.dtype())).Arange(start, start+n*delta, delta))
		}
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(start + i*delta)
		}
		return foldedInts(e, []int{n}, v)
	}
	start, limit, delta := c.oneFloat(in[0]), c.oneFloat(in[1]), c.oneFloat(in[2])
	n := math.Ceil((limit - start) / delta)
	if !(n < 1<<31) {
		c.fail("from %v to %v by %v is no range", start, limit, delta)
	}
	i := c.run.make.With(loris.As(e.dtype())).Arange(0, int(max(n, 0)), 1)
	return out(e, i.Mul(delta).Add(start))
}

func eyeLike(c *call, in []*value) *value {
	e := in[0].elem
	if c.has("dtype") {
		e = c.elemAttr("dtype", 0)
	}
	if in[0].rank() != 2 {
		c.fail("a matrix is expected, not %v", in[0])
	}
	rows, cols, k := in[0].dims[0], in[0].dims[1], c.int("k", 0)
	m := c.run.make
	i, j := m.Arange(0, rows, 1).Reshape(rows, 1), m.Arange(0, cols, 1)
	return out(e, i.Add(k).Eq(j).Cast(e.dtype()))
}

// newShape returns the shape that Reshape asks for.
func (c *call) newShape(in []*value) []int {
	want := c.listInput(in, 1, "shape")
	dims := slices.Clone(want)
	keep := !c.bool("allowzero", false)
	free, known := -1, 1
	for i, d := range dims {
		switch {
		case d == 0 && keep:
			if i >= in[0].rank() {
				c.fail("dimension %d of %v copies one that %v lacks", i, want, in[0])
			}
			dims[i] = in[0].dims[i]
			known *= dims[i]
		case d == -1 && free < 0:
			free = i
		case d < 0:
			c.fail("%v is no shape", want)
		default:
			known *= d
		}
	}
	if free >= 0 {
		if known == 0 || in[0].numel()%known != 0 {
			c.fail("%v cannot have shape %v", in[0], want)
		}
		dims[free] = in[0].numel() / known
	}
	return dims
}

func (c *call) reshape(v *value, dims []int) *value {
	c.checkShape(dims)
	if product(dims) != v.numel() {
		c.fail("%v cannot have shape %v", v, dims)
	}
	if v.known() {
		return &value{elem: v.elem, dims: dims, data: v.data}
	}
	return out(v.elem, c.tensor(v).Reshape(dims...))
}

func squeeze(c *call, in []*value) *value {
	v := in[0]
	axes := c.axes(c.listInput(in, 1, "axes"), v.rank())
	all := opt(in, 1) == nil && !c.has("axes")
	dims := []int{}
	for i, d := range v.dims {
		gone := slices.Contains(axes, i) || all && d == 1
		if gone && d != 1 {
			c.fail("dimension %d of %v is not 1", i, v)
		}
		if !gone {
			dims = append(dims, d)
		}
	}
	return c.reshape(v, dims)
}

func unsqueeze(c *call, in []*value) *value {
	v := in[0]
	list := c.listInput(in, 1, "axes")
	axes := c.axes(list, v.rank()+len(list))
	dims := make([]int, 0, v.rank()+len(axes))
	next := 0
	for i := range v.rank() + len(axes) {
		if slices.Contains(axes, i) {
			dims = append(dims, 1)
			continue
		}
		dims = append(dims, v.dims[next])
		next++
	}
	return c.reshape(v, dims)
}

// rearranged is a known value whose elements are others' by their places.
func rearranged(v *value, dims, places []int) *value {
	size := v.elem.dtype().Size()
	data := make([]byte, 0, len(places)*size)
	for _, p := range places {
		data = append(data, v.data[p*size:(p+1)*size]...)
	}
	return &value{elem: v.elem, dims: dims, data: data}
}

// places returns where the elements of a shape lie in an operand, by the operand's strides.
func places(dims, strides []int, base int) []int {
	out := make([]int, 0, product(dims))
	index := make([]int, len(dims))
	for range product(dims) {
		p := base
		for d, i := range index {
			p += i * strides[d]
		}
		out = append(out, p)
		for d := len(dims) - 1; d >= 0; d-- {
			if index[d]++; index[d] < dims[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

func stridesOf(dims []int) []int {
	s := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= dims[i]
	}
	return s
}

func transpose(c *call, in []*value) *value {
	v := in[0]
	perm := c.list("perm")
	if perm == nil {
		for i := v.rank() - 1; i >= 0; i-- {
			perm = append(perm, i)
		}
	}
	if len(perm) != v.rank() {
		c.fail("perm %v does not fit %v", perm, v)
	}
	c.axes(perm, v.rank())
	if v.known() && small(v.dims) {
		dims, strides, from := make([]int, len(perm)), make([]int, len(perm)), stridesOf(v.dims)
		for i, p := range perm {
			p = c.axis(p, v.rank())
			dims[i], strides[i] = v.dims[p], from[p]
		}
		return rearranged(v, dims, places(dims, strides, 0))
	}
	return out(v.elem, c.tensor(v).Permute(perm...))
}

func concat(c *call, in []*value) *value {
	first := in[0]
	axis := c.axis(c.int("axis", 1), max(first.rank(), 1))
	known, size := allKnown(in), 0
	for _, v := range in {
		if v == nil || v.rank() != first.rank() || v.elem != first.elem {
			c.fail("%v and %v cannot be joined", first, v)
		}
		size += v.numel()
	}
	if len(in) == 1 {
		return first
	}
	if known && axis == 0 && first.rank() == 1 && size <= maxKnown {
		v := &value{elem: first.elem, dims: []int{0}, data: []byte{}}
		for _, p := range in {
			v.dims[0] += p.dims[0]
			v.data = append(v.data, p.data...)
		}
		return v
	}
	return out(first.elem, loris.Cat(c.tensors(in), loris.Dim(axis)))
}

func (c *call) tensors(in []*value) []*loris.Tensor {
	ts := make([]*loris.Tensor, len(in))
	for i, v := range in {
		ts[i] = c.tensor(v)
	}
	return ts
}

func split(c *call, in []*value) []*value {
	v := in[0]
	axis := c.axis(c.int("axis", 0), v.rank())
	sizes := c.listInput(in, 1, "split")
	if sizes == nil {
		n := c.int("num_outputs", len(c.node.out))
		if n < 1 || n != len(c.node.out) {
			c.fail("num_outputs is %d, the node has %d", n, len(c.node.out))
		}
		each := (v.dims[axis] + n - 1) / n
		for left := v.dims[axis]; len(sizes) < n; left -= each {
			sizes = append(sizes, max(min(each, left), 0))
		}
	}
	total := 0
	for _, s := range sizes {
		if s < 0 {
			c.fail("the sizes %v are no split", sizes)
		}
		total += s
	}
	if total != v.dims[axis] {
		c.fail("the sizes %v do not sum to dimension %d of %v", sizes, axis, v)
	}
	outs := make([]*value, len(sizes))
	start := 0
	for i, s := range sizes {
		outs[i] = c.narrow(v, axis, start, s)
		start += s
	}
	return outs
}

// narrow returns a stretch of an axis.
func (c *call) narrow(v *value, axis, start, n int) *value {
	if v.known() && small(v.dims) {
		dims := slices.Clone(v.dims)
		dims[axis] = n
		s := stridesOf(v.dims)
		return rearranged(v, dims, places(dims, s, start*s[axis]))
	}
	return out(v.elem, c.tensor(v).Narrow(axis, start, n))
}

func slice(c *call, in []*value) *value {
	v := in[0]
	starts, ends := c.listInput(in, 1, "starts"), c.listInput(in, 2, "ends")
	axes := c.listInput(in, 3, "axes")
	var steps []int
	if s := opt(in, 4); s != nil {
		steps = c.intList(s)
	}
	if axes == nil {
		for i := range starts {
			axes = append(axes, i)
		}
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		c.fail("starts %v, ends %v, axes %v and steps %v have several lengths", starts, ends, axes, steps)
	}
	for i, axis := range axes {
		step := 1
		if steps != nil {
			step = steps[i]
		}
		v = c.slice1(v, c.axis(axis, v.rank()), starts[i], ends[i], step)
	}
	return v
}

// slice1 slices one axis, backwards where the step is negative.
func (c *call) slice1(v *value, axis, start, end, step int) *value {
	size := v.dims[axis]
	if step == 0 {
		c.fail("the step is 0")
	}
	lo, hi := 0, size
	if step < 0 {
		lo, hi = -1, size-1
	}
	clamp := func(i int) int {
		if i < 0 {
			if i < -size {
				return lo
			}
			i += size
		}
		return min(max(i, lo), hi)
	}
	start, end = clamp(start), clamp(end)
	n := 0
	if step > 0 && end > start {
		n = (end-start-1)/step + 1
	} else if step < 0 && start > end {
		n = (start-end-1)/-step + 1
	}
	if v.known() && small(v.dims) {
		dims := slices.Clone(v.dims)
		dims[axis] = n
		s := stridesOf(v.dims)
		base := start * s[axis]
		s[axis] *= step
		return rearranged(v, dims, places(dims, s, base))
	}
	t := c.tensor(v)
	switch {
	case n == 0:
		return out(v.elem, t.Narrow(axis, 0, 0))
	case step < 0:
		t = t.Narrow(axis, start+(n-1)*step, (1-n)*step+1).Flip(axis)
		step = -step
	default:
		t = t.Narrow(axis, start, (n-1)*step+1)
	}
	if step > 1 {
		t = t.Slice(loris.Dim(axis), loris.SliceStart(0), loris.SliceEnd(t.Dim(axis)), loris.SliceStep(step))
	}
	return out(v.elem, t)
}

func expand(c *call, in []*value) *value {
	v := in[0]
	want := c.intList(in[1])
	c.checkShape(want)
	dims, small := broadcast(v.dims, want)
	if dims == nil {
		c.fail("%v does not expand to %v", v, want)
	}
	if v.known() && small && dims != nil {
		where := make([]int, 0, product(dims))
		eachIndex(dims, [][]int{v.dims}, func(_ int, at []int) { where = append(where, at[0]) })
		return rearranged(v, dims, where)
	}
	return out(v.elem, c.tensor(v).Expand(dims...))
}

func tile(c *call, in []*value) *value {
	v := in[0]
	if len(in) == 3 { // opset 1: so many tiles along one axis
		repeats := slices.Repeat([]int{1}, v.rank())
		repeats[c.axis(c.oneInt(in[2]), v.rank())] = c.oneInt(in[1])
		return out(v.elem, c.tensor(v).Repeat(repeats...))
	}
	if len(in) < 2 {
		c.fail("the repeats are missing")
	}
	repeats := c.intList(in[1])
	if len(repeats) != v.rank() {
		c.fail("repeats %v do not fit %v", repeats, v)
	}
	return out(v.elem, c.tensor(v).Repeat(repeats...))
}

func trilu(c *call, in []*value) *value {
	k := 0
	if len(in) > 1 && in[1] != nil {
		k = c.oneInt(in[1])
	}
	t, d := c.tensor(in[0]), in[0].elem.dtype()
	if d == ir.Bool {
		t = t.Cast(ir.U8)
	}
	if c.bool("upper", true) {
		t = t.Triu(loris.DiagonalOffset(k))
	} else {
		t = t.Tril(loris.DiagonalOffset(k))
	}
	return out(in[0].elem, t.Cast(d))
}

func depthToSpace(c *call, in []*value) *value {
	v, b := in[0], c.int("blocksize", 0)
	if v.rank() != 4 || b < 1 || v.dims[1]%(b*b) != 0 {
		c.fail("blocks of %d cannot be made of %v", b, v)
	}
	n, ch, h, w := v.dims[0], v.dims[1]/(b*b), v.dims[2], v.dims[3]
	t := c.tensor(v)
	if c.text("mode", "DCR") == "DCR" {
		t = t.Reshape(n, b, b, ch, h, w).Permute(0, 3, 4, 1, 5, 2)
	} else {
		t = t.Reshape(n, ch, b, b, h, w).Permute(0, 1, 4, 2, 5, 3)
	}
	return out(v.elem, t.Reshape(n, ch, h*b, w*b))
}

func spaceToDepth(c *call, in []*value) *value {
	v, b := in[0], c.int("blocksize", 0)
	if v.rank() != 4 || b < 1 || v.dims[2]%b != 0 || v.dims[3]%b != 0 {
		c.fail("blocks of %d cannot be made of %v", b, v)
	}
	n, ch, h, w := v.dims[0], v.dims[1], v.dims[2]/b, v.dims[3]/b
	t := c.tensor(v).Reshape(n, ch, h, b, w, b).Permute(0, 3, 5, 1, 2, 4)
	return out(v.elem, t.Reshape(n, ch*b*b, h, w))
}
