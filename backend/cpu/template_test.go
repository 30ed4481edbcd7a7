package cpu

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/randprog"
)

// A Program that differs from an earlier one in sizes only has the plan and the results, bit for bit, of
// one that is compiled where nothing is known.
func TestSizesOfKnownStructure(t *testing.T) {
	programs := uint64(80)
	if longtest.Enabled() {
		programs = 600
	}
	for _, mode := range []struct {
		name string
		make func() *Backend
	}{{"as it is", New}, {"in tiny pieces", func() *Backend { return Split(New()) }}} {
		t.Run(mode.name, func(t *testing.T) {
			known, fresh := mode.make(), mode.make()
			if known.engine == nil {
				t.Skip("a portable backend keeps nothing")
			}
			followed := 0
			for seed := range programs {
				followed += compareSizes(t, seed, known, fresh)
			}
			t.Logf("%d Programs were of known structure", followed)
			if followed < int(programs)/2 {
				t.Errorf("only %d Programs were of known structure", followed)
			}
		})
	}
}

// compareSizes compiles a random program in several sizes with two backends, of which one learns. It
// returns how many had a script.
func compareSizes(t *testing.T, seed uint64, known, fresh *Backend) (followed int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	src := randprog.New(seed, randprog.Options{Stmts: 4 + int(seed%40), NoRandom: true, NoCarry: true})
	ts := graph.NewTemplates()
	data := func(i int) []byte {
		if i >= len(src.Inputs) { // a number of a statement
			return nil
		}
		return src.Inputs[i].Data
	}
	for k := range 8 {
		p := randprog.Sized(src, rng, k)
		if p != nil && compareCompiled(t, p, ts, known, fresh, data) {
			followed++
		}
	}
	return followed
}

// compareCompiled compiles a Program with two backends, of which one learns, and runs it on elements
// that data repeats. It reports whether there was a script.
func compareCompiled(t *testing.T, p *graph.Program, ts *graph.Templates, known, fresh *Backend, data func(i int) []byte) (followed bool) {
	t.Helper()
	plain, _ := graph.Optimize(p, graph.Options{Supports: fresh.Supports})
	sized, _ := graph.Optimize(p, graph.Options{Supports: known.Supports, Templates: ts})
	of := sized.Template()
	followed = of != nil && known.engine.script(of) != nil
	want, wantErr := compile(fresh, plain, backend.CompileOptions{})
	got, gotErr := compile(known, sized, backend.CompileOptions{})
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("%s\n%v, where nothing is known %v", plain, gotErr, wantErr)
	}
	if wantErr != nil {
		return followed
	}
	if g, w := got.plan.String(), want.plan.String(); g != w {
		t.Fatalf("%s\nis planned as\n%swhere nothing is known\n%s", plain, g, w)
	}
	for i := range got.plan.Steps {
		g, w := got.plan.Steps[i].Payload, want.plan.Steps[i].Payload
		if g.n != w.n || g.grain != w.grain {
			t.Fatalf("%s\nstep %d is %d units, %d for a goroutine, where nothing is known %d and %d", plain, i, g.n, g.grain, w.n, w.grain)
		}
	}
	g, gotErr := runOn(known, got, data)
	w, wantErr := runOn(fresh, want, data)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%s\nends with %v, where nothing is known with %v", plain, gotErr, wantErr)
	}
	for i := range w {
		if g, w := g[i].(*hostmem.Buffer).Data(), w[i].(*hostmem.Buffer).Data(); !bytes.Equal(g, w) {
			t.Fatalf("%s\nresult %d is %x, where nothing is known %x", plain, i, g, w)
		}
	}
	return followed
}

// runOn runs a model on elements that data repeats.
func runOn(b *Backend, m *model, data func(i int) []byte) ([]backend.Buffer, error) {
	var in []backend.Buffer
	for i, q := range m.spec.Inputs {
		all := make([]byte, q.Shape.Bytes())
		if of := data(i); len(of) > 0 {
			for n := 0; n < len(all); n += copy(all[n:], of) {
			}
		}
		in = append(in, must(b.Upload(ctx, q.Shape, Device, all)))
	}
	return m.Run(ctx, in, make([]bool, len(in)))
}

// What is decided by more than which sizes are equal is decided anew: the number in the place of N is 0
// or 1, a constant makes an activation, lines are cut into parts, strides go together or not.
func TestSizesThatDecide(t *testing.T) {
	for _, c := range []struct {
		name, text string
		numbers    []string
	}{
		{"flipped", `%x = parameter "x" : f32[N,5]
			return flip(%x, [0]), neg(flip(%x, [0]))`, []string{"3", "4", "1", "6", "0", "5"}},
		{"broadcast", `%x = parameter "x" : f32[N,5]
			%y = parameter "y" : f32[3,5]
			return add(expand(slice(%x, 0, 0, 1, 1), [3,5]), %y)`, []string{"4", "7", "1", "3", "6", "2"}},
		{"neutral", `%x = parameter "x" : f32[5]
			return mul(%x, full([], N, f32)), add(%x, full([], N, f32))`, []string{"3", "4", "1", "6", "0", "5"}},
		{"merged constants", `%x = parameter "x" : f32[5]
			return mul(%x, full([], N, f32)), add(%x, full([], 7, f32)), full([5], 7, f32)`, []string{"3", "4", "7", "6", "7"}},
		{"computed constants", `%x = parameter "x" : f32[5]
			return mul(%x, mul(full([], N, f32), full([], 3, f32))), mul(%x, full([], 12, f32))`, []string{"3", "5", "4", "6", "12"}},
		{"activation", `%x = parameter "x" : f32[4,6]
			%w = parameter "w" : f32[6,8]
			%m = matmul(%x, %w)
			return mul(mul(%m, full([], N, f32)), add(erf(mul(%m, full([], 0.7071067811865476, f32))), full([], 1.0, f32)))`, []string{"0.25", "0.3", "0.4", "0.5", "0.7"}},
		{"parts", `%x = parameter "x" : f32[N]
			%y = exp(%x)
			return sum(%y), argmax(%y, 0), %y`, []string{"1000", "1200", "1300", "70000", "80000", "1400"}},
		{"strides", `%x = parameter "x" : f32[12,7]
			%z = parameter "z" : f32[4,N]
			return add(reshape(sum(%x, [1]), [4,3]), slice(%z, 1, 0, N, 2))`, []string{"5", "6", "5", "6", "5"}},
		{"as many elements", `%x = parameter "x" : f32[N,6]
			%y = parameter "y" : f32[3,8]
			return add(reshape(sum(exp(%x), [1]), [N]), full([1], 2.0, f32)), exp(%y)`, []string{"5", "7", "24", "9", "4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			known, fresh, ts := New(), New(), graph.NewTemplates()
			if known.engine == nil {
				t.Skip("a portable backend keeps nothing")
			}
			for _, n := range c.numbers {
				text := "program @p {\n" + strings.NewReplacer("[N", "["+n, ",N]", ","+n+"]", ", N,", ", "+n+",").Replace(c.text) + "\n}"
				compareCompiled(t, program(t, text), ts, known, fresh, func(i int) []byte { return noiseBytes })
			}
		})
	}
}

// noiseBytes are elements of f32.
var noiseBytes = func() (data []byte) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 1023 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(rng.Float32()*2-0.5))
	}
	return data
}()
