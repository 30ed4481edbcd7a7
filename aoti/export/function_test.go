package export_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/nn"
)

// A network of package nn computes in a package what it does here, and its variables have their names;
// inputs that the function does not use keep their places, numbers and captured tensors their values.
func TestFunctionsAreExportedWithTheirVariables(t *testing.T) {
	ctx := context.Background()
	net := nn.NewSequential(nn.NewLinear(8, 16), nn.Func(nn.ReLU), nn.NewLinear(16, 3))
	shift := loris.FromSlice([]float32{1, 2, 3}, 3)
	fn := func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{net.Forward(in[1]).Mul(loris.Scalar(2)).Add(shift)}
	}
	unused, x := loris.Zeros(4), loris.Randn(5, 8)
	var pkg bytes.Buffer
	if err := export.Function(ctx, &pkg, fn, []*loris.Tensor{unused, x}, export.Options{Module: net}); err != nil {
		t.Fatal(err)
	}
	r := runFunction(t, pkg.Bytes(), fn, unused, x)
	var names []string
	for _, c := range r.Constants() {
		names = append(names, c.OriginalName)
	}
	if all := strings.Join(names, " "); len(names) != 5 || !strings.Contains(all, "2.weight") || !strings.Contains(all, "constant0") {
		t.Errorf("the constants are %v", names)
	}
}

// What a package cannot do is said, and nothing is written.
func TestFunctionsThatCannotBeExported(t *testing.T) {
	for name, fn := range map[string]func(x *loris.Tensor) *loris.Tensor{
		"asks for a number at each": func(x *loris.Tensor) *loris.Tensor { return x.Mul(loris.ScalarFunc(func() float64 { return 2 })) },
	} {
		var pkg bytes.Buffer
		err := export.Function(context.Background(), &pkg, func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{fn(in[0])} }, []*loris.Tensor{loris.Zeros(2)}, export.Options{})
		if err == nil || !strings.Contains(err.Error(), name) || !errors.Is(err, loris.ErrArg) || pkg.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", name, err, pkg.Len())
		}
	}
}

// A loop is written out, element by element.
func TestLoopsAreExported(t *testing.T) {
	ctx := context.Background()
	w := loris.NewVariable(loris.Randn(6, 6).Mul(0.3))
	fn := func(in ...*loris.Tensor) []*loris.Tensor {
		last, all := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
			h := x[0].Add(carry[0].MatMul(w.Value())).Tanh()
			return []*loris.Tensor{h}, []*loris.Tensor{h}
		}, in[:1], in[1:2])
		return append(last, all...)
	}
	h, xs := loris.Randn(2, 6), loris.Randn(5, 2, 6)
	var pkg bytes.Buffer
	if err := export.Function(ctx, &pkg, fn, []*loris.Tensor{h, xs}, export.Options{}); err != nil {
		t.Fatal(err)
	}
	runFunction(t, pkg.Bytes(), fn, h, xs)
}

// runFunction holds a package to what the function computes here, and returns it.
func runFunction(t *testing.T, pkg []byte, fn func(in ...*loris.Tensor) []*loris.Tensor, in ...*loris.Tensor) *aoti.Runner {
	t.Helper()
	r := load(t, pkg)
	_, want, got := runBoth(t, r, fn, in...)
	same(t, got, want)
	return r
}

// runBoth returns the elements of inputs, and what a function and the package of it compute of them.
func runBoth(t *testing.T, r *aoti.Runner, fn func(in ...*loris.Tensor) []*loris.Tensor, in ...*loris.Tensor) (given, want, got []backend.Buffer) {
	t.Helper()
	ctx := context.Background()
	all := append(append([]*loris.Tensor(nil), in...), fn(in...)...)
	data, err := loris.Fetch(ctx, all...)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]backend.Buffer, len(all))
	for i, v := range all {
		if bufs[i], err = aoti.FromBytes(data[i], v.Shape().DType(), v.Shape().Dims()...); err != nil {
			t.Fatal(err)
		}
	}
	if got, err = r.Run(ctx, bufs[:len(in)]...); err != nil {
		t.Fatal(err)
	}
	return bufs[:len(in)], bufs[len(in):], got
}

// Random numbers come from the generator of the process: others in each run, within their bounds, and
// again after the same seed.
func TestRandomFunctions(t *testing.T) {
	ctx := context.Background()
	fn := func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{
			in[0].Dropout(0.25), loris.Rand(100), loris.Randn(100), loris.RandInt(-3, 4, 100), loris.With(loris.As(loris.F64)).Rand(100),
		}
	}
	var pkg bytes.Buffer
	if err := export.Function(ctx, &pkg, fn, []*loris.Tensor{loris.Ones(100)}, export.Options{}); err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	ones, err := aoti.FromBytes(elements.EncodeFloats(loris.F32, slices.Repeat([]float64{1}, 100)), loris.F32, 100)
	if err != nil {
		t.Fatal(err)
	}
	draw := func() (all [][]float64) {
		t.Helper()
		out, err := r.Run(ctx, ones)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range out {
			all = append(all, floats(t, b))
		}
		return all
	}
	aoti.SetSeed(7)
	first, second := draw(), draw()
	aoti.SetSeed(7)
	again := draw()
	for i, low := range []float64{0, 0, -6, -3, 0} {
		high := []float64{4.0/3 + 1e-6, 1, 6, 3, 1}[i]
		for k, v := range first[i] {
			if v < low || v > high || i == 0 && v != 0 && v < 1.3 {
				t.Errorf("output %d: element %d is %g", i, k, v)
			}
		}
		if slices.Equal(first[i], second[i]) || !slices.Equal(first[i], again[i]) {
			t.Errorf("output %d: two runs draw the same, or two of one seed others", i)
		}
	}
}
