package main

import (
	"encoding/binary"
	"math"
	"testing"

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
	for _, args := range [][]string{{}, {"--threads", "0", "m"}, {"--rounds", "0", "m"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
