package cpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/parallel"
)

// TestKernels counts the steps of Programs that fuse: what their reductions
// need and what needs them is in the same kernel. The numbers are of steps, and
// of kernels that are compiled; the same Programs at another batch size compile
// none.
func TestKernels(t *testing.T) {
	for _, c := range []struct {
		name, text string
		steps      int
		kernels    int
	}{
		{"a chain with broadcasts", `program @p {
			%x = parameter "x" : f32[N,24]
			%y = parameter "y" : f32[24]
			%z = parameter "z" : f32[N,1]
			return relu(add(mul(%x, %y), %z))
		}`, 1, 1},
		{"views are strides", `program @p {
			%x = parameter "x" : f32[N,24]
			%y = parameter "y" : f32[24,N]
			return mul(add(%x, permute(%y, [1,0])), flip(%x, [1]))
		}`, 1, 1},
		{"integer division", `program @p {
			%x = parameter "x" : i64[N,24]
			%y = parameter "y" : i32[N,24]
			return add(floor_divide(%x, 7), remainder(cast(%y, i64), add(mul(%x, %x), 1)))
		}`, 1, 1},
		{"softmax", `program @p {
			%x = parameter "x" : f32[N,24]
			return softmax(%x, -1)
		}`, 1, 1},
		{"softmax over the first dimension", `program @p {
			%x = parameter "x" : f32[24,N]
			return softmax(%x, 0)
		}`, 1, 1},
		{"masked softmax of attention", `program @p {
			%x = parameter "x" : f32[N,4,6,20]
			%m = parameter "m" : f32[N,1,1,20]
			return softmax(add(mul(%x, 0.125), %m), -1)
		}`, 1, 1},
		{"log_softmax", `program @p {
			%x = parameter "x" : f32[N,24]
			return log_softmax(%x, 1)
		}`, 1, 1},
		{"layer_norm", `program @p {
			%x = parameter "x" : f32[N,24]
			%w = parameter "w" : f32[24]
			%b = parameter "b" : f32[24]
			return layer_norm(%x, [24], %w, %b)
		}`, 1, 1},
		{"rms_norm", `program @p {
			%x = parameter "x" : f32[N,24]
			%w = parameter "w" : f32[24]
			return rms_norm(%x, [24], %w)
		}`, 1, 1},
		{"batch_norm in training", `program @p {
			%x = parameter "x" : f32[N,3,6,5]
			%w = parameter "w" : f32[3]
			%b = parameter "b" : f32[3]
			%0, %1, %2 = batch_norm(%x, %w, %b, None, None, training=true, momentum=0.1, eps=1e-05)
			return %0
		}`, 1, 1},
		{"var", `program @p {
			%x = parameter "x" : f32[N,24]
			return var(%x, [1])
		}`, 1, 1},
		{"mean of squares", `program @p {
			%x = parameter "x" : f32[N,24]
			%y = parameter "y" : f32[N,24]
			return mse_loss(%x, %y)
		}`, 1, 1},
		{"logsumexp", `program @p {
			%x = parameter "x" : f32[N,24]
			return logsumexp(%x, [1])
		}`, 1, 1},
		{"gradient of a bias", `program @p {
			%g = parameter "g" : f32[N,24]
			%h = parameter "h" : f32[N,24]
			%0 = where(gt(%h, 0.0), %g, 0.0)
			return %0, sum(%0, [0])
		}`, 1, 1},
		{"cat of chains", `program @p {
			%x = parameter "x" : f32[N,24]
			%y = parameter "y" : f32[N,24]
			return cat([neg(%x), exp(%y), %x], 1)
		}`, 1, 1},
		{"rotation of halves", `program @p {
			%x = parameter "x" : f32[N,24]
			%c = parameter "c" : f32[24]
			%0 = cat([neg(slice(%x, 1, 12, 24, 1)), slice(%x, 1, 0, 12, 1)], 1)
			return add(mul(%x, %c), mul(%0, %c))
		}`, 2, 2},
		{"pad of a chain", `program @p {
			%x = parameter "x" : f32[N,24]
			return constant_pad_nd(relu(%x), [1,1], 0.0)
		}`, 2, 1},
		{"argmax of a chain", `program @p {
			%x = parameter "x" : f32[N,24]
			return argmax(neg(%x), 1)
		}`, 1, 1},
		{"two reductions of one operand", `program @p {
			%x = parameter "x" : f32[N,24]
			return sum(exp(%x), [1]), amax(exp(%x), [1])
		}`, 1, 1},
		{"reductions of different dimensions", `program @p {
			%x = parameter "x" : f32[N,24]
			return sum(exp(%x), [1]), sum(exp(%x), [0])
		}`, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, b := range []*Backend{NewDefined(), New()} {
				if b.engine == nil {
					continue // no code for this machine
				}
				m := compileSized(t, b, c.text, "32")
				if len(m.plan.Steps) != c.steps {
					t.Errorf("%d steps, want %d", len(m.plan.Steps), c.steps)
					logSteps(t, m)
				}
				if n := b.engine.compiled(); n != c.kernels {
					t.Errorf("%d kernels are compiled, want %d", n, c.kernels)
				}
				compileSized(t, b, c.text, "48")
				if n := b.engine.compiled(); n != c.kernels {
					t.Errorf("another size compiles %d kernels more", n-c.kernels)
				}
			}
		})
	}
}

