package strided

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naiveRead lists the elements of a view one by one.
func naiveRead(src []uint32, v View) []uint32 {
	var out []uint32
	var walk func(d, pos int)
	walk = func(d, pos int) {
		if d == v.Rank {
			out = append(out, src[pos])
			return
		}
		for i := range v.Dims[d] {
			walk(d+1, pos+i*v.Strides[d])
		}
	}
	walk(0, v.Offset)
	return out
}

func makeView(offset int, dims, strides []int) View {
	v := View{Offset: offset, Rank: len(dims)}
	copy(v.Dims[:], dims)
	copy(v.Strides[:], strides)
	return v
}

var viewCases = []struct {
	name string
	view View
}{
	{"scalar", makeView(5, nil, nil)},
	{"empty", makeView(0, []int{3, 0, 2}, []int{0, 2, 1})},
	{"dense", Dense([]int{3, 4, 5})},
	{"ones", Dense([]int{1, 6, 1, 2, 1})},
	{"offset", makeView(7, []int{9}, []int{1})},
	{"broadcast scalar", makeView(3, []int{4, 5}, []int{0, 0})},
	{"broadcast row", makeView(2, []int{6, 5}, []int{0, 1})},
	{"broadcast column", makeView(2, []int{6, 5}, []int{1, 0})},
	{"reversed", makeView(99, []int{10, 10}, []int{-10, -1})},
	{"reversed rows", makeView(41, []int{3, 37}, []int{50, -1})},
	{"short runs from the end", makeView(2997, []int{1000, 3}, []int{-3, 1})},
	{"shorter runs from the end", makeView(2998, []int{1500, 2}, []int{-2, 1})},
	{"broadcast pairs", makeView(3, []int{7, 5, 2}, []int{5, 1, 0})},
	{"broadcast in threes", makeView(0, []int{4, 9, 3}, []int{1, 4, 0})},
	{"pairs apart", makeView(2, []int{4, 9, 2}, []int{100, 5, 1})},
	{"four apart", makeView(2, []int{4, 9, 4}, []int{100, 6, 1})},
	{"overlapping windows", makeView(2, []int{4, 9, 3}, []int{100, 2, 1})},
	{"five elements of lines backwards", makeView(300, []int{4, 9, 5}, []int{100, -7, 1})},
	{"steps", makeView(1, []int{5, 4}, []int{20, 3})},
	{"transposed", makeView(0, []int{40, 25}, []int{1, 40})},
	{"transposed batch", makeView(3, []int{2, 3, 20, 15}, []int{1000, 300, 1, 20})},
	{"transposed small", makeView(0, []int{4, 6}, []int{1, 4})},
	{"permuted", makeView(0, []int{5, 3, 4}, []int{4, 20, 1})},
}

func TestRead(t *testing.T) {
	src := make([]uint32, 3000)
	for i := range src {
		src[i] = uint32(i)
	}
	for _, c := range viewCases {
		t.Run(c.name, func(t *testing.T) {
			want := naiveRead(src, c.view)
			merged := c.view.Merge()
			if got := naiveRead(src, merged); !slices.Equal(got, want) {
				t.Errorf("merged to %v: got %v, want %v", merged, got, want)
			}
			if c.view.Len() != len(want) {
				t.Errorf("Len is %d, want %d", c.view.Len(), len(want))
			}
			for _, v := range []View{c.view, merged} {
				for _, size := range []int{1, 3, 7, 25, 100, len(want)} {
					checkRead(t, src, want, v, max(size, 1))
				}
			}
		})
	}
}

// checkRead reads a view in pieces of the given size.
func checkRead(t *testing.T, src, want []uint32, v View, size int) {
	t.Helper()
	got := make([]uint32, len(want))
	for lo := 0; lo < len(want); lo += size {
		Read(got[lo:min(lo+size, len(want))], src, &v, lo)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v in pieces of %d: got %v, want %v", v, size, got, want)
	}
}

func TestWrite(t *testing.T) {
	for _, c := range viewCases {
		if strings.HasPrefix(c.name, "broadcast") || strings.HasPrefix(c.name, "overlapping") {
			continue // no place for each element
		}
		t.Run(c.name, func(t *testing.T) {
			n := c.view.Len()
			src := make([]uint32, n)
			for i := range src {
				src[i] = uint32(i + 1)
			}
			for _, size := range []int{1, 4, 33, max(n, 1)} {
				dst := make([]uint32, 3000)
				for lo := 0; lo < n; lo += size {
					Write(dst, src, &c.view, lo, min(lo+size, n))
				}
				if got := naiveRead(dst, c.view); !slices.Equal(got, src) {
					t.Fatalf("in pieces of %d: got %v, want %v", size, got, src)
				}
				if k := len(dst) - countZero(dst); k != n {
					t.Fatalf("%d elements are written, want %d", k, n)
				}
			}
		})
	}
}

