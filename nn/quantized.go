package nn

import (
	"math"

	"github.com/loris-ml/loris"
)

// QuantizedLinear is a Linear whose weights have 8 or 4 bits each, for inference: x stays as it is,
// and products are summed in f32. A weight stands for (q − Zero)·Scale, with a scale, and with 4
// bits a zero point, for each group of inputs of each output.
//
// With one row of x, as in decoding, weights are read as they are, a quarter or an eighth of the bytes
// of f32. With more rows they are made f32 first, once for all rows, so results of one row differ from
// those of several in the last bits.
type QuantizedLinear struct {
	Base
	// Weight is [out, groups, n], i8 with n the inputs of a group, or u8 with half of that: the low
	// four bits of byte j are weight j of the group, the high ones weight j+n.
	Weight *loris.Variable
	Scale  *loris.Variable // f32 [out, groups]
	Zero   *loris.Variable // f32 [out, groups]; nil stands for 0
	Order  *loris.Variable // i64 [in]: the input that each weight is for; nil where they are in order
	Bias   *loris.Variable // [out], nil without one

	in, out, groups int
}

// QuantizeLinear returns a layer with the weights of l, to the nearest of 2^bits levels for each
// group of so many inputs of an output; group 0 is all of them. With 8 bits levels are −127 to 127
// times the group's largest weight/127, with 4 they are 16 from its least weight, or 0, to its
// largest, or 0. So a weight is off by half a scale at most, and an output by half the sum over its
// groups of Scale·Σ|x|, beside the rounding of f32. The bias is l's own. Other bits, an odd group of 4
// bits and a group that does not divide the inputs panic with a *loris.OpError.
//
// The weights are computed as initial values of variables: a step, or loris.Session.Sync, lets
// go of l's if nothing else has them.
func QuantizeLinear(l *Linear, bits, group int) *QuantizedLinear {
	const name = "QuantizeLinear"
	s := l.Weight.Shape()
	q := &QuantizedLinear{out: s.Dim(0), in: s.Dim(1)}
	if group == 0 {
		group = q.in
	}
	switch {
	case bits != 8 && bits != 4:
		panic(misuse(name, "%d bits, there are 8 and 4", bits))
	case group < 1 || q.in%group != 0:
		panic(misuse(name, "groups of %d inputs do not divide %d", group, q.in))
	case bits == 4 && group%2 != 0:
		panic(misuse(name, "a group of %d weights of 4 bits ends in the middle of a byte", group))
	}
	q.groups = q.in / group
	w := l.Weight.Value().Cast(loris.F32).Reshape(q.out, q.groups, group)
	high := loris.Dim(2)
	keep := loris.Keepdim(true)
	if bits == 8 {
		scale := oneFor0(w.Abs().Amax(high, keep).Mul(1.0 / 127))
		codes := w.Div(scale).Round().Clamp(-127, 127).Cast(loris.I8)
		q.variables(codes, scale.Reshape(q.out, q.groups), nil)
	} else {
		least, most := w.Amin(high, keep).Clamp(math.Inf(-1), 0), w.Amax(high, keep).Clamp(0, math.Inf(1))
		scale := oneFor0(most.Sub(least).Mul(1.0 / 15))
		zero := least.Neg().Div(scale).Round()
		codes := w.Div(scale).Round().Add(zero).Clamp(0, 15)
		halves := codes.Reshape(q.out, q.groups, 2, group/2).Unbind(loris.Dim(2))
		q.variables(halves[1].Mul(16).Add(halves[0]).Cast(loris.U8), scale.Reshape(q.out, q.groups), zero.Reshape(q.out, q.groups))
	}
	if l.Bias != nil {
		q.Bias = q.Buffer("bias", l.Bias)
	}
	return q
}

// oneFor0 is the scale of groups, 1 for those whose weights are all 0.
func oneFor0(scale *loris.Tensor) *loris.Tensor {
	return loris.Where(scale.Eq(0), scale.OnesLike(), scale)
}

// variables makes the weights and their scales buffers; zero may be nil.
func (l *QuantizedLinear) variables(codes, scale, zero *loris.Tensor) {
	l.Weight = l.Buffer("weight", loris.NewVariable(codes))
	l.Scale = l.Buffer("scale", loris.NewVariable(scale))
	if zero != nil {
		l.Zero = l.Buffer("zero", loris.NewVariable(zero))
	}
}

// Forward maps x [*, in], of a float dtype, to [*, out] of the same dtype.
func (l *QuantizedLinear) Forward(x *loris.Tensor) *loris.Tensor {
	s := x.Shape()
	if s.Rank() == 0 || s.Dim(-1) != l.in || !s.DType().IsFloat() {
		panic(misshapen("QuantizedLinear", x, "%d inputs of a float dtype are wanted in the last dimension", l.in))
	}
	rows := s.Numel() / l.in
	y := x.Cast(loris.F32).Reshape(rows, l.in)
	if l.Order != nil {
		y = y.IndexSelect(1, value(l.Order, x))
	}
	if rows == 1 {
		y = l.row(y)
	} else {
		y = l.rows(y, rows)
	}
	if l.Bias != nil {
		y = y.Add(value(l.Bias, x).Cast(loris.F32))
	}
	return y.Cast(s.DType()).Reshape(append(s.Dims()[:s.Rank()-1:s.Rank()-1], l.out)...)
}

// packed reports whether two weights share a byte.
func (l *QuantizedLinear) packed() bool { return l.Weight.Shape().DType() == loris.U8 }

// parts returns the codes as f32, each [out, groups, n], and the parts of x that they are for, each
// [rows, groups, n]: of packed weights the first and the second halves of the groups.
func (l *QuantizedLinear) parts(x *loris.Tensor, rows int) (codes, inputs []*loris.Tensor) {
	q := value(l.Weight, x).Cast(loris.F32)
	if !l.packed() {
		return []*loris.Tensor{q}, []*loris.Tensor{x.Reshape(rows, l.groups, -1)}
	}
	// In f32, where it is exact, and which has machine code for all of it.
	second := q.Mul(1.0 / 16).Floor()
	first := q.Sub(second.Mul(16))
	return []*loris.Tensor{first, second}, x.Reshape(rows, l.groups, 2, -1).Unbind(loris.Dim(2))
}

// row is the product with one row: sums of codes times inputs, which read the codes once.
func (l *QuantizedLinear) row(x *loris.Tensor) *loris.Tensor {
	codes, inputs := l.parts(x, 1)
	sums := codes[0].Mul(inputs[0])
	for i := range codes[1:] {
		sums = sums.Add(codes[i+1].Mul(inputs[i+1]))
	}
	each := sums.Sum(loris.Dim(2)) // [out, groups]
	if l.Zero != nil {
		each = each.Sub(value(l.Zero, x).Mul(x.Reshape(1, l.groups, -1).Sum(loris.Dim(2))))
	}
	return each.Mul(value(l.Scale, x)).Sum(loris.Dim(1)).Reshape(1, l.out)
}

// rows is the product with several rows, by weights in f32.
func (l *QuantizedLinear) rows(x *loris.Tensor, rows int) (y *loris.Tensor) {
	codes, inputs := l.parts(x, rows)
	scale := value(l.Scale, x).Unsqueeze(2)
	for i, w := range codes {
		if l.Zero != nil {
			w = w.Sub(value(l.Zero, x).Unsqueeze(2))
		}
		part := inputs[i].Reshape(rows, -1).Linear(w.Mul(scale).Reshape(l.out, -1))
		if y == nil {
			y = part
		} else {
			y = y.Add(part)
		}
	}
	return y
}
