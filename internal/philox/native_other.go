//go:build !amd64 || noasm

package philox

const most = 0

func stride() int { return 0 }

func uniformNative([]float32, uint64, uint64, uint64, int) {}

func wordStride() int { return 0 }

func normalStride() int { return 0 }

func wordsNative([]uint64, uint64, uint64, uint64) {}

func normal32Native([]float32, []uint64) {}

func normal64Native([]float64, []uint64) {}
