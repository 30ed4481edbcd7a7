package ir

import "slices"

// Composites that rearrange elements or lay tensors out beside each other.

func init() {
	register("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", Spec{
		Category: View,
		Doc:      "[*, C·r², H, W] as [*, C, H·r, W·r], r being upscale_factor: r² channels become the pixels of an r×r block. ATen's pixel_shuffle.",
		Decompose: func(b *Builder, a Args) []Value {
			x, r := a.In[0], a.Int("upscale_factor")
			if x.Rank() < 3 || r < 1 || x.Dim(-3)%r != 0 || x.Dim(-3)/r%r != 0 { // r² may overflow
				a.Fail(ErrShape, "pixel_shuffle expects at least 3 dimensions and channels divisible by upscale_factor² with factor %d, got %v", r, x.Shape())
			}
			c, h, w := x.Dim(-3)/r/r, x.Dim(-2), x.Dim(-1)
			n := numelOf(x.Shape().Dims()[:x.Rank()-3])
			y := b.Permute(b.Reshape(x, n, c, r, r, h, w), 0, 1, 4, 2, 5, 3)
			return []Value{b.Reshape(y, append(x.Shape().Dims()[:x.Rank()-3], c, h*r, w*r)...)}
		},
	})
	register("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", Spec{
		Category: View,
		Doc:      "The inverse of pixel_shuffle: [*, C, H·r, W·r] as [*, C·r², H, W]. ATen's pixel_unshuffle.",
		Decompose: func(b *Builder, a Args) []Value {
			x, r := a.In[0], a.Int("downscale_factor")
			if x.Rank() < 3 || r < 1 || x.Dim(-2)%r != 0 || x.Dim(-1)%r != 0 {
				a.Fail(ErrShape, "pixel_unshuffle expects at least 3 dimensions and sizes divisible by downscale_factor %d, got %v", r, x.Shape())
			}
			c, h, w := x.Dim(-3), x.Dim(-2)/r, x.Dim(-1)/r
			n := numelOf(x.Shape().Dims()[:x.Rank()-3])
			y := b.Permute(b.Reshape(x, n, c, h, r, w, r), 0, 1, 3, 5, 2, 4)
			return []Value{b.Reshape(y, append(x.Shape().Dims()[:x.Rank()-3], c*r*r, h, w)...)}
		},
	})
	register("channel_shuffle(Tensor self, int groups) -> Tensor", Spec{
		Category: View,
		Doc:      "self [N, C, *] with its channels taken in turn from each of groups equal groups. ATen's channel_shuffle.",
		Decompose: func(b *Builder, a Args) []Value {
			x, g := a.In[0], a.Int("groups")
			if x.Rank() < 3 || g < 1 || x.Dim(1)%g != 0 {
				a.Fail(ErrShape, "channel_shuffle expects at least 3 dimensions and channels divisible by groups %d, got %v", g, x.Shape())
			}
			rest := numelOf(x.Shape().Dims()[2:])
			y := b.Permute(b.Reshape(x, x.Dim(0), g, x.Dim(1)/g, rest), 0, 2, 1, 3)
			return []Value{b.Reshape(y, x.Shape().Dims()...)}
		},
	})
	register("tile(Tensor self, int[] dims) -> Tensor", Spec{
		Category: View,
		Doc:      "repeat with as many ones in front of dims as self has dimensions more. ATen's tile.",
		Decompose: func(b *Builder, a Args) []Value {
			dims := a.Ints("dims")
			for len(dims) < a.In[0].Rank() {
				dims = slices.Insert(dims, 0, 1)
			}
			return []Value{b.callNamed("repeat", []any{a.In[0], dims})}
		},
	})
	register("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", Spec{
		Category:  View,
		Doc:       "self turned k times by 90° from the first of dims towards the second. ATen's rot90.",
		Decompose: decomposeRot90,
	})
	register("meshgrid(Tensor[] tensors, *, str indexing='ij') -> Tensor[]", Spec{
		Category:  View,
		Doc:       "Each of the vectors expanded along the dimensions of the others; indexing 'xy' exchanges the first two dimensions. ATen's meshgrid.",
		Decompose: decomposeMeshgrid,
	})
	register("block_diag(Tensor[] tensors) -> Tensor", Spec{
		Category: View, Promote: PromoteDefault,
		Doc:       "The matrices along the diagonal of one, which is 0 elsewhere; a vector is a row, a scalar a matrix of one element. ATen's block_diag.",
		Decompose: decomposeBlockDiag,
	})
}

// numelOf multiplies sizes.
func numelOf(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func decomposeRot90(b *Builder, a Args) []Value {
	x, dims := a.In[0], a.Ints("dims")
	if len(dims) != 2 || x.Rank() < 2 {
		a.Fail(ErrArg, "expected total rotation dims == 2 of a tensor with as many, got %v and %v", dims, x.Shape())
	}
	from, to := a.NormDim(dims[0], x.Rank()), a.NormDim(dims[1], x.Rank())
	if from == to {
		a.Fail(ErrIndex, "expected rotation dims to be different, got %v", dims)
	}
	switch (a.Int("k")%4 + 4) % 4 {
	case 1:
		x = b.Transpose(b.Flip(x, to), from, to)
	case 2:
		x = b.Flip(x, from, to)
	case 3:
		x = b.Transpose(b.Flip(x, from), from, to)
	default:
		x = b.Flip(x)
	}
	return []Value{x}
}

func decomposeMeshgrid(b *Builder, a Args) []Value {
	dims := make([]int, len(a.In))
	for i, x := range a.In {
		if x.Rank() > 1 || x.DType() != a.In[0].DType() {
			a.Fail(ErrShape, "tensors must be scalars or vectors of one dtype, tensor %d is %v", i, x.Shape())
		}
		dims[i] = x.Shape().Numel()
	}
	indexing := a.Str("indexing")
	if len(dims) == 0 || indexing != "ij" && indexing != "xy" {
		a.Fail(ErrArg, "meshgrid expects tensors and indexing \"ij\" or \"xy\", got %d and %q", len(dims), indexing)
	}
	inferDims(a, a.In[0].DType(), dims)
	out := make([]Value, len(dims))
	for i, x := range a.In {
		along := make([]int, len(dims))
		for d := range along {
			along[d] = 1
		}
		along[i] = dims[i]
		out[i] = b.Call1(opExpand, []any{b.Reshape(x, along...), dims})
		if indexing == "xy" && len(dims) > 1 {
			out[i] = b.Transpose(out[i], 0, 1)
		}
	}
	return out
}

func decomposeBlockDiag(b *Builder, a Args) []Value {
	if len(a.In) == 0 {
		a.Fail(ErrArg, "no tensors are given")
	}
	width := 0
	rows := make([]Value, len(a.In))
	for i, x := range a.In {
		if x.Rank() > 2 {
			a.Fail(ErrShape, "input tensors must have 2 or fewer dimensions, tensor %d is %v", i, x.Shape())
		}
		for x.Rank() < 2 {
			x = b.Unsqueeze(x, 0)
		}
		rows[i] = x
		width += x.Dim(1)
	}
	before := 0
	for i, x := range rows {
		rows[i] = b.padDim(x, 1, before, width-before-x.Dim(1), 0)
		before += x.Dim(1)
	}
	return []Value{b.Cat(rows, 0)}
}
