//go:build !amd64 || noasm

package philox

const most = 0

func stride() int { return 0 }

func uniformNative([]float32, uint64, uint64, uint64, int) {}
