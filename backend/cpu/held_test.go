package cpu

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
)

// liveHeap returns the bytes of what can be reached. What tests before this one left is released by cleanups
// that run behind a collection, so that it takes as many as are needed for two in a row to agree.
func liveHeap() int64 {
	var m runtime.MemStats
	last := int64(-1)
	for range 20 {
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		live := int64(m.HeapAlloc)
		if change := live - last; last >= 0 && max(change, -change) < 4096 {
			break
		}
		last = live
		time.Sleep(time.Millisecond)
	}
	return int64(m.HeapAlloc)
}

// What models say that they hold is what the heap grows by, but for code, which has pages of its own
// and is shared.
func TestModelsTellWhatTheyHold(t *testing.T) {
	if New().engine == nil {
		t.Skip("no machine code here")
	}
	for name, lines := range map[string][]string{
		"a kernel":  {"sin(%%%d)"},
		"products":  {"matmul(%%%d, %%0)"},
		"activated": {"matmul(%%%d, %%0)", "relu(%%%d)"},
		"kernels":   {"matmul(%%%d, %%0)", "sin(%%%d)", "cos(%%%d)"},
	} {
		for _, n := range []int{30, 300} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				var s strings.Builder
				s.WriteString("program @p {\n%0 = parameter \"x\" : f32[64,64]\n")
				for i := range n {
					fmt.Fprintf(&s, "%%%d = "+lines[i%len(lines)]+"\n", i+1, i)
				}
				fmt.Fprintf(&s, "return %%%d\n}\n", n)
				b := New()
				make1 := func() (*model, int64) {
					p, err := graph.Parse(s.String())
					if err != nil {
						t.Fatal(err)
					}
					j := b.engine.journal(1)
					m, err := compileNoting(t.Context(), b, p, backend.CompileOptions{}, j)
					if err != nil {
						t.Fatal(err)
					}
					said := m.HeldBytes()
					for key, c := range j.codes {
						said -= codeBytes(key, c.code)
					}
					return m, said
				}
				for range 3 { // what the engine keeps is there from then on
					make1()
				}
				const many = 8
				measure := func() (grown, said int64) {
					var models []*model
					before := liveHeap()
					for range many {
						m, n := make1()
						models, said = append(models, m), said+n
					}
					grown = liveHeap() - before
					runtime.KeepAlive(models)
					return grown / many, said / many
				}
				// The rest of the process may allocate or release meanwhile: one of three measurements has to agree.
				var seen []string
				for range 3 {
					grown, said := measure()
					if ratio := float64(said) / float64(grown); ratio >= 0.75 && ratio <= 1.35 {
						return
					}
					seen = append(seen, fmt.Sprintf("hold %d bytes and say %d", grown, said))
				}
				runtime.KeepAlive(b)
				t.Errorf("models of %d ops %s", n, strings.Join(seen, "; "))
			})
		}
	}
}
