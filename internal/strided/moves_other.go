//go:build !amd64 || noasm

package strided

import "unsafe"

func runVectors(_, _ unsafe.Pointer, _, _, _, _ int) bool { return false }

func reverseVectors[T Bits](_, _ []T, _, _, _ int) bool { return false }

func transposeVectors[T uint8 | uint16](_ []T, _ int, _ []T, _, _, _ int) (rows, cols int) {
	return 0, 0
}

func transposeFew[T uint8 | uint16](_ []T, _ int, _ []T, _, _, _ int) int { return 0 }

func everyVectors[T Bits](dst, src []T) int { return 0 }

func spreadVectors[T Bits](dst, src []T) int { return 0 }
func thirdVectors[T Bits](_, _ []T) int      { return 0 }

func twiceVectors[T Bits](_, _ []T) int { return 0 }
