package cpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	host "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// sameAsRef runs a Program with the kernels of b and by ref, on the given numbers, and compares: floats
// up to a tolerance relative to the largest result.
func sameAsRef(t *testing.T, b *Backend, text string, tolerance float64, values ...[]float64) {
	t.Helper()
	p := program(t, text)
	var data [][]byte
	for i, q := range p.Params {
		data = append(data, encode(q.Shape.DType(), values[i]))
	}
	lowered, _ := graph.Optimize(p, graph.Options{NoRules: true})
	want, err := ref.Eval(lowered, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	q, _ := graph.Optimize(p, graph.Options{Supports: b.Supports})
	in := uploaded(t, b, q, data)
	defer release(in)
	got := outputs(t, mustPlan(t, b, q, backend.CompileOptions{}), in)
	for r, id := range p.Returns {
		d := p.Shape(id).DType()
		x, y := decode(d, got[r]), decode(d, want[r])
		largest := 0.0
		for _, v := range y {
			if !math.IsInf(v, 0) && v == v {
				largest = max(largest, math.Abs(v))
			}
		}
		for i, v := range y {
			if !(math.Abs(x[i]-v) <= tolerance*largest) && x[i] != v && (x[i] == x[i] || v == v) {
				t.Fatalf("result %d, element %d is %v, want %v (the largest is %v) in\n%s", r, i, x[i], v, largest, text)
			}
		}
	}
}

func encode(d ir.DType, values []float64) (data []byte) {
	for _, v := range values {
		if d.IsFloat() {
			data = host.AppendFloat(data, d, v)
		} else {
			data = host.AppendInt(data, d, int64(v))
		}
	}
	return data
}

// decode returns the numbers of a result; a complex one is two.
func decode(d ir.DType, data []byte) []float64 {
	p := d.Part()
	values := make([]float64, len(data)/p.Size())
	for i := range values {
		if p.IsFloat() {
			values[i] = host.Float(p, data, i)
		} else {
			values[i] = float64(host.Int(p, data, i))
		}
	}
	return values
}

// hashed returns n numbers between -1 and 1 that look random, of which every 13th is 0.
func hashed(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		if i%13 != 7 {
			values[i] = math.Mod(float64(i+1)*0.6180339887498949+float64(i*i)*0.137, 2) - 1
		}
	}
	return values
}

// The kernels of segment_reduce and its gradient compute what the decompositions do, with stretches of
// no elements, elements in none, zeros and NaN.
func TestSegments(t *testing.T) {
	nan := math.NaN()
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16} {
		for _, how := range []string{"sum", "mean", "prod", "max", "min"} {
			for _, initial := range []string{"", ", initial=0.5"} {
				x := hashed(2 * 12 * 3)
				x[5], x[40] = nan, 0
				one := hashed(40)
				one[3] = nan
				tolerance := map[ir.DType]float64{ir.F32: 1e-6, ir.F64: 1e-14, ir.BF16: 1e-2}[d]
				sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %v[2,12,3]
					%%l = parameter "l" : i64[2,4]
					%%o = parameter "o" : i32[2,3]
					%%0 = segment_reduce(%%x, %q, lengths=%%l, axis=1%s)
					%%1 = segment_reduce(%%x, %q, offsets=%%o, axis=1%s)
					%%2 = _segment_reduce_backward(nan_to_num(%%0), %%0, %%x, %q, lengths=%%l, axis=1%s)
					%%3 = _segment_reduce_backward(nan_to_num(%%1), %%1, %%x, %q, offsets=%%o, axis=1%s)
					return %%0, %%1, %%2, %%3 }`, d, how, initial, how, initial, how, initial, how, initial),
					tolerance, x, []float64{3, 0, 2, 7, 1, 1, 1, 1}, []float64{0, 5, 12, 2, 2, 3})
				sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %v[40]
					%%l = parameter "l" : i64[5]
					%%0 = segment_reduce(%%x, %q, lengths=%%l%s)
					%%1 = _segment_reduce_backward(nan_to_num(%%0), %%0, %%x, %q, lengths=%%l%s)
					return %%0, %%1 }`, d, how, initial, how, initial), tolerance, one, []float64{9, 1, 0, 17, 13})
			}
		}
	}
}

// Counting by kernels gives what the decompositions do: at the edges of bins, beyond them, and where
// there are fewer elements than places.
func TestCounts(t *testing.T) {
	x := hashed(5000)
	x[9], x[10], x[11] = -1, 1, math.NaN()
	ints := make([]float64, 5000)
	for i, v := range x {
		ints[i] = math.Floor(math.Abs(v) * 9.9)
	}
	ints[11] = 0
	for _, d := range []string{"f32", "f64", "f16"} {
		for _, bins := range []string{"7, -0.5, 0.75", "100, 0.0, 0.0", "1, 2.0, 3.0"} {
			finite := x
			if strings.Contains(bins, "0.0, 0.0") {
				finite = x[100:]
			}
			sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %s[%d]
				return histc(%%x, %s) }`, d, len(finite), bins), 0, finite)
		}
		sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %s[5000]
			%%0 = reshape(%%x, [5,50,20])
			return nonzero_static(%%0, size=6000), nonzero_static(%%0, size=10, fill_value=-7), nonzero_static(%%x, size=0) }`, d), 0, x)
	}
	for _, d := range []string{"u8", "i8", "i16", "i32", "i64"} {
		sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %s[5000]
			%%f = parameter "f" : f32[5000]
			%%g = cast(%%f, dtype=f64)
			return bincount(%%x, minlength=12), bincount(%%x, cast(%%x, dtype=f32), 12), bincount(%%x, cast(%%x, dtype=f64), 12), nonzero_static(%%x, size=4000) }`, d),
			0, ints, x)
	}
	sameAsRef(t, New(), `program @p { %x = parameter "x" : bool[40]
		return nonzero_static(%x, size=45) }`, 0, ints[:40])
}

// TestStretchesThatAreNot holds errors of data that names what is not there.
func TestStretchesThatAreNot(t *testing.T) {
	for _, text := range []string{
		`%x = parameter "x" : f32[6]
		%l = parameter "l" : i64[2]
		return segment_reduce(%x, "sum", lengths=%l)`,
		`%x = parameter "x" : f32[6]
		%l = parameter "l" : i64[2]
		return bincount(%l, minlength=3)`,
	} {
		b, p := New(), program(t, "program @p {\n"+text+"\n}")
		m := mustPlan(t, b, p, backend.CompileOptions{})
		for _, bad := range [][]float64{{3, 9}, {-1, 2}} {
			in := uploaded(t, b, p, [][]byte{make([]byte, 24), encode(ir.I64, bad)})
			if _, err := m.Run(ctx, in, nil); err == nil {
				t.Errorf("%v is no error in\n%s", bad, text)
			}
			release(in)
		}
	}
}
