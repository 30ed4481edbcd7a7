package steps

import "testing"

// TestAttention holds attention against its decomposition: lengths that are no
// multiples of tiles, all masks, shared heads and strides, dtypes, rows that see
// nothing, and keys that several blocks share.
func TestAttention(t *testing.T) {
	runPrograms(t, map[string]string{
		"bf16, heads beside each other": `program @p {
			%q = parameter "q" : bf16[1,70,2,64]
			%k = parameter "k" : bf16[1,130,2,64]
			%v = parameter "v" : bf16[1,130,2,64]
			%0 = scaled_dot_product_attention(permute(%q, [0,2,1,3]), permute(%k, [0,2,1,3]), permute(%v, [0,2,1,3]))
			%1 = reshape(permute(%0, [0,2,1,3]), [1,70,128])
			return %1
		}`,
		"f16, causal, shared heads": `program @p {
			%q = parameter "q" : f16[2,150,32]
			%k = parameter "k" : f16[1,140,32]
			%v = parameter "v" : f16[1,140,32]
			%0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true, enable_gqa=true)
			return %0
		}`,
		"f32, causal": `program @p {
			%q = parameter "q" : f32[1,130,64]
			%k = parameter "k" : f32[1,130,64]
			%v = parameter "v" : f32[1,130,64]
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
			%q = parameter "q" : f16[4,1,32]
			%k = parameter "k" : f16[2,600,32]
			%v = parameter "v" : f16[2,600,32]
			%0 = scaled_dot_product_attention(%q, %k, %v, enable_gqa=true)
			return %0
		}`,
		"no keys": `program @p {
			%q = parameter "q" : f32[2,3,8]
			%k = parameter "k" : f32[2,0,8]
			%0 = scaled_dot_product_attention(%q, %k, %k)
			return %0
		}`,
		"what no kernel takes": `program @p {
			%q = parameter "q" : f64[2,3,8]
			%0 = scaled_dot_product_attention(%q, %q, %q)
			return %0
		}`,
	})
}
