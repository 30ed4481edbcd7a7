package onnx

import (
	"bytes"
	"math"
	"slices"
	"sort"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
)

// gatherRows are the ops that take elements by indices, and those that find indices.
var gatherRows = map[string]*row{
	"Gather":          one(2, 2, gather),
	"GatherElements":  one(2, 2, gatherElements),
	"GatherND":        one(2, 2, gatherND),
	"Scatter":         one(3, 3, scatterElements),
	"ScatterElements": one(3, 3, scatterElements),
	"ScatterND":       one(3, 3, scatterND),
	"TensorScatter":   one(2, 3, tensorScatter),
	"OneHot":          one(3, 3, oneHot),
	"TopK":            many(1, 2, topK),
	"NonZero":         one(1, 1, nonZero),
	"Compress":        one(2, 2, compress),
	"Unique":          many(1, 1, unique),
	"ReverseSequence": one(2, 2, reverseSequence),
}

// index returns indices as i64, negative ones counted from the end of a dimension of the given size.
func (c *call) index(v *value, size int) *loris.Tensor {
	if v.known() {
		n := c.ints(v)
		for i, x := range n {
			if x < 0 {
				n[i] += int64(size)
			}
			if n[i] < 0 || n[i] >= int64(size) {
				c.fail("index %d is beyond a dimension of %d", x, size)
			}
		}
		return c.tensor(hostIntsOf(v.dims, n))
	}
	t := c.tensor(v).Cast(loris.I64)
	return loris.Where(t.Lt(0), t.Add(size), t)
}

func gather(c *call, in []*value) *value {
	v, at := in[0], in[1]
	axis := c.axis(c.int("axis", 0), v.rank())
	size := v.dims[axis]
	dims := slices.Concat(v.dims[:axis], at.dims, v.dims[axis+1:])
	if v.known() && at.known() && small(v.dims) && small(dims) {
		return c.foldGather(v, at, axis, dims)
	}
	t := c.tensor(v).IndexSelect(axis, c.index(at, size).Reshape(at.numel()))
	return out(v.elem, t.Reshape(dims...))
}

func (c *call) foldGather(v, at *value, axis int, dims []int) *value {
	outer, inner := product(v.dims[:axis]), product(v.dims[axis+1:])
	var where []int
	index := c.ints(at)
	for o := range outer {
		for _, x := range index {
			i := int(x)
			if i < 0 {
				i += v.dims[axis]
			}
			if i < 0 || i >= v.dims[axis] {
				c.fail("index %d is beyond a dimension of %d", x, v.dims[axis])
			}
			for k := range inner {
				where = append(where, (o*v.dims[axis]+i)*inner+k)
			}
		}
	}
	return rearranged(v, dims, where)
}

func gatherElements(c *call, in []*value) *value {
	axis := c.axis(c.int("axis", 0), in[0].rank())
	return out(in[0].elem, c.tensor(in[0]).Gather(axis, c.index(in[1], in[0].dims[axis])))
}

// linear returns the place of each index tuple in the leading dimensions of a tensor, and how many
// dimensions a tuple has.
func (c *call) linear(at *value, dims []int) (place *loris.Tensor, depth int) {
	depth = at.dims[at.rank()-1]
	if depth > len(dims) {
		c.fail("indices %v are tuples of %d, the tensor has %d dimensions", at, depth, len(dims))
	}
	strides := stridesOf(dims[:depth])
	t := c.tensor(at).Cast(loris.I64)
	for i := range depth {
		x := t.Select(-1, i)
		x = loris.Where(x.Lt(0), x.Add(dims[i]), x).Mul(strides[i])
		if place == nil {
			place = x
		} else {
			place = place.Add(x)
		}
	}
	if place == nil {
		c.unsupported("tuples of no indices")
	}
	return place, depth
}

func gatherND(c *call, in []*value) *value {
	v, at := in[0], in[1]
	batch := c.int("batch_dims", 0)
	if at.rank() < 1 || batch < 0 || batch >= at.rank() || batch > v.rank() {
		c.fail("%d batch dimensions, data %v, indices %v", batch, v, at)
	}
	b := product(v.dims[:batch])
	place, depth := c.linear(at, v.dims[batch:])
	inner := v.dims[batch+depth:]
	outer := product(v.dims[batch : batch+depth])
	count := at.numel() / max(depth, 1) / max(b, 1)
	place = place.Reshape(b, count)
	if b > 1 {
		offset := c.run.make.Arange(0, b, 1).Mul(outer).Reshape(b, 1)
		place = place.Add(offset)
	}
	t := c.tensor(v).Reshape(b*outer, product(inner)).IndexSelect(0, place.Reshape(b*count))
	dims := slices.Concat(at.dims[:at.rank()-1], inner)
	return out(v.elem, t.Reshape(dims...))
}

