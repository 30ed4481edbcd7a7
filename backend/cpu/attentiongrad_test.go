package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
)

// TestAttentionGradients holds the kernel of the gradients of attention against their definition: beside the
// attention and without it, of operands that are repeated, transposed, of many dtypes, and of some of the
// results alone.
func TestAttentionGradients(t *testing.T) {
	for name, text := range map[string]string{
		"beside attention": `%q = parameter "q" : D[2,3,5,8]
			%k = parameter "k" : D[2,3,7,8]
			%v = parameter "v" : D[2,3,7,4]
			%g = parameter "g" : D[2,3,5,4]
			%0 = scaled_dot_product_attention(%q, %k, %v)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%g, %0, %q, %k, %v)
			return %0, %1, %2, %3`,
		"causal, of one": `%q = parameter "q" : D[1,70,8]
			%k = parameter "k" : D[1,150,8]
			%0 = scaled_dot_product_attention(%q, %k, %k, is_causal=true, scale=0.3)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k, is_causal=true, scale=0.3)
			return %2`,
		"shared heads": `%q = parameter "q" : D[2,6,5,8]
			%k = parameter "k" : D[2,2,7,8]
			%0 = scaled_dot_product_attention(%q, %k, %k, enable_gqa=true)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k, enable_gqa=true)
			return %1, %2, %3`,
		"heads shared unevenly": `%q = parameter "q" : D[2,6,5,8]
			%k = parameter "k" : D[2,2,7,8]
			%v = parameter "v" : D[2,3,7,8]
			%0 = scaled_dot_product_attention(%q, %k, %v, enable_gqa=true)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %v, enable_gqa=true)
			return %1, %2, %3`,
		"repeated": `%q = parameter "q" : D[2,1,5,8]
			%k = parameter "k" : D[4,7,8]
			%v = parameter "v" : D[3,2,1,7,4]
			%m = parameter "m" : D[5,1]
			%0 = scaled_dot_product_attention(%q, %k, %v, %m)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %v, %m)
			return %1, %2, %3`,
		"transposed": `%q = parameter "q" : D[2,5,3,8]
			%k = parameter "k" : D[2,7,3,8]
			%m = parameter "m" : D[5,7]
			%0 = permute(%q, [0,2,1,3])
			%1 = permute(%k, [0,2,1,3])
			%2 = gt(%m, -0.5)
			%3 = scaled_dot_product_attention(%0, %1, %1, %2)
			%4, %5, %6 = _scaled_dot_product_attention_backward(%3, %3, %0, %1, %1, %2)
			return reshape(permute(%4, [0,2,1,3]), [10,24]), reshape(permute(%5, [0,2,1,3]), [14,24]), %6`,
		"a mask of another dtype": `%q = parameter "q" : D[1,3,5,8]
			%k = parameter "k" : D[1,3,7,8]
			%m = parameter "m" : f32[5,7]
			%0 = scaled_dot_product_attention(%q, %k, %k, %m)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k, %m)
			%4 = _scaled_dot_product_attention_mask_backward(%0, %0, %q, %k, %k, %m)
			return %1, %2, %3, %4`,
		"a mask's before the others'": `%q = parameter "q" : D[2,3,130,8]
			%k = parameter "k" : D[2,3,7,8]
			%m = parameter "m" : D[3,130,7]
			%0 = scaled_dot_product_attention(%q, %k, %k, %m)
			%4 = _scaled_dot_product_attention_mask_backward(%0, %0, %q, %k, %k, %m)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k, %m)
			return %4, %1, %2, %3`,
		"masks of keys": `%q = parameter "q" : D[2,5,8]
			%k = parameter "k" : D[2,7,8]
			%m = parameter "m" : D[1,1,7]
			%n = parameter "n" : D[2,5,1]
			%0 = scaled_dot_product_attention(%q, %k, %k, %m)
			%1 = _scaled_dot_product_attention_mask_backward(%q, %0, %q, %k, %k, %m)
			%2 = scaled_dot_product_attention(%q, %k, %k, %n)
			%3, %4, %5 = _scaled_dot_product_attention_backward(%q, %2, %q, %k, %k, %n)
			%6 = _scaled_dot_product_attention_mask_backward(%q, %2, %q, %k, %k, %n)
			return %1, %3, %4, %5, add(%6, %n)`,
		"without attention": `%q = parameter "q" : D[2,70,8]
			%k = parameter "k" : D[2,7,8]
			%p = softmax(mul(matmul(%q, permute(%k, [0,2,1])), 2.0), -1)
			%o = matmul(%p, %k)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%q, %o, %q, %k, %k, scale=2.0)
			return %1, %2, %3`,
		"no keys": `%q = parameter "q" : D[2,5,8]
			%k = parameter "k" : D[2,0,8]
			%0 = scaled_dot_product_attention(%q, %k, %k)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k)
			return %1, %2, %3`,
	} {
		for dtype, eps := range map[string]float64{"f32": 1e-5, "f64": 1e-12, "bf16": 6e-2, "f16": 1e-2} {
			t.Run(name+" "+dtype, func(t *testing.T) {
				text := "program @p {\n" + strings.ReplaceAll(text, ": D[", ": "+dtype+"[") + " }"
				rng, values := rand.New(rand.NewPCG(3, 9)), [][]float64{}
				for _, p := range program(t, text).Params {
					x := make([]float64, p.Shape.Numel())
					for i := range x {
						x[i] = float64(rng.IntN(33)-16) / 16
					}
					values = append(values, x)
				}
				for _, b := range []*Backend{New(), NewPortable()} {
					sameAsRef(t, b, text, eps, values...)
				}
			})
		}
	}
}

