package ahead

import (
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// matmul calls mm_out, addmm_out where a vector is added to the rows, or bmm_out for a batch of matrices
// on both sides.
func (c *call) matmul() {
	c.Compute()
	x, y := c.Operands[0], c.Operands[1]
	if !x.DType().IsFloat() && !x.DType().IsInt() {
		c.unsupported("products of %v have no function", x.DType())
		return
	}
	out := c.Result()
	if x.Shape.Rank() == 1 {
		x = c.Reshape(x, x.Shape.WithDims(1, x.Shape.Dim(0)))
	}
	if y.Shape.Rank() == 1 {
		y = c.Reshape(y, y.Shape.WithDims(y.Shape.Dim(0), 1))
	}
	m, k, n := x.Shape.Dim(-2), x.Shape.Dim(-1), y.Shape.Dim(-1)
	if y.Shape.Rank() == 2 {
		rows := x.Shape.Numel() / max(k, 1)
		if k == 0 {
			rows = out.Shape.Numel() / max(n, 1)
		}
		x = c.Reshape(x, x.Shape.WithDims(rows, k))
		dst := c.Reshape(out, out.Shape.WithDims(rows, n))
		if c.Epilogue == nil {
			c.emit("aoti_torch_cpu_mm_out", 1, c.tensor(dst), c.tensor(x), c.tensor(y))
			return
		}
		bias := c.e.Computed(c.Epilogue.Links[0].ID)
		bias = c.Reshape(bias, bias.Shape.WithDims(n)).Expand([]int{rows, n})
		c.emit("aoti_torch_cpu_addmm_out", 1, c.tensor(dst), c.tensor(bias), c.tensor(x), c.tensor(y), ahead.Float(1), ahead.Float(1))
		return
	}
	lead := broadcast(x.Shape.Dims()[:x.Shape.Rank()-2], y.Shape.Dims()[:y.Shape.Rank()-2])
	batch := 1
	for _, d := range lead {
		batch *= d
	}
	three := func(v plan.Value, rows, cols int) plan.Value {
		v = v.Expand(append(append([]int(nil), lead...), rows, cols))
		return c.Reshape(v, v.Shape.WithDims(batch, rows, cols))
	}
	dst := c.Reshape(out, out.Shape.WithDims(batch, m, n))
	c.emit("aoti_torch_cpu_bmm_out", 1, c.tensor(dst), c.tensor(three(x, m, k)), c.tensor(three(y, k, n)))
}

// broadcast returns the dimensions that two lists of them broadcast to.
func broadcast(x, y []int) []int {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := append([]int(nil), x...)
	for i := range y {
		if d := len(x) - len(y) + i; out[d] == 1 {
			out[d] = y[i]
		}
	}
	return out
}

// list returns integers as an argument.
func list(v []int) ahead.List {
	out := make(ahead.List, len(v))
	for i, n := range v {
		out[i] = int64(n)
	}
	return out
}

func flag(b bool) ahead.Int {
	if b {
		return 1
	}
	return 0
}

// convolution calls the function of that name.
func (c *call) convolution() {
	c.Compute()
	g := ir.ConvOf(c.Args)
	n := g.Spatial
	bias := ahead.Arg(ahead.Int(0))
	if len(c.Operands) > 2 {
		bias = ahead.Optional{Tensor: c.tensor(c.Operands[2])}
	}
	more := make(ahead.List, n)
	for i, v := range c.Ints("output_padding") {
		more[i%n] = int64(v)
	}
	size := ahead.Int(n)
	x, w := c.tensor(c.Operands[0]), c.tensor(c.Operands[1])
	w.Weights = true
	c.emit("aoti_torch_cpu_convolution", 0, x, w, bias, list(g.Stride[:n]), size, list(g.Padding[:n]), size, list(g.Dilation[:n]), size,
		flag(g.Transposed), more, size, ahead.Int(g.Groups), c.returned(strided.Dense(c.Shapes[0].Dims())))
}

// maxPool calls max_pool2d_with_indices, also for one dimension, and the function for three.
func (c *call) maxPool() {
	c.Compute()
	x := c.Operands[0]
	kernel, stride, pad, dilation := c.Ints("kernel_size"), c.Ints("stride"), c.Ints("padding"), c.Ints("dilation")
	n := len(kernel)
	if !x.DType().IsFloat() {
		c.unsupported("maxima of windows of %v have no function", x.DType())
		return
	}
	dims, out := x.Shape.Dims(), c.Shapes[0].Dims()
	function, line := "aoti_torch_cpu_max_pool2d_with_indices", func(v []int, one int) ahead.List {
		if n == 1 {
			v = []int{one, v[0]}
		}
		return list(v)
	}
	lead := 1
	for _, d := range dims[:len(dims)-n] {
		lead *= d
	}
	dims, out = append([]int{1, lead}, dims[len(dims)-n:]...), append([]int{1, lead}, out[len(out)-n:]...)
	if n == 1 {
		dims, out = slices.Insert(dims, 2, 1), slices.Insert(out, 2, 1)
	} else if n == 3 {
		function = "aoti_torch_cpu_max_pool3d_with_indices"
	}
	x = c.Dense(c.Reshape(x, x.Shape.WithDims(dims...)))
	values, indices := c.temporary(c.Shapes[0], strided.Dense(out)), c.temporary(c.Shapes[1], strided.Dense(out))
	size := ahead.Int(max(n, 2))
	c.emit(function, 0, c.tensor(x), line(kernel, 1), size, line(stride, 1), size, line(pad, 0), size, line(dilation, 1), size, flag(c.Bool("ceil_mode")), values, indices)
	for i, r := range []ahead.Result{values, indices} {
		c.Results = append(c.Results, plan.DenseValue(c.Shapes[i], r.Buf))
	}
}

// takesAttention reports whether a use of attention is one that the function computes: heads of one
// size, as many keys' as queries', and a mask, if any, that is added.
func takesAttention(a ir.Args) bool {
	q, k, v, mask := a.Tensor("query").Shape(), a.Tensor("key").Shape(), a.Tensor("value").Shape(), a.Tensor("attn_mask")
	if a.Bool("enable_gqa") || !slices.Equal(q.Dims()[:q.Rank()-2], k.Dims()[:k.Rank()-2]) || !slices.Equal(k.Dims()[:k.Rank()-1], v.Dims()[:v.Rank()-1]) {
		return false
	}
	if !mask.IsNil() && mask.Shape().DType() != q.DType() {
		return false
	}
	return q.Numel() > 0 && k.Numel() > 0 && q.Dim(-1) == k.Dim(-1) && k.Dim(-1) == v.Dim(-1) && slices.Contains([]ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16}, q.DType())
}

