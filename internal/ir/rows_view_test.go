package ir

import "testing"

func TestViewShapes(t *testing.T) {
	x, e, s := tensor(F32, 2, 3, 4), tensor(F32, 2, 0), tensor(F32)
	f8 := tensor(F8E5M2, 2, 3)
	checkUses(t, []use{
		{op: "reshape", args: []any{x, []int{-1, 2}}, want: "f32[12,2]"},
		{op: "reshape", args: []any{f8, []int{6}}, want: "f8e5m2[6]"},
		{op: "reshape", args: []any{s, []int{1, -1}}, want: "f32[1,1]"},
		{op: "reshape", args: []any{tensor(F32, 1), []int{}}, want: "f32[]"},
		{op: "reshape", args: []any{e, []int{0, 5}}, want: "f32[0,5]"},
		{op: "reshape", args: []any{e, []int{-1, 5}}, want: "f32[0,5]"},
		{op: "reshape", args: []any{e, []int{-1, 0}}, err: ErrShape, msg: "can be any size"},
		{op: "reshape", args: []any{x, []int{5, -1}}, err: ErrShape, msg: "24 elements"},
		{op: "reshape", args: []any{x, []int{-1, 0}}, err: ErrShape, msg: "24 elements"},
		{op: "reshape", args: []any{x, []int{-1, -1}}, err: ErrShape, msg: "more than one -1"},
		{op: "reshape", args: []any{x, []int{-2}}, err: ErrShape, msg: "negative size -2"},
		{op: "reshape", args: []any{x, []int{1, 1, 1, 1, 1, 1, 2, 3, 4}}, err: ErrShape, msg: "9 dimensions"},
		{op: "permute", args: []any{x, []int{-1, 0, 1}}, want: "f32[4,2,3]"},
		{op: "permute", args: []any{s, []int{}}, want: "f32[]"},
		{op: "permute", args: []any{x, []int{0, 1}}, err: ErrShape, msg: "2 entries"},
		{op: "permute", args: []any{x, []int{0, 1, -2}}, err: ErrIndex, msg: "twice"},
		{op: "permute", args: []any{x, []int{0, 1, 3}}, err: ErrIndex, msg: "out of range"},
		{op: "expand", args: []any{tensor(F32, 3, 1), []int{2, -1, 4}}, want: "f32[2,3,4]"},
		{op: "expand", args: []any{tensor(F32, 1), []int{0}}, want: "f32[0]"},
		{op: "expand", args: []any{s, []int{2, 2}}, want: "f32[2,2]"},
		{op: "expand", args: []any{tensor(F32, 3), []int{-1, 3}}, err: ErrShape, msg: "new dimension 0"},
		{op: "expand", args: []any{tensor(F32, 3), []int{4}}, err: ErrShape, msg: "does not stretch"},
		{op: "expand", args: []any{x, []int{4}}, err: ErrShape, msg: "fewer"},
		{op: "flip", args: []any{x, []int{0, -1}}, want: "f32[2,3,4]"},
		{op: "flip", args: []any{x, []int{2, -1}}, err: ErrIndex, msg: "twice"},
		{op: "cat", args: []any{[]Value{x, tensor(F64, 2, 5, 4)}, -2}, want: "f64[2,8,4]"},
		{op: "cat", args: []any{[]Value{tensor(Bool, 1), tensor(F16, 0)}}, want: "f16[1]"},
		{op: "cat", args: []any{[]Value{x, e}}, err: ErrShape, msg: "tensor 1 has rank 2"},
		{op: "cat", args: []any{[]Value{x, tensor(F32, 2, 5, 4)}}, err: ErrShape, msg: "size 5 in dimension 1"},
		{op: "cat", args: []any{[]Value{s, s}}, err: ErrShape, msg: "rank 0"},
		{op: "cat", args: []any{[]Value{x}, 3}, err: ErrIndex},
		{op: "cat", args: []any{[]Value{}}, err: ErrArg, msg: "no tensors"},
		{op: "constant_pad_nd", args: []any{x, []int{1, 2, -1, 0}, 0}, want: "f32[2,2,7]"},
		{op: "constant_pad_nd", args: []any{x, []int{-4, 0}, 0.5}, want: "f32[2,3,0]"},
		{op: "constant_pad_nd", args: []any{x, []int{-4, -1}, 0}, err: ErrShape, msg: "is negative"},
		{op: "constant_pad_nd", args: []any{x, []int{1}, 0}, err: ErrShape, msg: "pairs"},
		{op: "constant_pad_nd", args: []any{e, []int{1, 1, 1, 1, 1, 1}, 0}, err: ErrShape, msg: "pairs"},
		{op: "constant_pad_nd", args: []any{e, []int{1, 1}, tensor(F32, 1)}, err: ErrShape, msg: "value"},
	})
}

