package ir_test

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/opinfo"
)

// vectors names the rows of linear algebra and neural nets that PyTorch's
// vectors exist for, by ATen's name of the vectors' file.
var vectors = map[string]string{
	"upsample_nearest1d": "interpolate", "upsample_nearest2d": "interpolate", "upsample_nearest3d": "interpolate",
	"upsample_linear1d": "interpolate", "upsample_bilinear2d": "interpolate", "upsample_trilinear3d": "interpolate",
	"cross_entropy_loss": "cross_entropy",
}

func init() {
	for _, name := range strings.Fields(`matmul mm bmm mv dot outer addmm baddbmm addmv linear einsum
		conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
		max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
		adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
		im2col pdist soft_margin_loss addbmm
		softmax log_softmax layer_norm rms_norm group_norm batch_norm scaled_dot_product_attention
		nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div cosine_similarity
		binary_cross_entropy binary_cross_entropy_with_logits
		as_strided slice_scatter select_scatter diagonal_scatter diff max_dim min_dim
		native_layer_norm native_group_norm _softmax _log_softmax
		glu prelu instance_norm bilinear _weight_norm fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
		pixel_shuffle pixel_unshuffle channel_shuffle tile rot90 meshgrid block_diag inner tensordot addr trace linalg_cross dist index_fill stft linalg_cond linalg_norm
		nms_static roi_align deform_conv2d local_response_norm histogram`) {
		vectors[name] = name
	}
}

// TestVectors holds results and gradients to PyTorch's.
func TestVectors(t *testing.T) {
	for file, name := range vectors {
		t.Run(file, func(t *testing.T) {
			cases, err := opinfo.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			op, ok := ir.Lookup(name)
			if !ok {
				t.Fatalf("no op %s", name)
			}
			for i := range cases {
				if in := cases[i].Inputs[0].Tensor; file == "batch_norm" && len(in.Shape) == 1 {
					continue // ATen takes an empty vector, which has no channels, for lack of a check
				}
				runCase(t, op, &cases[i])
			}
		})
	}
}

// callVector makes the case's use of the op; next gives the operands in turn.
func callVector(b *ir.Builder, op ir.Op, c *opinfo.Case, next func() ir.Value) []ir.Value {
	var named []ir.Named
	add := func(name string, v any) {
		if op.String() == "interpolate" && name == "input" {
			name = "self"
		}
		named = append(named, ir.A(name, v))
	}
	for _, in := range c.Inputs {
		switch {
		case in.Tensor != nil:
			add(in.Name, next())
		case in.List != nil:
			vs := make([]ir.Value, len(in.List))
			for i := range vs {
				vs[i] = next()
			}
			add(in.Name, vs)
		default:
			add(in.Name, in.Scalar)
		}
	}
	for _, p := range op.Spec().Schema.Params {
		if p.Kind == ir.KindOptTensor && !p.HasDef && c.Input(p.Name) == nil {
			add(p.Name, nil)
		}
	}
	for _, mode := range []string{"_linear", "bilinear", "trilinear"} {
		if op.String() == "interpolate" && strings.Contains(c.Op, mode) {
			add("mode", strings.Trim(mode, "_"))
		}
	}
	for _, a := range c.Attrs {
		name, v := attribute(op, a)
		add(name, v)
	}
	return b.Call(op, nil, named...)
}

// attribute translates one attribute of a vector to the row's.
func attribute(op ir.Op, a opinfo.Attr) (string, any) {
	name := a.Name
	switch v := a.Value.(type) {
	case int64:
		return name, int(v)
	case []int64:
		ints := make([]int, len(v))
		for i, n := range v {
			ints[i] = int(n)
		}
		if name == "output_size" && op.String() == "interpolate" {
			name = "size"
		}
		return name, ints
	case []float64:
		return "scale_factor", v[0] // the vectors scale all dimensions alike
	case opinfo.DType:
		d, err := ir.ParseDType(string(v))
		if err != nil {
			panic(err)
		}
		return name, d
	case string:
		if name == "padding" {
			name = "padding_str"
		}
		return name, v
	}
	return name, a.Value
}

func runCase(t *testing.T, op ir.Op, c *opinfo.Case) {
	var inputs []opinfo.Tensor
	index := map[string]int{} // where an input's tensors begin
	for _, in := range c.Inputs {
		index[in.Name] = len(inputs)
		if in.Tensor != nil {
			inputs = append(inputs, *in.Tensor)
		}
		for _, l := range in.List {
			inputs = append(inputs, *l)
		}
	}
	n := len(inputs)
	for _, g := range c.Cotangents {
		if g != nil {
			inputs = append(inputs, *g)
		}
	}
	nout := len(c.Outputs)
	got, err := compute(inputs, func(b *ir.Builder, w *graph.Walker, in []ir.Value) []ir.Value {
		i := 0
		outs := callVector(b, op, c, func() ir.Value { i++; return in[i-1] })
		roots := outs[:nout:nout]
		if c.Mutated != nil {
			roots = outs
		}
		if len(c.Grads) == 0 {
			return roots
		}
		var from, cot, wrt []ir.Value
		for i, g := range c.Cotangents {
			if g != nil {
				from, cot = append(from, outs[i]), append(cot, in[n+len(cot)])
			}
		}
		for _, g := range c.Grads {
			wrt = append(wrt, in[index[g.Input]+g.Index])
		}
		return append(roots, graph.Grad(b, w, from, cot, wrt)...)
	})
	if err != nil {
		t.Errorf("%v: %v", c, err)
		return
	}
	if err := c.Check(got[:nout]); err != nil {
		t.Error(err)
	}
	got = got[nout:]
	for i, m := range c.Mutated {
		if err := c.Tolerance(m.Tensor.DType).Compare(got[i], *m.Tensor); err != nil {
			t.Errorf("%v: new %s: %v", c, m.Name, err)
		}
	}
	got = got[len(c.Mutated):]
	for i, g := range c.Grads {
		if err := c.Tolerance("f64").Compare(got[i], g.Tensor); err != nil {
			t.Errorf("%v: gradient of %s[%d]: %v", c, g.Input, g.Index, err)
		}
	}
}

// floats returns a tensor of numbers.
func floats(d ir.DType, dims []int, vals ...float64) opinfo.Tensor {
	t := opinfo.Tensor{DType: opinfo.DType(d.String()), Shape: dims}
	for _, v := range vals {
		t.Data = appendElement(t.Data, d, v)
	}
	return t
}
