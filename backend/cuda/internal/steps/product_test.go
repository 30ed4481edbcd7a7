package steps

import "testing"

// TestProductsBroadcast: batches that one operand lacks, or has with size 1, on the
// device of fibers.
func TestProductsBroadcast(t *testing.T) {
	runPrograms(t, map[string]string{
		"batches": `program @p {
			%x = parameter "x" : f32[3,4]
			%y = parameter "y" : f32[2,4,5]
			%z = parameter "z" : f32[3,1,5,3]
			return matmul(%x, %y), matmul(%y, %z), matmul(permute(%y, [0,2,1]), permute(%x, [1,0]))
		}`,
	})
}
