package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
)

// controlRows are the ops with graphs as attributes. Branches are chosen and loops are written out
// while recording; a condition that depends on data is computed first.
var controlRows = map[string]*row{
	"If":   many(1, 1, branch),
	"Loop": many(0, -1, loop),
	"Scan": many(0, -1, scan),
}

func branch(c *call, in []*value) []*value {
	if c.flag(in[0]) {
		return c.inner(c.body("then_branch"), nil)
	}
	return c.inner(c.body("else_branch"), nil)
}

// loop records its body as often as its count and conditions say.
func loop(c *call, in []*value) []*value {
	body := c.body("body")
	limit := 1 << 62
	if v := opt(in, 0); v != nil && !v.empty {
		limit = c.oneInt(v)
	}
	cond := hostBool(true)
	if v := opt(in, 1); v != nil && !v.empty {
		cond = v
	}
	var carried []*value
	if len(in) > 2 {
		carried = slices.Clone(in[2:])
	}
	scans := len(body.outputs) - 1 - len(carried)
	if scans < 0 {
		c.fail("the body has %d outputs for %d carried values", len(body.outputs), len(carried))
	}
	results := make([][]*value, scans)
	for i := 0; i < limit && c.flag(cond); i++ {
		c.spend()
		next := c.inner(body, slices.Concat([]*value{hostIntsOf([]int{}, []int64{int64(i)}), cond}, carried))
		cond = next[0]
		carried = next[1 : 1+len(carried)]
		for k, v := range next[1+len(carried):] {
			results[k] = append(results[k], v)
		}
	}
	outs := slices.Clone(carried)
	for _, r := range results {
		outs = append(outs, c.stacked(r, 0))
	}
	return outs
}

// stacked puts the results of a loop's steps one after the other.
func (c *call) stacked(vs []*value, axis int) *value {
	if len(vs) == 0 {
		return &value{elem: tFloat, dims: []int{0}, data: []byte{}}
	}
	if allKnown(vs) && axis == 0 && vs[0].numel() <= maxKnown/len(vs) {
		v := &value{elem: vs[0].elem, dims: append([]int{len(vs)}, vs[0].dims...)}
		for _, p := range vs {
			if !slices.Equal(p.dims, vs[0].dims) {
				c.fail("the steps give %v and %v, which cannot be stacked", vs[0], p)
			}
			v.data = append(v.data, p.data...)
		}
		return v
	}
	return out(vs[0].elem, loris.Stack(c.tensors(vs), loris.Dim(axis)))
}

// scan records its body for each element of its sequences.
func scan(c *call, in []*value) []*value {
	body := c.body("body")
	if c.node.version < 9 {
		return c.batchedScan(body, in)
	}
	n := c.int("num_scan_inputs", 0)
	if n < 1 || n > len(in) || slices.Contains(in, nil) {
		c.fail("%d of %d inputs are scanned", n, len(in))
	}
	return c.scanned(body, in[:len(in)-n], in[len(in)-n:])
}

// listAt returns element i of a list, 0 where the list is left out.
func listAt(list []int, i int) int {
	if i < len(list) {
		return list[i]
	}
	return 0
}

func (c *call) scanned(body *graph, carried, seqs []*value) []*value {
	carried = slices.Clone(carried)
	axes, directions := c.list("scan_input_axes"), c.list("scan_input_directions")
	if c.node.version < 9 {
		directions = c.list("directions")
	}
	length := -1
	for i, v := range seqs {
		if v == nil {
			c.fail("a scanned input is left out")
		}
		if size := v.dims[c.axis(listAt(axes, i), v.rank())]; length >= 0 && size != length {
			c.fail("the scanned inputs have %d and %d elements", length, size)
		} else {
			length = size
		}
	}
	scans := len(body.outputs) - len(carried)
	if scans < 0 {
		c.fail("the body has %d outputs for %d carried values", len(body.outputs), len(carried))
	}
	results := make([][]*value, scans)
	for t := range length {
		c.spend()
		step := slices.Clone(carried)
		for i, v := range seqs {
			at := t
			if listAt(directions, i) == 1 {
				at = length - 1 - t
			}
			step = append(step, c.element(v, c.axis(listAt(axes, i), v.rank()), at))
		}
		next := c.inner(body, step)
		carried = next[:len(carried)]
		for k, v := range next[len(carried):] {
			results[k] = append(results[k], v)
		}
	}
	outs := slices.Clone(carried)
	outAxes, outDirections := c.list("scan_output_axes"), c.list("scan_output_directions")
	for k, r := range results {
		if listAt(outDirections, k) == 1 {
			slices.Reverse(r)
		}
		axis := 0
		if len(r) > 0 {
			axis = c.axis(listAt(outAxes, k), r[0].rank()+1)
		}
		outs = append(outs, c.stacked(r, axis))
	}
	return outs
}

// element returns one index of an axis, without the axis.
func (c *call) element(v *value, axis, i int) *value {
	e := c.narrow(v, axis, i, 1)
	return c.reshape(e, slices.Delete(slices.Clone(e.dims), axis, axis+1))
}

// batchedScan is the form of opset 8: a dimension of batches comes first.
func (c *call) batchedScan(body *graph, in []*value) []*value {
	n := c.int("num_scan_inputs", 0)
	if n < 1 || n >= len(in) {
		c.fail("%d of %d inputs are scanned", n, len(in))
	}
	if in[0] != nil || slices.Contains(in[1:], nil) {
		c.unsupported("sequences of several lengths")
	}
	in = in[1:]
	batches := in[len(in)-1].dims[0]
	var perBatch [][]*value
	for b := range batches {
		c.spend()
		var carried, seqs []*value
		for i, v := range in {
			e := c.element(v, 0, b)
			if i < len(in)-n {
				carried = append(carried, e)
			} else {
				seqs = append(seqs, e)
			}
		}
		perBatch = append(perBatch, c.scanned(body, carried, seqs))
	}
	if batches == 0 {
		c.fail("there are no batches")
	}
	outs := make([]*value, len(perBatch[0]))
	for k := range outs {
		var vs []*value
		for _, b := range perBatch {
			vs = append(vs, b[k])
		}
		outs[k] = c.stacked(vs, 0)
	}
	return outs
}
