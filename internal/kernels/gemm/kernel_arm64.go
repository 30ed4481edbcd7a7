//go:build arm64 && !noasm

package gemm

// nativeKernels returns the inner loops of this processor, all of which have NEON.
func nativeKernels[A Float]() []*kernel[A] {
	l, _ := any([]*kernel[float32]{neonF32}).([]*kernel[A])
	return l
}

var neonF32 = &kernel[float32]{
	name: "neon", mr: 8, nr: 8, masked: false,
	tiles: [2][]tileFunc[float32]{{
		nil, tile1x8F32NEON, tile2x8F32NEON, tile3x8F32NEON, tile4x8F32NEON, tile5x8F32NEON, tile6x8F32NEON, tile7x8F32NEON, tile8x8F32NEON,
	}},
}