func TestSliceBounds(t *testing.T) {
	const none = -1 << 30
	for _, c := range []struct {
		n, start, end, step              int
		wantStart, wantCount, wantSecond int
	}{
		{5, none, none, 1, 0, 5, 1},
		{5, 1, 4, 2, 1, 2, 3},
		{5, -3, -1, 1, 2, 2, 3},
		{5, -9, 9, 3, 0, 2, 3},
		{5, 4, 2, 1, 4, 0, 5},
		{5, 9, 9, 1, 5, 0, 6},
		{5, 0, 5, 1 << 62, 0, 1, 1 << 62},
		{0, none, none, 1, 0, 0, 1},
		{5, none, none, -1, 4, 5, 3},
		{5, none, none, -2, 4, 3, 2},
		{5, 3, 0, -1, 3, 3, 2},
		{5, -2, -5, -2, 3, 2, 1},
		{5, 9, -9, -3, 4, 2, 1},
		{5, 1, 3, -1, 1, 0, 0},
		{0, none, none, -1, -1, 0, -2},
	} {
		args := []any{tensor(F32, 2, c.n), -1, nil, nil, c.step}
		if c.start != none {
			args[2] = c.start
		}
		if c.end != none {
			args[3] = c.end
		}
		out, err := use{op: "slice", args: args}.record(&Builder{})
		if err != nil {
			t.Errorf("slice %v: %v", c, err)
			continue
		}
		dim, start, count, step := SliceBounds(out[0].Node.Args())
		if dim != 1 || start != c.wantStart || count != c.wantCount || start+step != c.wantSecond {
			t.Errorf("slice %v: dim %d, start %d, count %d, step %d", c, dim, start, count, step)
		}
		if got := out[0].Shape(); got != MakeShape(F32, 2, count) {
			t.Errorf("slice %v: shape %v", c, got)
		}
	}
	checkUses(t, []use{
		{op: "slice", args: []any{tensor(F32), 0}, err: ErrShape, msg: "rank 0"},
		{op: "slice", args: []any{tensor(F32, 3), 0, nil, nil, 0}, err: ErrArg, msg: "step is 0"},
		{op: "slice", args: []any{tensor(F32, 3), 1}, err: ErrIndex},
	})
}

