package cpu

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/backendtest"
	elems "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

// threaded are Programs of every family whose work is shared out, some of which
// need more than one unit whatever the machine. Integers are from 0 to 6.
var threaded = []struct{ name, text string }{
	{"sums over all elements", `
		%x = parameter "x" : f32[300,700]
		return sum(%x), mean(exp(%x)), prod(add(mul(%x, 1e-4), 1.0)), var(%x), norm(%x)`},
	{"sums of 16-bit floats", `
		%x = parameter "x" : bf16[200,900]
		return sum(%x), sum(%x, [0]), sum(%x, [1]), softmax(%x, 0)`},
	{"sums along rows and columns", `
		%x = parameter "x" : f32[1500,190]
		return sum(%x, [0]), sum(%x, [1]), softmax(%x, 1), logsumexp(%x, [0]), argmax(%x, 0), cumsum(%x, 0), cumsum(%x, 1), cumprod(%x, 1),
			logcumsumexp(%x, 0), logcumsumexp(%x, 1), _linear_scan(sin(%x), %x, 1, true)`},
	{"scans of 16-bit floats", `
		%x = parameter "x" : bf16[1500,190]
		%y = parameter "y" : f16[190,1500]
		%a, %i = cummax(%x, 1)
		%b, %j = cummin(%y, 1)
		%c, %k = cummax(%y, 0)
		return cumsum(%x, 0), cumsum(%y, 1), cumprod(%x, 1), %a, %i, %b, %j, %c, %k`},
	{"deep products", `
		%x = parameter "x" : f32[3,5000]
		%y = parameter "y" : f32[5000,130]
		%b = parameter "b" : f32[130]
		return matmul(%x, %y), gelu(add(matmul(%x, %y), %b)), matmul(permute(%y, [1,0]), permute(%x, [1,0]))`},
	{"wide products", `
		%x = parameter "x" : f32[150,260]
		%y = parameter "y" : f32[390,260]
		%r = parameter "r" : f32[150,390]
		return tanh(add(matmul(%x, permute(%y, [1,0])), %r)), matmul(permute(%x, [1,0]), %r)`},
	{"products of 16-bit floats", `
		%x = parameter "x" : bf16[60,700]
		%y = parameter "y" : bf16[700,150]
		%h = parameter "h" : f16[21,900]
		%w = parameter "w" : f16[900,40]
		return matmul(%x, %y), matmul(%h, %w), silu(matmul(%h, %w))`},
	{"a batch of products", `
		%x = parameter "x" : f64[11,40,120]
		%y = parameter "y" : f64[11,120,50]
		return matmul(%x, %y), matmul(%x, slice(%y, 0, 0, 1, 1))`},
	{"attention", `
		%q = parameter "q" : f32[1,3,130,32]
		%k = parameter "k" : f32[1,3,600,32]
		%v = parameter "v" : f32[1,3,600,20]
		%m = parameter "m" : f32[130,600]
		return scaled_dot_product_attention(%q, %k, %v), scaled_dot_product_attention(%q, %k, %v, %m), scaled_dot_product_attention(%q, %k, %v, is_causal=true)`},
	{"gradients of attention", `
		%q = parameter "q" : f32[1,3,150,32]
		%k = parameter "k" : f32[1,3,300,32]
		%0 = scaled_dot_product_attention(%q, %k, %k, is_causal=true)
		%1, %2, %3 = _scaled_dot_product_attention_backward(%0, %0, %q, %k, %k, is_causal=true)
		return %1, %2, %3`},
	{"convolutions", `
		%x = parameter "x" : f32[2,19,23,21]
		%w = parameter "w" : f32[40,19,3,3]
		%b = parameter "b" : f32[40]
		%r = parameter "r" : f32[2,40,23,21]
		%g = parameter "g" : f32[19,1,3,3]
		return relu(add(conv2d(%x, %w, %b, [1,1], [1,1]), %r)), conv2d(%x, %w, %b, [2,2], [1,1]), conv2d(%x, %g, groups=19)`},
	{"convolutions of one image with large filters", `
		%x = parameter "x" : f32[1,70,9,8]
		%w = parameter "w" : f32[130,70,3,3]
		%b = parameter "b" : f32[130]
		%r = parameter "r" : f32[1,130,9,8]
		return gelu(add(conv2d(%x, %w, %b, [1,1], [1,1]), %r)), conv2d(%x, %w, %b)`},
	{"convolutions to single positions", `
		%x = parameter "x" : f32[70,19,1,1]
		%w = parameter "w" : f32[56,19,1,1]
		%r = parameter "r" : f32[70,56,1,1]
		return relu(add(conv2d(%x, %w), %r)), silu(conv2d(%x, %w))`},
	{"adding by index", `
		%x = parameter "x" : f32[7,90]
		%i = parameter "i" : i64[3000]
		%y = parameter "y" : f32[3000,90]
		%e = expand(reshape(%i, [3000,1]), [3000,90])
		return index_add(%x, 0, %i, %y), scatter_add(%x, 0, %e, %y), scatter_reduce(%x, 0, %e, %y, "mean"), scatter(%x, 0, %e, %y), index_select(%x, 0, %i), gather(%x, 0, %e)`},
	{"sorting", `
		%x = parameter "x" : f32[90,200]
		%i = parameter "i" : i64[40,300]
		%0, %1 = sort(%x, 0)
		%2, %3 = sort(%i, 1, true)
		%4, %5 = topk(%x, 5)
		return %0, %1, %2, %3, %4, %5`},
	{"stretches and counts", `
		%x = parameter "x" : f32[20000]
		%i = parameter "i" : i64[9000]
		%0 = segment_reduce(reshape(%x, [2000,10]), "mean", offsets=reshape(cumsum(slice(%i, 0, 0, 300, 1), 0), [300]))
		return %0, histc(%x, 30), bincount(%i, minlength=8), nonzero_static(%i, size=8000)`},
	{"transforms", `
		%x = parameter "x" : f32[60,500]
		%y = parameter "y" : f64[4096]
		%0 = _fft_r2c(%x, [0,1], 0, true)
		return view_as_real(%0), _fft_c2r(%0, [0,1], 2, 500), view_as_real(_fft_c2c(complex(%y, %y), [0], 1, true))`},
	{"norms and losses", `
		%x = parameter "x" : f32[40,16,15,9]
		%w = parameter "w" : f32[16]
		%b = parameter "b" : f32[16]
		%l = parameter "l" : f32[4000,7]
		%t = parameter "t" : i64[4000]
		%0, %1, %2 = batch_norm(%x, %w, %b, None, None, training=true, momentum=0.1, eps=1e-05)
		return %0, group_norm(%x, 4, %w, %b), cross_entropy(%l, %t), mse_loss(%x, %0), max_pool2d(%x, [3,3], [2,2]), avg_pool2d(%x, [3,2], [2,2], [1,1])`},
}

