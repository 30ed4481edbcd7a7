//go:build amd64 && !noasm

package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../kernel_amd64.s -stubs ../kernel_stubs_amd64.go -pkg gemm

// nativeKernels returns the inner loops that this processor can run, best
// first.
func nativeKernels[A Float]() []*kernel[A] {
	var l32 []*kernel[float32]
	var l64 []*kernel[float64]
	if kn := amxPairs(); kn != nil {
		avx512F32.pairs = kn
	} else if isa.FastBF16Pairs() {
		avx512F32.pairs = avx512Pairs
	}
	if isa.AVX512() {
		l32, l64 = append(l32, avx512F32), append(l64, avx512F64)
	}
	if isa.AVX2() {
		l32, l64 = append(l32, avx2F32), append(l64, avx2F64)
	}
	if l, ok := any(l32).([]*kernel[A]); ok {
		return l
	}
	return any(l64).([]*kernel[A])
}

// vectorPairs returns the kernel whose vectors multiply pairs of bfloat16, or nil if the processor has none.
func vectorPairs() *kernel[float32] {
	if !isa.BF16Pairs() {
		return nil
	}
	return avx512Pairs
}

var avx512F32 = &kernel[float32]{
	name: "avx512", mr: 14, nr: 32, masked: true,
	tiles: [2][]tileFunc[float32]{{
		nil, tile1x32F32AVX512, tile2x32F32AVX512, tile3x32F32AVX512, tile4x32F32AVX512, tile5x32F32AVX512, tile6x32F32AVX512, tile7x32F32AVX512,
		tile8x32F32AVX512, tile9x32F32AVX512, tile10x32F32AVX512, tile11x32F32AVX512, tile12x32F32AVX512, tile13x32F32AVX512, tile14x32F32AVX512,
	}, {
		nil, tile1x16F32AVX512, tile2x16F32AVX512, tile3x16F32AVX512, tile4x16F32AVX512, tile5x16F32AVX512, tile6x16F32AVX512, tile7x16F32AVX512,
		tile8x16F32AVX512, tile9x16F32AVX512, tile10x16F32AVX512, tile11x16F32AVX512, tile12x16F32AVX512, tile13x16F32AVX512, tile14x16F32AVX512,
	}},
	panels: []panelFunc[float32]{
		nil, panels1x32F32AVX512, panels2x32F32AVX512, panels3x32F32AVX512, panels4x32F32AVX512, panels5x32F32AVX512, panels6x32F32AVX512, panels7x32F32AVX512,
		panels8x32F32AVX512, panels9x32F32AVX512, panels10x32F32AVX512, panels11x32F32AVX512, panels12x32F32AVX512, panels13x32F32AVX512, panels14x32F32AVX512,
	},
	copyRows: copyRowsF32AVX512, transpose: transposeF32AVX512, copyPanels: copyPanelsF32AVX512,
	narrow: [formats]*kernel[float32]{bf16: avx512BF16, binary: avx512F16},
	broad:  []tileFunc[float32]{nil, tile1x64F32AVX512, tile2x64F32AVX512, tile3x64F32AVX512, tile4x64F32AVX512},
	dots:   &dots[float32]{lanes: 1, tiles: []dotFunc[float32]{nil, dot1x4F32AVX512, dot2x4F32AVX512, dot3x4F32AVX512, dot4x4F32AVX512, dot5x4F32AVX512, dot6x4F32AVX512}, single: dot1x1F32AVX512},
	finish: finishF32AVX512,
	times:  timesF32AVX512,
}