// attention calls libtorch's flash attention for CPUs.
func (c *call) attention() {
	c.Compute()
	dims := c.Shapes[0].Dims()
	r := len(dims)
	batch, heads := 1, 1
	for i, d := range dims[:r-2] {
		if i == r-3 {
			heads = d
		} else {
			batch *= d
		}
	}
	four := func(v plan.Value) plan.Value {
		v = c.Reshape(v, v.Shape.WithDims(batch, heads, v.Shape.Dim(-2), v.Shape.Dim(-1)))
		if v.View.Strides[3] != 1 {
			v = c.Copied(v)
		}
		return v
	}
	q, k, v := four(c.Operands[0]), four(c.Operands[1]), four(c.Operands[2])
	mask, scale := ahead.Arg(ahead.Int(0)), 1/math.Sqrt(float64(dims[r-1]))
	if m, ok := c.Operand("attn_mask"); ok {
		m = c.Reshape(m.Expand(append(dims[:r-1:r-1], k.Shape.Dim(2))), m.Shape.WithDims(batch, heads, dims[r-2], k.Shape.Dim(2)))
		mask = ahead.Optional{Tensor: c.tensor(m)}
	}
	if s, ok := c.OptFloat("scale"); ok {
		scale = s
	}
	// The function makes its result as [batch, queries, heads, elements] and exchanges the middle ones.
	out := strided.Dense([]int{batch, dims[r-2], heads, dims[r-1]}).Permute([]int{0, 2, 1, 3})
	t := c.temporary(c.Shapes[0], out)
	c.emit("aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu", 0, c.tensor(q), c.tensor(k), c.tensor(v), ahead.Float(0), flag(c.Bool("is_causal")),
		mask, ahead.List{int64(math.Float64bits(scale))}, t, ahead.Ignored{})
	result := plan.DenseValue(c.Shapes[0], t.Buf)
	result.Shape, result.View = c.Shapes[0].WithDims(batch, heads, dims[r-2], dims[r-1]), out
	c.Results = append(c.Results, c.Reshape(result, c.Shapes[0]))
}
