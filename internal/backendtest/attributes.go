package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

// RunAttributes uses every op with attributes and operands at the edge of what there is: the largest
// and smallest integers, lists that are empty, long or repeat themselves, NaN, tensors without
// dimensions, without elements, of the largest rank. Each use is refused by an *ir.OpError or runs;
// nothing panics, hangs or allocates in proportion to a number. What it draws depends on the ops' names
// only.
func RunAttributes(t *testing.T, b backend.Backend, d ir.Device) {
	s := &suite{b: b, d: d}
	uses, most := 20, time.Minute
	if longtest.Enabled() {
		uses = 150
	}
	for _, sp := range ir.Ops() {
		t.Run(sp.Name, func(t *testing.T) {
			h := &hostile{rng: rand.New(rand.NewPCG(uint64(len(sp.Name)), hashOf(sp.Name)))}
			for range uses {
				h.text = ""
				// A use that hangs must be known by name.
				watch := time.AfterFunc(most, func() { panic("backendtest: " + h.text + " does not end") })
				s.attributes(t, sp, h)
				watch.Stop()
			}
		})
	}
}

func hashOf(name string) uint64 { return ir.HashBytes([]byte(name)).Lo }

// mostAllocated bounds what recording and compiling one use may allocate, in bytes.
const mostAllocated = 64 << 20

// mostRun bounds the tensors of uses that are run.
const mostRun = 1 << 16

// allocated returns the bytes that the process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (s *suite) attributes(t *testing.T, sp *ir.Spec, h *hostile) {
	rec := &ir.Builder{Lines: ir.LinesOff}
	pos := h.arguments(rec, sp)
	before := allocated()
	outs, err := use(rec, sp.Op, pos)
	if n := allocated() - before; n > mostAllocated {
		t.Errorf("%s: recording it allocates %d bytes", h.text, n)
	}
	var oe *ir.OpError
	if err != nil && !errors.As(err, &oe) {
		t.Errorf("%s: %v (%T), not an *ir.OpError", h.text, err, err)
	}
	if err != nil || len(outs) == 0 {
		return
	}
	p := graph.FromValues("attributes", h.params, outs)
	for _, shape := range p.Shapes {
		if shape.Numel() > mostRun {
			return
		}
	}
	lowered, _ := graph.Optimize(p, graph.Options{Supports: s.b.Supports})
	for _, shape := range lowered.Shapes {
		if shape.Numel() > mostRun {
			return
		}
	}
	_, err = s.run(context.Background(), lowered, h.data())
	if err == nil {
		return
	}
	if known := []error{ir.ErrIndex, ir.ErrArg, ir.ErrLinAlg, ir.ErrShape}; !isAny(err, known) || strings.Contains(err.Error(), "runtime error") {
		t.Errorf("%s: its run fails with %v", h.text, err)
	}
}