func TestViewCompositeShapes(t *testing.T) {
	x, s, one := tensor(F32, 2, 3, 4), tensor(F32), tensor(F32, 1, 3, 1)
	checkUses(t, []use{
		{op: "squeeze", args: []any{one}, want: "f32[3]"},
		{op: "squeeze", args: []any{one, []int{}}, want: "f32[1,3,1]"},
		{op: "squeeze", args: []any{one, []int{1, -1}}, want: "f32[1,3]"},
		{op: "squeeze", args: []any{s, []int{0}}, want: "f32[]"},
		{op: "squeeze", args: []any{one, []int{3}}, err: ErrIndex},
		{op: "unsqueeze", args: []any{x, -1}, want: "f32[2,3,4,1]"},
		{op: "unsqueeze", args: []any{s, 0}, want: "f32[1]"},
		{op: "unsqueeze", args: []any{x, 4}, err: ErrIndex},
		{op: "flatten", args: []any{x}, want: "f32[24]"},
		{op: "flatten", args: []any{x, 1}, want: "f32[2,12]"},
		{op: "flatten", args: []any{s}, want: "f32[1]"},
		{op: "flatten", args: []any{x, 2, 1}, err: ErrArg},
		{op: "unflatten", args: []any{x, -1, []int{2, -1}}, want: "f32[2,3,2,2]"},
		{op: "unflatten", args: []any{x, 0, []int{3, -1}}, err: ErrShape, msg: "do not multiply to 2"},
		{op: "transpose", args: []any{x, 0, -1}, want: "f32[4,3,2]"},
		{op: "transpose", args: []any{s, 0, -1}, want: "f32[]"},
		{op: "movedim", args: []any{x, []int{0}, []int{-1}}, want: "f32[3,4,2]"},
		{op: "movedim", args: []any{x, []int{2, 0}, []int{0, 1}}, want: "f32[4,2,3]"},
		{op: "movedim", args: []any{x, []int{0, -3}, []int{0, 1}}, err: ErrIndex},
		{op: "movedim", args: []any{x, []int{0}, []int{}}, err: ErrArg},
		{op: "diagonal", args: []any{x, 0, 1, 2}, want: "f32[2,3]"},
		{op: "diagonal", args: []any{x, 3, -2, -1}, want: "f32[2,1]"},
		{op: "diagonal", args: []any{x, 9, -2, -1}, want: "f32[2,0]"},
		{op: "diagonal", args: []any{x, -1, 2, 0}, want: "f32[3,2]"},
		{op: "diagonal", args: []any{tensor(F32, 0, 3)}, want: "f32[0]"},
		{op: "diagonal", args: []any{x, 0, 1, -2}, err: ErrIndex},
		{op: "unfold", args: []any{x, 1, 2, 1}, want: "f32[2,2,4,2]"},
		{op: "unfold", args: []any{tensor(F32, 7), 0, 3, 2}, want: "f32[3,3]"},
		{op: "unfold", args: []any{s, 0, 1, 1}, want: "f32[1]"},
		{op: "unfold", args: []any{x, 1, 4, 1}, err: ErrShape},
		{op: "unfold", args: []any{x, 1, 2, 0}, err: ErrArg},
		{op: "repeat", args: []any{tensor(F32, 2, 3), []int{2, 1, 3}}, want: "f32[2,2,9]"},
		{op: "repeat", args: []any{s, []int{2}}, want: "f32[2]"},
		{op: "repeat", args: []any{x, []int{2, 0, 1}}, want: "f32[4,0,4]"},
		{op: "repeat", args: []any{x, []int{2}}, err: ErrShape},
		{op: "repeat_interleave", args: []any{x, 2, 1}, want: "f32[2,6,4]"},
		{op: "repeat_interleave", args: []any{x, 2}, want: "f32[48]"},
		{op: "repeat_interleave", args: []any{s, 3}, want: "f32[3]"},
	})
}

func TestJoinCompositeShapes(t *testing.T) {
	x, s, z := tensor(F32, 2, 3, 4), tensor(F32), tensor(F32, 0)
	checkUses(t, []use{
		{op: "select", args: []any{x, 1, -1}, want: "f32[2,4]"},
		{op: "select", args: []any{x, 1, 3}, err: ErrIndex, msg: "index 3 is out of range for dimension 1 of size 3"},
		{op: "select", args: []any{s, 0, 0}, err: ErrIndex},
		{op: "narrow", args: []any{x, 2, -3, 2}, want: "f32[2,3,2]"},
		{op: "narrow", args: []any{x, 2, 3, 2}, err: ErrIndex},
		{op: "stack", args: []any{[]Value{x, tensor(F64, 2, 3, 4)}, -1}, want: "f64[2,3,4,2]"},
		{op: "stack", args: []any{[]Value{s, s, s}}, want: "f32[3]"},
		{op: "stack", args: []any{[]Value{s, z}}, err: ErrShape, msg: "tensor 1"},
		{op: "stack", args: []any{[]Value{}}, err: ErrArg},
		{op: "unbind", args: []any{x, 1}, want: "f32[2,4] f32[2,4] f32[2,4]"},
		{op: "split", args: []any{x, 3, -1}, want: "f32[2,3,3] f32[2,3,1]"},
		{op: "split", args: []any{x, []int{1, 2}, 1}, want: "f32[2,1,4] f32[2,2,4]"},
		{op: "split", args: []any{z, 0}, want: "f32[0]"},
		{op: "split", args: []any{x, 0}, err: ErrArg},
		{op: "split_with_sizes", args: []any{x, []int{1, 1}, 1}, err: ErrShape, msg: "add up to 2"},
		{op: "split_with_sizes", args: []any{x, []int{3, -1}, 0}, err: ErrArg},
		{op: "chunk", args: []any{tensor(F32, 7), 4}, want: "f32[2] f32[2] f32[2] f32[1]"},
		{op: "chunk", args: []any{tensor(F32, 6), 4}, want: "f32[2] f32[2] f32[2]"},
		{op: "chunk", args: []any{z, 2}, want: "f32[0] f32[0]"},
		{op: "chunk", args: []any{x, 0}, err: ErrArg},
		{op: "roll", args: []any{x, 5}, want: "f32[2,3,4]"},
		{op: "roll", args: []any{s, 5}, want: "f32[]"},
		{op: "roll", args: []any{x, []int{1, -7}, []int{0, 2}}, want: "f32[2,3,4]"},
		{op: "roll", args: []any{x, []int{1, 2}, []int{0}}, err: ErrArg},
		{op: "pad", args: []any{x, []int{1, 1}, A("value", 2.5)}, want: "f32[2,3,6]"},
		{op: "pad", args: []any{tensor(I32, 2), []int{1, 1}}, want: "i32[4]"},
		{op: "pad", args: []any{x, []int{3, 3}, "reflect"}, want: "f32[2,3,10]"},
		{op: "pad", args: []any{x, []int{4, 0}, "reflect"}, err: ErrShape, msg: "too much"},
		{op: "pad", args: []any{x, []int{9, -1, 0, 2}, "replicate"}, want: "f32[2,5,12]"},
		{op: "pad", args: []any{x, []int{4, 4}, "circular"}, want: "f32[2,3,12]"},
		{op: "pad", args: []any{x, []int{1, 1, 1, 1, 1, 1}, "reflect"}, err: ErrShape, msg: "rank 3"},
		{op: "pad", args: []any{x, []int{1, 1}, "reflect", 1}, err: ErrArg, msg: "no value"},
		{op: "pad", args: []any{x, []int{1, 1}, "mirror"}, err: ErrArg, msg: `"mirror"`},
	})
}