// processors are the numbers of processors that results are compared on.
var processors = []int{1, 2, 3, 5}

// TestSameBitsOnAnyProcessors holds the results of Programs equal to the last bit
// on any number of processors and for any bound, when they are compiled and when
// they run.
func TestSameBitsOnAnyProcessors(t *testing.T) {
	for _, c := range threaded {
		t.Run(c.name, func(t *testing.T) {
			for name, b := range threadedBackends() {
				if !longtest.Enabled() && name == "split" {
					continue // thousands of pieces
				}
				p := program(t, "program @p {\n"+c.text+"\n}")
				sameOnProcessors(t, name, b, p, randomInputs(p))
			}
		})
	}
}

// TestSameBitsOfRandomPrograms does it for random Programs and their gradients.
func TestSameBitsOfRandomPrograms(t *testing.T) {
	n := uint64(60)
	if !longtest.Enabled() {
		n = 4
	}
	for name, b := range threadedBackends() {
		for i := range n {
			p, in := backendtest.RandomProgram(i, 5+int(i%30))
			sameOnProcessors(t, name, b, p, in)
			p, in = backendtest.RandomGradient(1000+i, 4+int(i%12))
			sameOnProcessors(t, name, b, p, in)
		}
	}
}

// threadedBackends are one as users have it and one that cuts small tensors as
// others are cut.
func threadedBackends() map[string]*Backend {
	all := map[string]*Backend{"whole": New(), "split": Split(New())}
	if longtest.Enabled() {
		all["portable"] = NewPortable()
	}
	return all
}

func randomInputs(p *graph.Program) (in [][]byte) {
	rng := rand.New(rand.NewPCG(5, 9))
	for _, q := range p.Params {
		if d := q.Shape.DType(); d.IsIntegral() {
			vals := make([]int64, q.Shape.Numel())
			for i := range vals {
				vals[i] = rng.Int64N(7)
			}
			in = append(in, elems.EncodeInts(d, vals))
			continue
		}
		in = append(in, randomBytes(rng, q.Shape))
	}
	return in
}

func sameOnProcessors(t *testing.T, name string, b *Backend, p *graph.Program, inputs [][]byte) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	p, _ = graph.Optimize(p, graph.Options{Supports: b.Supports})
	in := uploaded(t, b, p, inputs)
	defer release(in)
	for _, deterministic := range []bool{false, true} {
		var want [][]byte
		compare := func(how string, n int, m *model) {
			t.Helper()
			got := outputs(t, m, in)
			if want == nil {
				want = got
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("%s, deterministic %v, %d processors, %s: output %d has other bits\n%s", name, deterministic, n, how, i, p)
				}
			}
		}
		for _, n := range processors {
			runtime.GOMAXPROCS(n)
			m := mustPlan(t, b, p, backend.CompileOptions{Deterministic: deterministic})
			compare("all", n, m)
			compare("a bound", n, mustPlan(t, b, p, backend.CompileOptions{Deterministic: deterministic, Threads: max(n-1, 1)}))
			runtime.GOMAXPROCS(5)
			compare("run on 5", n, m)
		}
	}
}