// avx512Pairs is what avx512F32 has for bfloat16 where the processor multiplies pairs.
var avx512Pairs = &kernel[float32]{
	name: "avx512bf16", mr: 14, nr: 32, masked: true,
	tiles: [2][]tileFunc[float32]{{
		nil, tile1x32BF16AVX512, tile2x32BF16AVX512, tile3x32BF16AVX512, tile4x32BF16AVX512, tile5x32BF16AVX512, tile6x32BF16AVX512, tile7x32BF16AVX512, tile8x32BF16AVX512, tile9x32BF16AVX512, tile10x32BF16AVX512, tile11x32BF16AVX512, tile12x32BF16AVX512, tile13x32BF16AVX512, tile14x32BF16AVX512,
	}, {
		nil, tile1x16BF16AVX512, tile2x16BF16AVX512, tile3x16BF16AVX512, tile4x16BF16AVX512, tile5x16BF16AVX512, tile6x16BF16AVX512, tile7x16BF16AVX512, tile8x16BF16AVX512, tile9x16BF16AVX512, tile10x16BF16AVX512, tile11x16BF16AVX512, tile12x16BF16AVX512, tile13x16BF16AVX512, tile14x16BF16AVX512,
	}},
	panels: []panelFunc[float32]{
		nil, panels1x32BF16AVX512, panels2x32BF16AVX512, panels3x32BF16AVX512, panels4x32BF16AVX512, panels5x32BF16AVX512, panels6x32BF16AVX512, panels7x32BF16AVX512, panels8x32BF16AVX512, panels9x32BF16AVX512, panels10x32BF16AVX512, panels11x32BF16AVX512, panels12x32BF16AVX512, panels13x32BF16AVX512, panels14x32BF16AVX512,
	},
	broad:  []tileFunc[float32]{nil, tile1x64BF16AVX512, tile2x64BF16AVX512, tile3x64BF16AVX512, tile4x64BF16AVX512},
	dots:   &dots[float32]{lanes: 1, tiles: []dotFunc[float32]{nil, dot1x4BF16AVX512, dot2x4BF16AVX512, dot3x4BF16AVX512, dot4x4BF16AVX512, dot5x4BF16AVX512, dot6x4BF16AVX512}},
	loops:  &pairLoops{rows: pairRowsBF16AVX512, columns: transposeBF16AVX512, panels: pairPanelsBF16AVX512, turn: transposeF32AVX512},
	finish: finishF32AVX512,
	times:  timesF32AVX512,
}

// avx512BF16 and avx512F16 are what avx512F32 has for a few rows and 16-bit elements.
var (
	avx512BF16 = &kernel[float32]{
		name: "avx512 bf16", mr: 14, nr: 32, masked: true, stored: bf16,
		tiles: [2][]tileFunc[float32]{
			{nil, tile1x32BF16F32AVX512, tile2x32BF16F32AVX512, tile3x32BF16F32AVX512, tile4x32BF16F32AVX512, tile5x32BF16F32AVX512, tile6x32BF16F32AVX512, tile7x32BF16F32AVX512, tile8x32BF16F32AVX512, tile9x32BF16F32AVX512, tile10x32BF16F32AVX512, tile11x32BF16F32AVX512, tile12x32BF16F32AVX512, tile13x32BF16F32AVX512, tile14x32BF16F32AVX512},
			{nil, tile1x16BF16F32AVX512, tile2x16BF16F32AVX512, tile3x16BF16F32AVX512, tile4x16BF16F32AVX512, tile5x16BF16F32AVX512, tile6x16BF16F32AVX512, tile7x16BF16F32AVX512, tile8x16BF16F32AVX512, tile9x16BF16F32AVX512, tile10x16BF16F32AVX512, tile11x16BF16F32AVX512, tile12x16BF16F32AVX512, tile13x16BF16F32AVX512, tile14x16BF16F32AVX512},
		},
		transpose: transposeF32AVX512, copyRows: copyRowsF32AVX512,
		broad:  []tileFunc[float32]{nil, tile1x64BF16F32AVX512, tile2x64BF16F32AVX512, tile3x64BF16F32AVX512, tile4x64BF16F32AVX512},
		dots:   &dots[float32]{lanes: 1, tiles: []dotFunc[float32]{nil, dot1x4BF16F32AVX512, dot2x4BF16F32AVX512, dot3x4BF16F32AVX512, dot4x4BF16F32AVX512, dot5x4BF16F32AVX512, dot6x4BF16F32AVX512}},
		finish: finishF32AVX512,
		times:  timesF32AVX512,
	}
	avx512F16 = &kernel[float32]{
		name: "avx512 f16", mr: 14, nr: 32, masked: true, stored: binary,
		tiles: [2][]tileFunc[float32]{
			{nil, tile1x32F16F32AVX512, tile2x32F16F32AVX512, tile3x32F16F32AVX512, tile4x32F16F32AVX512, tile5x32F16F32AVX512, tile6x32F16F32AVX512, tile7x32F16F32AVX512, tile8x32F16F32AVX512, tile9x32F16F32AVX512, tile10x32F16F32AVX512, tile11x32F16F32AVX512, tile12x32F16F32AVX512, tile13x32F16F32AVX512, tile14x32F16F32AVX512},
			{nil, tile1x16F16F32AVX512, tile2x16F16F32AVX512, tile3x16F16F32AVX512, tile4x16F16F32AVX512, tile5x16F16F32AVX512, tile6x16F16F32AVX512, tile7x16F16F32AVX512, tile8x16F16F32AVX512, tile9x16F16F32AVX512, tile10x16F16F32AVX512, tile11x16F16F32AVX512, tile12x16F16F32AVX512, tile13x16F16F32AVX512, tile14x16F16F32AVX512},
		},
		transpose: transposeF32AVX512, copyRows: copyRowsF32AVX512,
		broad:  []tileFunc[float32]{nil, tile1x64F16F32AVX512, tile2x64F16F32AVX512, tile3x64F16F32AVX512, tile4x64F16F32AVX512},
		dots:   &dots[float32]{lanes: 1, tiles: []dotFunc[float32]{nil, dot1x4F16F32AVX512, dot2x4F16F32AVX512, dot3x4F16F32AVX512, dot4x4F16F32AVX512, dot5x4F16F32AVX512, dot6x4F16F32AVX512}},
		finish: finishF32AVX512,
		times:  timesF32AVX512,
	}
)

