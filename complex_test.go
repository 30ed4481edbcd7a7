package loris_test

import (
	"context"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
)

func TestComplexTensors(t *testing.T) {
	ctx := context.Background()
	z := loris.FromSlice([]complex64{1 + 2i, -3i}, 2)
	got, err := z.Mul(2).Add(z.Conj()).Complex64s(ctx)
	if want := []complex64{3 + 2i, -3i}; err != nil || !slices.Equal(got, want) {
		t.Errorf("2z + conj z is %v (%v), want %v", got, err, want)
	}
	wide, err := loris.Complex(loris.FromSlice([]float32{3}, 1), loris.FromSlice([]float32{4}, 1)).Complex128s(ctx)
	if err != nil || wide[0] != 3+4i {
		t.Errorf("read as complex128: %v (%v)", wide, err)
	}
	g := loris.Grad(z.Mul(z.Conj()).Real().Sum(), z)[0] // of |z|², 2z in PyTorch's convention
	if got, err = g.Complex64s(ctx); err != nil || !slices.Equal(got, []complex64{2 + 4i, -6i}) {
		t.Errorf("gradient %v (%v)", got, err)
	}
	product, err := z.Reshape(1, 2).MatMul(z.Reshape(2, 1)).Complex64s(ctx)
	if want := complex64((1+2i)*(1+2i) + -3i*-3i); err != nil || product[0] != want {
		t.Errorf("product %v (%v), want %v", product, err, want)
	}
	if err := loris.Try(func() { z.Floor() }); err == nil {
		t.Error("floor takes complex numbers")
	}
	if err := loris.Try(func() { loris.Grad(z.Sum(), z) }); err == nil {
		t.Error("a gradient of a complex output needs no cotangent")
	}
}
