package emit

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop/looptest"
	"github.com/loris-ml/loris/internal/philox"
	"github.com/loris-ml/loris/internal/strided"
)

// bytesOf returns the memory of a slice.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// routine adds a case: a plan on operands, of which the first are to become what
// is wanted, within some units in the last place of a dtype.
func (d *device) routine(name string, p *Plan, operands [][]byte, dtypes []ir.DType, ulps float64, want ...[]byte) {
	d.t.Helper()
	d.faulty(name, p, operands, dtypes, ulps, nil, want...)
}

// faulty is routine for a plan that has a fault: an index out of range.
func (d *device) faulty(name string, p *Plan, operands [][]byte, dtypes []ir.DType, ulps float64, fault *int64, want ...[]byte) {
	d.t.Helper()
	c := &deviceCase{}
	for _, m := range operands {
		c.memory = append(c.memory, append([]byte{}, m...))
	}
	work := len(c.memory)
	c.memory = append(c.memory, make([]byte, p.Workspace), make([]byte, faultBytes))
	c.launches = d.launches(p, work)
	c.check = func(memory [][]byte) {
		f := memory[work+1]
		switch code, at := binary.LittleEndian.Uint32(f), int64(binary.LittleEndian.Uint64(f[8:])); {
		case (code != 0) != (fault != nil) || code != 0 && at != *fault:
			d.t.Errorf("%s: fault %d, index %d", name, code, at)
		}
		for i, w := range want {
			size := dtypes[i].Size()
			for at := 0; at < len(w); at += size {
				if why := looptest.Differ(dtypes[i], memory[i][at:at+size], w[at:at+size], ulps); why != "" {
					d.t.Errorf("%s: operand %d, element %d of %d: %s", name, i, at/size, len(w)/size, why)
					break
				}
			}
		}
	}
	d.cases = append(d.cases, c)
}

// bits32 returns the memory of floats as integers.
func bits32(s []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// random makes a slice of elements.
func random[T any](n int, f func() T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f()
	}
	return s
}

func TestGatherAndScatter(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, test := range []struct {
		dims  []int
		dim   int
		index []int
	}{
		{[]int{7}, 0, []int{300}},
		{[]int{3, 5, 4}, 1, []int{2, 9, 4}},
		{[]int{3, 5, 4}, 2, []int{3, 4, 7}},
		{[]int{6, 50}, 0, []int{40, 45}},
		{[]int{3, 5, 4}, 1, []int{3, 1, 4}},
	} {
		n, size := numel(test.index), numel(test.dims)
		index := random(n, func() int64 { return int64(r.IntN(test.dims[test.dim])) })
		x := random(size, r.Uint32)
		l := kernels.NewLines(test.dims, test.dim, test.index)
		view := strided.Dense(test.index)
		lines := Lines{Dims: test.dims, Dim: test.dim, Index: test.index, Strides: slices.Clone(view.Strides[:view.Rank])}

		want := make([]uint32, n)
		kernels.Gather(want, x, index, &l, 0, n)
		name := fmt.Sprintf("%v along %d by %v", test.dims, test.dim, test.index)
		d.routine("gather of "+name, (&Gather{lines, 4}).Plan(small), [][]byte{make([]byte, 4*n), bytesOf(x), bytesOf(index)}, []ir.DType{ir.I32}, 0, bytesOf(want))

		// The source and the index are parts of something larger.
		for i := range test.index {
			view.Strides[i] *= 2
			lines.Source = append(lines.Source, view.Strides[i])
			lines.Strides[i] *= 3
		}
		apart := make([]int64, 3*n)
		for i, at := range index {
			apart[3*i] = at
		}
		src := random(2*n, r.Uint32)
		want = append([]uint32{}, x...)
		kernels.Scatter(want, index, src, &view, &l, 0, l.Units())
		d.routine("scatter to "+name, (&Scatter{lines, 4}).Plan(small), [][]byte{bytesOf(x), bytesOf(apart), bytesOf(src)}, []ir.DType{ir.I32}, 0, bytesOf(want))
		for reduce, how := range map[string]kernels.Combine{
			"sum": kernels.CombineSum, "prod": kernels.CombineProd, "mean": kernels.CombineMean, "amax": kernels.CombineMax, "amin": kernels.CombineMin,
		} {
			for _, self := range []bool{false, true} {
				name := fmt.Sprintf("%s, self %v, to %s", reduce, self, name)
				scatterReduce(d, name, ScatterReduce{lines, ir.F32, reduce, self}, how, &view, &l, index, apart, func() float32 { return float32(r.NormFloat64()) }, size)
				scatterReduce(d, name, ScatterReduce{lines, ir.I8, reduce, self}, how, &view, &l, index, apart, func() int8 { return int8(r.Uint32()) }, size)
			}
		}
	}
	bad := int64(-3)
	p := (&Gather{Lines{Dims: []int{4}, Index: []int{2}, Strides: []int{1}}, 4}).Plan(small)
	d.faulty("gather out of range", p, [][]byte{make([]byte, 8), make([]byte, 16), bytesOf([]int64{1, bad})}, nil, 0, &bad)
	d.run()
}