// avx2BF16 and avx2F16 are the same for avx2F32.
var (
	avx2BF16 = &kernel[float32]{
		name: "avx2 bf16", mr: 6, nr: 16, stored: bf16,
		tiles: [2][]tileFunc[float32]{{
			nil, tile1x16BF16F32AVX2, tile2x16BF16F32AVX2, tile3x16BF16F32AVX2, tile4x16BF16F32AVX2, tile5x16BF16F32AVX2, tile6x16BF16F32AVX2,
		}},
		transpose: transposeAVX2, copyRows: copyRowsAVX2,
		broad: []tileFunc[float32]{nil, tile1x32BF16F32AVX2, tile2x32BF16F32AVX2, tile3x32BF16F32AVX2}, streams: avx2Streams,
		dots:   &dots[float32]{lanes: 8, tiles: []dotFunc[float32]{nil, dot1x4BF16F32AVX2, dot2x4BF16F32AVX2}},
		finish: finishF32AVX2,
		times:  timesF32AVX2,
	}
	avx2F16 = &kernel[float32]{
		name: "avx2 f16", mr: 6, nr: 16, stored: binary,
		tiles: [2][]tileFunc[float32]{{
			nil, tile1x16F16F32AVX2, tile2x16F16F32AVX2, tile3x16F16F32AVX2, tile4x16F16F32AVX2, tile5x16F16F32AVX2, tile6x16F16F32AVX2,
		}},
		transpose: transposeAVX2, copyRows: copyRowsAVX2,
		broad: []tileFunc[float32]{nil, tile1x32F16F32AVX2, tile2x32F16F32AVX2, tile3x32F16F32AVX2}, streams: avx2Streams,
		dots:   &dots[float32]{lanes: 8, tiles: []dotFunc[float32]{nil, dot1x4F16F32AVX2, dot2x4F16F32AVX2}},
		finish: finishF32AVX2,
		times:  timesF32AVX2,
	}
)

var avx512F64 = &kernel[float64]{
	name: "avx512", mr: 14, nr: 16, masked: true,
	tiles: [2][]tileFunc[float64]{{
		nil, tile1x16F64AVX512, tile2x16F64AVX512, tile3x16F64AVX512, tile4x16F64AVX512, tile5x16F64AVX512, tile6x16F64AVX512, tile7x16F64AVX512,
		tile8x16F64AVX512, tile9x16F64AVX512, tile10x16F64AVX512, tile11x16F64AVX512, tile12x16F64AVX512, tile13x16F64AVX512, tile14x16F64AVX512,
	}, {
		nil, tile1x8F64AVX512, tile2x8F64AVX512, tile3x8F64AVX512, tile4x8F64AVX512, tile5x8F64AVX512, tile6x8F64AVX512, tile7x8F64AVX512, tile8x8F64AVX512,
		tile9x8F64AVX512, tile10x8F64AVX512, tile11x8F64AVX512, tile12x8F64AVX512, tile13x8F64AVX512, tile14x8F64AVX512,
	}},
	panels: []panelFunc[float64]{
		nil, panels1x16F64AVX512, panels2x16F64AVX512, panels3x16F64AVX512, panels4x16F64AVX512, panels5x16F64AVX512, panels6x16F64AVX512, panels7x16F64AVX512,
		panels8x16F64AVX512, panels9x16F64AVX512, panels10x16F64AVX512, panels11x16F64AVX512, panels12x16F64AVX512, panels13x16F64AVX512, panels14x16F64AVX512,
	},
	copyRows: copyRowsF64AVX512, transpose: transposeF64AVX512, copyPanels: copyPanelsF64AVX512,
	broad:  []tileFunc[float64]{nil, tile1x32F64AVX512, tile2x32F64AVX512, tile3x32F64AVX512, tile4x32F64AVX512},
	dots:   &dots[float64]{lanes: 1, tiles: []dotFunc[float64]{nil, dot1x4F64AVX512, dot2x4F64AVX512, dot3x4F64AVX512, dot4x4F64AVX512, dot5x4F64AVX512, dot6x4F64AVX512}, single: dot1x1F64AVX512},
	finish: finishF64AVX512,
	times:  timesF64AVX512,
}

