package twooverpi

import (
	"math/big"
	"testing"
)

// TestWords holds the words against 2/π from Machin's formula.
func TestWords(t *testing.T) {
	const bits, guard = 64 * len(Words), 64
	one := new(big.Int).Lsh(big.NewInt(1), uint(bits+guard))
	arctan := func(n int64) *big.Int { // of 1/n
		sum, power := new(big.Int), new(big.Int).Quo(one, big.NewInt(n))
		for k := int64(1); power.Sign() != 0; k += 2 {
			term := new(big.Int).Quo(power, big.NewInt(k))
			if k%4 == 3 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, big.NewInt(n*n))
		}
		return sum
	}
	pi := new(big.Int).Mul(arctan(5), big.NewInt(16))
	pi.Sub(pi, new(big.Int).Mul(arctan(239), big.NewInt(4)))
	want := new(big.Int).Lsh(one, uint(bits+1))
	want.Quo(want, pi)
	if got := Int(); got.Cmp(want) != 0 {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
