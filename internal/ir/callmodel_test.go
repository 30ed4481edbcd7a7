package ir

import (
	"errors"
	"testing"
)

func TestParseShapes(t *testing.T) {
	shapes := []Shape{MakeShape(F32, 8, 10), MakeShape(I64), MakeShape(Bool, 0)}
	text := string(AppendShapes(nil, shapes))
	got, err := parseShapes(text)
	if err != nil || len(got) != 3 || got[0] != shapes[0] || got[1] != shapes[1] || got[2] != shapes[2] {
		t.Errorf("%q reads as %v, %v", text, got, err)
	}
	for _, bad := range []string{"f32", "f32[", "f32[1", "[1]", "f33[1]", "f32[a]", "f32[1,]", "f32[-1]", "f32[1] i64"} {
		if got, err := parseShapes(bad); err == nil {
			t.Errorf("%q reads as %v", bad, got)
		}
	}
}

func TestCallModelRecords(t *testing.T) {
	b := NewRecorder()
	x := tensor(F32, 2)
	out := b.Call(opCallModel, []any{[]Value{x, x}, 7, "f32[3] i64[]"})
	if len(out) != 2 || out[0].Shape() != MakeShape(F32, 3) || out[1].Shape() != MakeShape(I64) {
		t.Errorf("recorded %v", out)
	}
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, ErrArg) {
				t.Errorf("outputs that are no shapes: %v", err)
			}
		}()
		b.Call(opCallModel, []any{[]Value{x}, 7, "what"})
	}()
	// Equal uses of other ops become one when they are compiled; not of this one.
	c := NewConsing(0)
	use := func(op Op, args ...any) *Node { return c.Call(op, args)[0].Node }
	if first, second := use(opNeg, x), use(opNeg, x); first != second {
		t.Error("two equal nodes of neg")
	}
	first, second := use(opCallModel, []Value{x}, 7, "f32[]"), use(opCallModel, []Value{x}, 7, "f32[]")
	if first == second {
		t.Error("two uses of a model became one")
	}
	for _, sp := range Ops() {
		if sp.Op == opCallModel {
			t.Error("call_model is listed among the ops")
		}
	}
}
