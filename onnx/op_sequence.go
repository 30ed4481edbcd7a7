package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
)

// sequenceRows are the ops on sequences and optionals, which exist while recording only.
var sequenceRows = map[string]*row{
	"SequenceEmpty":     one(0, 0, func(c *call, in []*value) *value { return sequence(nil) }),
	"SequenceConstruct": one(1, -1, func(c *call, in []*value) *value { return sequence(slices.Clone(in)) }),
	"SequenceInsert": one(2, 3, func(c *call, in []*value) *value {
		s := c.elements(in[0])
		at := len(s)
		if p := opt(in, 2); p != nil {
			at = c.place(c.oneInt(p), len(s)+1, len(s))
		}
		return sequence(slices.Insert(slices.Clone(s), at, in[1]))
	}),
	"SequenceErase": one(1, 2, func(c *call, in []*value) *value {
		s := c.elements(in[0])
		at := len(s) - 1
		if p := opt(in, 1); p != nil {
			at = c.oneInt(p)
		}
		at = c.place(at, len(s), len(s))
		return sequence(slices.Delete(slices.Clone(s), at, at+1))
	}),
	"SequenceAt": one(2, 2, func(c *call, in []*value) *value {
		s := c.elements(in[0])
		return s[c.place(c.oneInt(in[1]), len(s), len(s))]
	}),
	"SequenceLength": one(1, 1, func(c *call, in []*value) *value {
		return hostIntsOf([]int{}, []int64{int64(len(c.elements(in[0])))})
	}),
	"ConcatFromSequence": one(1, 1, concatFromSequence),
	"SplitToSequence":    one(1, 2, splitToSequence),
	"SequenceMap":        many(1, -1, sequenceMap),
	"Optional": one(0, 1, func(c *call, in []*value) *value {
		if len(in) == 0 || in[0] == nil {
			return &value{empty: true}
		}
		return in[0]
	}),
	"OptionalHasElement": one(0, 1, func(c *call, in []*value) *value {
		return hostBool(len(in) > 0 && in[0] != nil && !in[0].empty)
	}),
	"OptionalGetElement": one(1, 1, func(c *call, in []*value) *value {
		if in[0].empty {
			c.fail("the optional has no element")
		}
		return in[0]
	}),
}

func (c *call) elements(v *value) []*value {
	if !v.isSeq {
		c.fail("a sequence is expected, not %v", v)
	}
	return v.seq
}

// place returns a position in a sequence counted from its beginning.
func (c *call) place(i, bound, length int) int {
	if i < 0 {
		i += length
	}
	if i < 0 || i >= bound {
		c.fail("position %d is beyond a sequence of %d", i, length)
	}
	return i
}

func concatFromSequence(c *call, in []*value) *value {
	s := c.elements(in[0])
	if len(s) == 0 {
		c.fail("the sequence is empty")
	}
	axis := c.int("axis", 0)
	if c.bool("new_axis", false) {
		return c.stacked(s, c.axis(axis, s[0].rank()+1))
	}
	return out(s[0].elem, loris.Cat(c.tensors(s), loris.Dim(c.axis(axis, s[0].rank()))))
}

func splitToSequence(c *call, in []*value) *value {
	v := in[0]
	axis := c.axis(c.int("axis", 0), v.rank())
	keep := true
	var sizes []int
	size := v.dims[axis]
	switch s := opt(in, 1); {
	case s == nil:
		keep = c.bool("keepdims", true)
		c.table(size)
		sizes = slices.Repeat([]int{1}, size)
	case s.rank() == 0:
		each := c.oneInt(s)
		if each < 1 {
			c.fail("parts of %d", each)
		}
		c.table(size / each)
		for left := size; left > 0; left -= each {
			sizes = append(sizes, min(each, left))
		}
	default:
		sizes = c.intList(s)
	}
	var parts []*value
	start := 0
	for _, n := range sizes {
		c.spend()
		if n < 0 || start+n > size {
			c.fail("the sizes %v do not split %v", sizes, v)
		}
		if keep {
			parts = append(parts, c.narrow(v, axis, start, n))
		} else {
			parts = append(parts, c.element(v, axis, start))
		}
		start += n
	}
	return sequence(parts)
}

// sequenceMap records its body for each element of its first sequence.
func sequenceMap(c *call, in []*value) []*value {
	body := c.body("body")
	first := c.elements(in[0])
	outs := make([]*value, len(body.outputs))
	for i := range outs {
		outs[i] = sequence(nil)
	}
	for k := range first {
		c.spend()
		step := make([]*value, len(in))
		for i, v := range in {
			step[i] = v
			if v != nil && v.isSeq {
				if len(v.seq) != len(first) {
					c.fail("the sequences have %d and %d elements", len(first), len(v.seq))
				}
				step[i] = v.seq[k]
			}
		}
		for i, v := range c.inner(body, step) {
			outs[i].seq = append(outs[i].seq, v)
		}
	}
	return outs
}
