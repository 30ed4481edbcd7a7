package cpu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/loop"
)

// manyKernels is a Program of n kernels of 50 ops or so, no two alike.
func manyKernels(t *testing.T, n int) *graph.Program {
	var s strings.Builder
	s.WriteString("program @many {\n")
	for k := range n {
		fmt.Fprintf(&s, "%%%d = parameter \"p%d\" : f32[%d]\n", k, k, 64+k)
	}
	id := n
	var out []string
	for k := range n {
		x := k
		for i := range 50 {
			op := "neg" // exact in all ways to compute it
			if i < 8 && k>>i&1 == 1 {
				op = "abs"
			}
			fmt.Fprintf(&s, "%%%d = %s(%%%d)\n", id, op, x)
			x, id = id, id+1
		}
		out = append(out, fmt.Sprintf("%%%d", x))
	}
	fmt.Fprintf(&s, "return %s\n}\n", strings.Join(out, ", "))
	p, err := graph.Parse(s.String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The machine code and the plan are the same on every number of threads.
func TestEmissionDoesNotDependOnThreads(t *testing.T) {
	if New().engine == nil {
		t.Skip("no machine code here")
	}
	p := manyKernels(t, 12)
	var first string
	for _, threads := range []int{1, 2, 5} {
		b := New()
		j := b.engine.journal(0)
		m, err := compileOn(t.Context(), b, p, j, threads)
		if err != nil {
			t.Fatal(err)
		}
		var s strings.Builder
		for _, key := range slices.Sorted(maps.Keys(j.codes)) {
			text, err := j.codes[key].code.(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&s, "%x %x\n", sha256.Sum256([]byte(key)), sha256.Sum256(text))
		}
		for i := range m.plan.Steps {
			fmt.Fprintln(&s, m.plan.Steps[i].Reads, m.plan.Steps[i].Writes, m.plan.Steps[i].Payload.n, m.plan.Steps[i].Payload.grain)
		}
		if first == "" {
			first = s.String()
		}
		if s.String() != first {
			t.Errorf("%d threads give other code or another plan:\n%s\nwant\n%s", threads, s.String(), first)
		}
		if n := b.engine.compiled(); n != 12 {
			t.Errorf("%d threads: %d kernels of 12", threads, n)
		}
	}
}

// compileOn compiles on as many goroutines whatever processors there are.
func compileOn(ctx context.Context, b *Backend, p *graph.Program, j *journal, threads int) (*model, error) {
	j.emission.most = threads - 1
	return compileNoting(ctx, b, p, backend.CompileOptions{}, j)
}

// Two kernels are made at the same time, since neither ends before the other has begun.
func TestKernelsAreMadeBesideEachOther(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(2)
	b := NewDefined()
	build := b.engine.build
	b.engine.build = func(k *loop.Kernel) (executable, error) {
		begun.Done()
		begun.Wait()
		return build(k)
	}
	if _, err := compileOn(t.Context(), b, manyKernels(t, 2), b.engine.journal(0), 2); err != nil {
		t.Fatal(err)
	}
}

// A plan that counted on code which turns out not to be possible is made again, and a fault of the
// compiler of kernels is the error of the compilation.
func TestCodeThatCannotBeMade(t *testing.T) {
	refused := errors.New("not today")
	for _, threads := range []int{1, 3} {
		for name, c := range map[string]struct {
			build func(k *loop.Kernel) error
			fails string
		}{
			"long kernels": {build: func(k *loop.Kernel) error {
				if len(k.Instrs) > 20 {
					return refused
				}
				return nil
			}},
			"all":   {build: func(*loop.Kernel) error { return refused }},
			"panic": {build: func(k *loop.Kernel) error { panic("a fault") }, fails: "a fault"},
		} {
			t.Run(fmt.Sprint(name, threads), func(t *testing.T) {
				b := NewDefined()
				build := b.engine.build
				b.engine.build = func(k *loop.Kernel) (executable, error) {
					if err := c.build(k); err != nil {
						return nil, err
					}
					return build(k)
				}
				p := manyKernels(t, 4)
				for range 2 { // the second finds what is known
					m, err := compileOn(t.Context(), b, p, b.engine.journal(0), threads)
					if c.fails != "" {
						if err == nil || !strings.Contains(err.Error(), c.fails) {
							t.Fatalf("error %v, want %q", err, c.fails)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					sameAsDefined(t, m, p)
				}
			})
		}
	}
}

// sameAsDefined holds a model's results to those of the kernels' definition.
func sameAsDefined(t *testing.T, m *model, p *graph.Program) {
	t.Helper()
	want, err := compile(NewDefined(), p, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var in []backend.Buffer
	for _, q := range p.Params {
		data := make([]byte, q.Shape.Bytes())
		for i := range data {
			data[i] = byte(i) & 0x3f
		}
		buf, err := New().Upload(t.Context(), q.Shape, Device, data)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, buf)
	}
	got, err := m.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defined, err := want.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		a, _ := backend.Contents(t.Context(), got[i])
		b, _ := backend.Contents(t.Context(), defined[i])
		if string(a) != string(b) {
			t.Errorf("result %d differs", i)
		}
	}
}

// A compilation whose context ends stops between two kernels. What it has not made is made by the next.
func TestEmissionStops(t *testing.T) {
	for _, threads := range []int{1, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		b := NewDefined()
		build := b.engine.build
		b.engine.build = func(k *loop.Kernel) (executable, error) {
			cancel()
			return build(k)
		}
		p := manyKernels(t, 8)
		if _, err := compileOn(ctx, b, p, b.engine.journal(0), threads); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		if n := b.engine.compiled(); n == 0 || n > threads {
			t.Errorf("%d kernels made on %d threads", n, threads)
		}
		m, err := compileOn(t.Context(), b, p, b.engine.journal(0), threads)
		if err != nil {
			t.Fatal(err)
		}
		if n := b.engine.compiled(); n != 8 {
			t.Errorf("%d kernels of 8", n)
		}
		sameAsDefined(t, m, p)
	}
}
