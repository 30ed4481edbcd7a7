package ir

import (
	"errors"
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
