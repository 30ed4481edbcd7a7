package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/internal/ir"
)

func f32s(v ...float32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func TestOutputsAreHeldAgainstTheFile(t *testing.T) {
	e := &example{out: []stored{{ir.MakeShape(ir.F32, 3), f32s(1, -4, 2)}}}
	if off, err := e.off([][]byte{f32s(1, -4, 3)}); off != 0.25 || err != nil {
		t.Error(off, err)
	}
	nan := &example{out: []stored{{ir.MakeShape(ir.F32, 3), f32s(float32(math.NaN()), -4, 2)}}}
	if off, err := nan.off([][]byte{f32s(float32(math.NaN()), -4, 3)}); off != 0.25 || err != nil {
		t.Error("beside NaN", off, err)
	}
	for _, outs := range [][][]byte{{f32s(1, -4)}, {}, {f32s(1, -4, 2), f32s(1)}} {
		if _, err := e.off(outs); err == nil {
			t.Errorf("%d outputs are taken", len(outs))
		}
	}
	if off, _ := e.off([][]byte{f32s(1, -4, float32(math.NaN()))}); off <= tolerance {
		t.Error("NaN is near", off)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--threads", "0", "m"}, {"--rounds", "0", "m"}, {"--functions", "f.py"}, {"--functions", "f.py", "--python", "p", "m"},
		{"--functions", "f.py", "--python", "p", "--cpu"}, {"--functions", "f.py", "--python", "p", "--only", "("}, {"--gradients", "m"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestFunctionsByRatio(t *testing.T) {
	var b strings.Builder
	err := reportFunctions(&b, "2", settings{}, []timing{
		{name: "fast", compiled: 1, eager: 4, compile: 2}, {name: "slow", compiled: 6, eager: 3}, {name: "none", why: errors.New("refused")},
		{name: "apart", compiled: 1, eager: 1, off: 1}, {name: "rounded", why: process.ErrNone},
	})
	var order []string
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(line); len(f) > 5 && strings.Contains(f[0], ".") {
			order = append(order, f[0]+" "+f[5])
		}
	}
	if want := []string{"2.00 slow", "1.00 apart", "0.50 fast"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	if !strings.Contains(b.String(), "3 functions, median 1.00, above 1.1 1, above 1.5 1") {
		t.Error(b.String())
	}
	if !strings.Contains(b.String(), "1 have no gradient") {
		t.Error(b.String())
	}
	if s := fmt.Sprint(err); !strings.Contains(s, "none: refused") || !strings.Contains(s, "apart: results are off by 1 ") {
		t.Error(s)
	}
}