func scatterReduce[T kernels.Number](d *device, name string, g ScatterReduce, how kernels.Combine, view *strided.View, l *kernels.Lines, index, apart []int64, element func() T, size int) {
	d.t.Helper()
	x, src := random(size, element), random(2*len(index), element)
	want := append([]T{}, x...)
	kernels.ScatterReduce(want, index, src, view, l, how, g.Self, make([]int64, size), 0, l.Units())
	d.routine(fmt.Sprintf("%v %s", g.DType, name), g.Plan(small), [][]byte{bytesOf(x), bytesOf(apart), bytesOf(src)}, []ir.DType{g.DType}, 0, bytesOf(want))
}

func TestRows(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, test := range []struct{ outer, n, size, inner int }{{1, 9, 5, 3}, {3, 70, 20, 16}, {2, 3000, 40, 5}, {4, 2, 3, 600}} {
		index := random(test.n, func() int64 { return int64(r.IntN(test.size)) })
		x := random(test.outer*test.size*test.inner, func() float32 { return float32(r.NormFloat64()) })
		rows := random(test.outer*test.n*test.inner, func() float32 { return float32(r.NormFloat64()) })
		name := fmt.Sprint(test)
		want := make([]float32, len(rows))
		kernels.IndexSelect(bits32(want), bits32(x), index, test.size, test.inner, 0, test.outer*test.n)
		for _, align := range []int{4, 16} {
			g := IndexSelect{test.outer, test.n, test.size, test.inner, 4, align}
			d.routine("select "+name, g.Plan(small), [][]byte{make([]byte, 4*len(rows)), bytesOf(x), bytesOf(index)}, []ir.DType{ir.F32}, 0, bytesOf(want))
		}
		sum := append([]float32{}, x...)
		kernels.IndexAdd(sum, index, rows, test.size, test.inner, 0, test.outer*test.inner)
		add := IndexAdd{test.outer, test.n, test.size, test.inner, ir.F32}
		d.routine("add "+name, add.Plan(small), [][]byte{bytesOf(x), bytesOf(index), bytesOf(rows)}, []ir.DType{ir.F32}, 0, bytesOf(sum))

		// In bf16 sums are rounded once.
		narrow := func(x []float32) []uint16 {
			y := make([]uint16, len(x))
			for i, v := range x {
				y[i] = half.F32ToBF16(v)
			}
			return y
		}
		widen := func(x []uint16) []float32 {
			y := make([]float32, len(x))
			for i, v := range x {
				y[i] = half.BF16ToF32(v)
			}
			return y
		}
		sum = widen(narrow(x))
		kernels.IndexAdd(sum, index, widen(narrow(rows)), test.size, test.inner, 0, test.outer*test.inner)
		add.DType = ir.BF16
		d.routine("add bf16 "+name, add.Plan(small), [][]byte{bytesOf(narrow(x)), bytesOf(index), bytesOf(narrow(rows))}, []ir.DType{ir.BF16}, 0, bytesOf(narrow(sum)))
	}
	bad := int64(7)
	index, x := bytesOf([]int64{1, bad}), make([]byte, 16)
	d.faulty("select out of range", (&IndexSelect{1, 2, 4, 1, 4, 4}).Plan(small), [][]byte{make([]byte, 8), x, index}, nil, 0, &bad)
	d.faulty("add out of range", (&IndexAdd{1, 2, 4, 1, ir.F32}).Plan(small), [][]byte{x, index, make([]byte, 8)}, nil, 0, &bad)
	d.run()
}

