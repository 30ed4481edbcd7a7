package cpu

import (
	"math"
	"testing"
)

// within has numbers from 0 to 1.
func within(n int) []float64 {
	values := hashed(n)
	for i, v := range values {
		values[i] = math.Abs(v) - math.Floor(math.Abs(v))
	}
	values[n-1] = 1
	return values
}

// TestComposites holds the kernels of composites against what these mean by ref, with dimensions that
// do not divide into blocks, in the middle and at the end.
func TestComposites(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tolerance  float64
		values     [][]float64
	}{
		{"gradients of running products", `program @p {
			%x = parameter "x" : f32[3,5,11]
			%g = parameter "g" : f32[3,5,11]
			%y = cumprod(%x, 1)
			%z = cumprod(%x, 2)
			return cumprod_backward(%g, %x, 1, %y), cumprod_backward(%g, %x, 2, %z)
		}`, 1e-6, [][]float64{hashed(165), hashed(165)}},
		{"linear recurrences", `program @p {
			%x = parameter "x" : f32[3,5,11]
			%g = parameter "g" : f32[3,5,11]
			%y = parameter "y" : f64[7,9]
			%h = parameter "h" : bf16[2,9]
			%f = parameter "f" : f16[5,1]
			%n = parameter "n" : f32[2,0]
			%e = exp(%g)
			return _linear_scan(%x, %g, 2, false), _linear_scan(%x, %g, 1, true), _linear_scan(%x, %e, -1, true), _linear_scan(permute(%x, [1,0,2]), permute(%e, [1,0,2]), 0, false),
				_linear_scan(%y, sin(%y), 1, false), _linear_scan(cos(%y), %y, 0, true), _linear_scan(%h, %h, 1, true), _linear_scan(%h, %h, 0, false),
				_linear_scan(%f, %f, 1, false), _linear_scan(%f, %f, 0, true), _linear_scan(%n, %n, 1, false), _linear_scan(%n, %n, 0, true)
		}`, 1e-6, [][]float64{hashed(165), hashed(165), hashed(63), hashed(18), hashed(5), nil}},
		{"columns of windows", `program @p {
			%x = parameter "x" : f32[2,12,16]
			%y = parameter "y" : f64[18,6]
			%h = parameter "h" : bf16[1,4,10]
			%f = parameter "f" : f16[6,3]
			return col2im(%x, [4,7], [3,2], [1,3], [1,0], [1,1]), col2im(%y, [5,4], [3], [1], [1], [2]), col2im(%h, [3,4], [2], [1], [0,1], [1]), col2im(%f, [4,1], [2,1], [1], [0], [1])
		}`, 1e-6, [][]float64{hashed(384), hashed(108), hashed(40), hashed(18)}},
		{"means of windows, and their gradients", `program @p {
			%x = parameter "x" : f32[3,47,5]
			%y = parameter "y" : f64[2,200]
			%h = parameter "h" : bf16[4,3,13]
			%a = _adaptive_mean(%x, 1, 9)
			%b = _adaptive_mean(permute(%x, [2,0,1]), 2, 12)
			%c = _adaptive_mean(%y, -1, 3)
			%d = _adaptive_mean(%h, 1, 7)
			%e = _adaptive_mean(%x, 2, 5)
			return %a, %b, %c, %d, %e, _adaptive_mean_backward(%a, 1, 47), _adaptive_mean_backward(%b, 2, 47), _adaptive_mean_backward(%c, 1, 200),
				_adaptive_mean_backward(%d, 1, 3), _adaptive_mean_backward(%x, 0, 1), _adaptive_mean_backward(slice(%x, 2, 0, 0), 1, 60)
		}`, 1e-6, [][]float64{hashed(705), hashed(400), hashed(156)}},
		{"pairs of rows", `program @p {
			%x = parameter "x" : f32[70,5]
			%y = parameter "y" : f64[9,33]
			%z = parameter "z" : f32[1,4]
			return _pair_distances(%x, 2), _pair_distances(%y, 1), _pair_distances(transpose(%y, 0, 1), inf), _pair_distances(%z, 2)
		}`, 1e-6, [][]float64{hashed(350), hashed(297), hashed(4)}},
		{"products of others", `program @p {
			%x = parameter "x" : f32[3,11]
			%y = parameter "y" : f64[2,8]
			%h = parameter "h" : bf16[2,9]
			%f = parameter "f" : f16[2,1]
			%n = parameter "n" : f32[2,0]
			return _products_of_others(%x), _products_of_others(%y), _products_of_others(%h), _products_of_others(%f), _products_of_others(%n)
		}`, 1e-6, [][]float64{hashed(33), hashed(16), hashed(18), hashed(2), nil}},
		{"frames", `program @p {
			%x = parameter "x" : f32[3,67]
			%y = parameter "y" : f64[2,53]
			%e = parameter "e" : f32[8]
			%o = parameter "o" : f32[7]
			%d = parameter "d" : f64[12]
			%a = _stft_frames(%x, %e, 2, 0, true)
			%b = _stft_frames(%x, %e, 3, 1, true)
			%c = _stft_frames(%x, %o, 2, 0, true)
			%f = _stft_frames(%x, %o, 1, 2, false)
			%g = _stft_frames(%x, %e, 1, 0, false)
			%h = _stft_frames(%y, %d, 5, 1, true)
			%i = _stft_frames(%y, %d, 45, 0, true)
			return view_as_real(%a), view_as_real(%b), view_as_real(%c), view_as_real(%f), view_as_real(%g), view_as_real(%h), view_as_real(%i)
		}`, 2e-6, [][]float64{hashed(201), hashed(106), hashed(8), hashed(7), hashed(12)}},
		{"replaced columns", `program @p {
			%x = parameter "x" : f32[2,101,5]
			%s = parameter "s" : f32[2,101]
			%h = parameter "h" : bf16[101,3,2]
			%t = parameter "t" : bf16[101,2]
			%rows = slice(%x, 1, 7, 90)
			%src = slice(%s, 1, 7, 90)
			%0 = select_scatter(%x, %s, 2, 0)
			%1 = select_scatter(%x, %s, 2, 3)
			%2 = select_scatter(%x, exp(%s), 2, 4)
			%3 = select_scatter(%rows, %src, 2, 1)
			%4 = select_scatter(exp(%x), %s, 2, 2)
			%5 = slice_scatter(%x, slice(%x, 2, 0, 2), 2, 2, 4)
			%6 = select_scatter(%h, %t, 1, 1)
			%7 = cat([slice(%x, 2, 0, 2), slice(%x, 2, 2, 5)], 2)
			%8 = cat([slice(%x, 2, 1, 4), slice(%x, 2, 3, 5)], 2)
			%9 = select_scatter(select(%x, 0, 1), slice(select(%s, 0, 0), 0, 0, 101), 1, 4)
			return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9
		}`, 1e-6, [][]float64{hashed(1010), hashed(202), hashed(606), hashed(202)}},
		{"triangles of wide matrices", `program @p {
			%x = parameter "x" : f32[2,3,50]
			%e = exp(%x)
			return triu(%x), triu(%x, 4), triu(%x, -2), triu(%x, -3), tril(%x), tril(%x, 4), tril(%x, -3), triu(%e, 1), tril(%e, 1), triu(%x, 40), tril(%x, 60)
		}`, 1e-6, [][]float64{hashed(300)}},
		{"modes", `program @p {
			%x = parameter "x" : f32[7,60]
			%y = parameter "y" : i64[9,5,11]
			%z = parameter "z" : f64[50]
			%s = parameter "s" : f64[]
			%few = div(floor(mul(%x, 3.0)), 0.0)
			%a, %0 = mode(floor(mul(%x, 5.0)), 1)
			%b, %1 = mode(%y, 1)
			%c, %2 = mode(cast(%x, bf16), 0, true)
			%d, %3 = mode(round(mul(%z, 4.0)))
			%e, %4 = mode(%s)
			%f, %5 = mode(%few, 0)
			%g, %6 = mode(cast(%y, u8), 2)
			%h, %7 = mode(cast(%y, bool), 0)
			return %a, %0, %b, %1, %c, %2, %d, %3, %e, %4, %f, %5, %g, %6, %h, %7
		}`, 0, [][]float64{hashed(420), hashed(495), hashed(50), hashed(1)}},
		{"permutations", `program @p {
			%s = parameter "s" : i64[]
			return randperm(%s, 3001, 7), randperm(%s, 1, 0), randperm(%s, 0, 0), randperm(%s, 40, 1, f32), randperm(%s, 2500, 2, f64), randperm(%s, 200, 3, bf16), randperm(%s, 300, 4, u8), randperm(%s, 20000, 5, i32)
		}`, 0, [][]float64{{77}}},
		{"running minima", `program @p {
			%x = parameter "x" : bf16[3,5,11]
			%n = parameter "n" : i32[40]
			%v, %i = cummin(%x, 1)
			%w, %j = cummin(%n, 0)
			return %v, %i, %w, %j
		}`, 0, [][]float64{hashed(165), hashed(40)}},
		{"cats of cats, and what is rolled", `program @p {
			%x = parameter "x" : f32[3,5,2,11]
			%y = parameter "y" : f32[3,5,2,11]
			%r = roll(%x, [1,2,1,-3,7], [0,1,2,3,0])
			%twice = cat([%y, %x], 2)
			%c = cat([cat([cat([exp(%x), %y], 2), %twice], 0), %twice], 0)
			return %r, %c, roll(%x, [40]), cat([%twice, cat([%x, %y], 2)], 3)
		}`, 1e-6, [][]float64{hashed(330), hashed(330)}},
		{"narrow elements that lie apart", `program @p {
			%x = parameter "x" : u8[23,17,3]
			%h = parameter "h" : bf16[41,90]
			%w = parameter "w" : f32[45]
			%a = add(cast(permute(%x, [2,0,1]), dtype=f32), cast(flip(permute(%x, [2,0,1]), [2]), dtype=f32))
			%b = mul(cast(slice(%h, 1, 0, 9223372036854775807, 2), dtype=f32), %w)
			%c = add(permute(%h, [1,0]), permute(%h, [1,0]))
			return %a, %b, %c, sum(%b, [1])
		}`, 1e-6, [][]float64{hashed(1173), hashed(3690), hashed(45)}},
		{"stacks", `program @p {
			%x = parameter "x" : f32[3,40]
			%y = parameter "y" : f32[3,40]
			%a = mul(%x, %y)
			%b = sub(%a, %y)
			%c = exp(%b)
			%m = sum(%b, [1])
			%t = cat([reshape(%m, [1,3]), reshape(exp(%m), [1,3])], 0)
			%s = cat([reshape(%a, [3,40,1]), reshape(%b, [3,40,1]), reshape(%c, [3,40,1]), reshape(%a, [3,40,1]), reshape(slice(%x, 1, 0, 20), [3,20,1])], 1)
			%r = reshape(%c, [40,3])
			return %s, %c, %t, cat([%r, reshape(sin(%x), [40,3]), %r, reshape(permute(cos(%y), [1,0]), [40,3])], 1)
		}`, 1e-6, [][]float64{hashed(120), hashed(120)}},
		{"places of triangles", `program @p {
			return tril_indices(7, 5), triu_indices(5, 9, -2), tril_indices(4, 4, -6), triu_indices(6, 6, 1, dtype=i32), triu_indices(3, 0)
		}`, 0, nil},
		{"bags", `program @p {
			%w = parameter "w" : f32[9,35]
			%h = parameter "h" : bf16[9,35]
			%i = parameter "i" : i64[10]
			%o = parameter "o" : i64[4]
			%s = parameter "s" : f32[10]
			%a, %b, %c, %d = _embedding_bag(%w, %i, %o, mode=0, per_sample_weights=%s, padding_idx=2)
			%e, %f, %g, %k = _embedding_bag(%w, %i, %o, mode=1, include_last_offset=true)
			%l, %m, %n, %p = _embedding_bag(%h, %i, %o, mode=2, padding_idx=0)
			%q, %r, %t, %u = _embedding_bag(%h, %i, %o, mode=0)
			return %a, %b, %c, %d, %e, %f, %g, %k, %l, %m, %n, %p, %q, %r, %t, %u
		}`, 1e-6, [][]float64{hashed(315), hashed(315), {3, 2, 0, 8, 8, 1, 0, 2, 5, 4}, {0, 3, 3, 8}, hashed(10)}},
		{"systems of small and of large matrices", `program @p {
			%a = parameter "a" : f64[2,21,21]
			%b = parameter "b" : f64[2,21,5]
			%c = parameter "c" : f64[3,7,7]
			%d = parameter "d" : f64[5,7]
			%f, %p, %i = linalg_lu_factor_ex(%a)
			%g, %q, %j = linalg_lu_factor_ex(%c)
			%r = transpose(%b, 1, 2)
			%s, %t, %u = _linalg_det(%a)
			%v, %w, %x = _linalg_det(%c)
			return linalg_lu_solve(%f, %p, %b), linalg_lu_solve(%f, %p, %b, adjoint=true), linalg_lu_solve(%f, %p, %r, left=false),
				linalg_lu_solve(%f, %p, %r, left=false, adjoint=true), linalg_lu_solve(%g, %q, %d, left=false),
				linalg_lu_solve(%g, %q, %d, left=false, adjoint=true), %s, %t, %u, %v
		}`, 1e-9, [][]float64{hashed(882), hashed(210), hashed(147), hashed(35)}},
		{"edges of their own elements", `program @p {
			%x = parameter "x" : f32[3,5,6,7]
			%n = parameter "n" : u8[4,9]
			%r = pad(%x, [3,5,4,2], "reflect")
			%t = pad(permute(%x, [0,3,2,1]), [1,0,2,3,-1,4], "reflect")
			%s = pad(%x, [3,-2,9,0,-1,3], "replicate")
			%c = pad(%x, [7,2,-3,6,0,5], "circular")
			return %r, %t, %s, %c, pad(%n, [3,8], "reflect"), pad(%n, [-2,20], "replicate"), pad(%n, [9,-9], "circular"), pad(exp(%r), [0,1,2,2], "circular"),
				pad(cast(%n, bf16), [-4,-5], "reflect"), pad(cast(%n, f64), [2,2], "circular")
		}`, 1e-6, [][]float64{hashed(630), hashed(36)}},
		{"windows that overlap", `program @p {
			%x = parameter "x" : f32[3,5,37]
			%n = parameter "n" : i16[31,6]
			%w = unfold(%x, 2, 9, 4)
			%v = unfold(%w, 1, 2, 2)
			%u = unfold(transpose(%x, 1, 2), -2, 5, 3)
			%c = unfold(%n, 0, 7, 2)
			return %v, sum(%w, [-1]), mean(%v, [3,4]), amax(%u, [-1]), var(%u, [1]), mul(%w, %w), amin(%c, [2]), add(%c, 1), unfold(sum(%x), 0, 1, 1),
				matmul(%w, transpose(%w, 2, 3))
		}`, 1e-6, [][]float64{hashed(555), hashed(186)}},
		{"maxima of parts", `program @p {
			%x = parameter "x" : f32[2,9,7,10]
			%a, %b = adaptive_max_pool2d(%x, [3,4])
			%c, %d = adaptive_max_pool3d(%x, [2,7,12])
			%e = reshape(%x, [18,70])
			%f, %g = adaptive_max_pool1d(%e, [9])
			return %a, %b, %c, %d, %f, %g
		}`, 0, [][]float64{hashed(1260)}},
		{"parts of short lines", `program @p {
			%x = parameter "x" : f32[70,11,29]
			%y = parameter "y" : f32[70,11,29]
			%b = cast(%x, bf16)
			%p = cat([slice(%x, 2, 0, 23, 1), slice(%y, 2, 3, 26, 1), slice(%x, 2, 6, 29, 1)], 1)
			%q = cat([slice(%x, 2, 1, 20, 1), exp(slice(%y, 2, 0, 19, 1)), slice(%y, 2, 5, 24, 1), slice(%y, 2, 9, 28, 1)], 1)
			%r = cat([slice(%x, 2, 0, 3, 1), slice(%x, 2, 3, 9, 1), slice(%y, 2, 0, 6, 1)], 2)
			%s = cat([slice(slice(%b, 2, 0, 23, 1), 1, 0, 5, 1), slice(slice(%b, 2, 2, 25, 1), 1, 3, 11, 1)], 1)
			return %p, %q, %r, cat([%p, slice(%p, 1, 2, 20, 1)], 1), %s
		}`, 1e-6, [][]float64{hashed(22330), hashed(22330)}},
		{"maxima of windows at random places", `program @p {
			%x = parameter "x" : f32[2,3,9,7,10]
			%s = parameter "s" : f32[2,3,3]
			%t = parameter "t" : f64[6,9,2]
			%h = parameter "h" : f16[6,9,2]
			%m = reshape(%x, [6,9,7,10])
			%a, %b = fractional_max_pool3d(%x, [2,3,1], [4,5,10], %s)
			%c, %d = fractional_max_pool2d(%m, [2,3], [6,1], %t)
			%e, %f = fractional_max_pool2d(cast(%m, bf16), [3], [5,5], %t)
			%g, %i = fractional_max_pool2d(cast(%m, f64), [2], [5,7], %h)
			%j, %k = fractional_max_pool2d(cast(mul(%m, 9.0), i16), [2], [5,7], %h)
			return %a, %b, %c, %d, %e, %f, %g, %i, %j, %k
		}`, 0, [][]float64{hashed(3780), within(18), within(108), within(108)}},
		{"adding along one line", `program @p {
			%x = parameter "x" : f32[20]
			%i = parameter "i" : i64[10]
			%s = parameter "s" : f32[10]
			return scatter_reduce(%x, 0, %i, %s, "sum"), scatter(%x, 0, %i, %s)
		}`, 1e-6, [][]float64{hashed(20), {3, 2, 0, 8, 8, 1, 0, 2, 19, 4}, hashed(10)}},
		{"an operand that lies across and is read often", `program @p {
			%x = parameter "x" : f32[40,13]
			%y = parameter "y" : f32[37,13]
			return sub(reshape(%x, [40,13,1]), permute(%y, [1,0])), sum(mul(reshape(%x, [40,13,1]), permute(%y, [1,0])), [1])
		}`, 1e-6, [][]float64{hashed(520), hashed(481)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, b := range map[string]*Backend{"native": New(), "portable": NewPortable()} {
				t.Run(name, func(t *testing.T) { sameAsRef(t, b, c.text, c.tolerance, c.values...) })
			}
		})
	}
}
