package ir

import (
	"fmt"
	"maps"
	"slices"
)

func init() {
	for n := 2; n <= 3; n++ {
		avg := fmt.Sprintf("avg_pool%dd", n)
		registerBackward(avg+"_backward(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
			fmt.Sprintf("The gradient of %s with respect to self. As at::%s_backward.", avg, avg), backwardOf(avg, "self"))
		adaptive := fmt.Sprintf("adaptive_avg_pool%dd", n)
		register(fmt.Sprintf("_%s(Tensor self, int[] output_size) -> Tensor", adaptive), Spec{
			Doc:      fmt.Sprintf("%s under the name that it has in exported graphs. As at::_%s.", adaptive, adaptive),
			Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value { return adaptiveAvgPoolND(b, a, n) },
		})
		registerBackward(fmt.Sprintf("_%s_backward(Tensor grad_output, Tensor self) -> Tensor", adaptive),
			fmt.Sprintf("The gradient of %s with respect to self. As at::_%s_backward.", adaptive, adaptive),
			func(b *Builder, a Args) []Value { return adaptiveAvgBackward(b, a, n) })
		maxima := map[string]string{
			fmt.Sprintf("max_pool%dd_with_indices", n): ", int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode",
			fmt.Sprintf("adaptive_max_pool%dd", n):     "",
			fmt.Sprintf("fractional_max_pool%dd", n):   ", int[] kernel_size, int[] output_size",
		}
		for _, name := range slices.Sorted(maps.Keys(maxima)) {
			registerBackward(fmt.Sprintf("%s_backward(Tensor grad_output, Tensor self%s, Tensor indices) -> Tensor", name, maxima[name]),
				fmt.Sprintf("The gradient of %s with respect to self, from where the largest elements were. As at::%s_backward.", name, name),
				func(b *Builder, a Args) []Value {
					return []Value{b.sumByPlace(a, n, a.Tensor("self").Shape(), a.Tensor("indices"), a.Tensor("grad_output"))}
				})
		}
	}
}

// adaptiveAvgBackward takes the size of the result from its gradient.
func adaptiveAvgBackward(b *Builder, a Args, n int) []Value {
	g := a.Tensor("grad_output")
	if g.Rank() < n {
		a.Fail(ErrShape, "the gradient must have at least %d dimensions, got %d", n, g.Rank())
	}
	size := g.Shape().Dims()[g.Rank()-n:]
	return gradientsOf(b, a, fmt.Sprintf("adaptive_avg_pool%dd", n), g, []string{"self"}, A("output_size", size))
}