func mustPlan(t *testing.T, b *Backend, p *graph.Program, o backend.CompileOptions) *model {
	t.Helper()
	m, err := compile(b, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func uploaded(t *testing.T, b *Backend, p *graph.Program, inputs [][]byte) (in []backend.Buffer) {
	t.Helper()
	for i, q := range p.Params {
		x, err := b.Upload(ctx, q.Shape, Device, inputs[i])
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, x)
	}
	return in
}

// TestCausalAttentionOfInfinities is what a deterministic model is needed for: an
// infinite value reaches as many of the queries before it as are in one unit.
func TestCausalAttentionOfInfinities(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	b := New()
	p := program(t, `program @p {
		%x = parameter "x" : f32[1,1,256,16]
		return scaled_dot_product_attention(%x, %x, %x, is_causal=true)
	}`)
	in := randomInputs(p)
	copy(in[0][4*16*230:], elems.EncodeFloats(ir.F32, []float64{math.Inf(1)}))
	x := uploaded(t, b, p, in)
	defer release(x)
	results := map[bool]map[string]bool{false: {}, true: {}}
	for deterministic, seen := range results {
		for _, n := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(n)
			seen[string(outputs(t, mustPlan(t, b, p, backend.CompileOptions{Deterministic: deterministic}), x)[0])] = true
		}
	}
	if n := len(results[true]); n != 1 {
		t.Errorf("%d results of deterministic models", n)
	}
	if n := len(results[false]); n < 2 {
		t.Errorf("one result of all models: WithDeterministic and its documentation say more than is so")
	}
}

// gauge counts the units that run at the same time.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// TestRunsSideBySide counts the units that run at the same time while many models
// run with different bounds, some of which call another model in between: of each
// no more than it may, and of all no more than there are processors.
func TestRunsSideBySide(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	b := New()
	p := program(t, `program @p {
		%x = parameter "x" : f32[8]
		return neg(%x)
	}`)
	in := uploaded(t, b, p, randomInputs(p))
	defer release(in)
	var all gauge
	var wg sync.WaitGroup
	counting := func(threads int, inner *model) (*model, *gauge) {
		m, mine := mustPlan(t, b, p, backend.CompileOptions{Threads: threads}), new(gauge)
		units := step{Payload: work{n: 12, grain: 1, run: func(lo, hi int) {
			all.enter()
			mine.enter()
			time.Sleep(time.Duration(hi-lo) * 10 * time.Microsecond)
			mine.leave()
			all.leave()
		}}}
		m.plan.Steps = append(m.plan.Steps, units, units)
		if inner != nil {
			m.plan.Steps = append(m.plan.Steps, step{Payload: work{n: 1, grain: 1, callsModel: true, run: func(_, _ int) { outputs(t, inner, in) }}}, units)
		}
		return m, mine
	}
	for i, threads := range []int{0, 1, 2, 3, 9, 1, 2, 0} {
		var inner *model
		var within *gauge
		if i%2 == 0 {
			inner, within = counting(2, nil)
		}
		m, mine := counting(threads, inner)
		wg.Go(func() {
			for range 20 {
				outputs(t, m, in)
			}
			if most := int(mine.most.Load()); most > procs || threads > 0 && most > threads {
				t.Errorf("%d units at a time, with a bound of %d", most, threads)
			}
			if within != nil && within.most.Load() > 2 {
				t.Errorf("%d units at a time of a model that another calls, want 2 at most", within.most.Load())
			}
		})
	}
	wg.Wait()
	if most := all.most.Load(); most > procs {
		t.Errorf("%d units at a time on %d processors", most, procs)
	}
}

// TestRunWaitsWithItsContext has a run that waits for its turn until its context
// ends.
func TestRunWaitsWithItsContext(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := New()
	p := program(t, `program @p {
		%x = parameter "x" : f32[8]
		return neg(%x)
	}`)
	in := uploaded(t, b, p, randomInputs(p))
	defer release(in)
	begun, end := make(chan struct{}), make(chan struct{})
	long, other := mustPlan(t, b, p, backend.CompileOptions{}), mustPlan(t, b, p, backend.CompileOptions{})
	long.plan.Steps = append(long.plan.Steps, step{Payload: work{n: 1, grain: 1, run: func(_, _ int) { close(begun); <-end }}})
	done := make(chan struct{})
	go func() { outputs(t, long, in); close(done) }()
	<-begun
	ended, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	go func() { _, err := other.Run(ended, in, nil); failed <- err }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a run that waits ends with %v", err)
	}
	close(end)
	<-done
	outputs(t, other, in)
}
