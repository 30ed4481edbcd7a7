package ir

import (
	"fmt"
	"slices"
)

// Windows as columns, and padding by the edges.
func init() {
	const windows = "int[] kernel_size, int[] dilation, int[] padding, int[] stride"
	register("im2col(Tensor self, "+windows+") -> Tensor", Spec{
		Doc:      "The windows of images [N, C, H, W] or [C, H, W], padded with zeros, as columns [N, C·kh·kw, windows]. Any dtype. As torch.nn.functional.unfold.",
		Category: Neural, Decompose: imageToColumns, VJP: vjpColumns,
	})
	register("col2im(Tensor self, int[] output_size, "+windows+") -> Tensor", Spec{
		Doc:      "Images of output_size in which each element is the sum of those that im2col would make of it in the columns self [N, C·kh·kw, windows] or [C·kh·kw, windows]. Floating dtypes. As torch.nn.functional.fold.",
		Category: Neural, Decompose: columnsToImage,
		VJP: func(b *Builder, a Args, _, grad []Value) []Value {
			return []Value{b.callNamed("im2col", []any{grad[0], a.Ints("kernel_size"), a.Ints("dilation"), a.Ints("padding"), a.Ints("stride")})}
		},
	})
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("replication_pad%dd", n)
		register(name+"(Tensor self, int[] padding) -> Tensor", Spec{
			Doc:      fmt.Sprintf("pad with mode replicate of the last %d dimensions. As at::%s.", n, name),
			Category: View, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
				pad := a.Ints("padding")
				if len(pad) != 2*n {
					a.Fail(ErrArg, "padding must have %d entries, got %v", 2*n, pad)
				}
				return []Value{b.callNamed("pad", []any{a.Tensor("self"), pad, "replicate"})}
			},
		})
		registerBackward(name+"_backward(Tensor grad_output, Tensor self, int[] padding) -> Tensor",
			fmt.Sprintf("The gradient of %s with respect to self. As at::%s_backward.", name, name), backwardOf(name, "self"))
	}
}

func imageToColumns(b *Builder, a Args) []Value {
	x, unbatch := batched(b, a, a.Tensor("self"), 2)
	return []Value{unbatch(b.columns(a, x, true))}
}

// fewTaps is the elements of a window up to which each is copied from all windows by a step of its own.
const fewTaps = 32

// columns returns the columns of images with a batch. Where bySlices allows it, few elements of windows
// are a slice of the image each, which takes one pass over the result; the gradient of selecting them by
// indices takes less than that of as many slices.
func (b *Builder) columns(a Args, x Value, bySlices bool) Value {
	kernel, stride, dilation, pad := spread(a, "kernel_size", 2), spread(a, "stride", 2), spread(a, "dilation", 2), spread(a, "padding", 2)
	if slices.Min(kernel) < 1 || slices.Min(stride) < 1 || slices.Min(dilation) < 1 || slices.Min(pad) < 0 {
		a.Fail(ErrArg, "kernel_size, dilation and stride must be positive and padding not negative, got %v, %v, %v and %v", kernel, dilation, stride, pad)
	}
	if slices.Max(pad) > 0 {
		x = b.PadConst(x, []int{pad[1], pad[1], pad[0], pad[0]}, b.Const(0, x.DType()))
	}
	dims := x.Shape().Dims()
	var windows [2]int
	for i := range 2 {
		room := dims[2+i] - dilation[i]*(kernel[i]-1) - 1
		if room < 0 {
			a.Fail(ErrShape, "the kernel spans %d, more than the padded input, %d, in spatial dimension %d", dilation[i]*(kernel[i]-1)+1, dims[2+i], i)
		}
		windows[i] = room/stride[i] + 1
	}
	if taps := kernel[0] * kernel[1]; bySlices && taps <= fewTaps {
		parts := make([]Value, 0, taps)
		for tap := range taps {
			part := x
			for i, at := range [2]int{tap / kernel[1], tap % kernel[1]} {
				start := at * dilation[i]
				part = b.Slice(part, 2+i, start, start+(windows[i]-1)*stride[i]+1, stride[i])
			}
			parts = append(parts, b.Unsqueeze(part, 2))
		}
		return b.Reshape(b.Cat(parts, 2), dims[0], dims[1]*taps, windows[0]*windows[1])
	}
	for i := range 2 {
		tap := b.Mul(b.Iota(kernel[i], I64), b.Const(dilation[i], I64))
		start := b.Mul(b.Iota(windows[i], I64), b.Const(stride[i], I64))
		x = b.IndexSelect(x, 2+i, b.Reshape(b.Add(b.Unsqueeze(tap, 1), start), kernel[i]*windows[i]))
	}
	x = b.Reshape(x, dims[0], dims[1], kernel[0], windows[0], kernel[1], windows[1])
	x = b.Permute(x, 0, 1, 2, 4, 3, 5)
	return b.Reshape(x, dims[0], dims[1]*kernel[0]*kernel[1], windows[0]*windows[1])
}

// vjpColumns is col2im where there is one for the dtype.
func vjpColumns(b *Builder, a Args, _, grad []Value) []Value {
	x := a.Tensor("self")
	if !x.DType().IsFloat() {
		return b.pullBackFrom([]Value{x}, 1, grad, func(b *Builder, in []Value) []Value {
			x, unbatch := batched(b, a, in[0], 2)
			return []Value{unbatch(b.columns(a, x, false))}
		})
	}
	size := x.Shape().Dims()[x.Rank()-2:]
	return []Value{b.callNamed("col2im", []any{grad[0], size, a.Ints("kernel_size"), a.Ints("dilation"), a.Ints("padding"), a.Ints("stride")})}
}

// columnsToImage is the gradient of im2col.
func columnsToImage(b *Builder, a Args) []Value {
	x, unbatch := batched(b, a, a.Tensor("self"), 1)
	size, kernel := spread(a, "output_size", 2), spread(a, "kernel_size", 2)
	if !x.DType().IsFloat() {
		a.Fail(ErrDType, "not defined for %v operands", x.DType())
	}
	taps := kernel[0] * kernel[1]
	if taps < 1 || x.Dim(1)%taps != 0 {
		a.Fail(ErrShape, "dimension 1 of the columns, %d, is not a multiple of the %d elements of a window", x.Dim(1), taps)
	}
	image := b.Full([]int{x.Dim(0), x.Dim(1) / taps, size[0], size[1]}, 0, x.DType())
	return []Value{unbatch(b.pullBackFrom([]Value{image}, 1, []Value{x}, func(b *Builder, in []Value) []Value {
		y := b.columns(a, in[0], false)
		if y.Shape() != x.Shape() {
			a.Fail(ErrShape, "the columns of an image of %v are %v, got %v", size, y.Shape(), x.Shape())
		}
		return []Value{y}
	})[0])}
}
