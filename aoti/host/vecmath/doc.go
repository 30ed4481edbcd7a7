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
package vecmath
