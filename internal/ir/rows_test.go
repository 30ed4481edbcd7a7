package ir

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// dataLeaf stands for device data.
type dataLeaf struct{}

func (dataLeaf) LeafName() string { return "data" }

// tensor returns a leaf to stand for an operand of the given shape.
func tensor(d DType, dims ...int) Value {
	return NewLeaf(dataLeaf{}, MakeShape(d, dims...), Device{}).Out(0)
}

// use is one use of an op and what its shapes must be, or its error.
type use struct {
	op   string
	args []any // Named ones bind by name
	want string
	err  error
	msg  string // part of the error's text
}

func (u use) String() string {
	args := make([]string, len(u.args))
	for i, a := range u.args {
		switch a := a.(type) {
		case Value:
			args[i] = a.Shape().String()
		case []Value:
			args[i] = "[" + shapesOf(a) + "]"
		default:
			args[i] = fmt.Sprint(a)
		}
	}
	return u.op + "(" + strings.Join(args, ", ") + ")"
}

// record makes the use; a panic with an *OpError is returned.
func (u use) record(b *Builder) (out []Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			oe, ok := r.(*OpError)
			if !ok {
				panic(r)
			}
			err = oe
		}
	}()
	op, ok := Lookup(u.op)
	if !ok {
		return nil, fmt.Errorf("no op %s", u.op)
	}
	var pos []any
	var named []Named
	for _, a := range u.args {
		if n, ok := a.(Named); ok {
			named = append(named, n)
		} else {
			pos = append(pos, a)
		}
	}
	return b.Call(op, pos, named...), nil
}

func shapesOf(vs []Value) string {
	s := make([]string, len(vs))
	for i, v := range vs {
		s[i] = v.Shape().String()
	}
	return strings.Join(s, " ")
}

func checkUses(t *testing.T, uses []use) {
	t.Helper()
	for _, u := range uses {
		t.Run(u.op, func(t *testing.T) {
			out, err := u.record(&Builder{Lines: LinesOff})
			switch {
			case u.err != nil && !errors.Is(err, u.err):
				t.Errorf("%v: got %v, %s; want an error wrapping %v", u, err, shapesOf(out), u.err)
			case u.err != nil && !strings.Contains(err.Error(), u.msg):
				t.Errorf("%v: error %q does not say %q", u, err, u.msg)
			case u.err == nil && err != nil:
				t.Errorf("%v: %v, want %s", u, err, u.want)
			case u.err == nil && shapesOf(out) != u.want:
				t.Errorf("%v: got %s, want %s", u, shapesOf(out), u.want)
			}
		})
	}
}

func TestRowsAreComplete(t *testing.T) {
	for _, sp := range Ops() {
		if !strings.HasSuffix(sp.Doc, ".") {
			t.Errorf("%s: doc %q is not a sentence", sp.Name, sp.Doc)
		}
		if sp.Differentiable() == (sp.NoGrad != "") {
			t.Errorf("%s: differentiable %v, but NoGrad is %q", sp.Name, sp.Differentiable(), sp.NoGrad)
		}
	}
}

