package inference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestAsError(t *testing.T) {
	typed := Errorf(NotFound, "no model %q: %w", "m", io.EOF)
	for _, c := range []struct {
		err  error
		want Kind
	}{
		{typed, NotFound},
		{fmt.Errorf("around: %w", typed), NotFound},
		{context.Canceled, Canceled},
		{fmt.Errorf("in the queue: %w", context.DeadlineExceeded), DeadlineExceeded},
		{io.ErrUnexpectedEOF, Internal},
	} {
		if got := AsError(c.err); got.Kind != c.want {
			t.Errorf("%v: kind %d, want %d", c.err, got.Kind, c.want)
		}
	}
	if !errors.Is(typed, io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestNumElements(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		n     int64
		ok    bool
	}{
		{nil, 1, true}, {[]int64{2, 3}, 6, true}, {[]int64{1 << 40, 0}, 0, true},
		{[]int64{-1, 2}, 0, false}, {[]int64{1 << 40, 1 << 40}, 0, false}, {[]int64{0, -1}, 0, false},
	} {
		if n, ok := NumElements(c.shape); n != c.n || ok != c.ok {
			t.Errorf("%v: %d, %v", c.shape, n, ok)
		}
	}
}
