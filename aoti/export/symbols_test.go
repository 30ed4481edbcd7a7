package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/nn"
)

// variedCase is a function with sizes that vary. A negative size stands for that of the symbol of its
// number, from -1 on.
type variedCase struct {
	name   string
	fn     func(in ...*loris.Tensor) []*loris.Tensor
	module nn.Module
	dtype  loris.DType
	shapes [][]int
	dims   []export.Dim
}

func one(f func(x *loris.Tensor) *loris.Tensor) func(in ...*loris.Tensor) []*loris.Tensor {
	return func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{f(in[0])} }
}

func variedCases() []variedCase {
	batch, sequence := export.Dim{Name: "batch", Min: 1, Max: 64}, export.Dim{Name: "sequence", Min: 2, Max: 24}
	mlp := nn.NewSequential(nn.NewLinear(24, 64), nn.Func(nn.ReLU), nn.NewLinear(64, 10))
	conv := nn.NewSequential(nn.NewConv2d(1, 8, 3, nn.Padding(1)), nn.NewBatchNorm2d(8), nn.Func(nn.ReLU), nn.MaxPool2d(2))
	conv.SetTraining(false)
	norm := nn.NewLayerNorm([]int{32})
	q := nn.NewLinear(32, 32)
	heads := func(x *loris.Tensor) *loris.Tensor {
		d := x.Shape().Dims()
		return x.Reshape(d[0], d[1], 4, 8).Transpose(1, 2)
	}
	positions := loris.NewVariable(loris.Randn(24, 32))
	attention := func(x *loris.Tensor) *loris.Tensor {
		d := x.Shape().Dims()
		at := loris.With(loris.As(loris.I64)).Arange(0, d[1], 1)
		y := norm.Forward(x.Add(positions.Value().IndexSelect(0, at)))
		a := loris.ScaledDotProductAttention(heads(q.Forward(y)), heads(y), heads(y), loris.IsCausal(true))
		return a.Transpose(1, 2).Reshape(d...).Add(x)
	}
	both := nn.NewSequential(norm, q)
	return []variedCase{
		{"mlp", one(mlp.Forward), mlp, loris.F32, [][]int{{-1, 24}}, []export.Dim{batch}},
		{"conv", one(conv.Forward), conv, loris.F32, [][]int{{-1, 1, 8, 8}}, []export.Dim{batch}},
		{"softmax", one(func(x *loris.Tensor) *loris.Tensor { return x.Softmax(-1).Sum(loris.Dim(0)) }), nil, loris.F64, [][]int{{-1, -2}}, []export.Dim{batch, sequence}},
		{"attention", one(attention), both, loris.F32, [][]int{{-1, -2, 32}}, []export.Dim{{Name: "batch", Min: 1, Max: 3}, sequence}},
		{"two inputs", func(in ...*loris.Tensor) []*loris.Tensor {
			return []*loris.Tensor{in[0].MatMul(in[1].Transpose(0, 1)), loris.Cat([]*loris.Tensor{in[0], in[1]}), in[1].Flip(0)}
		}, nil, loris.BF16, [][]int{{-1, 6}, {-1, 6}}, []export.Dim{batch}},
	}
}

// inputs returns random inputs where symbols have some values.
func (c *variedCase) inputs(values ...int) (list []*loris.Tensor) {
	for _, s := range c.shapes {
		dims := slices.Clone(s)
		for i, d := range dims {
			if d < 0 {
				dims[i] = values[-d-1]
			}
		}
		list = append(list, loris.With(loris.As(c.dtype)).Randn(dims...))
	}
	return list
}

func (c *variedCase) dynamic() (list []map[int]export.Dim) {
	for _, s := range c.shapes {
		m := map[int]export.Dim{}
		for i, d := range s {
			if d < 0 {
				m[i] = c.dims[-d-1]
			}
		}
		list = append(list, m)
	}
	return list
}

// One package runs for all sizes between the bounds, as the function does here, and says what is wrong
// with others.
func TestSizesThatVary(t *testing.T) {
	ctx := context.Background()
	for _, c := range variedCases() {
		t.Run(c.name, func(t *testing.T) {
			var pkg bytes.Buffer
			least, most := []int{}, []int{}
			for _, d := range c.dims {
				least, most = append(least, d.Min), append(most, d.Max)
			}
			if err := export.Function(ctx, &pkg, c.fn, c.inputs(least...), export.Options{Module: c.module, DynamicShapes: c.dynamic()}); err != nil {
				t.Fatal(err)
			}
			r := load(t, pkg.Bytes())
			for _, values := range [][]int{most, least, {2, 3}, {3, 7}, {1, 24}, most} {
				c.compare(t, r, values)
			}
			for i := range c.dims {
				values := slices.Clone(most)
				values[i]++
				in := buffers(t, c.inputs(values...))
				if _, err := r.Run(ctx, in...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("got %d", values[i])) {
					t.Errorf("%s of %d: %v", c.dims[i].Name, values[i], err)
				}
			}
		})
	}
}

