package cpu

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/native"
)

// keptCases are Programs with a weight "w" that runs keep packed.
var keptCases = []struct {
	name, text string
	kept       int
	plain      int // where products have no machine code: tiles of other sizes pack other weights
}{
	{"linear", `
		%w = parameter "w" : f32[150,300]
		%x = parameter "x" : f32[90,300]
		%b = parameter "b" : f32[150]
		%r = parameter "r" : f32[90,150]
		return relu(add(linear(%x, %w, %b), %r))`, 1, 1},
	{"matmul in f64", `
		%w = parameter "w" : f64[300,150]
		%x = parameter "x" : f64[3,60,300]
		return matmul(%x, %w)`, 1, 1},
	{"part of a weight", `
		%w = parameter "w" : f32[300,300]
		%x = parameter "x" : f32[90,300]
		return matmul(%x, permute(slice(%w, 0, 100, 250, 1), [1,0]))`, 1, 1},
	{"convolution", `
		%w = parameter "w" : f32[40,16,5,5]
		%x = parameter "x" : f32[2,16,9,11]
		%b = parameter "b" : f32[40]
		return relu(conv2d(%x, %w, %b, [1,1], [1,1]))`, 1, 1},
	{"convolution by Winograd's method, batch norm, residual", `
		%w = parameter "w" : f32[48,48,3,3]
		%x = parameter "x" : f32[1,48,32,32]
		%g = parameter "g" : f32[48]
		%b = parameter "b" : f32[48]
		%m = parameter "m" : f32[48]
		%v = parameter "v" : f32[48]
		%0, %1, %2 = batch_norm(conv2d(%x, %w, padding=[1,1]), %g, %b, %m, exp(%v), false, 0.1, 1e-05)
		return relu(add(%0, %x))`, 1, 1},
	{"convolution with more filters than positions", `
		%w = parameter "w" : f32[300,64,1,1]
		%x = parameter "x" : f32[1,64,7,7]
		return conv2d(%x, %w)`, 1, 1},
	{"convolution of channels alone", `
		%w = parameter "w" : f32[64,1,3,3]
		%x = parameter "x" : f32[1,64,17,17]
		return conv2d(%x, %w, padding=[1,1], groups=64)`, 1, 1},
	{"few rows, which read the weight where it is", `
		%w = parameter "w" : f32[150,300]
		%x = parameter "x" : f32[2,300]
		return linear(%x, %w)`, 0, 1},
	{"gradients of filters, which are others at each step", `
		%w = parameter "w" : f32[40,16,5,5]
		%x = parameter "x" : f32[2,16,9,11]
		%d = parameter "d" : f32[2,40,7,9]
		%0, %1, %2 = convolution_backward(exp(%d), %x, %w, [40], [1,1], [1,1], [1,1], false, [0,0], 1, [1,1,1])
		return add(sum(%0), add(sum(conv2d(%x, %w, padding=[1,1])), sum(%1)))`, 0, 0},
	{"LSTM", `
		%w = parameter "w" : f32[160,30]
		%x = parameter "x" : f32[7,3,30]
		%h = parameter "h" : f32[1,3,40]
		%c = parameter "c" : f32[1,3,40]
		%s = parameter "s" : f32[160,40]
		%b = parameter "b" : f32[160]
		%0, %1, %2 = lstm(%x, [%h, %c], [%w, %s, %b, %b], true, 1, 0, false, false, false)
		return %0`, 1, 1},
	{"GRU in f64 whose weights of input and state are one, without biases", `
		%w = parameter "w" : f64[60,20]
		%x = parameter "x" : f64[2,7,20]
		%h = parameter "h" : f64[2,2,20]
		%0, %1 = gru(%x, %h, [%w, %w, %w, %w], false, 1, 0, false, true, true)
		return cat([flatten(%0, 0, -1), flatten(%1, 0, -1)], 0)`, 2, 2},
	{"transposed convolution in bf16", `
		%w = parameter "w" : bf16[24,16,3,3]
		%x = parameter "x" : bf16[1,24,9,9]
		return conv_transpose2d(%x, %w, stride=[2,2])`, 1, 1},
}