// reductions are ATen's names for the reductions of scatters.
var reductions = map[string]string{"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}

func (c *call) scatter(t *loris.Tensor, axis int, index, src *loris.Tensor) *loris.Tensor {
	r := c.text("reduction", "none")
	switch {
	case r == "none":
		return t.Scatter(axis, index, src)
	case r == "add":
		return t.ScatterAdd(axis, index, src)
	case reductions[r] == "":
		c.fail("reduction %q is unknown", r)
	}
	return t.ScatterReduce(axis, index, src, reductions[r])
}

func scatterElements(c *call, in []*value) *value {
	axis := c.axis(c.int("axis", 0), in[0].rank())
	index := c.index(in[1], in[0].dims[axis])
	return out(in[0].elem, c.scatter(c.tensor(in[0]), axis, index, c.tensor(in[2])))
}

func scatterND(c *call, in []*value) *value {
	v, at, src := in[0], in[1], in[2]
	if at.rank() < 1 {
		c.fail("the indices are no tuples")
	}
	place, depth := c.linear(at, v.dims)
	inner, count := product(v.dims[depth:]), at.numel()/max(depth, 1)
	index := place.Reshape(count, 1).Expand(count, inner)
	t := c.tensor(v).Reshape(product(v.dims[:depth]), inner)
	t = c.scatter(t, 0, index, c.tensor(src).Reshape(count, inner))
	return out(v.elem, t.Reshape(v.dims...))
}

// tensorScatter writes a stretch of a cache for each sequence of a batch.
func tensorScatter(c *call, in []*value) *value {
	v, update := in[0], in[1]
	axis := c.axis(c.int("axis", -2), v.rank())
	if axis == 0 || update.rank() != v.rank() {
		c.fail("axis %d, cache %v, update %v", axis, v, update)
	}
	m := c.run.make
	n, size := update.dims[axis], v.dims[axis]
	index := m.Arange(0, n, 1)
	dims := slices.Repeat([]int{1}, v.rank())
	dims[axis] = n
	index = index.Reshape(dims...)
	if w := opt(in, 2); w != nil {
		start := slices.Repeat([]int{1}, v.rank())
		start[0] = v.dims[0]
		index = index.Add(c.tensor(w).Cast(loris.I64).Reshape(start...))
	}
	if c.text("mode", "linear") == "circular" {
		index = index.Remainder(size)
	}
	return out(v.elem, c.tensor(v).Scatter(axis, index.Expand(update.dims...), c.tensor(update)))
}

func oneHot(c *call, in []*value) *value {
	index, values := in[0], in[2]
	depth := c.oneInt(in[1])
	axis := c.int("axis", -1)
	axis = c.axis(axis, index.rank()+1)
	t := c.tensor(index)
	if !index.elem.integer() {
		t = t.Cast(loris.I64)
	}
	t = loris.Where(t.Lt(0), t.Add(depth), t).Unsqueeze(axis).Cast(loris.I64)
	dims := slices.Repeat([]int{1}, index.rank()+1)
	dims[axis] = depth
	hot := t.Eq(c.run.make.Arange(0, depth, 1).Reshape(dims...))
	pair := c.tensor(values)
	return out(values.elem, loris.Where(hot, pair.Select(0, 1), pair.Select(0, 0)))
}

func topK(c *call, in []*value) []*value {
	k := c.int("k", 0)
	if len(in) > 1 {
		k = c.oneInt(in[1])
	}
	axis := c.axis(c.int("axis", -1), in[0].rank())
	if k < 0 || k > in[0].dims[axis] {
		c.fail("%d elements of a dimension of %d are asked for", k, in[0].dims[axis])
	}
	x := ordered(in[0].elem, c.tensor(in[0]))
	values, index := x.Sort(loris.Dim(axis), loris.Descending(c.bool("largest", true)))
	values, index = values.Narrow(axis, 0, k), index.Narrow(axis, 0, k)
	return []*value{out(in[0].elem, ordered(in[0].elem, values)), out(tInt64, index)}
}

// truths returns which elements are not 0.
func (c *call) truths(v *value) []bool {
	data := c.contents(v)
	size := v.elem.dtype().Size()
	zero := make([]byte, size)
	res := make([]bool, v.numel())
	for i := range res {
		e := data[i*size : (i+1)*size]
		res[i] = !bytes.Equal(e, zero)
		if v.elem.float() {
			res[i] = elements.Float(v.elem.dtype(), data, i) != 0
		}
	}
	return res
}

// nonZero has as many columns as there are elements that are not 0, so it waits for them.
func nonZero(c *call, in []*value) *value {
	v := in[0]
	var where []int
	for i, yes := range c.truths(v) {
		if yes {
			where = append(where, i)
		}
	}
	strides := stridesOf(v.dims)
	res := make([]int64, 0, len(where)*v.rank())
	for d, s := range strides {
		for _, p := range where {
			res = append(res, int64(p/s%v.dims[d]))
		}
	}
	return hostIntsOf([]int{v.rank(), len(where)}, res)
}

func compress(c *call, in []*value) *value {
	v := in[0]
	axis := 0
	if c.has("axis") {
		axis = c.axis(c.int("axis", 0), v.rank())
	} else {
		v = c.reshape(v, []int{v.numel()})
	}
	index := []int64{}
	for i, yes := range c.truths(in[1]) {
		if yes && i < v.dims[axis] {
			index = append(index, int64(i))
		}
	}
	return out(v.elem, c.tensor(v).IndexSelect(axis, c.tensor(hostInts(index...))))
}

// unique finds the distinct slices along an axis, of which it needs the elements.
func unique(c *call, in []*value) []*value {
	v := in[0]
	axis := 0
	if c.has("axis") {
		axis = c.axis(c.int("axis", 0), v.rank())
	} else {
		v = c.reshape(v, []int{v.numel()})
	}
	n := v.dims[axis]
	outer, inner := product(v.dims[:axis]), product(v.dims[axis+1:])
	data := c.contents(v)
	less := c.lessAt(v.elem, data)
	compareSlices := func(i, j int) int {
		for o := range outer {
			for k := range inner {
				a, b := (o*n+i)*inner+k, (o*n+j)*inner+k
				if less(a, b) {
					return -1
				}
				if less(b, a) {
					return 1
				}
			}
		}
		return 0
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return compareSlices(order[a], order[b]) < 0 })
	var first, counts []int64
	inverse := make([]int64, n)
	for k, i := range order {
		if k == 0 || compareSlices(order[k-1], i) != 0 {
			first, counts = append(first, int64(i)), append(counts, 0)
		}
		counts[len(counts)-1]++
		inverse[i] = int64(len(first) - 1)
	}
	if !c.bool("sorted", true) {
		byPlace(first, counts, inverse)
	}
	y := out(v.elem, c.tensor(v).IndexSelect(axis, c.tensor(hostInts(first...))))
	return []*value{y, hostInts(first...), hostInts(inverse...), hostInts(counts...)}
}

