package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend"
)

// Sums over windows, spread as their gradient, have the bits of the convolution with a parameter of ones,
// on any number of processors.
func TestSpreadWindows(t *testing.T) {
	for _, c := range []struct{ x, kernel, stride, pad, out string }{
		{"[6,1,5,7]", "[3,3]", "[2,2]", "[1,1]", "[0,1]"},
		{"[2,1,4,5]", "[2,5]", "[3,2]", "[0,2]", "[0,0]"},
		{"[3,1,9]", "[4]", "[2]", "[1]", "[1]"},
		{"[2,1,3,4,5]", "[2,3,2]", "[2,1,2]", "[0,1,1]", "[0,0,0]"},
		{"[40,1,30,31]", "[3,3]", "[2,2]", "[0,0]", "[0,0]"},
		{"[3,1,3,4,5]", "[2,3,2]", "[2,3,2]", "[0,0,0]", "[0,0,0]"},
		{"[5,1,4,3]", "[3,4]", "[3,4]", "[0,0]", "[2,3]"},
		{"[2,1,9]", "[1]", "[1]", "[0]", "[0]"},
		{"[2,1,120,130]", "[3,3]", "[2,2]", "[1,1]", "[1,0]"},
		{"[700,1,3,4]", "[2,5]", "[3,3]", "[1,2]", "[2,0]"},
	} {
		for _, d := range []string{"f32", "f64"} {
			t.Run(c.x+d, func(t *testing.T) {
				filter := "[1,1," + c.kernel[1:]
				one := fmt.Sprint("[", "1,1,1"[:len(c.kernel)-2], "]")
				text := fmt.Sprintf(`program @p {
					%%x = parameter "x" : %s%s
					%%w = parameter "w" : %s%s
					return convolution(%%x, full(%s, 1.0, %s), None, %s, %s, %s, true, %s, 1), convolution(%%x, %%w, None, %s, %s, %s, true, %s, 1)
				}`, d, c.x, d, filter, filter, d, c.stride, c.pad, one, c.out, c.stride, c.pad, one, c.out)
				b := New()
				p := program(t, text)
				var ones []float64
				for range p.Params[1].Shape.Numel() {
					ones = append(ones, 1)
				}
				dt := p.Params[0].Shape.DType()
				in := uploaded(t, b, p, [][]byte{encode(dt, hashed(p.Params[0].Shape.Numel())), encode(dt, ones)})
				defer release(in)
				got := outputs(t, mustPlan(t, b, p, backend.CompileOptions{}), in)
				if !slices.Equal(got[0], got[1]) {
					t.Errorf("%v, want %v", decode(dt, got[0]), decode(dt, got[1]))
				}
			})
		}
	}
	p := program(t, `program @p {
		%x = parameter "x" : f32[40,1,30,31]
		return convolution(%x, full([1,1,3,3], 1.0, f32), None, [2,2], [1,1], [1,1], true, [0,1], 1)
	}`)
	sameOnProcessors(t, "whole", New(), p, randomInputs(p))
}

// Sums over windows are those of the convolution with a parameter of ones but for the order in which they are
// added up, and have the same bits on any number of processors.
func TestSumsOfWindows(t *testing.T) {
	for _, c := range []struct{ x, kernel, stride, pad string }{
		{"[6,1,5,7]", "[3,3]", "[1,1]", "[1,1]"},
		{"[2,1,4,5]", "[2,5]", "[1,1]", "[0,2]"},
		{"[3,1,9]", "[4]", "[1]", "[1]"},
		{"[2,1,3,4,5]", "[2,3,2]", "[1,1,1]", "[1,2,1]"},
		{"[2,1,1,1]", "[3,3]", "[1,1]", "[2,2]"},
		{"[1,1,80,130]", "[3,3]", "[1,1]", "[0,0]"},
		{"[200,1,7,6]", "[3,3]", "[1,1]", "[0,0]"},
		{"[150,1,2,5,4]", "[2,2,3]", "[1,1,1]", "[1,0,1]"},
		{"[3,1,21]", "[3]", "[2]", "[0]"},
		{"[3,1,20]", "[5]", "[3]", "[2]"},
		{"[2,1,9001]", "[4]", "[2]", "[1]"},
		{"[60,1,9,11]", "[3,3]", "[2,2]", "[1,1]"},
		{"[2,1,91,140]", "[3,2]", "[2,2]", "[1,0]"},
		{"[1,1,70,140]", "[4,5]", "[3,4]", "[0,2]"},
		{"[40,1,6,8,8]", "[2,2,2]", "[2,2,2]", "[0,0,0]"},
		{"[2,1,5,41,67]", "[3,2,3]", "[2,2,2]", "[1,0,1]"},
		{"[3,1,7,9,11]", "[2,2,2]", "[2,2,2]", "[0,0,0]"},
		{"[2,1,9,70,81]", "[4,3,2]", "[3,1,2]", "[0,0,0]"},
	} {
		for _, d := range []string{"f32", "f64"} {
			t.Run(c.x+d, func(t *testing.T) {
				filter := "[1,1," + c.kernel[1:]
				one := fmt.Sprint("[", "1,1,1"[:len(c.kernel)-2], "]")
				rest := fmt.Sprintf("None, %s, %s, %s, false, %s, 1)", c.stride, c.pad, one, "[0,0,0]"[:len(one)-1]+"]")
				p := program(t, fmt.Sprintf(`program @p {
					%%x = parameter "x" : %s%s
					%%w = parameter "w" : %s%s
					return convolution(%%x, full(%s, 1.0, %s), %s, convolution(%%x, %%w, %s
				}`, d, c.x, d, filter, filter, d, rest, rest))
				b := New()
				var ones []float64
				for range p.Params[1].Shape.Numel() {
					ones = append(ones, 1)
				}
				dt := p.Params[0].Shape.DType()
				in := uploaded(t, b, p, [][]byte{encode(dt, hashed(p.Params[0].Shape.Numel())), encode(dt, ones)})
				defer release(in)
				got := outputs(t, mustPlan(t, b, p, backend.CompileOptions{}), in)
				tolerance := map[string]float64{"f32": 1e-5, "f64": 1e-13}[d]
				have, want := decode(dt, got[0]), decode(dt, got[1])
				for i := range want {
					if !(math.Abs(have[i]-want[i]) <= tolerance) {
						t.Fatalf("element %d is %v, want %v", i, have[i], want[i])
					}
				}
			})
		}
	}
	p := program(t, `program @p {
		%x = parameter "x" : f32[40,1,30,31]
		return convolution(%x, full([1,1,3,3], 1.0, f32), None, [1,1], [1,1], [1,1], false, [0,0], 1)
	}`)
	sameOnProcessors(t, "whole", New(), p, randomInputs(p))
}