func countZero(x []uint32) int {
	n := 0
	for _, v := range x {
		if v == 0 {
			n++
		}
	}
	return n
}

func TestIsDense(t *testing.T) {
	for _, c := range []struct {
		view View
		want bool
	}{
		{Dense([]int{2, 3}), true}, {Dense(nil), true}, {Dense([]int{2, 0}), true},
		{makeView(1, []int{3}, []int{1}), false}, {makeView(0, []int{3}, []int{2}), false},
		{makeView(0, []int{2, 3}, []int{0, 1}), false}, {makeView(0, []int{1, 3}, []int{77, 1}), true},
	} {
		if got := c.view.IsDense(); got != c.want {
			t.Errorf("%+v: %v", c.view, got)
		}
	}
}

// TestReadRandom reads random permutations and slices.
func TestReadRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src := make([]uint32, 5000)
	for i := range src {
		src[i] = rng.Uint32()
	}
	for range 300 {
		rank := rng.IntN(5)
		dims := make([]int, rank)
		for d := range dims {
			dims[d] = 1 + rng.IntN(5)
			if rank < 4 {
				dims[d] = 1 + rng.IntN(14)
			}
		}
		v := Dense(dims)
		for i, j := range rng.Perm(rank) {
			v.Dims[i], v.Dims[j] = v.Dims[j], v.Dims[i]
			v.Strides[i], v.Strides[j] = v.Strides[j], v.Strides[i]
		}
		for d := range rank {
			if rng.IntN(3) == 0 {
				v.Offset += (v.Dims[d] - 1) * v.Strides[d]
				v.Strides[d] = -v.Strides[d]
			}
		}
		if rank > 0 && rng.IntN(4) == 0 {
			v.Strides[rank-1] = 0
		}
		checkRead(t, src, naiveRead(src, v), v.Merge(), 1+rng.IntN(60))
	}
}