func TestReductionShapes(t *testing.T) {
	x, e, s := tensor(F32, 2, 3, 4), tensor(F32, 2, 0, 4), tensor(F32)
	checkUses(t, []use{
		{op: "sum", args: []any{x}, want: "f32[]"},
		{op: "sum", args: []any{x, []int{}, true}, want: "f32[1,1,1]"},
		{op: "sum", args: []any{x, []int{-1, 0}}, want: "f32[3]"},
		{op: "sum", args: []any{x, []int{1}, true}, want: "f32[2,1,4]"},
		{op: "sum", args: []any{tensor(Bool, 5)}, want: "i64[]"},
		{op: "sum", args: []any{tensor(U8, 5), A("dtype", U8)}, want: "u8[]"},
		{op: "sum", args: []any{tensor(F16, 5)}, want: "f16[]"},
		{op: "sum", args: []any{s, []int{-1}}, want: "f32[]"},
		{op: "sum", args: []any{e, []int{1}}, want: "f32[2,4]"},
		{op: "sum", args: []any{x, []int{3}}, err: ErrIndex, msg: "dimension 3 is out of range for rank 3"},
		{op: "sum", args: []any{s, []int{1}}, err: ErrIndex, msg: "expected -1 to 0"},
		{op: "sum", args: []any{x, []int{1, -2}}, err: ErrIndex, msg: "twice"},
		{op: "sum", args: []any{tensor(C64, 2)}, want: "c64[]"},
		{op: "amax", args: []any{tensor(C64, 2)}, err: ErrDType, msg: "c64"},
		{op: "prod", args: []any{tensor(I32, 2, 2), []int{0}}, want: "i64[2]"},
		{op: "amax", args: []any{x, []int{0, 1, 2}}, want: "f32[]"},
		{op: "amax", args: []any{tensor(Bool, 2)}, want: "bool[]"},
		{op: "amax", args: []any{e, []int{0}}, want: "f32[0,4]"},
		{op: "amax", args: []any{e, []int{1}}, err: ErrShape, msg: "reduction dim 1 to have non-zero size"},
		{op: "amin", args: []any{e}, err: ErrShape, msg: "without elements"},
		{op: "argmax", args: []any{x}, want: "i64[]"},
		{op: "argmax", args: []any{x, nil, true}, want: "i64[1,1,1]"},
		{op: "argmin", args: []any{x, -2}, want: "i64[2,4]"},
		{op: "argmin", args: []any{s, 0}, want: "i64[]"},
		{op: "argmax", args: []any{tensor(Bool, 2)}, err: ErrDType, msg: "bool"},
		{op: "argmax", args: []any{e, 1}, err: ErrShape, msg: "non-zero size"},
		{op: "any", args: []any{x, []int{}}, want: "bool[2,3,4]"},
		{op: "all", args: []any{e, []int{1}, true}, want: "bool[2,1,4]"},
		{op: "all", args: []any{x}, want: "bool[]"},
		{op: "mean", args: []any{x, []int{-1}}, want: "f32[2,3]"},
		{op: "mean", args: []any{tensor(I32, 4), A("dtype", F64)}, want: "f64[]"},
		{op: "mean", args: []any{tensor(I32, 4)}, err: ErrDType, msg: "i32"},
		{op: "mean", args: []any{tensor(BF16, 4, 2), []int{0}}, want: "bf16[2]"},
		{op: "logsumexp", args: []any{x, []int{1}, true}, want: "f32[2,1,4]"},
		{op: "logsumexp", args: []any{tensor(I64, 3), []int{0}}, want: "f32[]"},
		{op: "logsumexp", args: []any{e, []int{1}}, want: "f32[2,4]"},
		{op: "var", args: []any{x, []int{0}}, want: "f32[3,4]"},
		{op: "std", args: []any{tensor(F16, 3, 4), nil, A("correction", 0), A("keepdim", true)}, want: "f16[1,1]"},
		{op: "std", args: []any{tensor(I64, 3)}, err: ErrDType},
		{op: "var_mean", args: []any{x, []int{-1, 1}}, want: "f32[2] f32[2]"},
		{op: "norm", args: []any{x, 2, []int{1}}, want: "f32[2,4]"},
		{op: "norm", args: []any{tensor(BF16, 3), 3.5}, want: "bf16[]"},
		{op: "norm", args: []any{e, 2, []int{1}}, want: "f32[2,4]"},
		{op: "norm", args: []any{e, -1, []int{1}}, err: ErrShape},
		{op: "norm", args: []any{tensor(I64, 3)}, err: ErrDType},
		{op: "count_nonzero", args: []any{x, []int{2}}, want: "i64[2,3]"},
		{op: "cumsum", args: []any{tensor(I8, 2, 3), -1}, want: "i64[2,3]"},
		{op: "cumsum", args: []any{s, 0}, want: "f32[]"},
		{op: "cumsum", args: []any{x, 3}, err: ErrIndex},
		{op: "cumprod", args: []any{tensor(I8, 2), 0, F64}, want: "f64[2]"},
		{op: "cumprod", args: []any{x, 0, Bool}, err: ErrDType, msg: "bool"},
		{op: "cummax", args: []any{tensor(F16, 2, 3), 1}, want: "f16[2,3] i64[2,3]"},
		{op: "cummax", args: []any{x, -4}, err: ErrIndex},
	})
}