func TestScatterIntoViewShapes(t *testing.T) {
	x, s := tensor(F32, 3, 4), tensor(F32)
	f := func(dims ...int) Value { return tensor(F32, dims...) }
	checkUses(t, []use{
		{op: "as_strided", args: []any{x, []int{2, 3}, []int{1, 4}, 3}, err: ErrShape, msg: "size [2 3] with strides [1 4] from element 3 is out of bounds for 12 elements"},
		{op: "as_strided", args: []any{x, []int{2, 3}, []int{1, 4}, 2}, want: "f32[2,3]"},
		{op: "as_strided", args: []any{x, []int{2}, []int{1, 4}}, err: ErrShape, msg: "mismatch in length"},
		{op: "as_strided", args: []any{x, []int{2}, []int{-1}}, err: ErrArg, msg: "must not be negative"},
		{op: "as_strided", args: []any{x, []int{2}, []int{1}, -1}, err: ErrShape, msg: "out of bounds"},
		{op: "as_strided", args: []any{x, []int{1 << 40}, []int{1 << 40}}, err: ErrShape, msg: "out of bounds"},
		{op: "as_strided", args: []any{x, []int{-2}, []int{1}}, err: ErrShape},
		{op: "as_strided", args: []any{s, []int{5, 5}, []int{0, 0}}, want: "f32[5,5]"},
		{op: "as_strided_scatter", args: []any{x, f(2), []int{2}, []int{5}}, want: "f32[3,4]"},
		{op: "as_strided_scatter", args: []any{x, f(3), []int{2}, []int{5}}, err: ErrShape, msg: "src size = [3], slice size = [2]"},
		{op: "slice_scatter", args: []any{x, f(2, 4), 0, 1}, want: "f32[3,4]"},
		{op: "slice_scatter", args: []any{x, f(2, 3), 0, 1}, err: ErrShape, msg: "slice size = [2 4]"},
		{op: "slice_scatter", args: []any{tensor(I64, 3, 4), f(2, 4), 0, 1}, want: "i64[3,4]"},
		{op: "slice_scatter", args: []any{s, s}, err: ErrShape, msg: "rank 0"},
		{op: "select_scatter", args: []any{x, f(3), 1, -1}, want: "f32[3,4]"},
		{op: "select_scatter", args: []any{x, f(3), 1, 4}, err: ErrIndex, msg: "index 4 is out of range"},
		{op: "diagonal_scatter", args: []any{x, f(3), 1}, want: "f32[3,4]"},
		{op: "diagonal_scatter", args: []any{x, f(2), 1}, err: ErrShape, msg: "slice size = [3]"},
		{op: "diagonal_scatter", args: []any{x, f(0), 9}, want: "f32[3,4]"},
		{op: "max_dim", args: []any{x, 1}, want: "f32[3] i64[3]"},
		{op: "min_dim", args: []any{s, 0, true}, want: "f32[] i64[]"},
		{op: "max_dim", args: []any{f(2, 0), 1}, err: ErrShape, msg: "non-zero size"},
		{op: "diff", args: []any{s}, err: ErrShape, msg: "at least one-dimensional"},
		{op: "diff", args: []any{x, -1}, err: ErrArg, msg: "non-negative"},
		{op: "diff", args: []any{tensor(Bool, 3), 2}, want: "bool[1]"},
		{op: "native_layer_norm_backward", args: []any{x, x, []int{4}, f(3), f(3), nil, nil, []int{1, 1, 1}}, err: ErrShape, msg: "must be [3 1]"},
		{op: "native_group_norm", args: []any{x, nil, nil, 3, 4, 2, 2, 1e-5}, err: ErrShape, msg: "do not fit input"},
		{op: "embedding_dense_backward", args: []any{x, tensor(I64, 2), 5, -1, false}, err: ErrShape, msg: "a row for each"},
		{op: "_softmax", args: []any{x, 1, true}, err: ErrDType, msg: "f16 type only"},
	})
}

