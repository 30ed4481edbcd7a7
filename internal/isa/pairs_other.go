//go:build !amd64 || noasm

package isa

// BF16Pairs reports whether vectors multiply pairs of bfloat16 (AVX512-BF16).
func BF16Pairs() bool { return false }

// FastBF16Pairs reports whether they do so faster than they multiply two float32.
func FastBF16Pairs() bool { return false }