func TestIndexingShapes(t *testing.T) {
	x, s, i := tensor(F32, 3, 4), tensor(F32), tensor(I64, 2, 2)
	v := func(n int) Value { return tensor(I64, n) }
	is := func(vs ...Value) []Value { return vs }
	checkUses(t, []use{
		{op: "gather", args: []any{x, 0, i}, want: "f32[2,2]"},
		{op: "gather", args: []any{x, 1, tensor(I32, 2, 9)}, want: "f32[2,9]"},
		{op: "gather", args: []any{x, 1, tensor(I64, 4, 1)}, err: ErrShape, msg: "index has size 4 in dimension 0, self only 3"},
		{op: "gather", args: []any{x, 0, v(2)}, err: ErrShape, msg: "rank"},
		{op: "gather", args: []any{x, 0, tensor(I64, 0, 9)}, want: "f32[0,9]"},
		{op: "gather", args: []any{x, 0, tensor(U8, 1, 1)}, err: ErrDType, msg: "u8"},
		{op: "gather", args: []any{s, 0, v(1)}, want: "f32[1]"},
		{op: "gather", args: []any{s, -1, tensor(I64)}, want: "f32[]"},
		{op: "scatter", args: []any{x, 0, i, tensor(F32, 3, 2)}, want: "f32[3,4]"},
		{op: "scatter", args: []any{x, 0, i, tensor(F32, 1, 2)}, err: ErrShape, msg: "src only 1"},
		{op: "scatter", args: []any{x, 0, i, tensor(F64, 2, 2)}, err: ErrDType, msg: "src is f64"},
		{op: "scatter", args: []any{x, 2, i, tensor(F32, 2, 2)}, err: ErrIndex},
		{op: "scatter", args: []any{s, 0, v(1), tensor(F32, 1)}, want: "f32[]"},
		{op: "scatter_reduce", args: []any{x, 1, i, tensor(F32, 2, 2), "mean"}, want: "f32[3,4]"},
		{op: "scatter_reduce", args: []any{x, 1, i, tensor(F32, 2, 2), "max"}, err: ErrArg, msg: `"max"`},
		{op: "scatter_add", args: []any{x, 1, i, tensor(F32, 2, 2)}, want: "f32[3,4]"},
		{op: "index_select", args: []any{x, 1, v(7)}, want: "f32[3,7]"},
		{op: "index_select", args: []any{x, -2, tensor(I32)}, want: "f32[1,4]"},
		{op: "index_select", args: []any{s, 0, v(1)}, want: "f32[]"},
		{op: "index_select", args: []any{s, 0, v(2)}, err: ErrShape, msg: "one element"},
		{op: "index_select", args: []any{x, 0, i}, err: ErrShape, msg: "rank 2"},
		{op: "index_select", args: []any{x, 0, tensor(F32, 2)}, err: ErrDType, msg: "f32"},
		{op: "index_add", args: []any{x, 0, v(2), tensor(F32, 2, 4)}, want: "f32[3,4]"},
		{op: "index_add", args: []any{x, 0, v(2), tensor(F32, 3, 4)}, err: ErrShape, msg: "index has 2"},
		{op: "index_add", args: []any{x, 0, v(2), tensor(F32, 2, 3)}, err: ErrShape, msg: "dimension 1"},
		{op: "index_add", args: []any{x, 0, v(2), tensor(F16, 2, 4)}, err: ErrDType, msg: "source"},
		{op: "index_copy", args: []any{x, 1, v(2), tensor(F32, 3, 2)}, want: "f32[3,4]"},
		{op: "index_copy", args: []any{s, 0, v(1), s}, want: "f32[]"},
		{op: "sort", args: []any{x}, want: "f32[3,4] i64[3,4]"},
		{op: "sort", args: []any{s}, want: "f32[] i64[]"},
		{op: "sort", args: []any{x, 2}, err: ErrIndex},
		{op: "argsort", args: []any{x, 0, true}, want: "i64[3,4]"},
		{op: "topk", args: []any{x, 2, 0}, want: "f32[2,4] i64[2,4]"},
		{op: "topk", args: []any{x, 5}, err: ErrIndex, msg: "k is 5"},
		{op: "topk", args: []any{s, 1}, want: "f32[] i64[]"},
		{op: "kthvalue", args: []any{x, 2, 0}, want: "f32[4] i64[4]"},
		{op: "kthvalue", args: []any{x, 5}, err: ErrIndex, msg: "selected number k 5 out of range for dimension 1 of size 4"},
		{op: "kthvalue", args: []any{x, 0}, err: ErrIndex, msg: "k 0"},
		{op: "median", args: []any{x, 1, true}, want: "f32[3,1] i64[3,1]"},
		{op: "median", args: []any{x}, want: "f32[] i64[]"},
		{op: "median", args: []any{tensor(F32, 2, 0), 1}, err: ErrIndex, msg: "non-zero size"},
		{op: "nanmedian", args: []any{tensor(F32, 0)}, want: "f32[] i64[]"},
		{op: "mode", args: []any{s}, want: "f32[] i64[]"},
		{op: "mode", args: []any{tensor(F32, 0)}, err: ErrIndex, msg: "non-zero size"},
		{op: "searchsorted", args: []any{x, tensor(F32, 3, 2)}, want: "i64[3,2]"},
		{op: "searchsorted", args: []any{x, tensor(F32, 2, 2)}, err: ErrShape, msg: "first dimensions"},
		{op: "searchsorted", args: []any{s, s}, err: ErrShape, msg: "at least 1 dimension"},
		{op: "bucketize", args: []any{x, x}, err: ErrShape, msg: "boundaries must have 1 dimension"},
		{op: "masked_scatter", args: []any{x, tensor(Bool, 4), tensor(F32, 2)}, want: "f32[3,4]"},
		{op: "masked_scatter", args: []any{x, i, x}, err: ErrDType, msg: "only supports boolean masks"},
		{op: "index_reduce", args: []any{x, 0, v(2), tensor(F32, 2, 4), "amax"}, want: "f32[3,4]"},
		{op: "index_reduce", args: []any{x, 0, v(2), tensor(F32, 2, 4), "sum"}, err: ErrArg, msg: "prod, mean, amax or amin"},
		{op: "histc", args: []any{x, 7}, want: "f32[7]"},
		{op: "histc", args: []any{x, 0}, err: ErrArg, msg: "bins must be > 0"},
		{op: "histc", args: []any{x, 5, 2.0, 1.0}, err: ErrArg, msg: "max must be larger than min"},
		{op: "bincount", args: []any{i}, err: ErrShape, msg: "1-d non-negative"},
		{op: "logcumsumexp", args: []any{i, 0}, err: ErrDType, msg: "i64"},
		{op: "segment_reduce", args: []any{x, "last"}, err: ErrArg, msg: "last"},
		{op: "segment_reduce", args: []any{x, "sum"}, err: ErrArg, msg: "lengths or offsets"},
		{op: "take", args: []any{x, i}, want: "f32[2,2]"},
		{op: "take_along_dim", args: []any{x, tensor(I64, 1, 2), 1}, want: "f32[3,2]"},
		{op: "take_along_dim", args: []any{tensor(F32, 1, 4), tensor(I64, 5, 2), 1}, want: "f32[5,2]"},
		{op: "take_along_dim", args: []any{x, i}, want: "f32[4]"},
		{op: "take_along_dim", args: []any{x, tensor(I64, 2, 2), 1}, err: ErrShape, msg: "dimension 0"},
		{op: "index", args: []any{x, is(tensor(I64, 2, 1), tensor(I64, 5))}, want: "f32[2,5]"},
		{op: "index", args: []any{x, is(tensor(I32, 0))}, want: "f32[0,4]"},
		{op: "index", args: []any{x, is(tensor(I64))}, want: "f32[4]"},
		{op: "index", args: []any{x, is(tensor(Bool, 3))}, err: ErrDType, msg: "bool"},
		{op: "index", args: []any{x, is(v(2), v(3))}, err: ErrShape, msg: "index 1"},
		{op: "index", args: []any{x, is(v(2), v(2), v(2))}, err: ErrIndex, msg: "3 indices"},
		{op: "index", args: []any{x, []Value{}}, err: ErrIndex},
		{op: "index_put", args: []any{x, is(v(2)), tensor(F32, 4)}, want: "f32[3,4]"},
		{op: "index_put", args: []any{x, is(v(2), v(2)), s, true}, want: "f32[3,4]"},
		{op: "index_put", args: []any{x, is(v(2)), tensor(F32, 3, 4)}, err: ErrShape, msg: "broadcast"},
		{op: "index_put", args: []any{x, is(v(2)), tensor(F64)}, err: ErrDType, msg: "values"},
		{op: "index_put", args: []any{x, is(tensor(Bool, 3)), tensor(F32, 4)}, want: "f32[3,4]"},
		{op: "index_put", args: []any{x, is(tensor(Bool, 3, 4)), s, true}, want: "f32[3,4]"},
		{op: "index_put", args: []any{x, is(tensor(Bool, 4)), s}, err: ErrShape, msg: "cover"},
		{op: "index_put", args: []any{x, is(tensor(Bool, 3, 4, 1)), s}, err: ErrShape, msg: "cover"},
		{op: "index_put", args: []any{x, is(tensor(Bool, 3)), tensor(F32, 2, 4)}, err: ErrShape, msg: "same at every place"},
		{op: "embedding", args: []any{tensor(F16, 10, 3), i, 2}, want: "f16[2,2,3]"},
		{op: "embedding", args: []any{tensor(F16, 10, 3), i, 10}, err: ErrIndex, msg: "10 rows"},
		{op: "embedding", args: []any{tensor(F32, 10), i}, err: ErrShape},
		{op: "one_hot", args: []any{i, 5}, want: "i64[2,2,5]"},
		{op: "one_hot", args: []any{i, -1}, err: ErrArg, msg: "num_classes"},
		{op: "tril", args: []any{tensor(Bool, 2, 3, 4), -1}, want: "bool[2,3,4]"},
		{op: "triu", args: []any{tensor(F32, 4)}, err: ErrShape, msg: "rank 1"},
	})
}

