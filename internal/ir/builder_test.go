package ir

import (
	"errors"
	"slices"
	"testing"
)

// Unary, Binary and BinaryNumber are short ways of Call: they record the same
// nodes.
func TestFastPathsRecordWhatCallDoes(t *testing.T) {
	operands := []Value{
		tensor(Bool, 2), tensor(U8), tensor(I64, 2), tensor(F16, 2), tensor(BF16), tensor(F32, 2), tensor(F64),
	}
	for _, v := range []any{2, 0.5, true} {
		n, _ := ScalarValue(v)
		operands = append(operands, n)
	}
	try := func(fn func() Value) (v Value, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(*OpError)
			}
		}()
		return fn(), nil
	}
	check := func(sp *Spec, fast, slow func() Value) {
		t.Helper()
		got, err := try(fast)
		want, wantErr := try(slow)
		switch {
		case (err == nil) != (wantErr == nil) || errors.Unwrap(err) != errors.Unwrap(wantErr):
			t.Errorf("%s: %v, Call: %v", sp.Name, err, wantErr)
		case err == nil && (got.Hash() != want.Hash() || got.Shape() != want.Shape()):
			t.Errorf("%s of %v: %v, Call: %v", sp.Name, shapesOf(got.Node.Inputs()), got.Shape(), want.Shape())
		}
	}
	fast, slow := NewRecorder(), Builder{}
	for _, sp := range Ops() {
		if !sp.pure || len(sp.Schema.Returns) != 1 {
			continue
		}
		for _, x := range operands {
			switch len(sp.Schema.Params) {
			case 1:
				check(sp, func() Value { return fast.Unary(sp.Op, x) }, func() Value { return slow.Call1(sp.Op, []any{x}) })
			case 2:
				for _, y := range operands {
					check(sp, func() Value { return fast.Binary(sp.Op, x, y) }, func() Value { return slow.Call1(sp.Op, []any{x, y}) })
				}
				for _, n := range []any{2, 0.5, true} {
					check(sp, func() Value { v, _ := fast.BinaryNumber(sp.Op, x, n, false); return v }, func() Value { return slow.Call1(sp.Op, []any{x, n}) })
					check(sp, func() Value { v, _ := fast.BinaryNumber(sp.Op, x, n, true); return v }, func() Value { return slow.Call1(sp.Op, []any{n, x}) })
				}
			}
		}
	}
}

// An op that is recorded with other sizes has the line of the op that stood in its place, also behind
// nodes whose line a gradient has set.
func TestLinesOfOtherSizes(t *testing.T) {
	b := NewRecorder()
	var lines [2][]uintptr
	for step, n := range []int{2, 3} {
		x := NewLeaf(nil, MakeShape(F32, n), Device{}).Out(0)
		y := b.Unary(byName["neg"], x)
		b.Line = 1
		z := b.Unary(byName["exp"], y)
		b.Line = 0
		var w Value
		if step == 0 {
			w = b.Binary(byName["add"], z, y)
		} else {
			w = b.Binary(byName["add"], z, y)
		}
		if w.Dim(0) != n {
			t.Fatalf("the result is %v", w.Shape())
		}
		lines[step] = []uintptr{y.Node.Line(), z.Node.Line(), w.Node.Line()}
		b.NextStep()
	}
	if !slices.Equal(lines[0], lines[1]) || lines[0][1] != 1 || lines[0][2] == 0 {
		t.Errorf("the lines are %v, with other sizes %v", lines[0], lines[1])
	}
	x := NewLeaf(nil, MakeShape(F32, 4), Device{}).Out(0)
	if other := b.Unary(byName["exp"], x).Node.Line(); other == lines[0][0] || other == 0 {
		t.Errorf("another op in the place has line %d", other)
	}
}

// What is recorded aside finds what was recorded so before, wherever the step is, and leaves the step
// where it is.
func TestAside(t *testing.T) {
	b := NewRecorder()
	x := NewLeaf(&ScalarLeaf{}, MakeShape(F32, 2), Device{}).Out(0)
	var aside, after []*entry
	for range 2 {
		for range 2 {
			b.Unary(byName["neg"], x)
			back := b.Aside()
			aside = append(aside, b.Unary(byName["exp"], x).Node.e)
			back()
		}
		after = append(after, b.Unary(byName["exp"], x).Node.e)
		b.NextStep()
	}
	for _, e := range aside {
		if e != aside[0] {
			t.Error("an op recorded aside is not found again")
		}
	}
	if after[0] != after[1] || after[0] == aside[0] {
		t.Error("the step has lost its place")
	}
}
