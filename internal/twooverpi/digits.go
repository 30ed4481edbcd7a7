// Package twooverpi has the bits of 2/π that reducing an angle by multiples of π/2 needs, up to the
// largest f64 (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).
package twooverpi

import "math/big"

// Words is 2/π in words of 64 bits, the first 64 bits behind the point first.
var Words = [...]uint64{
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
	0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
	0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
	0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
}

// Int returns 2/π·2ⁿ, rounded down, where n is 64 times the number of words.
func Int() *big.Int {
	x := new(big.Int)
	for _, w := range Words {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(w))
	}
	return x
}
