package backendtest

import (
	"fmt"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	makers["matmul"] = matmul
	makers["convolution"] = convolution
	makers["max_pool_with_indices"] = maxPool
	makers["uniform"] = randomFloat
	makers["normal"] = randomFloat
	makers["randint"] = randint
}

func matmul(m *maker) {
	for _, c := range [][2][]int{
		{{4}, {4}}, {{0}, {0}}, {{3, 4}, {4}}, {{4}, {4, 3}}, {{1, 1}, {1, 1}}, {{3, 5}, {5, 7}}, {{17, 33}, {33, 65}}, {{64, 64}, {64, 64}},
		{{2, 0}, {0, 3}}, {{0, 4}, {4, 3}}, {{1, 300}, {300, 1}}, {{300, 1}, {1, 30}}, {{6, 513}, {513, 16}},
		{{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}}, {{3, 4}, {2, 4, 5}}, {{2, 1, 3, 4}, {3, 4, 2}}, {{2, 3, 4}, {4}}, {{4}, {2, 4, 5}}, {{0, 3, 4}, {4, 5}},
	} {
		m.call(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...), m.random(c[1]...)})
	}
	m.add("transposed operands", []input{m.random(20, 9), m.random(30, 20)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.MatMul(b.Transpose(x[0], 0, 1), b.Transpose(x[1], 0, 1)), b.MatMul(x[1], x[0])}
	})
	m.add("with its transpose", []input{m.random(3, 18, 7)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.MatMul(x[0], b.Transpose(x[0], 1, 2))}
	})
}

// convCase is one geometry: in is [N, C, d...], weight as the op takes it.
type convCase struct {
	in, weight                     []int
	bias                           bool
	stride, padding, dilation, out []int
	transposed                     bool
	groups                         int
}

var convCases = []convCase{
	{[]int{1, 1, 5}, []int{1, 1, 1}, false, []int{1}, []int{0}, []int{1}, []int{0}, false, 1},
	{[]int{2, 3, 17}, []int{4, 3, 3}, true, []int{2}, []int{1}, []int{1}, []int{0}, false, 1},
	{[]int{2, 4, 17}, []int{6, 2, 3}, true, []int{1}, []int{2}, []int{2}, []int{0}, false, 2},
	{[]int{2, 3, 8, 9}, []int{5, 3, 3, 3}, true, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false, 1},
	{[]int{1, 16, 12, 12}, []int{32, 16, 1, 1}, false, []int{1, 1}, []int{0, 0}, []int{1, 1}, []int{0, 0}, false, 1},
	{[]int{2, 3, 11, 10}, []int{4, 3, 2, 3}, false, []int{2, 3}, []int{1, 0}, []int{1, 2}, []int{0, 0}, false, 1},
	{[]int{1, 6, 7, 7}, []int{6, 1, 3, 3}, true, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false, 6},
	{[]int{1, 2, 4, 5, 6}, []int{3, 2, 2, 3, 2}, true, []int{1, 2, 1}, []int{0, 1, 1}, []int{1, 1, 2}, []int{0, 0, 0}, false, 1},
	{[]int{0, 3, 8, 9}, []int{5, 3, 3, 3}, true, []int{1, 1}, []int{1, 1}, []int{1, 1}, []int{0, 0}, false, 1},
	{[]int{2, 3, 7}, []int{3, 4, 3}, true, []int{2}, []int{1}, []int{1}, []int{1}, true, 1},
	{[]int{2, 4, 5, 6}, []int{4, 3, 3, 2}, true, []int{2, 1}, []int{1, 0}, []int{1, 2}, []int{1, 0}, true, 2},
	{[]int{1, 2, 3, 3, 3}, []int{2, 2, 2, 2, 2}, false, []int{2, 2, 2}, []int{0, 0, 0}, []int{1, 1, 1}, []int{0, 1, 0}, true, 1},
}

func convolution(m *maker) {
	if !m.dtype.IsFloat() {
		return
	}
	for i, c := range convCases {
		in := []input{m.random(c.in...), m.random(c.weight...)}
		out := c.weight[0]
		if c.transposed {
			out = c.weight[1] * c.groups
		}
		if c.bias {
			in = append(in, m.random(out))
		}
		m.add(fmt.Sprint(i, c), in, func(b *ir.Builder, x []ir.Value) []ir.Value {
			var bias any
			if c.bias {
				bias = x[2]
			}
			return b.Call(m.op, []any{x[0], x[1], bias, c.stride, c.padding, c.dilation, c.transposed, c.out, c.groups})
		})
	}
}

func maxPool(m *maker) {
	for _, c := range []struct {
		in, kernel, stride, padding, dilation []int
		ceil                                  bool
	}{
		{[]int{9}, []int{2}, []int{2}, []int{0}, []int{1}, false},
		{[]int{2, 3, 10}, []int{3}, []int{2}, []int{1}, []int{2}, true},
		{[]int{2, 3, 8, 9}, []int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false},
		{[]int{2, 3, 8, 9}, []int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, true},
		{[]int{1, 2, 8, 9}, []int{3, 2}, []int{1, 2}, []int{1, 1}, []int{2, 1}, false},
		{[]int{1, 16, 14, 14}, []int{3, 3}, []int{2, 2}, []int{1, 1}, []int{1, 1}, false},
		{[]int{1, 2, 4, 5, 6}, []int{2, 3, 2}, []int{1, 2, 2}, []int{1, 1, 0}, []int{1, 1, 1}, false},
		{[]int{0, 2, 8, 8}, []int{2, 2}, []int{2, 2}, []int{0, 0}, []int{1, 1}, false},
	} {
		m.call(fmt.Sprint(c), []input{m.random(c.in...)}, c.kernel, c.stride, c.padding, c.dilation, c.ceil)
	}
	if m.dtype.IsFloat() {
		m.call("NaN", []input{vector(m.dtype, elements.EncodeFloats(m.dtype, withNaN(40, 17, 18, 39)))}, []int{3}, []int{1}, []int{1}, []int{1}, false)
	}
}

func seedInput(seed int64) input {
	return input{ir.MakeShape(ir.I64), elements.EncodeInts(ir.I64, []int64{seed})}
}

func randomFloat(m *maker) {
	for _, seed := range []int64{0, 1, -7, 1 << 40} {
		for _, dims := range [][]int{{}, {0}, {5}, {3, 67}} {
			m.call(fmt.Sprint(seed, dims), []input{seedInput(seed)}, dims, int(seed)&3, m.dtype)
		}
	}
}

func randint(m *maker) {
	for _, c := range [][2]int{{0, 1}, {0, 10}, {-5, 5}, {0, 1 << 40}, {-1 << 63, 1<<63 - 1}} {
		if lo, hi := int64(c[0]), int64(c[1]-1); m.dtype.IsInt() && (ir.WrapInt(m.dtype, lo) != lo || ir.WrapInt(m.dtype, hi) != hi) {
			continue // the row refuses what the dtype cannot hold
		}
		for _, dims := range [][]int{{}, {0}, {3, 67}} {
			m.call(fmt.Sprint(c, dims), []input{seedInput(9)}, c[0], c[1], dims, 2, m.dtype)
		}
	}
}