func TestCreationShapes(t *testing.T) {
	huge := 1 << 40
	checkUses(t, []use{
		{op: "full", args: []any{[]int{2, 0}, 1.5, F16}, want: "f16[2,0]"},
		{op: "full", args: []any{[]int{}, true, Bool}, want: "bool[]"},
		{op: "full", args: []any{[]int{-1}, 0, F32}, err: ErrShape, msg: "-1"},
		{op: "full", args: []any{[]int{huge, huge}, 0, F32}, err: ErrShape, msg: "overflow"},
		{op: "full", args: []any{[]int{2}, 0, C64}, want: "c64[2]"},
		{op: "arange", args: []any{0, 7, 3, I64}, want: "i64[3]"},
		{op: "arange", args: []any{7, 0, -3, I32}, want: "i32[3]"},
		{op: "arange", args: []any{6, 0, -3, I32}, want: "i32[2]"},
		{op: "arange", args: []any{0.5, 5, 1.5, I64}, want: "i64[3]"},
		{op: "arange", args: []any{3, 3, 1, F32}, want: "f32[0]"},
		{op: "arange", args: []any{3.0, 3, 1, F32}, want: "f32[0]"},
		{op: "arange", args: []any{0, 1, 0.25, F64}, want: "f64[4]"},
		{op: "arange", args: []any{0, 1, 0, F64}, err: ErrArg, msg: "step is 0"},
		{op: "arange", args: []any{0.0, 1, 0, F64}, err: ErrArg, msg: "step is 0"},
		{op: "arange", args: []any{0, 1, -1, F64}, err: ErrArg, msg: "does not lead"},
		{op: "arange", args: []any{1.0, 0, 1, F64}, err: ErrArg, msg: "does not lead"},
		{op: "arange", args: []any{0, 2, 1, Bool}, err: ErrDType},
		{op: "linspace", args: []any{0, 1, 5, F32}, want: "f32[5]"},
		{op: "linspace", args: []any{0, 1, 0, F32}, want: "f32[0]"},
		{op: "linspace", args: []any{0, 1, -1, F32}, err: ErrArg},
		{op: "eye", args: []any{3}, want: "f32[3,3]"},
		{op: "eye", args: []any{3, 0, Bool}, want: "bool[3,0]"},
		{op: "eye", args: []any{-3}, err: ErrArg},
		{op: "zeros_like", args: []any{tensor(F32, 2)}, want: "f32[2]"},
		{op: "ones_like", args: []any{tensor(F32, 2), A("dtype", I8)}, want: "i8[2]"},
		{op: "full_like", args: []any{tensor(I32, 2, 3), 7}, want: "i32[2,3]"},
		{op: "full_like", args: []any{tensor(I32, 2, 3), 7.5, A("dtype", F64)}, want: "f64[2,3]"},
		{op: "full_like", args: []any{tensor(I32, 2), tensor(I32, 2)}, err: ErrShape},
	})
}