// avx2Streams is from a Zen 2, where 32 rows take five times as long.
const avx2Streams = 8

var avx2F32 = &kernel[float32]{
	name: "avx2", mr: 6, nr: 16, masked: false,
	tiles: [2][]tileFunc[float32]{{
		nil, tile1x16F32AVX2, tile2x16F32AVX2, tile3x16F32AVX2, tile4x16F32AVX2, tile5x16F32AVX2, tile6x16F32AVX2,
	}},
	transpose: transposeAVX2, copyRows: copyRowsAVX2,
	copyPanels: copyPanelsF32AVX2,
	broad:      []tileFunc[float32]{nil, tile1x32F32AVX2, tile2x32F32AVX2, tile3x32F32AVX2}, streams: avx2Streams,
	narrow: [formats]*kernel[float32]{bf16: avx2BF16, binary: avx2F16},
	dots:   &dots[float32]{lanes: 8, tiles: []dotFunc[float32]{nil, dot1x4F32AVX2, dot2x4F32AVX2}, single: dot1x1F32AVX2},
	finish: finishF32AVX2,
	times:  timesF32AVX2,
}

var avx2F64 = &kernel[float64]{
	name: "avx2", mr: 6, nr: 8, masked: false,
	tiles: [2][]tileFunc[float64]{{
		nil, tile1x8F64AVX2, tile2x8F64AVX2, tile3x8F64AVX2, tile4x8F64AVX2, tile5x8F64AVX2, tile6x8F64AVX2,
	}},
	transpose: func(dst *float64, width int, src *float64, stride, n, depth int) {
		transposeWhole(transposeF64AVX2, 4, dst, width, src, stride, n, depth)
	},
	copyRows: func(dst *float64, width int, src *float64, stride, n, depth int) {
		copyVectors(copyRowF64AVX2, 4, dst, width, src, stride, n, depth)
	},
	copyPanels: copyPanelsF64AVX2,
	broad:      []tileFunc[float64]{nil, tile1x16F64AVX2, tile2x16F64AVX2, tile3x16F64AVX2}, streams: avx2Streams,
	dots:   &dots[float64]{lanes: 4, tiles: []dotFunc[float64]{nil, dot1x4F64AVX2, dot2x4F64AVX2}, single: dot1x1F64AVX2},
	finish: finishF64AVX2,
	times:  timesF64AVX2,
}

func transposeAVX2(dst *float32, width int, src *float32, stride, n, depth int) {
	transposeWhole(transposeF32AVX2, 8, dst, width, src, stride, n, depth)
}

func copyRowsAVX2(dst *float32, width int, src *float32, stride, n, depth int) {
	copyVectors(copyRowF32AVX2, 8, dst, width, src, stride, n, depth)
}

// transposeWhole gives whole blocks of depth to f and does the rest in Go.
func transposeWhole[A Float](f packFunc[A], block int, dst *A, width int, src *A, stride, n, depth int) {
	whole := depth / block * block
	if whole > 0 {
		f(dst, width, src, stride, n, whole)
	}
	if whole == depth {
		return
	}
	to := unsafe.Slice(dst, (depth-1)*width+n)
	from := unsafe.Slice(src, (n-1)*stride+depth)
	packStrided(to[whole*width:], width, from[whole:], stride, 1, n, depth-whole)
}

// copyVectors packs elements that are adjacent across with f, which writes rows of whole vectors. What these have too much
// is overwritten by the rows after them, and by the vectors before, which come later; rows that have none after them are
// copied in Go.
func copyVectors[A Float](f packFunc[A], lanes int, dst *A, width int, src *A, stride, n, depth int) {
	to := unsafe.Slice(dst, (depth-1)*width+n)
	from := unsafe.Slice(src, (depth-1)*stride+n)
	for x := (n - 1) / lanes * lanes; x >= 0; x -= lanes {
		part := min(lanes, n-x)
		whole := max(0, depth-ceil(max(0, x+lanes-n), width))
		if whole > 0 {
			f(&to[x], width, &from[x], stride, part, whole)
		}
		if whole < depth {
			packStrided(to[whole*width+x:], width, from[whole*stride+x:], 1, stride, part, depth-whole)
		}
	}
}
