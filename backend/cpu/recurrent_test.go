package cpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// recurrentCase is a stack of recurrent layers as a Program whose result are all outputs, one after
// another.
type recurrentCase struct {
	op                           string
	dtype                        string
	time, batch, input, hidden   int // batch -1: there is none
	layers                       int
	bidirectional, first, biases bool
}

func (r recurrentCase) text() string {
	gates, states, directions := map[string]int{"lstm": 4, "gru": 3}[r.op], 1, 1
	if gates == 0 {
		gates = 1
	}
	if r.op == "lstm" {
		states = 2
	}
	if r.bidirectional {
		directions = 2
	}
	var head, casts strings.Builder
	add := func(dims ...int) string {
		n := strings.Count(head.String(), "parameter")
		fmt.Fprintf(&head, "%%q%d = parameter \"q%d\" : f32%s\n", n, n, strings.ReplaceAll(fmt.Sprint(dims), " ", ","))
		fmt.Fprintf(&casts, "%%p%d = cast(mul(%%q%d, 0.3), dtype=%s)\n", n, n, r.dtype)
		return fmt.Sprintf("%%p%d", n)
	}
	x := []int{r.time, r.batch, r.input}
	state := []int{r.layers * directions, r.batch, r.hidden}
	switch {
	case r.batch < 0:
		x, state = []int{r.time, r.input}, []int{state[0], r.hidden}
	case r.first:
		x = []int{r.batch, r.time, r.input}
	}
	in, hx := add(x...), []string{}
	for range states {
		hx = append(hx, add(state...))
	}
	h := hx[0]
	if states == 2 {
		h = "[" + strings.Join(hx, ", ") + "]"
	}
	var weights []string
	for l := range r.layers {
		features := r.input
		if l > 0 {
			features = r.hidden * directions
		}
		for range directions {
			weights = append(weights, add(gates*r.hidden, features), add(gates*r.hidden, r.hidden))
			if r.biases {
				weights = append(weights, add(gates*r.hidden), add(gates*r.hidden))
			}
		}
	}
	outs := []string{"%o0", "%o1", "%o2"}[:1+states]
	flat := make([]string, len(outs))
	for i, o := range outs {
		flat[i] = "reshape(" + o + ", [-1])"
	}
	return fmt.Sprintf("program @layers { %s%s%s = %s(%s, %s, [%s], %v, %d, 0.0, false, %v, %v)\n%%all = cast(cat([%s], 0), dtype=f32)\nreturn %%all }",
		head.String(), casts.String(), strings.Join(outs, ", "), r.op, in, h, strings.Join(weights, ", "), r.biases, r.layers, r.bidirectional, r.first, strings.Join(flat, ", "))
}

func recurrentCases() []recurrentCase {
	var all []recurrentCase
	for _, op := range []string{"lstm", "gru", "rnn_tanh", "rnn_relu"} {
		for _, dtype := range []string{"f32", "f64", "f16", "bf16"} {
			all = append(all,
				recurrentCase{op, dtype, 7, 3, 5, 6, 1, false, false, true},
				recurrentCase{op, dtype, 9, 2, 4, 33, 3, true, true, true},
				recurrentCase{op, dtype, 6, -1, 3, 4, 2, true, false, false},
				recurrentCase{op, dtype, 1, 1, 1, 1, 1, false, true, false},
				recurrentCase{op, dtype, 6, 0, 3, 4, 1, false, false, true},
				recurrentCase{op, dtype, 130, 9, 17, 8, 4, false, true, true})
		}
	}
	return all
}

// The kernels of recurrent layers give what loops over their steps give, on any number of processors
// the same bits.
func TestRecurrentLayersAreTheirSteps(t *testing.T) {
	tolerance := map[string]float64{"f32": 1e-5, "f64": 1e-6, "f16": 2e-3, "bf16": 2e-2}
	whole, cut := New(), Split(New())
	for _, r := range recurrentCases() {
		p := program(t, r.text())
		want, got := runOptimized(t, whole, p, nil), runOptimized(t, whole, p, whole.Supports)
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= tolerance[r.dtype]*max(1, math.Abs(float64(want[i])))) {
				t.Fatalf("%+v: element %d is %v, want %v", r, i, got[i], want[i])
			}
		}
		for i, v := range runOptimized(t, cut, p, cut.Supports) {
			if math.Float32bits(v) != math.Float32bits(got[i]) {
				t.Fatalf("%+v: element %d is %v in pieces, %v as a whole", r, i, v, got[i])
			}
		}
	}
}

// Programs that no recording made are refused where their sizes do not fit together.
func TestRecurrentLayersCheckSizes(t *testing.T) {
	b := New()
	for i, change := range []func(s []ir.Shape){
		func(s []ir.Shape) { s[0] = ir.MakeShape(ir.F32, 7, 3, 6) },
		func(s []ir.Shape) { s[2] = ir.MakeShape(ir.F32, 2, 3, 6) },
		func(s []ir.Shape) { s[4] = ir.MakeShape(ir.F32, 24, 7) },
		func(s []ir.Shape) { s[6] = ir.MakeShape(ir.F32, 23) },
		func(s []ir.Shape) { s[7] = ir.MakeShape(ir.F32, 7, 3, 7) },
		func(s []ir.Shape) { s[9] = ir.MakeShape(ir.F32, 1, 3, 7) },
	} {
		p := program(t, `program @layer { %x = parameter "x" : f32[7,3,5]
			%h = parameter "h" : f32[1,3,6]
			%c = parameter "c" : f32[1,3,6]
			%wx = parameter "wx" : f32[24,5]
			%wh = parameter "wh" : f32[24,6]
			%bx = parameter "bx" : f32[24]
			%bh = parameter "bh" : f32[24]
			%y, %hn, %cn = lstm(%x, [%h, %c], [%wx, %wh, %bx, %bh], true, 1, 0.0, false, false, false)
			return %y, %hn, %cn }`)
		change(p.Shapes)
		for i := range p.Params {
			p.Params[i].Shape = p.Shapes[i]
		}
		if m, err := compile(b, p, backend.CompileOptions{}); err == nil {
			m.Close()
			t.Errorf("case %d: no error", i)
		}
	}
}