func sorted[T kernels.Number](d *device, dt ir.DType, outer, n, inner int, element func() T) {
	d.t.Helper()
	lines := outer * inner
	x := random(lines*n, element)
	for _, down := range []bool{false, true} {
		values, indices := make([]T, len(x)), make([]int64, len(x))
		kernels.Sort(values, indices, x, n, inner, down, make([]uint64, 2*n), make([]int32, 2*n), 0, lines)
		g := Sort{dt, outer, n, inner, down}
		d.routine(fmt.Sprintf("%+v", g), g.Plan(small), [][]byte{make([]byte, len(bytesOf(x))), make([]byte, 8*len(x)), bytesOf(x)},
			[]ir.DType{dt, ir.I64}, 0, bytesOf(values), bytesOf(indices))
		for _, k := range []int{1, 5, 600} {
			if k > n {
				continue
			}
			best, at := make([]T, lines*k), make([]int64, lines*k)
			for o := range outer {
				copy(best[o*k*inner:(o+1)*k*inner], values[o*n*inner:])
				copy(at[o*k*inner:(o+1)*k*inner], indices[o*n*inner:])
			}
			top := TopK{g, k}
			d.routine(fmt.Sprintf("%+v", top), top.Plan(small), [][]byte{make([]byte, len(bytesOf(best))), make([]byte, 8*len(at)), bytesOf(x)},
				[]ir.DType{dt, ir.I64}, 0, bytesOf(best), bytesOf(at))
		}
	}
}

func TestSort(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	float := func() float32 {
		switch r.IntN(10) {
		case 0:
			return float32(math.NaN())
		case 1:
			return float32(math.Copysign(0, -1))
		case 2:
			return 0
		case 3:
			return float32(math.Inf(1 - 2*r.IntN(2)))
		}
		return float32(r.NormFloat64())
	}
	for _, s := range [][3]int{{2, 1, 1}, {2, 37, 3}, {1, 1024, 2}, {1, 1025, 1}, {2, 5000, 1}, {1, 3000, 2}} {
		sorted(d, ir.F32, s[0], s[1], s[2], float)
		sorted(d, ir.I8, s[0], s[1], s[2], func() int8 { return int8(r.Uint32()) })
	}
	sorted(d, ir.I64, 2, 300, 2, func() int64 { return int64(r.Uint64()) })
	sorted(d, ir.F64, 2, 300, 2, r.NormFloat64)
	d.run()
}

// scanned adds cases of all ways to scan.
func scanned[T kernels.Number](d *device, op ir.Op, dt ir.DType, element func() T, ulps float64, f func(dst []T, indices []int64, x []T, n, inner, lines int)) {
	d.t.Helper()
	for _, s := range [][3]int{{2, 1, 1}, {3, 500, 1}, {2, 77, 3}} {
		outer, n, inner := s[0], s[1], s[2]
		lines := outer * inner
		x := random(lines*n, element)
		dst, indices := make([]T, len(x)), make([]int64, len(x))
		f(dst, indices, x, n, inner, lines)
		operands, dtypes := [][]byte{make([]byte, len(bytesOf(x))), bytesOf(x)}, []ir.DType{dt}
		want := [][]byte{bytesOf(dst)}
		if op == aten.Cummax {
			operands, dtypes, want = [][]byte{operands[0], make([]byte, 8*len(x)), operands[1]}, append(dtypes, ir.I64), append(want, bytesOf(indices))
		}
		g := Scan{op, dt, outer, n, inner}
		for _, way := range []struct {
			parts    int
			byThread bool
		}{{1, false}, {5, false}, {1, true}} {
			r := &routine{dev: small}
			g.plan(r, way.parts, way.byThread)
			d.routine(fmt.Sprintf("%+v %+v", g, way), &r.Plan, operands, dtypes, ulps, want...)
		}
	}
}