// TestWeightsThatAreKeptGiveTheSameBits runs models until their weights are kept packed and further,
// and holds each result equal to the first.
func TestWeightsThatAreKeptGiveTheSameBits(t *testing.T) {
	for _, c := range keptCases {
		t.Run(c.name, func(t *testing.T) {
			for name, b := range threadedBackends() {
				p := program(t, "program @p {\n"+c.text+"\n}")
				in := uploaded(t, b, p, randomInputs(p))
				p, _ = graph.Optimize(p, graph.Options{Supports: b.Supports})
				m := mustPlan(t, b, p, backend.CompileOptions{})
				want := outputs(t, m, in)
				for i := range 5 {
					if got := outputs(t, m, in); !bytes.Equal(got[0], want[0]) {
						t.Fatalf("%s: run %d has other bits", name, i+2)
					}
				}
				kept := c.kept
				if len(native.Available()) == 0 {
					kept = c.plain
				}
				if n := in[0].(*hostmem.Buffer).Keeps(); n != kept {
					t.Errorf("%s: %d values are kept, want %d", name, n, kept)
				}
				release(in)
			}
		})
	}
}

// TestWeightsThatChangeAreNotKept checks that what is kept of a weight ends with its contents: a run
// overwrites it, or statistics by which packed filters are multiplied are others.
func TestWeightsThatChangeAreNotKept(t *testing.T) {
	b := New()
	for _, c := range keptCases {
		t.Run(c.name, func(t *testing.T) {
			p := program(t, "program @p {\n"+c.text+"\n}")
			inputs := randomInputs(p)
			in := uploaded(t, b, p, inputs)
			defer func() { release(in) }()
			q, _ := graph.Optimize(p, graph.Options{Supports: b.Supports})
			m := mustPlan(t, b, q, backend.CompileOptions{})
			for range 5 {
				outputs(t, m, in)
			}
			shape := p.Params[0].Shape
			step := mustCompile(t, b, fmt.Sprintf("program @step {\n%%w = parameter \"w\" : %v\nreturn mul(%%w, 0.5)\n}", shape), backend.Alias{Input: 0, Output: 0})
			out, err := step.Run(ctx, in[:1], []bool{true})
			if err != nil {
				t.Fatal(err)
			}
			if out[0] != in[0] {
				t.Fatal("the step does not write over the weight")
			}
			out[0].Release()
			fresh := New()
			others := uploaded(t, fresh, p, append([][]byte{bytes.Clone(in[0].(*hostmem.Buffer).Data())}, inputs[1:]...))
			defer release(others)
			sameOutputs(t, "after a step", outputs(t, m, in), outputs(t, mustPlan(t, fresh, q, backend.CompileOptions{}), others))

			for range 5 { // until it is kept again
				outputs(t, m, in)
			}
			for i, x := range p.Params {
				if x.Name != "v" { // a statistic by which the filters are multiplied
					continue
				}
				for k := range inputs[i] {
					inputs[i][k] ^= 1
				}
				other := uploaded(t, b, &graph.Program{Params: p.Params[i : i+1]}, inputs[i:i+1])
				in[i], other[0] = other[0], in[i]
				release(other)
				inputs[0] = bytes.Clone(in[0].(*hostmem.Buffer).Data())
				want := uploaded(t, fresh, p, inputs)
				defer release(want)
				sameOutputs(t, "with another statistic", outputs(t, m, in), outputs(t, mustPlan(t, fresh, q, backend.CompileOptions{}), want))
			}
		})
	}
}

// TestWeightsThatTheirHolderWrites checks that nothing is kept of a buffer whose memory somebody has
// asked for, who may write to it between any two runs.
func TestWeightsThatTheirHolderWrites(t *testing.T) {
	b, fresh := New(), New()
	for _, c := range keptCases {
		t.Run(c.name, func(t *testing.T) {
			p := program(t, "program @p {\n"+c.text+"\n}")
			inputs := randomInputs(p)
			in := uploaded(t, b, p, inputs)
			defer release(in)
			q, _ := graph.Optimize(p, graph.Options{Supports: b.Supports})
			m, other := mustPlan(t, b, q, backend.CompileOptions{}), mustPlan(t, fresh, q, backend.CompileOptions{})
			var memory []byte
			for _, when := range []string{"after the weight was kept", "before it would be"} {
				for range 5 {
					outputs(t, m, in)
				}
				if memory == nil { // asked for once, and written whenever its holder likes
					var err error
					if memory, err = in[0].Bytes(ctx); err != nil {
						t.Fatal(err)
					}
				}
				memory[0] ^= 1
				inputs[0] = bytes.Clone(memory)
				want := uploaded(t, fresh, p, inputs)
				sameOutputs(t, when, outputs(t, m, in), outputs(t, other, want))
				release(want)
			}
		})
	}
}