// compare holds a package to the function for inputs of some sizes.
func (c *variedCase) compare(t *testing.T, r *aoti.Runner, values []int) {
	t.Helper()
	in := c.inputs(values...)
	all := buffers(t, append(in[:len(in):len(in)], c.fn(in...)...))
	got, err := r.Run(context.Background(), all[:len(in)]...)
	if err != nil {
		t.Fatalf("%v: %v", values, err)
	}
	same(t, got, all[len(in):])
}

func buffers(t *testing.T, list []*loris.Tensor) []backend.Buffer {
	t.Helper()
	data, err := loris.Fetch(context.Background(), list...)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]backend.Buffer, len(list))
	for i, v := range list {
		if out[i], err = aoti.FromBytes(data[i], v.Shape().DType(), v.Shape().Dims()...); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A function that does more with a size than compute on so many elements cannot be exported for others.
func TestSizesThatCannotVary(t *testing.T) {
	ctx := context.Background()
	batch := export.Dim{Name: "batch", Min: 1, Max: 8}
	for name, c := range map[string]struct {
		fn   func(x *loris.Tensor) *loris.Tensor
		dims []map[int]export.Dim
	}{
		"vary": {func(x *loris.Tensor) *loris.Tensor { return x.Mul(loris.Scalar(float32(x.Shape().Dim(0)))) }, []map[int]export.Dim{{0: batch}}},
		"for other sizes": {func(x *loris.Tensor) *loris.Tensor {
			if x.Shape().Dim(0) > 4 {
				return x.Neg()
			}
			return x.Exp()
		}, []map[int]export.Dim{{0: batch}}},
		"no dimension 2": {func(x *loris.Tensor) *loris.Tensor { return x.Neg() }, []map[int]export.Dim{{2: batch}}},
		"is to vary as":  {func(x *loris.Tensor) *loris.Tensor { return x.Neg() }, []map[int]export.Dim{{0: {Name: "batch", Min: 5, Max: 8}}}},
		"have one name":  {func(x *loris.Tensor) *loris.Tensor { return x.Neg() }, []map[int]export.Dim{{0: batch, 1: {Name: "batch", Min: 1, Max: 9}}}},
		"has 2 inputs":   {func(x *loris.Tensor) *loris.Tensor { return x.Neg() }, []map[int]export.Dim{{0: batch}, {0: batch}}},
	} {
		var pkg bytes.Buffer
		err := export.Function(ctx, &pkg, one(c.fn), []*loris.Tensor{loris.Zeros(4, 6)}, export.Options{DynamicShapes: c.dims})
		if err == nil || !strings.Contains(err.Error(), name) || pkg.Len() > 0 || !errors.Is(err, loris.ErrArg) && !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: %v, %d bytes", name, err, pkg.Len())
		}
	}
}

// The sizes of a Program's inputs vary as those of a function's do.
func TestSizesOfAProgramVary(t *testing.T) {
	ctx := context.Background()
	p, err := graph.Parse(`program @p {
  %x = parameter "x" : f32[2,3,4]
  %w = parameter "w" : f32[4,8]
  %g = parameter "w.gain" : f32[8]
  %y = parameter "y" : f32[3]
  %h = relu(matmul(reshape(%x, [-1,4]), %w))
  return layer_norm(%h, [8], %g), sum(%y), softmax(%x, -1)
}`)
	if err != nil {
		t.Fatal(err)
	}
	s := sampleOf(t, p, 1)
	batch := export.Dim{Name: "batch", Min: 1, Max: 9}
	var pkg bytes.Buffer
	if err := export.Program(ctx, &pkg, p, export.Options{Constants: s.constants, DynamicShapes: []map[int]export.Dim{{0: batch}}}); err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	for _, n := range []int{9, 1, 2, 5} {
		text := strings.Replace(p.String(), "f32[2,3,4]", fmt.Sprintf("f32[%d,3,4]", n), 1)
		text = regexp.MustCompile(`\) : [^\n]*`).ReplaceAllString(text, ")") // types of results
		q, err := graph.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		one := sampleOf(t, q, 1)
		for i, param := range q.Params { // the package's constants are those of the first sample
			if c, ok := s.constants[param.Name]; ok {
				if one.all[i], err = hostmem.Wrap(c.Shape, cpu.Device, c.Data, func() {}); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := r.Run(ctx, one.in...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, one.want(t))
	}
	fixed, err := graph.Parse(`program @p {
  %x = parameter "x" : f32[2,4]
  return reshape(%x, [8])
}`)
	if err != nil {
		t.Fatal(err)
	}
	err = export.Program(ctx, io.Discard, fixed, export.Options{DynamicShapes: []map[int]export.Dim{{0: batch}}})
	if !errors.Is(err, ir.ErrShape) || !strings.Contains(err.Error(), "reshape") {
		t.Error(err)
	}
}
