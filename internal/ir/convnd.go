package ir

import "fmt"

func init() {
	for n := 1; n <= 3; n++ {
		register(fmt.Sprintf("conv%dd(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1, str padding_str='') -> Tensor", n), Spec{
			Doc:      fmt.Sprintf("Cross-correlation over %d spatial dimensions: input [N, C, …] or [C, …], weight [O, C/groups, …], bias [O]. A list of one number counts for all dimensions. padding_str is ATen's overload with a string: 'same' (stride 1 only) or 'valid', in place of padding. Floating dtypes and i64. As torch.nn.functional.conv%dd.", n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return convND(b, a, n) },
		})
		register(fmt.Sprintf("conv_transpose%dd(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor", n), Spec{
			Doc:      fmt.Sprintf("Transposed convolution over %d spatial dimensions, the gradient of conv%dd: input [N, C, …] or [C, …], weight [C, O/groups, …], bias [O]. Floating dtypes and i64. As torch.nn.functional.conv_transpose%dd.", n, n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return convTransposeND(b, a, n) },
		})
	}
}

// spread returns an int[] attribute with n entries; a single one counts for all.
func spread(a Args, name string, n int) []int {
	v := a.Ints(name)
	if len(v) != 1 && len(v) != n {
		a.Fail(ErrArg, "%s must have 1 or %d entries, got %v", name, n, v)
	}
	for len(v) < n {
		v = append(v, v[0])
	}
	requireWindow(a, name, v)
	return v
}

// maxWindow is the largest size, distance or padding of a window. Sums and products of two of them
// and a dimension do not overflow.
const maxWindow = 1 << 30

// requireWindow fails for a list with an entry that no window can have.
func requireWindow(a Args, name string, list []int) {
	for _, v := range list {
		if v > maxWindow || v < -maxWindow {
			a.Fail(ErrArg, "%s has %d, which is beyond ±%d", name, v, maxWindow)
		}
	}
}

// batched gives an input of n spatial dimensions its batch dimension if it has
// none, and returns how to take it away again.
func batched(b *Builder, a Args, x Value, n int) (Value, func(Value) Value) {
	switch x.Rank() {
	case n + 2:
		return x, func(y Value) Value { return y }
	case n + 1:
		return b.Unsqueeze(x, 0), func(y Value) Value { return b.Reshape(y, y.Shape().Dims()[1:]...) }
	}
	a.Fail(ErrShape, "input must have %d or %d dimensions, got %d", n+1, n+2, x.Rank())
	return Value{}, nil
}

// convOperands returns the operands of a convolution; i64 ones are computed in
// f64, which is exact below 2⁵³, and restore takes the result back.
func convOperands(b *Builder, a Args) (x, w, bias Value, restore func(Value) Value) {
	x, w, bias = a.Tensor("input"), a.Tensor("weight"), a.Tensor("bias")
	if x.DType() != I64 || w.DType() != I64 {
		return x, w, bias, func(y Value) Value { return y }
	}
	if !bias.IsNil() {
		bias = b.Cast(bias, F64)
	}
	return b.Cast(x, F64), b.Cast(w, F64), bias, func(y Value) Value { return b.Cast(y, I64) }
}

func convND(b *Builder, a Args, n int) []Value {
	x, w, bias, restore := convOperands(b, a)
	x, unbatch := batched(b, a, x, n)
	stride, padding, dilation := spread(a, "stride", n), spread(a, "padding", n), spread(a, "dilation", n)
	if mode := a.Str("padding_str"); mode != "" {
		for _, p := range padding {
			if p != 0 {
				a.Fail(ErrArg, "padding and padding_str exclude each other")
			}
		}
		x, padding = namedPadding(b, a, x, w, mode, stride, dilation)
	}
	var zero [3]int
	y := b.Call1(opConvolution, []any{x, w, bias, stride, padding, dilation, false, zero[:n], a.Int("groups")})
	return []Value{restore(unbatch(y))}
}

// namedPadding turns "same" and "valid" into numbers. An odd total puts the
// extra zero after the input, by padding it there first.
func namedPadding(b *Builder, a Args, x, w Value, mode string, stride, dilation []int) (Value, []int) {
	n := len(stride)
	padding := make([]int, n)
	switch {
	case mode == "valid":
		return x, padding
	case mode != "same":
		a.Fail(ErrArg, "padding_str must be same or valid, got %q", mode)
	case w.Rank() != n+2:
		a.Fail(ErrShape, "weight must have %d dimensions, got %d", n+2, w.Rank())
	}
	extra := make([]int, 2*n)
	odd := false
	for i := range n {
		if stride[i] != 1 {
			a.Fail(ErrArg, "padding_str 'same' needs stride 1, got %v", stride)
		}
		total := dilation[i] * (w.Dim(2+i) - 1)
		padding[i] = total / 2
		if total%2 != 0 {
			extra[2*(n-1-i)+1] = 1
			odd = true
		}
	}
	if odd {
		x = b.PadConst(x, extra, b.Const(0, x.DType()))
	}
	return x, padding
}

func convTransposeND(b *Builder, a Args, n int) []Value {
	x, w, bias, restore := convOperands(b, a)
	x, unbatch := batched(b, a, x, n)
	y := b.Call1(opConvolution, []any{x, w, bias, spread(a, "stride", n), spread(a, "padding", n),
		spread(a, "dilation", n), true, spread(a, "output_padding", n), a.Int("groups")})
	return []Value{restore(unbatch(y))}
}
