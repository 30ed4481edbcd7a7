package limit

import (
	"strings"
	"testing"
	"unsafe"
)

func TestMeasure(t *testing.T) {
	for _, threads := range []int{1, 2} {
		m := Measure(threads, 1<<12)
		if m.Threads != threads || m.Triad <= 0 || m.Stream <= 0 || (native() != nil) != (m.FLOPS > 0) {
			t.Errorf("%+v", m)
		}
		if !strings.Contains(m.String(), m.ISA) {
			t.Errorf("%q", m.String())
		}
	}
}

func TestSeconds(t *testing.T) {
	m := Machine{FLOPS: 100, Triad: 10, Stream: 20}
	for _, c := range []struct{ flop, bytes, want float64 }{{200, 20, 2}, {200, 60, 3}, {0, 0, 0}} {
		if got := m.Seconds(c.flop, c.bytes); got != c.want {
			t.Errorf("%v FLOP and %v bytes take %v s, want %v", c.flop, c.bytes, got, c.want)
		}
	}
	if got := (Machine{Triad: 10, Stream: 10}).Seconds(1e9, 20); got != 2 {
		t.Errorf("without FLOPS %v", got)
	}
}

// TestLoops checks that the loops compute what is counted, and no more.
func TestLoops(t *testing.T) {
	l := native()
	if l == nil {
		t.Skip("this processor or build has no vector loops")
	}
	unit := vectors * l.lanes
	for name, f := range map[string]func(a, b, c *float32, rounds int){"triad": l.triad, "stream": l.stream} {
		a, b, c := aligned(3*unit), aligned(3*unit), aligned(3*unit)
		for i := range a {
			a[i], b[i], c[i] = -1, float32(i), float32(2*i)
		}
		f(&a[0], &b[0], &c[0], 2)
		for i, v := range a {
			if want := float32(3 * i); i < 2*unit && v != want || i >= 2*unit && v != -1 {
				t.Errorf("%s: element %d is %v", name, i, v)
			}
		}
	}
	l.multiply(1)
}

func TestParts(t *testing.T) {
	x := aligned(1000)
	if uintptr(unsafe.Pointer(&x[0]))%64 != 0 {
		t.Error("not at a cache line")
	}
	n := 0
	for i := range 3 {
		p := part(x, i, 3, 64)
		if len(p)%64 != 0 {
			t.Errorf("part %d has %d elements", i, len(p))
		}
		n += len(p)
	}
	if n != 960 {
		t.Errorf("%d elements in all parts", n)
	}
}