// TestFarColumns has an operand whose columns are further apart than kernels allow.
func TestFarColumns(t *testing.T) {
	b := NewDefined()
	const text = `program @p {
		%x = parameter "x" : f32[4,N]
		return neg(permute(%x, [1,0]))
	}`
	for n, kernels := range map[int]int{loop.MaxStride/4 - 1: 1, loop.MaxStride / 4: 0} {
		before := b.engine.compiled()
		compileSized(t, b, text, strconv.Itoa(n))
		if got := b.engine.compiled() - before; got != kernels {
			t.Errorf("columns %d elements apart: %d kernels, want %d", n, got, kernels)
		}
	}
}

// compileSized compiles a Program with a number in the place of N, as the
// executor does: with composites decomposed.
func compileSized(t *testing.T, b *Backend, text, n string) *model {
	t.Helper()
	text = strings.NewReplacer("[N,", "["+n+",", ",N]", ","+n+"]").Replace(text)
	p, _ := graph.Optimize(program(t, text), graph.Options{Supports: b.Supports})
	m, err := compile(b, p, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func logSteps(t *testing.T, m *model) {
	t.Helper()
	for i, s := range m.plan.Steps {
		op := ir.Op(0)
		if s.Instr != nil {
			op = s.Instr.Op
		}
		t.Logf("%d: %v reads %v, writes %v", i, op, s.Reads, s.Writes)
	}
}

// noise makes inputs for all parameters of a model, of f32.
func noise(b *Backend, m *model) []backend.Buffer {
	rng := rand.New(rand.NewPCG(7, 7))
	var in []backend.Buffer
	for _, q := range m.spec.Inputs {
		buf := must(b.mem.New(q.Shape, Device))
		for i, s := 0, hostmem.Slice[float32](buf); i < len(s); i++ {
			s[i] = rng.Float32()*2 - 0.5
		}
		in = append(in, buf)
	}
	return in
}

// outputs runs a model and returns the bytes of its results.
func outputs(t *testing.T, m *model, in []backend.Buffer) [][]byte {
	t.Helper()
	out, err := m.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release(out)
	var data [][]byte
	for _, o := range out {
		data = append(data, bytes.Clone(o.(*hostmem.Buffer).Data()))
	}
	return data
}

// optimizedOutputs runs the text of a Program after the rewrites.
func optimizedOutputs(t *testing.T, b *Backend, text string, data ...[]byte) [][]byte {
	t.Helper()
	p, _ := graph.Optimize(program(t, text), graph.Options{Supports: b.Supports})
	in := uploaded(t, b, p, data)
	defer release(in)
	return outputs(t, mustPlan(t, b, p, backend.CompileOptions{}), in)
}

func sameOutputs(t *testing.T, what string, got, want [][]byte) {
	t.Helper()
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s: output %d differs", what, i)
		}
	}
}

// reductions are the geometries of lines: along columns and rows, over both, cut
// into parts and not.
var reductions = []struct{ dims, over string }{
	{"40,300", "[1]"}, {"300,40", "[0]"}, {"300,40", "[0,1]"}, {"3,70000", "[1]"}, {"70000,3", "[0]"},
	{"70,40,60", "[0,2]"}, {"20,30,40", "[1]"}, {"4,30,5,40", "[1,3]"}, {"500,3,100", "[0,2]"}, {"17,19", "[1]"}, {"2000,150", "[0]"},
}

// TestSameBits holds the results of reductions equal to the last bit on any
// number of threads, and alone or among other instructions.
func TestSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer parallel.SetThreads(0)
	for name, b := range Levels() {
		for _, c := range reductions {
			t.Run(fmt.Sprint(name, " ", c.dims, " over ", c.over), func(t *testing.T) { sameBits(t, b, c.dims, c.over) })
		}
	}
}

func sameBits(t *testing.T, b *Backend, dims, over string) {
	fused := mustCompile(t, b, fmt.Sprintf(`program @p {
				%%x = parameter "x" : f32[%[1]s]
				%%y = parameter "y" : f32[%[1]s]
				%%0 = add(mul(%%x, %%y), exp(%%x))
				%%1 = sum(%%0, %[2]s, true)
				%%2 = sub(%%0, %%1)
				return %%0, %%1, amax(%%0, %[2]s), %%2, mul(sum(%%2, %[2]s, true), %%1)
			}`, dims, over))
	in := noise(b, fused)
	parallel.SetThreads(1)
	want := outputs(t, fused, in)
	for _, n := range []int{2, 3, 4} {
		parallel.SetThreads(n)
		sameOutputs(t, fmt.Sprint(n, " threads"), outputs(t, fused, in), want)
	}
	alone := mustCompile(t, b, fmt.Sprintf(`program @p {
				%%x = parameter "x" : f32[%[1]s]
				return sum(%%x, %[2]s, true), amax(%%x, %[2]s)
			}`, dims, over))
	x := must(b.mem.New(alone.spec.Inputs[0].Shape, Device))
	copy(x.Data(), want[0])
	sameOutputs(t, "alone", outputs(t, alone, []backend.Buffer{x}), want[1:3])
}
