// Package vecmath provides the vector functions of mathematics that libraries made by
// PyTorch's Inductor leave undefined, under the names that the loader's private copies
// ask for: Loris_expf16_u10 is Sleef_expf16_u10, with the same arguments in the same
// vector registers, and an error below the 1.0 units in the last place that u10 promises.
//
// The functions are C; importing the package links them, and [Symbols] lists them. There are three widths,
// each made of the same files with its own types: 512 bits (AVX-512 F, DQ, BW, VL), 256 bits (AVX2 and FMA), and
// 128 bits, which is what linux/arm64 uses. No instruction of a width runs before a function of that width
// is called, so a program with this package still runs on older processors. All widths give the same bits.
//
// Methods are described at each function (f64_*.h for doubles, f32_*.h for floats). Most doubles carry
// their leading terms as unevaluated sums of two doubles, so that little more than the last
// addition rounds; most floats are computed in doubles and rounded once. Polynomials are minimax, made by
// scripts/vecmath_coefficients.py. NaN, infinities, signed zeros, subnormal arguments and results, and
// overflow follow C's Annex F. Arguments of sin, cos and tan beyond 1e9 and quotients of fmod beyond 2^53 are
// left to the C library, a lane at a time.
//
// On amd64 the C must be compiled by gcc: clang passes vectors wider than its command line's target in
// memory, and stops with a message unless the flags that it names are given.
//
// The largest errors found, in units of the last place, for floats over every 61st bit pattern (two
// operands: 1.3 million pairs) and for doubles over 400,000 arguments; -vecmath.long measures them
// again. copysign, fmod and nextafter are exact. Below zero, an error of lgamma of up to 1e-15 doesn't count; it has
// zeros there that no number is close to.
//
//	function     floats doubles
//	acos_u10       0.50    0.57
//	acosh_u10      0.50    0.53
//	asin_u10       0.50    0.58
//	asinh_u10      0.50    0.54
//	atan2_u10      0.50    0.92
//	atan_u10       0.50    0.67
//	atanh_u10      0.50    0.54
//	cos_u10        0.75    0.79
//	cos_u35        1.96
//	cosh_u10       0.50    0.62
//	erf_u10        0.83    0.82
//	erfc_u15       0.51    0.73
//	exp2_u10       0.83    0.62
//	exp_u10        0.76    0.75
//	expm1_u10      0.86    0.57
//	hypot_u05      0.50    0.50
//	lgamma_u10     0.51    0.54
//	log10_u10      0.67    0.58
//	log1p_u10      0.90    0.54
//	log2_u10       0.67    0.59
//	log_u10        0.85    0.56
//	pow_u10        0.50    0.74
//	sin_u10        0.74    0.74
//	sin_u35        1.97
//	sinh_u10       0.51    0.55
//	tan_u10        0.51    0.87
//	tanh_u10       0.70    0.54
package vecmath