func TestScans(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	float := func() float32 { return float32(0.9 + r.Float64()/5) }
	byte8 := func() int8 { return int8(r.Uint32()) }
	rare := func() float32 {
		if r.IntN(100) == 0 {
			return float32(math.NaN())
		}
		return float32(r.IntN(9))
	}
	scanned(d, aten.Cumsum, ir.F32, float, 1, func(dst []float32, _ []int64, x []float32, n, inner, lines int) {
		kernels.Cumsum[float32, float32, float64](dst, x, n, inner, 0, lines)
	})
	scanned(d, aten.Cumsum, ir.I8, byte8, 0, func(dst []int8, _ []int64, x []int8, n, inner, lines int) {
		kernels.Cumsum[int8, int8, int64](dst, x, n, inner, 0, lines)
	})
	scanned(d, aten.Cumprod, ir.F64, r.NormFloat64, 2000, func(dst []float64, _ []int64, x []float64, n, inner, lines int) {
		kernels.Cumprod[float64, float64, float64](dst, x, n, inner, 0, lines)
	})
	scanned(d, aten.Cumprod, ir.I64, func() int64 { return int64(r.Uint64()) }, 0, func(dst []int64, _ []int64, x []int64, n, inner, lines int) {
		kernels.Cumprod[int64, int64, int64](dst, x, n, inner, 0, lines)
	})
	scanned(d, aten.Cummax, ir.F32, rare, 0, func(dst []float32, at []int64, x []float32, n, inner, lines int) {
		kernels.Cummax(dst, at, x, false, n, inner, 0, lines)
	})
	scanned(d, aten.Cummax, ir.I8, byte8, 0, func(dst []int8, at []int64, x []int8, n, inner, lines int) {
		kernels.Cummax(dst, at, x, false, n, inner, 0, lines)
	})
	for want, g := range map[string]Scan{
		"loris_scan_f32_CumSum":      {aten.Cumsum, ir.F32, 100, 5000, 1},
		"loris_scan_lines_i8_CumSum": {aten.Cumsum, ir.I8, 8, 50, 1000},
		"loris_scan_parts_i8_CumMax": {aten.Cummax, ir.I8, 1, 1 << 20, 1},
	} {
		if got := g.Plan(small).Launches[0].Entry; got != want {
			t.Errorf("%+v: %s, want %s", g, got, want)
		}
	}
	d.run()
}

func TestRandom(t *testing.T) {
	d := newDevice(t)
	const n = 301
	for _, seed := range []int64{7, -1 << 40} {
		const offset = 1<<33 + 5
		s := uint64(seed)
		f32, f64 := make([]float32, n), make([]float64, n)
		add := func(g Random, ulps float64, want []byte) {
			g.N, g.Offset = n, offset
			d.routine(fmt.Sprintf("%+v", g), g.Plan(small), [][]byte{make([]byte, len(want)), bytesOf([]int64{seed})}, []ir.DType{g.DType}, ulps, want)
		}
		philox.UniformBits(f32, s, offset, 0, 24)
		add(Random{Op: aten.Uniform, DType: ir.F32}, 0, append([]byte{}, bytesOf(f32)...))
		philox.UniformF64(f64, s, offset, 0)
		add(Random{Op: aten.Uniform, DType: ir.F64}, 0, append([]byte{}, bytesOf(f64)...))
		philox.NormalF32(f32, s, offset, 0)
		add(Random{Op: aten.Normal, DType: ir.F32}, 1, append([]byte{}, bytesOf(f32)...))
		philox.NormalF64(f64, s, offset, 0)
		add(Random{Op: aten.Normal, DType: ir.F64}, 32, append([]byte{}, bytesOf(f64)...))
		for dt, bits := range map[ir.DType]int{ir.F16: 11, ir.BF16: 8} {
			want := make([]uint16, n)
			for i := range want {
				x := philox.FloatBits(s, offset, int64(i), bits)
				if want[i] = half.F64ToF16(x); dt == ir.BF16 {
					want[i] = half.F64ToBF16(x)
				}
			}
			add(Random{Op: aten.Uniform, DType: dt}, 0, bytesOf(want))
		}
		i8, i64 := make([]int8, n), make([]int64, n)
		philox.IntsBelow(i8, s, offset, 0, 77, -50)
		add(Random{Op: aten.Randint, DType: ir.I8, Low: -50, High: 27}, 0, bytesOf(i8))
		philox.IntsBelow(i64, s, offset, 0, math.MaxUint64, math.MinInt64)
		add(Random{Op: aten.Randint, DType: ir.I64, Low: math.MinInt64, High: math.MaxInt64}, 0, bytesOf(i64))
	}
	d.run()
}

