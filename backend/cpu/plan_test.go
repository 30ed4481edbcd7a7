package cpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/sanitizer"
)

var ctx = context.Background()

// program parses the text form, with the casts of promotion in place.
func program(t testing.TB, text string) *graph.Program {
	t.Helper()
	p, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustCompile(t testing.TB, b *Backend, text string, aliases ...backend.Alias) *model {
	t.Helper()
	m, err := compile(b, program(t, text), backend.CompileOptions{Aliases: aliases})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// upload makes inputs for all parameters of a model; element i of each is i
// modulo 3.
func upload(t testing.TB, b *Backend, m *model) []backend.Buffer {
	t.Helper()
	var in []backend.Buffer
	for _, q := range m.spec.Inputs {
		buf := must(b.mem.New(q.Shape, Device))
		switch q.Shape.DType() {
		case ir.F32:
			for i, s := 0, hostmem.Slice[float32](buf); i < len(s); i++ {
				s[i] = float32(i % 3)
			}
		case ir.I64:
			for i, s := 0, hostmem.Slice[int64](buf); i < len(s); i++ {
				s[i] = int64(i % 3)
			}
		default:
			t.Fatalf("no data for %v", q.Shape)
		}
		in = append(in, buf)
	}
	return in
}

func release(bufs []backend.Buffer) {
	for _, b := range bufs {
		b.Release()
	}
}

// TestSteps counts the steps of small Programs without native kernels: what must
// run together and what must move nothing.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name, text string
		steps      int
	}{
		{"a chain is one step", `program @p {
			%x = parameter "x" : f32[8,4]
			%y = parameter "y" : f32[4]
			%0 = relu(add(mul(%x, %y), %x))
			return %0
		}`, 1},
		{"several results of one step", `program @p {
			%x = parameter "x" : f32[8,4]
			%0 = exp(%x)
			%1 = neg(%0)
			return %0, %1
		}`, 1},
		{"constants take no step", `program @p {
			%x = parameter "x" : f32[8,4]
			%0 = mul(%x, full([8,4], 2.0, f32))
			return %0
		}`, 1},
		{"views feed pointwise ops and products as they are", `program @p {
			%x = parameter "x" : f32[8,6]
			%y = parameter "y" : f32[8,6]
			%0 = permute(%x, [1,0])
			%1 = matmul(%0, %y)
			%2 = add(%1, permute(%1, [1,0]))
			%3 = mul(slice(%2, 0, 0, 3, 1), flip(slice(%2, 0, 3, 6, 1), [0]))
			return %3
		}`, 3}, // product, sum, product of slices
		{"a group ends where it is reduced", `program @p {
			%x = parameter "x" : f32[8,4]
			%0 = exp(%x)
			%1 = div(%0, sum(%0, [1], true))
			return %1
		}`, 3},
		{"groups of different dimensions", `program @p {
			%x = parameter "x" : f32[8,4]
			%y = parameter "y" : f32[4]
			%0 = neg(%y)
			%1 = exp(%0)
			%2 = mul(%x, %1)
			return %2
		}`, 2},
		{"a returned parameter is copied", `program @p {
			%x = parameter "x" : f32[8,4]
			return %x
		}`, 1},
		{"a value returned twice is copied once", `program @p {
			%x = parameter "x" : f32[8,4]
			%0 = neg(%x)
			return %0, %0
		}`, 2},
		{"a reshaped result is not copied", `program @p {
			%x = parameter "x" : f32[8,4]
			%0 = reshape(neg(%x), [32])
			return %0
		}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := mustCompile(t, NewPortable(), c.text); len(m.plan.Steps) != c.steps {
				t.Errorf("%d steps, want %d", len(m.plan.Steps), c.steps)
				logSteps(t, m)
			}
		})
	}
}

// TestWorkspace checks that memory is used again and that steps write in place.
func TestWorkspace(t *testing.T) {
	const bytes = 1000 * 4
	for _, c := range []struct {
		name, text string
		workspace  int
	}{
		{"only an output", `program @p {
			%x = parameter "x" : f32[1000]
			return neg(%x)
		}`, 0},
		{"in place into the output", `program @p {
			%x = parameter "x" : f32[1000]
			%0 = cumsum(%x, 0)
			return neg(%0)
		}`, 0},
		{"two at a time", `program @p {
			%x = parameter "x" : f32[1000]
			%0 = cumsum(%x, 0)
			%1 = cumsum(%0, 0)
			%2 = cumsum(%1, 0)
			%3 = cumsum(%2, 0)
			return cumsum(%3, 0)
		}`, 2 * bytes},
		{"a strided reader keeps its operand", `program @p {
			%x = parameter "x" : f32[1000]
			%0 = cumsum(%x, 0)
			return add(%0, flip(%0, [0]))
		}`, bytes},
		{"a scatter writes into a dead operand", `program @p {
			%x = parameter "x" : f32[1000]
			%i = parameter "i" : i64[5]
			%0 = cumsum(%x, 0)
			return index_add(%0, 0, %i, slice(%x, 0, 0, 5, 1))
		}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustCompile(t, New(), c.text).plan.Workspace
			if want := (c.workspace + 2*lineBytes - 1) / lineBytes * lineBytes; got > want {
				t.Errorf("the workspace has %d bytes, want %d", got, c.workspace)
			}
		})
	}
}

