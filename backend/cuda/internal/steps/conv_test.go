package steps

import "testing"

// TestConvolutions runs them on the device of fibers with what surrounds them:
// copies for tensor cores, what is done to results, memory that is written over.
func TestConvolutions(t *testing.T) {
	runPrograms(t, map[string]string{
		"f16 in groups with bias, another result and relu": `program @p {
			%x = parameter "x" : f16[2,16,7,6]
			%w = parameter "w" : f16[12,8,3,3]
			%b = parameter "b" : f16[12]
			%r = parameter "r" : f16[2,12,7,6]
			return relu(add(convolution(%x, %w, %b, [1,1], [1,1], [1,1], false, [0,0], 2), %r))
		}`,
		"its gradients": `program @p {
			%x = parameter "x" : f16[8,3,9,7]
			%g = parameter "g" : f16[8,16,5,4]
			%w = parameter "w" : f16[16,3,3,3]
			%0 = convolution(permute(%x, [1,0,2,3]), permute(%g, [1,0,2,3]), None, [1,1], [1,1], [2,2], false, [0,0], 1)
			%1 = convolution(%g, %w, None, [2,2], [1,1], [1,1], true, [0,0], 1)
			return permute(%0, [1,0,2,3]), %1
		}`,
		"normalised channels": `program @p {
			%x = parameter "x" : f32[2,5,6,7]
			%w = parameter "w" : f32[9,5,2,3]
			%m = parameter "m" : f32[9,1,1]
			%s = parameter "s" : f32[1,9,1,1]
			%0 = convolution(%x, %w, None, [2,1], [0,2], [1,2], false, [0,0], 1)
			return silu(add(mul(sub(%0, %m), %s), %m))
		}`,
		"added to its own image": `program @p {
			%x = parameter "x" : f32[2,5,90]
			%w = parameter "w" : f32[5,5,3]
			%0 = cumsum(%x, 2)
			%1 = convolution(%0, %w, None, [1], [1], [1], false, [0], 1)
			return neg(cumsum(add(%1, %0), 2))
		}`,
		"added to its own operand": `program @p {
			%x = parameter "x" : f32[70,70]
			%w = parameter "w" : f32[70,70]
			%0 = cumsum(%x, 1)
			return neg(cumsum(tanh(add(mul(matmul(%0, %w), 0.5), %0)), 1))
		}`,
		"one channel in each group": `program @p {
			%x = parameter "x" : bf16[2,6,8,5]
			%w = parameter "w" : bf16[6,1,3,3]
			%b = parameter "b" : bf16[6]
			return sigmoid(convolution(%x, %w, %b, [2,1], [1,1], [1,1], false, [0,0], 6))
		}`,
	})
}
