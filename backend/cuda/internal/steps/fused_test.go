package steps

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// fusedPrograms are Programs and the steps they take.
var fusedPrograms = []struct {
	name, text string
	steps      int
}{
	{"a chain with broadcasts", `
		%x = parameter "x" : f32[7,24]
		%y = parameter "y" : f32[24]
		%z = parameter "z" : f32[7,1]
		return relu(add(mul(%x, %y), %z))`, 1},
	{"softmax", `
		%x = parameter "x" : f32[5,40]
		return softmax(%x, -1)`, 1},
	{"softmax over the first dimension", `
		%x = parameter "x" : f32[40,5]
		return softmax(%x, 0)`, 1},
	{"layer_norm in f16", `
		%x = parameter "x" : f16[3,4,24]
		%w = parameter "w" : f16[24]
		%b = parameter "b" : f16[24]
		return layer_norm(%x, [24], %w, %b)`, 2}, // with the casts of the vectors, which share a launch
	{"batch_norm in training", `
		%x = parameter "x" : f32[4,3,6,5]
		%w = parameter "w" : f32[3]
		%b = parameter "b" : f32[3]
		%0, %1, %2 = batch_norm(%x, %w, %b, None, None, training=true, momentum=0.1, eps=1e-05)
		return %0`, 1},
	{"what dies is written over", `
		%x = parameter "x" : f32[6,40]
		%0 = cumsum(%x, 1)
		%1 = exp(sub(%0, amax(%0, [1], true)))
		return sum(div(%1, sum(%1, [1], true)), [0])`, 3},
	{"dimensions that do not merge", `
		%x = parameter "x" : f32[6,4,5]
		%y = parameter "y" : f32[5,6,4]
		return sum(mul(%x, permute(%y, [1,2,0])), [1,2])`, 2},
	{"a cat of chains", `
		%x = parameter "x" : f32[6,24]
		%y = parameter "y" : f32[6,24]
		return cat([neg(%x), exp(%y), %x], 1)`, 2},
	{"integer division", `
		%x = parameter "x" : i64[6,24]
		%y = parameter "y" : i32[6,24]
		return add(floor_divide(%x, 7), remainder(cast(%y, i64), add(mul(%x, %x), 1)))`, 1},
	{"updates of parameters", `
		%w = parameter "w" : f32[6,24]
		%b = parameter "b" : f32[24]
		%c = parameter "c" : f32[3]
		%x = parameter "x" : f32[10,24]
		%0 = sum(%x, [0])
		return sub(%w, mul(%w, 0.1)), sub(%b, mul(%0, 0.1)), sub(%c, mul(%c, 0.1)), softmax(%x, -1)`, 1},
	{"indexing and arithmetic", `
		%x = parameter "x" : f32[6,8]
		%i = parameter "i" : i64[6,8]
		%y = parameter "y" : f32[24]
		%0 = remainder(mul(%i, %i), 5)
		%1 = scatter(%x, 1, slice(%0, dim=1, start=0, end=1, step=1), %x)
		return gather(%x, 0, %0), %1, neg(%y), floor_divide(%i, 3)`, 3}, // one is a copy
	{"what depends on another waits", `
		%x = parameter "x" : f32[10,24]
		%y = parameter "y" : f32[7]
		%0 = exp(%x)
		%1 = sum(reshape(%0, [16,15]), [1])
		return add(sum(%1), %y), neg(%1), %0`, 4},
	{"a view of lines", `
		%x = parameter "x" : f32[6,24]
		%0 = amax(%x, [1])
		return mul(%x, expand(reshape(%0, [6,1]), [6,24])), neg(%0)`, 1},
}

// TestFused counts the steps of Programs that fuse, and runs them.
func TestFused(t *testing.T) {
	programs := map[string]string{}
	for _, c := range fusedPrograms {
		text := "program @p {" + c.text + "\n}"
		programs[c.name] = text
		p, err := graph.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p, _ = graph.Optimize(p, graph.Options{Supports: Supports})
		s, err := Lower(p, Options{Limits: limits})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(s.Steps) != c.steps {
			t.Errorf("%s: %d steps, want %d", c.name, len(s.Steps), c.steps)
			for i := range s.Steps {
				t.Logf("%d: %v", i, s.Steps[i].Instr)
			}
		}
	}
	runPrograms(t, programs)
}

// TestFaults names the op of several in a loop that divided by 0.
func TestFaults(t *testing.T) {
	p, err := graph.Parse(`program @p {
		%x = parameter "x" : i64[6]
		return remainder(floor_divide(neg(%x), %x), add(%x, 1))
	}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Lower(p, Options{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Steps) != 1 || s.Faults != 1 || len(s.Steps[0].divisions) != 2 {
		t.Fatalf("%d steps, %d faults", len(s.Steps), s.Faults)
	}
	fault := make([]byte, FaultBytes)
	if err := s.Steps[0].Failed(fault); err != nil {
		t.Errorf("no fault gives %v", err)
	}
	for v, in := range s.Steps[0].divisions {
		binary.LittleEndian.PutUint32(fault, uint32(v)+1)
		if err := s.Steps[0].Failed(fault); !errors.Is(err, ir.ErrZeroDivision) || !strings.Contains(err.Error(), in.Op.String()) {
			t.Errorf("%v gives %v", in.Op, err)
		}
	}
}

// TestSharedFaults tells which of two kernels that share a launch left a fault.
func TestSharedFaults(t *testing.T) {
	p, err := graph.Parse(`program @p {
		%x = parameter "x" : f32[6]
		%y = parameter "y" : f32[9]
		%i = parameter "i" : i64[3]
		return gather(%x, 0, %i), gather(%y, 0, %i), neg(%y)
	}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Lower(p, Options{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Steps) != 1 || s.Faults != 2 {
		t.Fatalf("%d steps, %d faults", len(s.Steps), s.Faults)
	}
	at := map[int]bool{} // where in the memory of faults something is left
	for _, a := range s.Steps[0].Kernels.Launches[0].Addresses {
		if a.Operand == emit.Fault {
			at[a.Offset] = true
		}
	}
	if len(at) != 2 || !at[0] || !at[FaultBytes] {
		t.Errorf("faults are left at %v", at)
	}
	for fault, size := range []string{"6", "9"} {
		left := make([]byte, 2*FaultBytes)
		binary.LittleEndian.PutUint32(left[fault*FaultBytes:], 1)
		binary.LittleEndian.PutUint64(left[fault*FaultBytes+8:], 77)
		if err := s.Steps[0].Failed(left[FaultBytes*s.Steps[0].Fault:]); !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), "77") || !strings.Contains(err.Error(), size) {
			t.Errorf("fault %d gives %v", fault, err)
		}
	}
	if err := s.Steps[0].Failed(make([]byte, 2*FaultBytes)); err != nil {
		t.Errorf("no fault gives %v", err)
	}
}
