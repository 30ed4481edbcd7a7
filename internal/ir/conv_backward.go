package ir

func init() {
	registerBackward("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, int[] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
		"The gradients of convolution with respect to input, weight and bias, as far as output_mask has a 1 for them; those that are not wanted are empty. As at::convolution_backward.", convolutionBackward)
}

func convolutionBackward(b *Builder, a Args) []Value {
	g, x := a.Tensor("grad_output"), a.Tensor("input")
	wanted := outputMask(a, 3)
	n := x.Rank() - 2
	attrs := []Named{A("bias", nil)}
	for _, name := range []string{"stride", "padding", "dilation", "output_padding"} {
		attrs = append(attrs, A(name, spread(a, name, n)))
	}
	grads := maskedGradients(b, a, "convolution", []string{"input", "weight"}, wanted, attrs...)
	if !wanted[2] {
		return append(grads, b.Full([]int{0}, 0, g.DType()))
	}
	dims := []int{0}
	for d := 2; d < g.Rank(); d++ {
		dims = append(dims, d)
	}
	return append(grads, b.Sum(g, dims, false))
}

// outputMask reads which of n gradients are wanted.
func outputMask(a Args, n int) []bool {
	mask := a.Ints("output_mask")
	if len(mask) != n {
		a.Fail(ErrArg, "output_mask must have %d entries, got %v", n, mask)
	}
	wanted := make([]bool, n)
	for i, m := range mask {
		wanted[i] = m != 0
	}
	return wanted
}

// maskedGradients is gradientsOf for the operands that are wanted; those of others are empty.
func maskedGradients(b *Builder, a Args, forward string, names []string, wanted []bool, over ...Named) []Value {
	var wrt []string
	for i, name := range names {
		if wanted[i] {
			wrt = append(wrt, name)
		}
	}
	var grads []Value
	if len(wrt) > 0 {
		grads = gradientsOf(b, a, forward, a.Tensor("grad_output"), wrt, over...)
	}
	out := make([]Value, len(names))
	for i, name := range names {
		if !wanted[i] {
			out[i] = b.Full([]int{0}, 0, a.Tensor(name).DType())
			continue
		}
		out[i], grads = grads[0], grads[1:]
	}
	return out
}
