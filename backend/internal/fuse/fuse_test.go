package fuse_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// plans are backends that answer Groups in different ways.
func plans() map[string]*planned {
	return map[string]*planned{
		"whole":                {Backend: ref.New(), parts: 1},
		"lines side by side":   {Backend: ref.New(), parts: 1, short: 1 << 20},
		"short lines":          {Backend: ref.New(), parts: 2, short: 5},
		"lines cut in three":   {Backend: ref.New(), parts: 3},
		"small kernels only":   {Backend: ref.New(), parts: 1, most: 2},
		"small, cut in two":    {Backend: ref.New(), parts: 2, most: 2},
		"no sum, tanh or exp":  {Backend: ref.New(), parts: 1, without: []ir.Op{aten.Sum, aten.Tanh, aten.Exp}},
		"no kernels":           {Backend: ref.New(), parts: 1, most: -1},
		"no kernel with a mul": {Backend: ref.New(), parts: 5, without: []ir.Op{aten.Mul}},
	}
}

// TestRandomPrograms computes random Programs as they are planned.
func TestRandomPrograms(t *testing.T) {
	n := uint64(400)
	if !longtest.Enabled() {
		n = 60
	}
	for name, b := range plans() {
		t.Run(name, func(t *testing.T) {
			for seed := range n {
				if err := backendtest.CheckProgram(seed, 5+int(seed%30), ref.Device, b); err != nil {
					t.Errorf("program %d: %v", seed, err)
				}
			}
			if b.most >= 0 && b.seen.kernels == 0 || b.parts > 1 && b.seen.parts != b.parts || b.most < 0 && b.seen.unfused == 0 {
				t.Errorf("only this was seen: %+v", b.seen)
			}
		})
	}
}

// TestPlans counts what Programs come to.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name, text string
		parts      int
		want       seen
	}{
		{"a chain", `
			%x = parameter "x" : f32[6,24]
			return relu(mul(exp(%x), %x))`, 1, seen{kernels: 1, passes: 1, parts: 1}},
		{"softmax", `
			%x = parameter "x" : f32[6,24]
			return softmax(%x, -1)`, 1, seen{kernels: 1, passes: 3, parts: 1}},
		{"softmax in parts", `
			%x = parameter "x" : f32[6,24]
			return softmax(%x, -1)`, 2, seen{kernels: 5, passes: 1, parts: 2}},
		{"a value in the way of both dimensions", `
			%x = parameter "x" : f32[6,4,5]
			%y = parameter "y" : f32[5,6,4]
			return sum(mul(%x, permute(%y, [1,2,0])), [1,2])`, 1, seen{kernels: 1, passes: 1, parts: 1, copies: 1}},
		{"reductions of different dimensions", `
			%x = parameter "x" : f32[6,24]
			return sum(exp(%x), [1]), sum(exp(%x), [0])`, 1, seen{kernels: 2, passes: 1, parts: 1}},
		{"in its place", `
			%x = parameter "x" : f32[6,24]
			return cat([exp(%x), %x], 1)`, 1, seen{kernels: 1, passes: 1, parts: 1, placed: 1}},
		{"an op without code", `
			%x = parameter "x" : f32[6,24]
			%0 = exp2(neg(%x))
			return mul(%0, %x), exp2(%0)`, 1, seen{kernels: 2, passes: 1, parts: 1, unfused: 2}},
		{"a reduction without code", `
			%x = parameter "x" : f32[6,24]
			return neg(prod(neg(%x), [1]))`, 1, seen{kernels: 2, passes: 1, parts: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &planned{Backend: ref.New(), parts: c.parts, without: []ir.Op{aten.Exp2, aten.Prod}}
			p, err := graph.Parse("program @p {" + c.text + "\n}")
			if err != nil {
				t.Fatal(err)
			}
			p, _ = graph.Optimize(p, graph.Options{Supports: b.Supports})
			data := make([][]byte, len(p.Params))
			var in []backend.Buffer
			for i, q := range p.Params {
				data[i] = make([]byte, q.Shape.Bytes())
				for k := range data[i] {
					data[i][k] = byte(k % 60) // small numbers in any dtype
				}
				x, err := b.Upload(context.Background(), q.Shape, ref.Device, data[i])
				if err != nil {
					t.Fatal(err)
				}
				in = append(in, x)
			}
			m, err := b.Compile(context.Background(), p, ref.Device, backend.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Run(context.Background(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b.seen != c.want {
				t.Errorf("there were %+v, want %+v", b.seen, c.want)
			}
			want, err := ref.Eval(p, data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				raw, _ := got[i].Bytes(context.Background())
				compare(t, got[i].Shape().DType(), raw, want[i])
			}
		})
	}
}

func compare(t *testing.T, d ir.DType, got, want []byte) {
	t.Helper()
	x, y := elements.DecodeFloats(d, got), elements.DecodeFloats(d, want)
	for i := range y {
		if !(math.Abs(x[i]-y[i]) <= 1e-5*(1+math.Abs(y[i]))) {
			t.Fatalf("element %d is %v, want %v", i, x[i], y[i])
		}
	}
}

// TestEpilogues finds what may follow products.
func TestEpilogues(t *testing.T) {
	for _, c := range []struct {
		name, text string
		act        fuse.Activation
		links      []ir.Op
		residual   bool
		left       int // instructions that are in no epilogue
	}{
		{"bias and relu", `
			%b = parameter "b" : f32[4]
			return relu(add(matmul(%x, %y), %b))`, fuse.ReLU, []ir.Op{aten.Add}, false, 0},
		{"factor, residual, tanh", `
			%s = parameter "s" : f32[]
			return tanh(add(%x, mul(matmul(%x, %y), %s)))`, fuse.Tanh, []ir.Op{aten.Mul}, true, 0},
		{"silu", `
			%0 = matmul(%x, %y)
			return mul(sigmoid(%0), %0)`, fuse.SiLU, nil, false, 0},
		{"a factor of channels", `
			%b = parameter "b" : f32[4]
			return relu(mul(matmul(%x, %y), %b))`, fuse.Identity, nil, false, 3},
		{"a product that is returned", `
			%0 = matmul(%x, %y)
			return relu(%0), %0`, fuse.Identity, nil, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := graph.Parse(`program @p {
				%x = parameter "x" : f32[4,4]
				%y = parameter "y" : f32[4,4]` + c.text + "\n}")
			if err != nil {
				t.Fatal(err)
			}
			byTail, inner := fuse.Epilogues(p, fuse.UsesOf(p), func(in *graph.Instr) (fuse.Rule, bool) {
				return fuse.Rule{Channel: 1}, in.Op == aten.MatMul
			})
			left := len(p.Instrs)
			for i, e := range byTail {
				if e == nil {
					continue
				}
				if inner[i] || !slices.Contains(e.Ops, &p.Instrs[i]) {
					t.Errorf("instruction %d is not the last of %v", i, e.Ops)
				}
				left -= len(e.Ops)
				var links []ir.Op
				for _, k := range e.Links {
					links = append(links, k.Op)
				}
				if e.Act != c.act || !slices.Equal(links, c.links) || (e.Residual != fuse.NoValue) != c.residual {
					t.Errorf("the epilogue is %+v", e)
				}
			}
			if left != c.left {
				t.Errorf("%d instructions are left, want %d", left, c.left)
			}
		})
	}
}