func TestMoves(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{1, 2, 4, 8, 16} {
		dt := map[int]ir.DType{1: ir.U8, 2: ir.I16, 4: ir.I32, 8: ir.I64, 16: ir.C128}[size]
		// Two matrices of 70 × 45 become as many of 45 × 70.
		rows, cols := 45, 70
		x := random(2*rows*cols*size, func() byte { return byte(r.Uint32()) })
		want := make([]byte, len(x))
		for o := range 2 {
			for i := range rows {
				for j := range cols {
					copy(want[((o*rows+i)*cols+j)*size:][:size], x[((o*cols+j)*rows+i)*size:][:size])
				}
			}
		}
		all := rows * cols * size
		for _, outer := range [][]int{{2}, nil} {
			g := Transpose{Geometry{Rows: rows, Cols: cols, Outer: outer, Args: []Place{{Row: cols * size, Col: size}, {Row: size, Col: rows * size}}}, size}
			n := all
			if outer != nil {
				g.Args[0].Outer, g.Args[1].Outer = []int{all}, []int{all}
				n = 2 * all
			}
			d.routine(fmt.Sprintf("transpose %d %v", size, outer), g.Plan(small), [][]byte{make([]byte, n), x[:n]}, []ir.DType{dt}, 0, want[:n])
		}
		// A part of 2 × 3 in the middle of 4 × 4, and one that is cut.
		value := random(size, func() byte { return byte(r.Uint32()) })
		for _, before := range [][]int{{1, 1}, {-1, 2}} {
			g := Pad{Dims: []int{4, 4}, Before: before, Inner: []int{2, 3}, Strides: []int{3, 1}, Size: size}
			var want []byte
			for i := range 4 {
				for j := range 4 {
					p, q := i-before[0], j-before[1]
					if 0 <= p && p < 2 && 0 <= q && q < 3 {
						want = append(want, x[(p*3+q)*size:][:size]...)
					} else {
						want = append(want, value...)
					}
				}
			}
			d.routine(fmt.Sprintf("pad %d %v", size, before), g.Plan(small), [][]byte{make([]byte, 16*size), x[:6*size], value}, []ir.DType{dt}, 0, want)
		}
	}
	for _, n := range []int{3, 40} {
		parts := make([]int, n)
		operands := [][]byte{nil}
		for i := range parts {
			parts[i] = 4 * (i % 5)
			operands = append(operands, random(3*2*parts[i], func() byte { return byte(r.Uint32()) }))
		}
		var want []byte
		for o := range 3 {
			for i, p := range parts {
				want = append(want, operands[1+i][o*2*p:(o+1)*2*p]...)
			}
		}
		operands[0] = make([]byte, len(want))
		for _, align := range []int{2, 16} {
			d.routine(fmt.Sprintf("cat of %d", n), (&Cat{3, parts, 2, align}).Plan(small), operands, []ir.DType{ir.I16}, 0, want)
		}
	}
	d.run()
}
