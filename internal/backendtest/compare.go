package backendtest

import (
	"bytes"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// accuracy says how close to ref the results of an op must be. The zero value
// asks for equal numbers: integers always are, floats up to the sign of zero
// and the payload of NaN.
type accuracy struct {
	// ulps returns the allowed distance in units of the last place of a dtype; nil allows none.
	ulps func(ir.DType) float64
	// accumulates: the result is a sum or a product of many elements, which may
	// be taken in any order. Its error is measured against the same computation
	// on absolute values.
	accumulates bool
	// largest is what elements may be off by, in units in the last place of the largest element.
	largest float64
}

// transformULPs is the error of a Fourier transform, whose elements are sums of all elements of a line.
const transformULPs = 8

// accuracyOf returns what the row of an op asks for.
func accuracyOf(sp *ir.Spec) accuracy {
	a := accuracy{ulps: sp.Tolerance, accumulates: sp.Accumulates}
	if sp.Category == ir.Fourier {
		a.largest = transformULPs
	}
	return a
}

// within is the accuracy of ulps units in the last place.
func within(ulps float64) accuracy {
	return accuracy{ulps: func(ir.DType) float64 { return ulps }}
}

// epsilon returns the distance from 1 to the next number of a floating dtype,
// and the smallest positive number that results must tell from 0: subnormals
// may be flushed, except in f16, where they are common.
func epsilon(d ir.DType) (eps, tiny float64) {
	switch d {
	case ir.F16:
		return 0x1p-10, 0x1p-24
	case ir.BF16:
		return 0x1p-7, 0x1p-126
	case ir.F32:
		return 0x1p-23, 0x1p-126
	}
	return 0x1p-52, 0x1p-1022
}

// accumulateFactor bounds the error of a sum in any order, in units of the
// accumulating dtype's epsilon times the sum of absolute values.
const accumulateFactor = 32

// comparison holds outputs against what is wanted.
type comparison struct {
	accuracy
	scale [][]byte // the outputs on absolute values, if accumulates
	// rtol and atol loosen float results further, for programs of many ops.
	rtol, atol float64
}

// diff describes the first difference, or returns "".
func (c *comparison) diff(p *graph.Program, got, want [][]byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d outputs, want %d", len(got), len(want))
	}
	for o := range want {
		s := p.Shape(p.Returns[o])
		if len(got[o]) != len(want[o]) {
			return fmt.Sprintf("output %d, %v, has %d bytes, want %d", o, s, len(got[o]), len(want[o]))
		}
		if bytes.Equal(got[o], want[o]) {
			continue
		}
		if d := s.DType(); d.IsIntegral() || d == ir.C64 || d == ir.C128 {
			return diffExact(s, o, got[o], want[o])
		}
		if msg := c.diffFloats(s, o, got[o], want[o]); msg != "" {
			return msg
		}
	}
	return ""
}

func diffExact(s ir.Shape, o int, got, want []byte) string {
	size := s.DType().Size()
	for i := 0; i < len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if !bytes.Equal(g, w) {
			if s.DType().IsIntegral() {
				return fmt.Sprintf("output %d, %v, element %d is %d, want %d", o, s, i/size, elements.DecodeInts(s.DType(), g)[0], elements.DecodeInts(s.DType(), w)[0])
			}
			return fmt.Sprintf("output %d, %v, element %d is %x, want %x", o, s, i/size, g, w)
		}
	}
	return ""
}

func (c *comparison) diffFloats(s ir.Shape, o int, gotRaw, wantRaw []byte) string {
	d := s.DType()
	got, want := elements.DecodeFloats(d, gotRaw), elements.DecodeFloats(d, wantRaw)
	var scale []float64
	if c.scale != nil {
		scale = elements.DecodeFloats(d, c.scale[o])
	}
	eps, tiny := epsilon(d)
	ulps := 0.0
	if c.ulps != nil {
		ulps = c.ulps(d)
	}
	largest := 0.0
	if c.largest > 0 {
		for _, w := range want {
			largest = max(largest, math.Abs(w))
		}
	}
	accEps, _ := epsilon(ir.F64)
	if d != ir.F64 {
		accEps, _ = epsilon(ir.F32)
	}
	if d.Size() <= 2 {
		ulps = min(ulps, 1.01) // computed in f32 and rounded
	}
	bad, first := 0, ""
	for i, w := range want {
		g := got[i]
		if g == w || (g != g && w != w) {
			continue
		}
		tol := eps * (ulps*math.Abs(w) + c.largest*largest)
		if ulps > 0 {
			tol += tiny
		}
		if scale != nil {
			tol += accumulateFactor * accEps * scale[i]
		}
		tol = max(tol, c.atol+c.rtol*math.Abs(w))
		if math.Abs(g-w) <= tol {
			continue
		}
		// The largest finite number and infinity are neighbours.
		if ulps > 0 && overflowed(d, g) && overflowed(d, w) && math.Signbit(g) == math.Signbit(w) {
			continue
		}
		if bad++; bad == 1 {
			first = fmt.Sprintf("output %d, %v, element %d is %v, want %v", o, s, i, g, w)
			if !math.IsNaN(g-w) && !math.IsInf(w, 0) && w != 0 {
				first += fmt.Sprintf(" (off by %.3g ulps)", math.Abs(g-w)/(eps*math.Abs(w)))
			}
		}
	}
	if bad > 1 {
		first += fmt.Sprintf("; %d of %d elements differ", bad, len(want))
	}
	return first
}

// overflowed reports whether v is infinite or within rounding of it.
func overflowed(d ir.DType, v float64) bool {
	largest := map[ir.DType]float64{ir.F16: 65504, ir.BF16: 0x1.fep127, ir.F32: math.MaxFloat32, ir.F64: math.MaxFloat64}[d]
	eps, _ := epsilon(d)
	return math.Abs(v) >= largest*(1-64*eps)
}

// absolutes returns the inputs with the signs of all floats cleared.
func absolutes(p *graph.Program, inputs [][]byte) [][]byte {
	out := make([][]byte, len(inputs))
	for i, data := range inputs {
		out[i] = data
		if d := p.Params[i].Shape.DType(); d.IsFloat() {
			out[i] = append([]byte(nil), data...)
			for k := d.Size() - 1; k < len(data); k += d.Size() {
				out[i][k] &= 0x7f
			}
		}
	}
	return out
}
