package main

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/loris-ml/loris"
)

// text is bytes as numbers of an alphabet.
type text struct {
	alphabet []byte
	data     []int64
}

func newText(b []byte) *text {
	alphabet := slices.Clone(b)
	slices.Sort(alphabet)
	t := &text{alphabet: slices.Compact(alphabet)}
	t.data = t.codes(b)
	return t
}

func (t *text) vocabulary() int { return len(t.alphabet) }

// codes are the numbers of bytes, all of which must be in the alphabet.
func (t *text) codes(b []byte) []int64 {
	codes := make([]int64, len(b))
	for i, c := range b {
		codes[i] = int64(bytes.IndexByte(t.alphabet, c))
	}
	return codes
}

// split cuts a text in two, the first of which has a share of it.
func (t *text) split(share float64) (first, second *text) {
	n := int(share * float64(len(t.data)))
	return &text{t.alphabet, t.data[:n]}, &text{t.alphabet, t.data[n:]}
}

// windows returns n windows that begin at random, and the same one byte later, both i64 [n, window].
func (t *text) windows(m loris.Maker, r *rand.Rand, n int) (x, y *loris.Tensor) {
	var these, next []int64
	for range n {
		at := r.IntN(len(t.data) - window)
		these = append(these, t.data[at:at+window]...)
		next = append(next, t.data[at+1:at+1+window]...)
	}
	return m.FromSlice(these, n, window), m.FromSlice(next, n, window)
}
