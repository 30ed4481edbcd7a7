package ir

import (
	"sort"
	"strings"
)

func init() {
	register("einsum(str equation, Tensor[] tensors) -> Tensor", Spec{
		Doc:      "Products of the tensors summed over the subscripts that the result lacks, as the equation says: letters name dimensions, a repeated letter in one operand takes its diagonal, '...' stands for dimensions that broadcast, and without '->' the result has '...' and then the letters that appear once, in alphabetical order. All tensors have one dtype; they are contracted from left to right. As torch.einsum.",
		Category: Linalg, Decompose: einsum,
	})
}

// Labels of an equation: letters by their byte, dimensions under the ellipsis
// from ellipsisLabel on, the last of them first.
const ellipsisLabel = 256

// labelled is a value whose dimensions have labels, all different.
type labelled struct {
	v      Value
	labels []int
}

// index returns the dimension with a label, or -1.
func (x labelled) index(label int) int {
	for i, l := range x.labels {
		if l == label {
			return i
		}
	}
	return -1
}

func einsum(b *Builder, a Args) []Value {
	eq := strings.ReplaceAll(a.Str("equation"), " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	subs := strings.Split(left, ",")
	in := a.Tensors("tensors")
	if len(in) == 0 || len(subs) != len(in) {
		a.Fail(ErrArg, "the equation %q names %d operands, %d are given", eq, len(subs), len(in))
	}
	ops := make([]labelled, len(in))
	widest := 0
	for i, s := range subs {
		if in[i].DType() != in[0].DType() {
			a.Fail(ErrDType, "all tensors must have one dtype, got %v and %v", in[0].DType(), in[i].DType())
		}
		labels, dots := parseSubscripts(a, s, in[i].Rank())
		widest = max(widest, dots)
		ops[i] = b.takeDiagonals(a, in[i], labels)
	}
	checkSizes(a, ops)
	out := implicitOutput(a, subs, widest)
	if explicit {
		out = explicitOutput(a, right, ops, widest)
	}
	cur := ops[0]
	for i := range ops {
		keep := map[int]bool{}
		for _, l := range out {
			keep[l] = true
		}
		for _, x := range ops[i+1:] {
			for _, l := range x.labels {
				keep[l] = true
			}
		}
		if i > 0 {
			cur = b.contract(cur, ops[i], keep)
		} else {
			cur = b.sumLabels(cur, func(l int) bool { return !keep[l] })
		}
	}
	return []Value{b.arrange(cur, out)}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// parseSubscripts reads the subscripts of one operand: a label for each of its
// dimensions, and how many are under the ellipsis.
func parseSubscripts(a Args, s string, rank int) (labels []int, dots int) {
	before, after, found := strings.Cut(s, "...")
	for i := range len(before + after) {
		if c := (before + after)[i]; !isLetter(c) {
			a.Fail(ErrArg, "%q in the subscripts %q is no letter", c, s)
		}
	}
	letters := len(before) + len(after)
	if dots = rank - letters; dots < 0 || (dots > 0 && !found) {
		a.Fail(ErrShape, "the subscripts %q name %d dimensions, the operand has %d", s, letters, rank)
	}
	for i := range len(before) {
		labels = append(labels, int(before[i]))
	}
	for i := dots - 1; i >= 0; i-- {
		labels = append(labels, ellipsisLabel+i)
	}
	for i := range len(after) {
		labels = append(labels, int(after[i]))
	}
	return labels, dots
}

// takeDiagonals makes the labels of an operand different: two dimensions with
// one label become their diagonal, every (n+1)th element of the two as one.
func (b *Builder) takeDiagonals(a Args, v Value, labels []int) labelled {
	x := labelled{v: v}
	for _, l := range labels {
		i := x.index(l)
		if i < 0 {
			x.labels = append(x.labels, l)
			continue
		}
		j := len(x.labels) // the dimension of this label in x.v
		n := x.v.Dim(i)
		if x.v.Dim(j) != n {
			a.Fail(ErrShape, "subscript %q is repeated for sizes %d and %d", rune(l), n, x.v.Dim(j))
		}
		perm := make([]int, 0, x.v.Rank())
		for d := range x.v.Rank() {
			if d != i && d != j {
				perm = append(perm, d)
			}
		}
		y := b.Permute(x.v, append(perm, i, j)...)
		dims := y.Shape().Dims()[:len(perm)]
		y = b.Slice(b.Reshape(y, append(dims, n*n)...), len(perm), 0, n*n, n+1)
		// The diagonal returns to the place of the first of the two.
		back := make([]int, 0, len(perm)+1)
		for d := range len(perm) {
			back = append(back, d)
		}
		back = append(back[:i], append([]int{len(perm)}, back[i:]...)...)
		x.v = b.Permute(y, back...)
	}
	return x
}

// checkSizes fails unless each label has one size everywhere, 1 apart.
func checkSizes(a Args, ops []labelled) {
	sizes := map[int]int{}
	for _, x := range ops {
		for i, l := range x.labels {
			n := x.v.Dim(i)
			if have, ok := sizes[l]; ok && have != n && have != 1 && n != 1 {
				name := "a dimension under ..."
				if l < ellipsisLabel {
					name = "subscript " + string(rune(l))
				}
				a.Fail(ErrShape, "%s has sizes %d and %d", name, have, n)
			} else if !ok || have == 1 {
				sizes[l] = n
			}
		}
	}
}

func ellipsisLabels(n int) []int {
	labels := make([]int, n)
	for i := range labels {
		labels[i] = ellipsisLabel + n - 1 - i
	}
	return labels
}

func implicitOutput(a Args, subs []string, widest int) []int {
	count := map[int]int{}
	for _, s := range subs {
		for i := range len(s) {
			count[int(s[i])]++
		}
	}
	var letters []int
	for l, n := range count {
		if n == 1 && isLetter(byte(l)) {
			letters = append(letters, l)
		}
	}
	sort.Ints(letters)
	return append(ellipsisLabels(widest), letters...)
}

func explicitOutput(a Args, s string, ops []labelled, widest int) []int {
	before, after, found := strings.Cut(s, "...")
	var out []int
	add := func(part string) {
		for i := range len(part) {
			l, known := int(part[i]), false
			for _, x := range ops {
				known = known || x.index(l) >= 0
			}
			if !isLetter(part[i]) || !known {
				a.Fail(ErrArg, "the result's subscript %q is in no operand", part[i])
			}
			for _, o := range out {
				if o == l {
					a.Fail(ErrArg, "the result's subscript %q appears twice", part[i])
				}
			}
			out = append(out, l)
		}
	}
	add(before)
	if found {
		out = append(out, ellipsisLabels(widest)...)
	}
	add(after)
	return out
}

// sumLabels sums over the dimensions whose label is chosen; integers become i64
// as sum makes them.
func (b *Builder) sumLabels(x labelled, chosen func(label int) bool) labelled {
	var dims, labels []int
	for i, l := range x.labels {
		if chosen(l) {
			dims = append(dims, i)
		} else {
			labels = append(labels, l)
		}
	}
	if dims == nil {
		return x
	}
	return labelled{b.Sum(x.v, dims, false), labels}
}

// arrange orders the dimensions by the labels; one that x lacks has size 1.
func (b *Builder) arrange(x labelled, labels []int) Value {
	var perm []int
	dims := make([]int, len(labels))
	for i, l := range labels {
		dims[i] = 1
		if d := x.index(l); d >= 0 {
			perm = append(perm, d)
			dims[i] = x.v.Dim(d)
		}
	}
	v := x.v
	if !sort.IntsAreSorted(perm) {
		v = b.Permute(v, perm...)
	}
	return b.Reshape(v, dims...)
}

// dropOnes takes away dimensions of size 1 whose label has another size in
// other: they broadcast.
func (b *Builder) dropOnes(x, other labelled) labelled {
	var dims, labels []int
	for i, l := range x.labels {
		if j := other.index(l); j >= 0 && x.v.Dim(i) == 1 && other.v.Dim(j) != 1 {
			continue
		}
		dims, labels = append(dims, x.v.Dim(i)), append(labels, l)
	}
	return labelled{b.Reshape(x.v, dims...), labels}
}

// contract multiplies two operands and sums over the labels that nothing needs
// later. Labels of both are the batch of a matrix product if they are kept and
// its inner dimension if not; those of one are its rows and columns.
func (b *Builder) contract(x, y labelled, keep map[int]bool) labelled {
	x, y = b.dropOnes(x, y), b.dropOnes(y, x)
	x = b.sumLabels(x, func(l int) bool { return !keep[l] && y.index(l) < 0 })
	y = b.sumLabels(y, func(l int) bool { return !keep[l] && x.index(l) < 0 })
	d := PromoteTypes(x.v.DType(), y.v.DType()) // they differ if one was summed
	x.v, y.v = b.Cast(x.v, d), b.Cast(y.v, d)
	var batch, rows, inner, cols []int
	for _, l := range x.labels {
		switch {
		case y.index(l) < 0:
			rows = append(rows, l)
		case keep[l]:
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range y.labels {
		if x.index(l) < 0 {
			cols = append(cols, l)
		}
	}
	result := append(append(append([]int{}, batch...), rows...), cols...)
	if inner == nil {
		return labelled{b.Mul(b.arrange(x, result), b.arrange(y, result)), result}
	}
	size := func(v labelled, labels []int) int {
		n := 1
		for _, l := range labels {
			n *= v.v.Dim(v.index(l))
		}
		return n
	}
	nb, nr, ni, nc := size(x, batch), size(x, rows), size(x, inner), size(y, cols)
	dims := make([]int, 0, len(result))
	for _, l := range result {
		if d := x.index(l); d >= 0 {
			dims = append(dims, x.v.Dim(d))
		} else {
			dims = append(dims, y.v.Dim(y.index(l)))
		}
	}
	lhs := b.arrange(x, append(append(append([]int{}, batch...), rows...), inner...))
	rhs := b.arrange(y, append(append(append([]int{}, batch...), inner...), cols...))
	if batch == nil {
		lhs, rhs = b.Reshape(lhs, nr, ni), b.Reshape(rhs, ni, nc)
	} else {
		lhs, rhs = b.Reshape(lhs, nb, nr, ni), b.Reshape(rhs, nb, ni, nc)
	}
	return labelled{b.Reshape(b.MatMul(lhs, rhs), dims...), result}
}
