package cpu

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
)

func TestObserve(t *testing.T) {
	for _, c := range []struct {
		program string
		want    []Step // by step; durations are not compared
	}{
		{
			`program @p { %x = parameter "x" : f32[8,6]  %w = parameter "w" : f32[6,10]  %0 = matmul(%x, %w)  return %0 }`,
			[]Step{{Name: "matmul", Bytes: 4 * (48 + 60 + 80), FLOP: 2 * 8 * 6 * 10}},
		},
		{
			// What a product does to its results while they are in the cache is its step's, too.
			`program @p { %x = parameter "x" : f32[8,6]  %w = parameter "w" : f32[6,10]  %b = parameter "b" : f32[10]  %0 = matmul(%x, %w)  %1 = add(%0, %b)  return %1 }`,
			[]Step{{Name: "matmul+add", Bytes: 4 * (48 + 60 + 10 + 80), FLOP: 2*8*6*10 + 80}},
		},
		{
			`program @p { %x = parameter "x" : f32[100]  %0 = tanh(%x)  %1 = mul(%0, %x)  return %1 }`,
			[]Step{{Name: "tanh+mul", Bytes: 4 * 200, FLOP: 200}},
		},
		{
			`program @p { %x = parameter "x" : f32[8,6]  %0 = permute(%x, dims=[1,0])  return %0 }`,
			[]Step{{Name: "copy", Bytes: 4 * 96}},
		},
		{
			`program @p { %x = parameter "x" : f32[1,2,5,5]  %w = parameter "w" : f32[4,2,3,3]  %b = parameter "b" : f32[4]
  %0 = convolution(%x, %w, bias=%b, stride=[1,1], padding=[0,0], dilation=[1,1], transposed=false, output_padding=[0,0], groups=1)  return %0 }`,
			[]Step{{Name: "convolution", Bytes: 4 * (50 + 72 + 4 + 36), FLOP: 2 * 36 * 18}},
		},
		{
			`program @p { %q = parameter "q" : f32[2,3,4]  %k = parameter "k" : f32[2,5,4]  %v = parameter "v" : f32[2,5,6]
  %0 = scaled_dot_product_attention(%q, %k, %v)  return %0 }`,
			[]Step{{Name: "scaled_dot_product_attention", Bytes: 4 * (24 + 40 + 60 + 36), FLOP: 2 * 2 * 3 * 5 * (4 + 6)}},
		},
		{
			`program @p { %q = parameter "q" : f32[2,3,4]  %k = parameter "k" : f32[2,5,4]  %v = parameter "v" : f32[2,5,6]  %o = parameter "o" : f32[2,3,6]
  %0, %1, %2 = _scaled_dot_product_attention_backward(%o, %o, %q, %k, %v)  return %0, %1, %2 }`,
			[]Step{
				{Name: "_scaled_dot_product_attention_backward", Bytes: 4 * (24 + 40 + 60 + 6), FLOP: 2 * 2 * 3 * 5 * (3*4 + 2*6)},
				{Name: "_scaled_dot_product_attention_backward", Bytes: 4 * (2*(24+40+60) + 36 + 6), FLOP: 2 * 2 * 3 * 5 * (3*4 + 2*6)},
			},
		},
		{
			// Of a table only the rows that are looked up count.
			`program @p { %t = parameter "t" : f32[1000,4]  %i = parameter "i" : i64[3]  %0 = index_select(%t, dim=0, index=%i)  return %0 }`,
			[]Step{{Name: "index_select", Bytes: 4*12 + 4*12 + 8*3}},
		},
	} {
		b := New()
		m := mustCompile(t, b, c.program)
		var got []Step
		b.Observe(func(s Step) { got = append(got, s) })
		mustRun(t, m, upload(t, b, m)...)
		b.Observe(nil)
		mustRun(t, m, upload(t, b, m)...)
		if len(got) != len(c.want) {
			t.Errorf("%s\nsteps %+v", c.program, got)
			continue
		}
		for i, w := range c.want {
			g := got[i]
			if g.Program != "p" || g.Index != i || g.Duration <= 0 {
				t.Errorf("%s\nstep %d is %+v", c.program, i, g)
			}
			if g.Name != w.Name || g.Bytes != w.Bytes || g.FLOP != w.FLOP {
				t.Errorf("%s\nstep %d: %q of %d bytes and %d FLOP, want %q, %d, %d", c.program, i, g.Name, g.Bytes, g.FLOP, w.Name, w.Bytes, w.FLOP)
			}
		}
	}
}

// TestObserveLabels looks at the labels of a goroutine inside and after a step.
func TestObserveLabels(t *testing.T) {
	b := New()
	m := mustCompile(t, b, `program @p { %x = parameter "x" : f32[4]  %0 = neg(%x)  return %0 }`)
	labels := func() string { // of this goroutine
		var w bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&w, 1); err != nil {
			t.Error(err)
		}
		for g := range strings.SplitSeq(w.String(), "\n\n") {
			if strings.Contains(g, "TestObserveLabels") {
				return g
			}
		}
		return ""
	}
	run, inside := m.plan.Steps[0].Payload.run, ""
	m.plan.Steps[0].Payload.run = func(lo, hi int) {
		inside = labels()
		run(lo, hi)
	}
	b.Observe(func(Step) {})
	mustRun(t, m, upload(t, b, m)...)
	if !strings.Contains(inside, `"kernel":"neg"`) {
		t.Errorf("no label in\n%s", inside)
	}
	if after := labels(); strings.Contains(after, `"kernel"`) {
		t.Errorf("the label stays:\n%s", after)
	}
}

// TestObserveErrors checks that a kernel's panic is its error when observed, too.
func TestObserveErrors(t *testing.T) {
	b := New()
	m := mustCompile(t, b, `program @p { %t = parameter "t" : f32[2,4]  %i = parameter "i" : i64[3]  %0 = index_select(%t, dim=0, index=%i)  return %0 }`)
	b.Observe(func(s Step) { t.Errorf("%+v was reported", s) })
	if _, err := m.Run(ctx, upload(t, b, m), nil); err == nil || !strings.Contains(err.Error(), "index_select") {
		t.Errorf("the error is %v", err)
	}
}

func TestFlop(t *testing.T) {
	p := program(t, `program @p {
  %x = parameter "x" : f32[4,6]
  %0 = sum(%x, dim=[1])
  %1 = cumsum(%x, dim=0)
  %2, %3 = sort(%x)
  %4 = full(size=[2], value=1, dtype=f32)
  %5 = expand(%4, size=[3,2])
  %6 = exp(%x)
  return %0, %1, %2, %3, %5, %6
}`)
	want := map[string]int64{"sum": 24, "cumsum": 24, "sort": 0, "full": 0, "expand": 0, "exp": 24}
	for i := range p.Instrs {
		name := p.Instrs[i].Op.String()
		if got := flop(p, &p.Instrs[i]); got != want[name] {
			t.Errorf("%s: %d FLOP, want %d", name, got, want[name])
		}
	}
}

func mustRun(t *testing.T, m *model, in ...backend.Buffer) {
	t.Helper()
	outs, err := m.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outs {
		o.Release()
	}
}
