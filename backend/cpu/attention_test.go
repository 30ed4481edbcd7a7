package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// TestAttentionIsItsDecomposition compares the kernel of attention with the ops
// that define it.
func TestAttentionIsItsDecomposition(t *testing.T) {
	for _, text := range []string{
		`program @plain { %q = parameter "q" : f32[2,3,5,8]
			%k = parameter "k" : f32[2,3,7,8]
			%v = parameter "v" : f32[2,3,7,4]
			%0 = scaled_dot_product_attention(%q, %k, %v)
			return %0 }`,
		`program @causal { %q = parameter "q" : f32[9,8]
			%k = parameter "k" : f32[6,8]
			%v = parameter "v" : f32[6,8]
			%0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true, scale=0.3)
			return %0 }`,
		`program @masked { %q = parameter "q" : f32[2,2,5,8]
			%k = parameter "k" : f32[2,1,7,8]
			%v = parameter "v" : f32[1,2,7,4]
			%m = parameter "m" : f32[5,1]
			%0 = scaled_dot_product_attention(%q, %k, %v, %m)
			return %0 }`,
		`program @kept { %q = parameter "q" : f32[3,5,8]
			%k = parameter "k" : f32[3,7,8]
			%v = parameter "v" : f32[3,7,4]
			%m = parameter "m" : f32[1,5,7]
			%1 = gt(%m, 0.5)
			%0 = scaled_dot_product_attention(%q, %k, %v, %1)
			return %0 }`,
		`program @grouped { %q = parameter "q" : f32[2,6,5,8]
			%k = parameter "k" : f32[2,2,7,8]
			%v = parameter "v" : f32[2,2,7,8]
			%0 = scaled_dot_product_attention(%q, %k, %v, enable_gqa=true)
			return %0 }`,
		`program @uneven { %q = parameter "q" : f32[2,6,5,8]
			%k = parameter "k" : f32[2,2,7,8]
			%v = parameter "v" : f32[2,3,7,8]
			%0 = scaled_dot_product_attention(%q, %k, %v, enable_gqa=true)
			return %0 }`,
		`program @views { %q = parameter "q" : f32[2,5,3,8]
			%k = parameter "k" : f32[2,7,3,8]
			%v = parameter "v" : f32[7,3,2,4]
			%0 = transpose(%q, 1, 2)
			%1 = flip(transpose(%k, 1, 2), dims=[-1])
			%2 = transpose(%v, 0, 2)
			%3 = scaled_dot_product_attention(%0, %1, %2)
			return %3 }`,
		`program @five { %q = parameter "q" : f32[2,2,3,5,8]
			%k = parameter "k" : f32[2,1,3,7,8]
			%v = parameter "v" : f32[1,2,3,7,4]
			%0 = scaled_dot_product_attention(%q, %k, %v)
			return %0 }`,
		`program @narrow { %q = parameter "q" : f32[1,3,5,8]
			%k = parameter "k" : f32[1,3,7,8]
			%m = parameter "m" : f32[5,7]
			%0 = cast(%q, dtype=f16)
			%1 = cast(%k, dtype=f16)
			%2 = scaled_dot_product_attention(%0, %1, %1, %m)
			%3 = cast(%2, dtype=f32)
			return %3 }`,
	} {
		p := program(t, text)
		t.Run(p.Name, func(t *testing.T) {
			b := New()
			want := runOptimized(t, b, p, nil)
			got := runOptimized(t, b, p, b.Supports)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 2e-3 && p.Name == "narrow" || math.Abs(float64(got[i]-want[i])) > 2e-6 && p.Name != "narrow" {
					t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// runOptimized runs a Program on random inputs after the rewrites.
func runOptimized(t *testing.T, b *Backend, p *graph.Program, supports func(ir.Op) bool) []float32 {
	t.Helper()
	q, _ := graph.Optimize(p, graph.Options{Supports: supports})
	m, err := compile(b, q, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	var in []backend.Buffer
	for _, s := range m.spec.Inputs {
		buf := must(b.mem.New(s.Shape, Device))
		for i, x := 0, hostmem.Slice[float32](buf); i < len(x); i++ {
			x[i] = rng.Float32()*2 - 1
		}
		in = append(in, buf)
	}
	defer release(in)
	out, err := m.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release(out)
	return append([]float32(nil), hostmem.Slice[float32](out[0].(*hostmem.Buffer))...)
}