// byPlace puts what unique found in the order of first occurrence.
func byPlace(first, counts, inverse []int64) {
	order := make([]int, len(first))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return first[order[a]] < first[order[b]] })
	rank := make([]int64, len(order))
	f, n := slices.Clone(first), slices.Clone(counts)
	for k, i := range order {
		rank[i], first[k], counts[k] = int64(k), f[i], n[i]
	}
	for i, r := range inverse {
		inverse[i] = rank[r]
	}
}

// lessAt compares elements by their places.
func (c *call) lessAt(e elemType, data []byte) func(i, j int) bool {
	d := e.dtype()
	switch {
	case e == tUint64:
		return func(i, j int) bool { return uint64(elements.Int(d, data, i)) < uint64(elements.Int(d, data, j)) }
	case d.IsIntegral():
		return func(i, j int) bool { return elements.Int(d, data, i) < elements.Int(d, data, j) }
	case d.IsFloatOrF8():
		return func(i, j int) bool { // NaNs are one number, above all others
			x, y := elements.Float(d, data, i), elements.Float(d, data, j)
			return x < y || math.IsNaN(y) && !math.IsNaN(x)
		}
	}
	c.unsupported("an order of %v elements", e)
	return nil
}

func reverseSequence(c *call, in []*value) *value {
	v := in[0]
	batch, time := c.axis(c.int("batch_axis", 1), v.rank()), c.axis(c.int("time_axis", 0), v.rank())
	if batch == time || in[1].numel() != v.dims[batch] {
		c.fail("axes %d and %d of %v, lengths %v", batch, time, v, in[1])
	}
	shape := func(axis, n int) []int {
		dims := slices.Repeat([]int{1}, v.rank())
		dims[axis] = n
		return dims
	}
	n := c.tensor(in[1]).Cast(loris.I64).Reshape(shape(batch, v.dims[batch])...)
	at := c.run.make.Arange(0, v.dims[time], 1).Reshape(shape(time, v.dims[time])...)
	index := loris.Where(at.Lt(n), n.Sub(at).Sub(1), at)
	return out(v.elem, c.tensor(v).Gather(time, index.Expand(v.dims...)))
}
