package kernels

import (
	"errors"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

func TestGather(t *testing.T) {
	x := []uint16{10, 11, 12, 20, 21, 22} // [2, 3]
	for _, c := range []struct {
		dim   int
		dims  []int
		index []int64
		want  []uint16
	}{
		{1, []int{2, 2}, []int64{2, 0, 1, 1}, []uint16{12, 10, 21, 21}},
		{0, []int{3, 2}, []int64{1, 0, 0, 1, 1, 1}, []uint16{20, 11, 10, 21, 20, 21}},
		{0, []int{0, 3}, nil, []uint16{}},
	} {
		l := NewLines([]int{2, 3}, c.dim, c.dims)
		got := make([]uint16, len(c.index))
		for lo := range c.index {
			Gather(got, x, c.index, &l, lo, lo+1)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("dim %d, index %v: %v, want %v", c.dim, c.index, got, c.want)
		}
	}
}

func TestIndexOutOfRange(t *testing.T) {
	l := NewLines([]int{3}, 0, []int{1})
	v := strided.Dense([]int{1})
	x := make([]uint8, 3)
	for _, bad := range []int64{3, -1, 1 << 40, -1 << 63} {
		for name, f := range map[string]func(){
			"gather":          func() { Gather(make([]uint8, 1), x, []int64{bad}, &l, 0, 1) },
			"scatter":         func() { Scatter(x, []int64{bad}, []uint8{1}, &v, &l, 0, 1) },
			"scatter_reduce":  func() { ScatterReduce(x, []int64{bad}, []uint8{1}, &v, &l, CombineSum, true, nil, 0, 1) },
			"index_select":    func() { IndexSelect(make([]uint8, 1), x, []int64{bad}, 3, 1, 0, 1) },
			"rows' index_add": func() { IndexAdd(make([]float32, 6), []int64{1, bad}, make([]float32, 4), 3, 2, 0, 2) },
			"index_add":       func() { IndexAdd(x, []int64{bad}, []uint8{1}, 3, 1, 0, 1) },
		} {
			refuses(t, name, bad, f)
		}
	}
}

func TestScatterOrder(t *testing.T) {
	l := NewLines([]int{3}, 0, []int{4})
	v := strided.Dense([]int{4})
	dst := []uint32{7, 7, 7}
	Scatter(dst, []int64{1, 1, 0, 1}, []uint32{1, 2, 3, 4}, &v, &l, 0, l.Units())
	if !slices.Equal(dst, []uint32{3, 4, 7}) {
		t.Errorf("got %v: the later write must win", dst)
	}
}

func TestScatterReduce(t *testing.T) {
	l := NewLines([]int{4}, 0, []int{5})
	v := strided.Dense([]int{5})
	index, src := []int64{0, 2, 0, 2, 1}, []int64{5, -7, 3, -2, 4}
	for _, c := range []struct {
		how     Combine
		include bool
		want    []int64
	}{
		{CombineSum, true, []int64{18, 14, 1, 10}},
		{CombineSum, false, []int64{8, 4, -9, 10}},
		{CombineProd, true, []int64{150, 40, 140, 10}},
		{CombineProd, false, []int64{15, 4, 14, 10}},
		{CombineMean, true, []int64{6, 7, 0, 10}},
		{CombineMean, false, []int64{4, 4, -5, 10}}, // rounded down
		{CombineMax, true, []int64{10, 10, 10, 10}},
		{CombineMax, false, []int64{5, 4, -2, 10}},
		{CombineMin, true, []int64{3, 4, -7, 10}},
		{CombineMin, false, []int64{3, 4, -7, 10}},
	} {
		dst := []int64{10, 10, 10, 10}
		ScatterReduce(dst, index, src, &v, &l, c.how, c.include, make([]int64, 4), 0, l.Units())
		if !slices.Equal(dst, c.want) {
			t.Errorf("combine %d, include self %v: %v, want %v", c.how, c.include, dst, c.want)
		}
	}
	f := []float64{1, 1, 1, 1}
	ScatterReduce(f, index, []float64{2, 1, 3, nan, 0}, &v, &l, CombineMean, true, make([]int64, 4), 0, l.Units())
	if f[0] != 2 || f[1] != 0.5 || f[2] == f[2] || f[3] != 1 {
		t.Errorf("mean of floats: %v", f)
	}
}

func TestIndexAddAnyCut(t *testing.T) {
	for _, inner := range []int{1, 2, 5, 9, 23} {
		checkIndexAdd[int8](t, inner)
		checkIndexAdd[int32](t, inner)
		checkIndexAdd[int64](t, inner)
		checkIndexAdd[float32](t, inner)
		checkIndexAdd[float64](t, inner)
	}
}

func checkIndexAdd[T Number](t *testing.T, inner int) {
	t.Helper()
	const outer, size = 2, 3
	index := []int64{2, 0, 2, 2}
	src := make([]T, outer*len(index)*inner)
	for i := range src {
		src[i] = T(i)
	}
	want := make([]T, outer*size*inner)
	for o := range outer {
		for j, ix := range index {
			for c := range inner {
				want[(o*size+int(ix))*inner+c] += src[(o*len(index)+j)*inner+c]
			}
		}
	}
	for cut := 1; cut <= outer*inner; cut++ {
		got := make([]T, len(want))
		for lo := 0; lo < outer*inner; lo += cut {
			IndexAdd(got, index, src, size, inner, lo, min(lo+cut, outer*inner))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T, %d a row, in pieces of %d: %v, want %v", got, inner, cut, got, want)
		}
	}
}

func TestSortKeysOfIntegers(t *testing.T) {
	if !(sortKey(int64(-1<<63), false) < sortKey(int64(-1), false) && sortKey(int64(-1), false) < sortKey(int64(0), false) && sortKey(int64(0), false) < sortKey(int64(1<<63-1), false)) {
		t.Error("int64 keys are out of order")
	}
	if sortKey(uint8(255), false) <= sortKey(uint8(1), false) {
		t.Error("uint8 keys are out of order")
	}
}

// Units of scatters in any pieces, and gathers of any part of the index, give what one piece gives.
func TestScatterUnits(t *testing.T) {
	dims := []int{4, 5, 6}
	for dim := range dims {
		for _, shape := range [][]int{{4, 5, 6}, {3, 4, 5}, {1, 7, 2}, {1, 1, 1}, {2, 9, 1}} {
			if shape[(dim+1)%3] > dims[(dim+1)%3] || shape[(dim+2)%3] > dims[(dim+2)%3] {
				continue
			}
			l := NewLines(dims, dim, shape)
			n := shape[0] * shape[1] * shape[2]
			index, src := make([]int64, n), make([]uint8, 4*9*6*2)
			for i := range index {
				index[i] = int64(i*i+i/3) % int64(dims[dim])
			}
			for i := range src {
				src[i] = uint8(i) + 1
			}
			view := strided.Dense([]int{shape[0], shape[1] + 1, shape[2] + 1})
			copy(view.Dims[:], shape[:])
			put, sum := make([]uint8, 120), make([]uint8, 120)
			from := 0
			for i := range n { // element by element
				at := [3]int{i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]}
				from = at[0]*view.Strides[0] + at[1]*view.Strides[1] + at[2]
				at[dim] = int(index[i])
				p := at[0]*30 + at[1]*6 + at[2]
				put[p], sum[p] = src[from], sum[p]+src[from]
			}
			for _, piece := range []int{1, 2, 3, l.Units()} {
				gotPut, gotSum := make([]uint8, 120), make([]uint8, 120)
				for lo := 0; lo < l.Units(); lo += piece {
					hi := min(lo+piece, l.Units())
					Scatter(gotPut, index, src, &view, &l, lo, hi)
					ScatterReduce(gotSum, index, src, &view, &l, CombineSum, true, nil, lo, hi)
				}
				if !slices.Equal(gotPut, put) || !slices.Equal(gotSum, sum) {
					t.Errorf("dim %d, index %v, %d units at a time:\n%v\n%v, want\n%v\n%v", dim, shape, piece, gotPut, gotSum, put, sum)
				}
			}
			whole, parts := make([]uint8, n), make([]uint8, n)
			Gather(whole, put, index, &l, 0, n)
			for lo := range n {
				Gather(parts, put, index, &l, lo, min(lo+1, n))
			}
			if !slices.Equal(whole, parts) {
				t.Errorf("dim %d, index %v: %v gathered at once, one by one %v", dim, shape, whole, parts)
			}
		}
	}
}

func TestScatterRows(t *testing.T) {
	dst, source := make([]uint8, 12), []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for lo := range 4 {
		ScatterRows(dst, []int64{2, 0, 2}, source, 3, 4, lo, lo+1)
	}
	if want := []uint8{5, 6, 7, 8, 0, 0, 0, 0, 9, 10, 11, 12}; !slices.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
}

// refuses looks that f panics with the error of an index that is not one of three.
func refuses(t *testing.T, name string, bad int64, f func()) {
	t.Helper()
	defer func() {
		err, _ := recover().(error)
		var ie IndexError
		if !errors.As(err, &ie) || ie != (IndexError{bad, 3}) {
			t.Errorf("%s of %d: recovered %v", name, bad, err)
		}
	}()
	f()
}
