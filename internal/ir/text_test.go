package ir

import (
	"errors"
	"strings"
	"testing"
)

func TestHashText(t *testing.T) {
	for _, h := range []Hash{{}, {Hi: 1}, {Lo: 1}, {Hi: 0x0123456789abcdef, Lo: 0xfedcba9876543210}, HashBytes([]byte("x"))} {
		s := h.String()
		if got, err := ParseHash(s); err != nil || got != h {
			t.Errorf("%s came back as %v, %v", s, got, err)
		}
		if got, err := ParseHash(strings.ToUpper(s)); err != nil || got != h {
			t.Errorf("%s in capitals came back as %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", strings.Repeat("0", 30), strings.Repeat("0", 34), strings.Repeat("g", 32), " " + strings.Repeat("0", 31)} {
		if h, err := ParseHash(s); err == nil || h != (Hash{}) {
			t.Errorf("%q was read as %v, %v", s, h, err)
		}
	}
}

func TestDTypeText(t *testing.T) {
	for d := Bool; d < numDTypes; d++ {
		if got, err := ParseDType(d.String()); err != nil || got != d {
			t.Errorf("%v came back as %v, %v", d, got, err)
		}
	}
	for _, s := range []string{"", "f33", "F32", "float32", Invalid.String()} {
		if d, err := ParseDType(s); !errors.Is(err, ErrDType) || d != Invalid {
			t.Errorf("%q was read as %v, %v", s, d, err)
		}
	}
}
