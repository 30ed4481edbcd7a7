package cpu

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
)

// Gradients of convolutions agree with the definition where a stride leaves positions out, where depthwise
// filters have a batch, and where the result of a convolution is read elsewhere than at its beginning.
func TestShapesOfConvolutions(t *testing.T) {
	gradients := func(d, x, w, g, stride, pad string, groups int) string {
		return fmt.Sprintf(`%%x = parameter "x" : %s%s
			%%w = parameter "w" : %s%s
			%%g = parameter "g" : %s%s
			%%0, %%1, %%2 = convolution_backward(%%g, %%x, %%w, [1], %s, %s, %s, false, %s, %d, [1,1,1])
			return %%0, %%1, %%2`, d, x, d, w, d, g, stride, pad, "[1,1,1]"[:len(stride)-1]+"]", "[0,0,0]"[:len(stride)-1]+"]", groups)
	}
	for _, c := range []struct{ name, text string }{
		{"stride 2 of even images", gradients("f32", "[3,5,8,8]", "[7,5,3,3]", "[3,7,4,4]", "[2,2]", "[1,1]", 1)},
		{"stride 3 of lines", gradients("f64", "[2,5,19]", "[9,5,2]", "[2,9,6]", "[3]", "[0]", 1)},
		{"single positions, stride 2", gradients("f32", "[2,20,6,6]", "[8,20,1,1]", "[2,8,3,3]", "[2,2]", "[0,0]", 1)},
		{"space, stride 2", gradients("f32", "[2,3,4,5,6]", "[4,3,3,3,3]", "[2,4,2,3,3]", "[2,2,2]", "[1,1,1]", 1)},
		{"depthwise with a batch", gradients("f32", "[3,18,7,7]", "[18,1,3,3]", "[3,18,4,4]", "[2,2]", "[1,1]", 18)},
		{"depthwise lines of bf16", gradients("bf16", "[3,6,9]", "[6,1,3]", "[3,6,9]", "[1]", "[1]", 6)},
		{"depthwise space", gradients("f64", "[2,4,3,4,4]", "[4,1,2,2,2]", "[2,4,2,3,3]", "[1,1,1]", "[0,0,0]", 4)},
		{"in parts", `%x = parameter "x" : f32[2,3,9,9]
			%w = parameter "w" : f32[4,3,3,3]
			%y = conv2d(%x, %w)
			return slice(slice(%y, 2, 0, 3), 3, 0, 2), slice(%y, 2, 0, 5)`},
		{"from its middle on", `%x = parameter "x" : f32[2,3,9,9]
			%w = parameter "w" : f32[4,3,3,3]
			%y = conv2d(%x, %w)
			return slice(%y, 2, 0, 3), slice(%y, 2, 4, 7)`},
		{"in part and whole", `%x = parameter "x" : f32[2,3,9,9]
			%w = parameter "w" : f32[4,3,3,3]
			%y = conv2d(%x, %w)
			return slice(%y, 2, 0, 3), exp(%y)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			be := New()
			whole := program(t, "program @p {\n"+c.text+"\n}")
			p, _ := graph.Optimize(whole, graph.Options{Supports: be.Supports})
			m, err := compile(be, p, backend.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			likeReference(t, be, whole, m)
		})
	}
}
