package steps

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/longtest"
)

// TestAttention holds attention against its decomposition: lengths that are no
// multiples of tiles, all masks, shared heads and strides, dtypes, rows that see
// nothing, and keys that several blocks share.
func TestAttention(t *testing.T) {
	programs := map[string]string{
		"bf16, heads beside each other": `program @p {
			%q = parameter "q" : bf16[1,70,2,64]
			%k = parameter "k" : bf16[1,70,2,64]
			%v = parameter "v" : bf16[1,70,2,64]
			%0 = scaled_dot_product_attention(permute(%q, [0,2,1,3]), permute(%k, [0,2,1,3]), permute(%v, [0,2,1,3]))
			%1 = reshape(permute(%0, [0,2,1,3]), [1,70,128])
			return %1
		}`,
		"f16, causal, shared heads": `program @p {
			%q = parameter "q" : f16[2,130,32]
			%k = parameter "k" : f16[1,70,32]
			%v = parameter "v" : f16[1,70,32]
			%0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true, enable_gqa=true)
			return %0
		}`,
		"f32, causal": `program @p {
			%q = parameter "q" : f32[1,70,64]
			%k = parameter "k" : f32[1,70,64]
			%v = parameter "v" : f32[1,70,64]
			%0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true, scale=0.3)
			return %0
		}`,
		"f32, odd, with a mask that hides rows": `program @p {
			%q = parameter "q" : f32[2,3,5,7]
			%k = parameter "k" : f32[3,9,7]
			%v = parameter "v" : f32[1,3,9,35]
			%m = parameter "m" : i64[3,1,1]
			%0 = scaled_dot_product_attention(%q, %k, %v, gt(%m, 0))
			return %0
		}`,
		"bf16, wide, with an added mask": `program @p {
			%q = parameter "q" : bf16[1,3,200]
			%k = parameter "k" : bf16[1,20,200]
			%v = parameter "v" : bf16[1,20,256]
			%m = parameter "m" : bf16[20]
			%0 = scaled_dot_product_attention(%q, %k, %v, %m)
			return %0
		}`,
		"decoding": `program @p {
			%q = parameter "q" : f16[2,1,32]
			%k = parameter "k" : f16[1,600,32]
			%v = parameter "v" : f16[1,600,32]
			%0 = scaled_dot_product_attention(%q, %k, %v, enable_gqa=true)
			return %0
		}`,
		"no keys": `program @p {
			%q = parameter "q" : f32[2,3,8]
			%k = parameter "k" : f32[2,0,8]
			%0 = scaled_dot_product_attention(%q, %k, %k)
			return %0
		}`,
		// Gradients, in one Program with the attention and by themselves.
		"gradients, bf16, heads beside each other": `program @p {
			%q = parameter "q" : bf16[1,40,2,64]
			%k = parameter "k" : bf16[1,70,2,64]
			%v = parameter "v" : bf16[1,70,2,64]
			%g = parameter "g" : bf16[1,2,40,64]
			%a = permute(%q, [0,2,1,3])
			%b = permute(%k, [0,2,1,3])
			%c = permute(%v, [0,2,1,3])
			%0 = scaled_dot_product_attention(%a, %b, %c)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%g, %0, %a, %b, %c)
			return %0, %1, permute(%2, [0,2,1,3]), %3
		}`,
		"gradients, f16, causal, shared heads": `program @p {
			%q = parameter "q" : f16[2,70,100]
			%k = parameter "k" : f16[1,70,100]
			%v = parameter "v" : f16[1,70,40]
			%g = parameter "g" : f16[2,70,40]
			%0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true, enable_gqa=true)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%g, %0, %q, %k, %v, is_causal=true, enable_gqa=true)
			return %1, %2, %3
		}`,
		"gradients, f32, odd, with a mask that hides rows": `program @p {
			%q = parameter "q" : f32[2,3,5,7]
			%k = parameter "k" : f32[2,3,9,7]
			%v = parameter "v" : f32[2,3,9,35]
			%m = parameter "m" : i64[3,1,1]
			%g = parameter "g" : f32[2,3,5,35]
			%b = gt(%m, 0)
			%0 = scaled_dot_product_attention(%q, %k, %v, %b)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%g, %0, %q, %k, %v, %b)
			return %1, %2, %3
		}`,
		"gradients, f32, with an added mask": `program @p {
			%q = parameter "q" : f32[2,5,64]
			%k = parameter "k" : f32[2,7,64]
			%v = parameter "v" : f32[2,7,64]
			%m = parameter "m" : f32[5,7]
			%g = parameter "g" : f32[2,5,64]
			%0 = scaled_dot_product_attention(%q, %k, %v, %m)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%g, %0, %q, %k, %v, %m)
			%4 = _scaled_dot_product_attention_mask_backward(%g, %0, %q, %k, %v, %m)
			return %1, %2, %3, %4
		}`,
		"gradients, no queries": `program @p {
			%q = parameter "q" : f32[2,0,8]
			%k = parameter "k" : f32[2,3,8]
			%1, %2, %3 = _scaled_dot_product_attention_backward(%q, %q, %q, %k, %k)
			return %1, %2, %3
		}`,
	}
	if !longtest.Enabled() {
		delete(programs, "gradients, f32, with an added mask") // much of it is decomposed
	} else {
		maps.Copy(programs, map[string]string{
			"what no kernel takes": `program @p {
			%q = parameter "q" : f64[2,3,8]
			%0 = scaled_dot_product_attention(%q, %q, %q)
			return %0
		}`,
			"gradients of what is broadcast": `program @p {
			%q = parameter "q" : f32[2,3,8]
			%k = parameter "k" : f32[1,3,8]
			%0 = scaled_dot_product_attention(%q, %k, %k)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k)
			return %1, %2, %3
		}`,
		})
	}
	runPrograms(t, programs)
}