func isAny(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// use records one use of an op; what it panics with is the error.
func use(b *ir.Builder, op ir.Op, pos []any) (outs []ir.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			stack := make([]byte, 4096)
			err = fmt.Errorf("panic: %v\n%s", r.Error(), stack[:runtime.Stack(stack, false)])
		case error:
			err = r
		default:
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return b.Call(op, pos), nil
}

// hostile draws the arguments of one use.
type hostile struct {
	rng    *rand.Rand
	params []ir.Value
	inputs []input
	text   string
}

var (
	edgeInts = []int{0, 1, -1, 2, 3, -2, 7, -9, 1 << 31, -1 << 31, 1 << 40, 1 << 62, -1 << 62, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
	edgeNums = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2, 1e-300, 1e308, -1e308, math.Inf(1), math.Inf(-1), math.NaN()}
	edgeStrs = []string{"", "mean", "sum", "none", "constant", "reflect", "replicate", "circular", "amax", "prod", "tanh", "floor", "trunc",
		"ij", "xy", "linear", "ij->ji", "ij,jk->ik", "...", "->", "i", "left", "right", "ortho", "forward", "fro", "nuc", "\x00", "bilinear", "valid", "same", "reduced", "nonsense"}
	edgeDims  = [][]int{{}, {0}, {1}, {3}, {2, 3}, {3, 3}, {0, 3}, {2, 0, 3}, {2, 3, 4}, {1, 2, 4, 4}, {1, 1, 2, 3, 3}, {1, 1, 2, 1, 1, 2, 1, 3}}
	hugeDims  = [][]int{{1 << 40}, {1 << 40, 1}, {1, 1 << 40}, {1 << 20, 1 << 20, 3}, {1 << 58}, {0, 1 << 40}}
	edgeTypes = []ir.DType{ir.F32, ir.F32, ir.F32, ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I64, ir.I32, ir.U8, ir.I8, ir.Bool, ir.C64, ir.C128, ir.F8E4M3FN}
)

func pick[T any](h *hostile, list []T) T { return list[h.rng.IntN(len(list))] }

// arguments returns an argument for each parameter of the op.
func (h *hostile) arguments(b *ir.Builder, sp *ir.Spec) []any {
	h.params, h.inputs = nil, nil
	dims, d := pick(h, edgeDims), pick(h, edgeTypes)
	tame := h.rng.IntN(3) == 0 // so that other checks than the first are reached
	var pos []any
	var text []string
	for _, p := range sp.Schema.Params {
		v := h.argument(p, dims, d, tame)
		if p.HasDef && h.rng.IntN(3) == 0 {
			v = p.Default
		}
		pos = append(pos, v)
		text = append(text, show(v))
	}
	h.text = sp.Name + "(" + strings.Join(text, ", ") + ")"
	return pos
}

func show(v any) string {
	switch v := v.(type) {
	case ir.Value:
		return v.Shape().String()
	case []ir.Value:
		var s []string
		for _, x := range v {
			s = append(s, x.Shape().String())
		}
		return "[" + strings.Join(s, ", ") + "]"
	}
	return fmt.Sprintf("%v", v)
}

func (h *hostile) argument(p ir.Param, dims []int, d ir.DType, tame bool) any {
	switch p.Kind {
	case ir.KindTensor, ir.KindOptTensor:
		switch {
		case p.Name == "seed":
			return h.tensor(nil, ir.I64)
		case strings.Contains(p.Name, "index") || strings.Contains(p.Name, "indices"):
			return h.tensor(pick(h, [][]int{dims, {1}, {3}}), ir.I64)
		case h.rng.IntN(3) == 0:
			return h.tensor(pick(h, edgeDims), pick(h, edgeTypes))
		}
		return h.tensor(dims, d)
	case ir.KindTensors:
		list := []ir.Value{}
		for range h.rng.IntN(4) {
			list = append(list, h.tensor(dims, d))
		}
		return list
	case ir.KindScalar, ir.KindOptScalar, ir.KindNumber:
		if h.rng.IntN(2) == 0 {
			return pick(h, edgeInts)
		}
		return pick(h, edgeNums)
	case ir.KindFloat, ir.KindOptFloat:
		return pick(h, edgeNums)
	case ir.KindInt, ir.KindOptInt:
		return h.int(tame)
	case ir.KindInts, ir.KindOptInts:
		list := make([]int, pick(h, []int{0, 1, 1, 2, 2, 3, 4, 6, 9, 100}))
		for i := range list {
			list[i] = h.int(tame)
			if i > 0 && h.rng.IntN(4) == 0 {
				list[i] = list[i-1]
			}
		}
		return list
	case ir.KindBool:
		return h.rng.IntN(2) == 0
	case ir.KindStr:
		return pick(h, edgeStrs)
	}
	return pick(h, append(ir.DTypes(), ir.Invalid, ir.DType(255)))
}

func (h *hostile) int(tame bool) int {
	if tame || h.rng.IntN(2) == 0 {
		return h.rng.IntN(6) - 2
	}
	return pick(h, edgeInts)
}

// tensor adds an input.
func (h *hostile) tensor(dims []int, d ir.DType) ir.Value {
	var x input
	if len(dims) > 0 && h.rng.IntN(20) == 0 { // which is only recorded
		x.shape = ir.MakeShape(d, pick(h, hugeDims)...)
	} else {
		x = random(h.rng, d, dims...)
	}
	v := ir.NewLeaf(&graph.ParamLeaf{Index: len(h.params), Name: fmt.Sprintf("p%d", len(h.params))}, x.shape, ir.Device{}).Out(0)
	h.params, h.inputs = append(h.params, v), append(h.inputs, x)
	return v
}

// data returns the contents of the inputs.
func (h *hostile) data() [][]byte {
	list := make([][]byte, len(h.inputs))
	for i, x := range h.inputs {
		list[i] = x.data
	}
	return list
}