// TestViews reads views of views.
func TestViews(t *testing.T) {
	src := make([]uint32, 60)
	for i := range src {
		src[i] = uint32(i)
	}
	v := makeView(2, []int{2, 3, 4}, []int{24, 8, 1})
	reshape := func(v View, dims ...int) View {
		out, ok := v.Reshape(dims)
		if !ok {
			t.Fatalf("%v is no view of %v", dims, v)
		}
		return out
	}
	for name, c := range map[string]struct{ got, want View }{
		"expanded":                   {makeView(5, []int{3, 1}, []int{2, 7}).Expand([]int{2, 3, 4}), makeView(5, []int{2, 3, 4}, []int{0, 2, 0})},
		"permuted":                   {v.Permute([]int{2, 0, 1}), makeView(2, []int{4, 2, 3}, []int{1, 24, 8})},
		"sliced":                     {v.Slice(1, 1, 1, 2), makeView(10, []int{2, 1, 4}, []int{24, 16, 1})},
		"flipped":                    {v.Flip([MaxRank]bool{true, false, true}), makeView(29, []int{2, 3, 4}, []int{-24, 8, -1})},
		"flipped without elements":   {makeView(1, []int{0}, []int{1}).Flip([MaxRank]bool{true}), makeView(1, []int{0}, []int{1})},
		"windows":                    {v.Unfold(1, 2, 2, 1), makeView(2, []int{2, 2, 4, 2}, []int{24, 8, 1, 8})},
		"windows that lie apart":     {v.Unfold(2, 2, 1, 3), makeView(2, []int{2, 3, 2, 1}, []int{24, 8, 3, 1})},
		"merged":                     {reshape(v, 6, 4), makeView(2, []int{6, 4}, []int{8, 1})},
		"split":                      {reshape(v, 2, 3, 2, 2), makeView(2, []int{2, 3, 2, 2}, []int{24, 8, 2, 1})},
		"with ones":                  {reshape(v, 1, 6, 1, 4, 1), makeView(2, []int{1, 6, 1, 4, 1}, []int{24, 8, 4, 1, 1})},
		"reshaped without elements":  {reshape(makeView(3, []int{0, 2}, []int{5, 9}), 4, 0), Dense([]int{4, 0})},
		"broadcast, then reshaped":   {reshape(makeView(3, []int{6}, []int{0}), 2, 3), makeView(3, []int{2, 3}, []int{0, 0})},
		"a scalar of one dimension":  {reshape(makeView(3, nil, nil), 1), makeView(3, []int{1}, []int{1})},
		"one dimension, as a scalar": {reshape(makeView(3, []int{1}, []int{9})), makeView(3, nil, nil)},
	} {
		if c.got.Rank != c.want.Rank || c.got.Dims != c.want.Dims || !slices.Equal(naiveRead(src, c.got), naiveRead(src, c.want)) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	for _, dims := range [][]int{{24}, {3, 8}, {2, 12}} {
		if out, ok := v.Reshape(dims); ok {
			t.Errorf("reshaped to %v: %v", dims, out)
		}
	}
}

// TestSliceMerged holds slices of merged dimensions against those of a copy.
func TestSliceMerged(t *testing.T) {
	src := make([]uint32, 200)
	for i := range src {
		src[i] = uint32(i)
	}
	found := 0
	for _, dims := range [][]int{{2, 5, 7}, {1, 7, 5}, {3, 1, 6}, {3, 6, 1}, {2, 4, 4}} {
		v := makeView(1, dims, []int{dims[1] * dims[2], 1, dims[1]})
		flat := Dense([]int{dims[0], dims[1] * dims[2]})
		whole := naiveRead(src, v)
		for start := range flat.Dims[1] {
			for step := -2 * dims[2]; step < 2*dims[2]; step++ {
				for n := 1; n < 9 && start+(n-1)*step >= 0 && start+(n-1)*step < flat.Dims[1]; n++ {
					got, ok := v.SliceMerged(1, start, n, step)
					want := naiveRead(whole, flat.Slice(1, start, n, step))
					if ok && !slices.Equal(naiveRead(src, got), want) {
						t.Fatalf("%v from %d, %d elements %d apart: %v, want %v", dims, start, n, step, naiveRead(src, got), want)
					}
					if diagonal := step == dims[2]+1 && start == 0 && n <= min(dims[1], dims[2]); diagonal && !ok {
						t.Fatalf("%v has no diagonal", dims)
					}
					if ok && n > 2 {
						found++
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("no slice was found")
	}
}

// TestReadNarrow reads elements of fewer bytes, from each start to each end.
func TestReadNarrow(t *testing.T) {
	readNarrow[uint8](t)
	readNarrow[uint16](t)
}

func readNarrow[T uint8 | uint16](t *testing.T) {
	wide, src := make([]uint32, 3000), make([]T, 3000)
	for i := range src {
		wide[i] = uint32(i)
		src[i] = T(i * 7)
	}
	for _, c := range viewCases {
		want := naiveRead(wide, c.view)
		for start := 0; start < len(want); start += 1 + start/3 {
			for end := start + 1; end <= len(want); end += 1 + end/3 {
				got := make([]T, end-start)
				Read(got, src, &c.view, start)
				for i, v := range got {
					if w := T(want[start+i] * 7); v != w {
						t.Fatalf("%s, %d to %d: element %d is %d, want %d", c.name, start, end, i, v, w)
					}
				}
			}
		}
	}
}

// TestLongRows reads and writes rows that are copied in several pieces, and ones beside that are not.
func TestLongRows(t *testing.T) {
	for _, n := range []int{moveMost / 8, moveMost/8 + 1, 3*moveMost/8 - 5, moveTogether/16 + 3} {
		src := make([]uint64, n+7)
		for i := range src {
			src[i] = uint64(i) * 0x9e3779b97f4a7c15
		}
		v := View{Offset: 3, Rank: 2, Dims: [MaxRank]int{2, n}, Strides: [MaxRank]int{4, 1}}
		got := make([]uint64, 2*n)
		Read(got, src, &v, 0)
		if !slices.Equal(got[:n], src[3:3+n]) || !slices.Equal(got[n:], src[7:7+n]) {
			t.Errorf("reading rows of %d", n)
		}
		v.Strides[0] = n + 4
		dst := make([]uint64, 2*n+9)
		Write(dst, got, &v, 0, 2*n)
		if !slices.Equal(dst[3:3+n], got[:n]) || !slices.Equal(dst[n+7:2*n+7], got[n:]) || slices.Max(dst[n+3:n+7]) != 0 {
			t.Errorf("writing rows of %d", n)
		}
	}
}