// TestAttentionSteps checks what programs of attention become: kernels that read and
// write heads where they lie, and one pass over the keys for result and gradients.
func TestAttentionSteps(t *testing.T) {
	const operands = `program @p {
		%q = parameter "q" : bf16[2,70,3,64]
		%k = parameter "k" : bf16[2,130,3,64]
		%v = parameter "v" : bf16[2,130,3,64]
		%o = parameter "o" : bf16[2,3,70,64]
		%g = parameter "g" : bf16[2,70,192]
		%a = permute(%q, [0,2,1,3])
		%b = permute(%k, [0,2,1,3])
		%c = permute(%v, [0,2,1,3])
		%d = permute(reshape(%g, [2,70,3,64]), [0,2,1,3])
		`
	gradients := []string{"attention_delta", "attention_grad_query", "attention_grad_key"}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"forwards": {`%0 = scaled_dot_product_attention(%a, %b, %c)
			return reshape(permute(%0, [0,2,1,3]), [2,70,192]) }`, []string{"attention"}},
		"and backwards": {`%0 = scaled_dot_product_attention(%a, %b, %c)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%d, %0, %a, %b, %c)
			return reshape(permute(%0, [0,2,1,3]), [2,70,192]), permute(%1, [0,2,1,3]), permute(%2, [0,2,1,3]), permute(%3, [0,2,1,3]) }`,
			append([]string{"attention"}, gradients...)},
		"backwards": {`%1, %2, %3 = _scaled_dot_product_attention_backward(%d, %o, %a, %b, %c)
			return %1, %2, %3 }`, append([]string{"attention"}, gradients...)},
		"backwards from another": {`%0 = scaled_dot_product_attention(%a, %b, %c, scale=2.0)
			%1, %2, %3 = _scaled_dot_product_attention_backward(%d, %0, %a, %b, %c)
			return %1, %2, %3 }`, append([]string{"attention", "attention"}, gradients...)},
	} {
		p, err := graph.Parse(operands + test.text)
		if err != nil {
			t.Fatal(err)
		}
		p, _ = graph.Optimize(p, graph.Options{Supports: Supports})
		s, err := Lower(p, Options{Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, step := range s.Steps {
			if step.Copy > 0 {
				got = append(got, "copy")
				continue
			}
			for _, l := range step.Kernels.Launches {
				entry := strings.TrimPrefix(l.Entry, "loris_")
				for _, end := range []string{"_Pairs", "_bf16"} {
					entry, _, _ = strings.Cut(entry, end)
				}
				got = append(got, entry)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