// TestDonation checks that an output takes the memory of a donated input where
// that is safe, and that nothing changes where it is not.
func TestDonation(t *testing.T) {
	const update = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[100]
		return sub(%w, %g)
	}`
	const strided = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[100]
		return add(sub(%w, %g), flip(%w, [0]))
	}`
	const reshaped = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[10,10]
		return mul(%g, reshape(cumsum(%w, 0), [10,10]))
	}`
	const lines = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[7,100]
		return sub(%w, sum(%g, [0]))
	}`
	const rows = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[100,7]
		return sub(%w, sum(%g, [1]))
	}`
	const readLater = `program @p {
		%w = parameter "w" : f32[100]
		%g = parameter "g" : f32[7,100]
		%t = tanh(sum(%g, [0]))
		return %t, mul(%w, %t)
	}`
	for _, c := range []struct {
		name, text string
		donate     bool
		taken      bool
	}{
		{"taken", update, true, true},
		{"one for each column", lines, true, true},
		{"one for each row", rows, true, true},
		{"read after it is computed", readLater, true, true},
		{"not donated", update, false, false},
		{"read in another order", strided, true, false},
		{"other dimensions", reshaped, true, false}, // %w is read while the output is written
	} {
		t.Run(c.name, func(t *testing.T) {
			hostmem.CheckLeaks(t)
			b := New()
			m := mustCompile(t, b, c.text, backend.Alias{Input: 0, Output: 0})
			plain := mustCompile(t, b, c.text)
			in := upload(t, b, m)
			want, err := plain.Run(ctx, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Run(ctx, in, []bool{c.donate, false})
			if err != nil {
				t.Fatal(err)
			}
			if same := got[0] == in[0]; same != c.taken {
				t.Errorf("the output is the donated input: %v, want %v", same, c.taken)
			}
			for k := range want {
				g, w := hostmem.Slice[float32](got[k].(*hostmem.Buffer)), hostmem.Slice[float32](want[k].(*hostmem.Buffer))
				if !slices.Equal(g, w) {
					t.Errorf("result %d is %v, want %v", k, g, w)
				}
			}
			release(in)
			release(got)
			release(want)
		})
	}
}

// TestDonatedTwice checks that a buffer given as two inputs is not overwritten.
func TestDonatedTwice(t *testing.T) {
	b := New()
	m := mustCompile(t, b, `program @p {
		%w = parameter "w" : f32[4]
		%g = parameter "g" : f32[4]
		return sub(%w, %g), neg(%g)
	}`, backend.Alias{Input: 0, Output: 0})
	in := upload(t, b, m)
	out, err := m.Run(ctx, []backend.Buffer{in[1], in[1]}, []bool{true, false})
	if err != nil {
		t.Fatal(err)
	}
	if got := hostmem.Slice[float32](out[1].(*hostmem.Buffer)); got[1] != -1 || got[2] != -2 {
		t.Errorf("the second use of the donated buffer gives %v", got)
	}
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       error
		words      []string
	}{
		{"index", `program @p {
			%x = parameter "x" : f32[2]
			%i = parameter "i" : i64[9]
			return index_select(%x, 0, %i)
		}`, ir.ErrIndex, []string{"index_select", "index 2", "size 2"}},
		{"division in a group", `program @p {
			%i = parameter "i" : i64[9]
			return neg(floor_divide(add(%i, %i), %i))
		}`, ir.ErrZeroDivision, []string{"floor_divide"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			hostmem.CheckLeaks(t)
			b := New()
			m := mustCompile(t, b, c.text)
			in := upload(t, b, m)
			defer release(in)
			for range 2 { // a model survives its errors
				_, err := m.Run(ctx, in, nil)
				if !errors.Is(err, c.kind) {
					t.Fatalf("got %v, want an error wrapping %v", err, c.kind)
				}
				for _, w := range append(c.words, `program "p"`) {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q does not say %q", err, w)
					}
				}
			}
		})
	}
}

// TestErrorLine checks that an error names the line of the user's call.
func TestErrorLine(t *testing.T) {
	in := graph.NewParams([]graph.Param{{Name: "x", Shape: ir.MakeShape(ir.F32, 2)}, {Name: "i", Shape: ir.MakeShape(ir.I64, 9)}})
	b := &ir.Builder{}
	y := b.IndexSelect(in[0], 0, in[1])
	be := New()
	m, err := compile(be, graph.FromValues("p", in, []ir.Value{y}), backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = m.Run(ctx, upload(t, be, m), nil); err == nil || !strings.Contains(err.Error(), "plan_test.go:") {
		t.Errorf("the error is %v, without the line", err)
	}
}

func TestClosedAndCancelled(t *testing.T) {
	b := New()
	m := mustCompile(t, b, `program @p {
		%x = parameter "x" : f32[4]
		return neg(%x)
	}`)
	in := upload(t, b, m)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Run(done, in, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := m.Run(ctx, in, nil); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestSteadyState checks that a repeated Run allocates its outputs and little
// else, and leaves nothing behind.
func TestSteadyState(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	b := New()
	m := mustCompile(t, b, `program @p {
		%x = parameter "x" : f32[16,16]
		%y = parameter "y" : f32[16,16]
		%0 = matmul(%x, %y)
		%1 = exp(sub(%0, amax(%0, [1], true)))
		%2 = div(%1, sum(%1, [1], true))
		return matmul(%2, permute(%y, [1,0]))
	}`)
	in := upload(t, b, m)
	before := b.mem.BytesInUse(Device)
	run := func() {
		out, err := m.Run(ctx, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		release(out)
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 8 {
		t.Errorf("%v allocations a run", n)
	}
	if got := b.mem.BytesInUse(Device); got != before {
		t.Errorf("%d bytes are in use, %d before", got, before)
	}
}

// TestConcurrentModels runs several models, and one model from several
// goroutines, at once.
func TestConcurrentModels(t *testing.T) {
	b := Split(New())
	text := `program @p {
		%x = parameter "x" : f32[30,30]
		%0 = matmul(%x, %x)
		return sum(add(%0, relu(%0)))
	}`
	shared := mustCompile(t, b, text)
	in := upload(t, b, shared)
	want, err := shared.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := hostmem.Slice[float32](want[0].(*hostmem.Buffer))[0]
	var wg sync.WaitGroup
	for g := range 6 {
		m := shared
		if g%2 == 0 {
			m = mustCompile(t, b, text)
		}
		wg.Go(func() {
			for range 20 {
				out, err := m.Run(ctx, in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if got := hostmem.Slice[float32](out[0].(*hostmem.Buffer))[0]; got != w {
					t.Errorf("got %v, want %v", got, w)
				}
				release(out)
			}
		})
	}
	wg.Wait()
}

// TestUnsupported checks that composites are refused, not miscomputed.
func TestUnsupported(t *testing.T) {
	_, err := compile(New(), program(t, `program @p {
		%x = parameter "x" : f32[4]
		return softmax(%x, 0)
	}`), backend.CompileOptions{})
	if !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// must returns the buffer of an allocation that cannot fail.
func must[B any](b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}