// TestAttentionGradientMemory states that what attention and its gradients need between steps grows with the length
// of a text, not with its square.
func TestAttentionGradientMemory(t *testing.T) {
	var workspace [2]int
	for i, length := range []int{1000, 2000} {
		text := fmt.Sprintf(`program @p { %%q = parameter "q" : f32[1,2,%[1]d,16]
			%%m = parameter "m" : bool[%[1]d,%[1]d]
			%%0 = scaled_dot_product_attention(%%q, %%q, %%q, %%m)
			%%1, %%2, %%3 = _scaled_dot_product_attention_backward(%%0, %%0, %%q, %%q, %%q, %%m)
			return add(add(%%1, %%2), %%3) }`, length)
		workspace[i] = mustCompile(t, New(), text).plan.Workspace
	}
	if workspace[1] > 2*workspace[0] || workspace[1] > 2000*2*16*4*5 {
		t.Errorf("%d bytes of workspace, and for twice the length %d", workspace[0], workspace[1])
	}
}

// TestAttentionForProjection states that attention writes its result in the order that a projection of all heads
// takes, and that its gradients read it there: nothing is copied.
func TestAttentionForProjection(t *testing.T) {
	const attention = `%q = parameter "q" : f32[2,4,5,8]
		%w = parameter "w" : f32[32,32]
		%g = parameter "g" : f32[10,32]
		%m = parameter "m" : f32[5,5]
		%0 = scaled_dot_product_attention(%q, %q, %q, %m)
		%1 = reshape(permute(%0, [0,2,1,3]), [10,32])
		%2 = matmul(%1, %w)
		%3 = permute(reshape(matmul(%g, %w), [2,5,4,8]), [0,2,1,3])
		%4, %5, %6 = _scaled_dot_product_attention_backward(%3, %0, %q, %q, %q, %m)
		%7 = _scaled_dot_product_attention_mask_backward(%3, %0, %q, %q, %q, %m)
		%8 = matmul(permute(%1, [1,0]), %g) `
	for name, c := range map[string]struct {
		results string
		copied  bool
	}{
		"by gradients":    {"%2, %4, %5, %6, %7, %8", false},
		"and as a result": {"%0, %2, %4, %5, %6, %7, %8", true},
	} {
		text := "program @p { " + attention + " return " + c.results + " }"
		m := mustCompile(t, New(), text)
		copied := slices.ContainsFunc(m.plan.Steps, func(s step) bool { return s.Instr == nil || s.Instr.Op == aten.Reshape })
		if copied != c.copied {
			t.Errorf("%s: the result is copied: %t\n%s", name, copied, m.plan)
		}
		sameAsRef(t, New(), text, 1e-4, spread(320), spread(1024), spread(320), spread(25))
	}
}

// spread returns n numbers around 0.
func spread(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i*7%101-50) / 100
	}
	return x
}