func TestShuffleAndContractionShapes(t *testing.T) {
	f := func(dims ...int) Value { return tensor(F32, dims...) }
	checkUses(t, []use{
		{op: "pixel_shuffle", args: []any{f(2, 8, 3, 4), 2}, want: "f32[2,2,6,8]"},
		{op: "pixel_shuffle", args: []any{f(2, 6, 3, 4), 2}, err: ErrShape, msg: "divisible"},
		{op: "pixel_shuffle", args: []any{f(2, 3, 4), 1 << 40}, err: ErrShape, msg: "divisible"},
		{op: "pixel_unshuffle", args: []any{f(1, 2, 6, 8), 2}, want: "f32[1,8,3,4]"},
		{op: "pixel_unshuffle", args: []any{f(6, 8), 2}, err: ErrShape, msg: "at least 3"},
		{op: "channel_shuffle", args: []any{f(1, 6, 2), 4}, err: ErrShape, msg: "divisible by groups"},
		{op: "tile", args: []any{f(2, 3), []int{2}}, want: "f32[2,6]"},
		{op: "rot90", args: []any{f(2, 3)}, want: "f32[3,2]"},
		{op: "rot90", args: []any{f(2, 3), 1, []int{0, -2}}, err: ErrIndex, msg: "different"},
		{op: "meshgrid", args: []any{[]Value{f(2), f(3)}, A("indexing", "xy")}, want: "f32[3,2] f32[3,2]"},
		{op: "meshgrid", args: []any{[]Value{f(2), f(3)}, A("indexing", "yx")}, err: ErrArg, msg: "yx"},
		{op: "meshgrid", args: []any{[]Value{f(2), f(3, 1)}}, err: ErrShape, msg: "tensor 1"},
		{op: "block_diag", args: []any{[]Value{f(2, 3), f(2), f()}}, want: "f32[4,6]"},
		{op: "block_diag", args: []any{[]Value{f(2, 3, 1)}}, err: ErrShape, msg: "2 or fewer"},
		{op: "detach", args: []any{f(2)}, want: "f32[2]"},
		{op: "glu", args: []any{f(2, 6)}, want: "f32[2,3]"},
		{op: "glu", args: []any{f(2, 5)}, err: ErrShape, msg: "even"},
		{op: "prelu", args: []any{f(2, 3, 4), f(2)}, err: ErrShape, msg: "one for each of 3 channels"},
		{op: "instance_norm", args: []any{f(2, 3, 4), nil, nil, f(3), f(3), true, 0.1, 1e-5}, err: ErrArg, msg: "not updated"},
		{op: "bilinear", args: []any{f(2, 3), f(2, 4), f(5, 3, 3)}, err: ErrShape, msg: "do not fit"},
		{op: "_weight_norm", args: []any{f(2, 3), f(2, 1), 2}, err: ErrIndex, msg: "between -1 and 1"},
		{op: "tensordot", args: []any{f(2, 3), f(3, 4), []int{1}, []int{0}}, want: "f32[2,4]"},
		{op: "tensordot", args: []any{f(2, 3), f(4, 4), []int{1}, []int{0}}, err: ErrShape, msg: "need to match"},
		{op: "tensordot", args: []any{f(2, 3), f(3, 4), []int{1}, []int{}}, err: ErrArg, msg: "same length"},
		{op: "inner", args: []any{f(2, 3), f(4, 3)}, want: "f32[2,4]"},
		{op: "addr", args: []any{f(2), f(3), f(2)}, want: "f32[3,2]"},
		{op: "addr", args: []any{f(4), f(3), f(2)}, err: ErrShape, msg: "broadcast"},
		{op: "trace", args: []any{f(2)}, err: ErrShape, msg: "expected a matrix"},
		{op: "linalg_cross", args: []any{f(2, 3), f(1, 3)}, want: "f32[2,3]"},
		{op: "linalg_cross", args: []any{f(2, 4), f(2, 4)}, err: ErrShape, msg: "length 3"},
		{op: "isin", args: []any{f(2, 4), f(0)}, want: "bool[2,4]"},
		{op: "index_fill", args: []any{f(2, 4), 1, tensor(I64, 2), f(1)}, err: ErrShape, msg: "no dimensions"},
		{op: "tril_indices", args: []any{3, 4, -1}, want: "i64[2,3]"},
		{op: "triu_indices", args: []any{3, 4, 1, A("dtype", I32)}, want: "i32[2,6]"},
		{op: "stft", args: []any{f(2, 20), 8}, want: "c64[2,5,7]"},
		{op: "stft", args: []any{f(20), 8, A("center", true), A("return_complex", false)}, want: "f32[5,11,2]"},
		{op: "stft", args: []any{f(5), 8}, err: ErrShape, msg: "expected 0 < n_fft <= 5"},
		{op: "stft", args: []any{f(20), 8, A("win_length", 9)}, err: ErrArg, msg: "win_length <= n_fft"},
		{op: "stft", args: []any{f(20), 8, A("window", f(7))}, err: ErrShape, msg: "window of size win_length 8"},
		{op: "istft", args: []any{f(5, 4), 8}, err: ErrShape, msg: "complex-valued"},
		{op: "istft", args: []any{tensor(C64, 4, 4), 8}, err: ErrShape, msg: "expected 5 frequencies"},
		{op: "istft", args: []any{tensor(C64, 2, 5, 4), 8, A("length", 30)}, want: "f32[2,30]"},
		{op: "linalg_norm", args: []any{f(2, 3, 4), "2"}, err: ErrShape, msg: "must be 1D or 2D"},
		{op: "linalg_norm", args: []any{f(2, 3, 4), "fro", []int{1}}, err: ErrArg, msg: "is not a number"},
		{op: "linalg_cond", args: []any{f(2, 3), "1"}, err: ErrShape, msg: "square"},
		{op: "linalg_lstsq", args: []any{f(2, 5, 3), f(2, 5)}, want: "f32[2,3] f32[2] i64[2] f32[2,3]"},
		{op: "linalg_lstsq", args: []any{f(3, 5), f(4, 2)}, err: ErrShape, msg: "differ"},
		{op: "hann_window", args: []any{-1}, err: ErrArg, msg: "must not be negative"},
		{op: "kaiser_window", args: []any{4, true, 1e9}, err: ErrArg, msg: "beta"},
		{op: "upsample_nearest2d", args: []any{f(1, 2, 3, 4), []int{6, 5}}, want: "f32[1,2,6,5]"},
		{op: "_upsample_nearest_exact1d", args: []any{f(1, 2), []int{6}}, err: ErrShape, msg: "3 dimensions"},
		{op: "quantize_per_tensor", args: []any{f(2, 3), 0.1, 3, 0, 255, U8}, want: "u8[2,3]"},
		{op: "quantize_per_tensor", args: []any{f(2, 3), 0.1, 3, -1, 255, U8}, err: ErrArg, msg: "does not hold"},
		{op: "quantize_per_channel", args: []any{f(2, 3), f(2), tensor(I64, 2), 1, 0, 255, U8}, err: ErrShape, msg: "3 elements"},
		{op: "dequantize_per_channel", args: []any{tensor(I8, 2, 3), f(3), nil, -1, -128, 127, I8}, want: "f32[2,3]"},
		{op: "dequantize_per_tensor", args: []any{tensor(I8, 2, 3), 0.1, 0, -128, 127, U8}, err: ErrDType, msg: "got i8"},
		{op: "fake_quantize_per_tensor_affine", args: []any{f(2, 3), 0.1, 0, 5, 4}, err: ErrArg, msg: "less than or equal"},
	})
}
