//go:build !amd64 || noasm

package tile

func native32() []*Set[float32] { return nil }

func native64() []*Set[float64] { return nil }

func nativePairs() *Set[float32] { return nil }
