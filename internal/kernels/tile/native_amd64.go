//go:build amd64 && !noasm

package tile

import (
	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../tile_amd64.s -stubs ../stubs_amd64.go -pkg tile

func native32() []*Set[float32] {
	return native(
		&Set[float32]{Name: "avx512", Width: 32, half: half32AVX512, one: one32AVX512, two: two32AVX512, depthwise: depthwise32AVX512,
			winograd: transforms{winogradInputF32AVX512, winogradFilterF32AVX512, winogradOutputF32AVX512}},
		&Set[float32]{Name: "avx2", Width: 16, half: half32AVX2, one: one32AVX2, two: two32AVX2, depthwise: depthwise32AVX2,
			winograd: transforms{winogradInputF32AVX2, winogradFilterF32AVX2, winogradOutputF32AVX2}})
}

func native64() []*Set[float64] {
	return native(
		&Set[float64]{Name: "avx512", Width: 16, half: half64AVX512, one: one64AVX512, two: two64AVX512, depthwise: depthwise64AVX512},
		&Set[float64]{Name: "avx2", Width: 8, half: half64AVX2, one: one64AVX2, two: two64AVX2, depthwise: depthwise64AVX2})
}

// nativePairs returns the tiles for pairs of bfloat16, or nil.
func nativePairs() *Set[float32] {
	if !isa.BF16Pairs() {
		return nil
	}
	return &Set[float32]{Name: "avx512bf16", Width: 32, half: halfBF16AVX512, one: oneBF16AVX512, two: twoBF16AVX512, join: joinPairs}
}

// native returns those that the processor has.
func native[A Float](avx512, avx2 *Set[A]) []*Set[A] {
	var sets []*Set[A]
	if isa.AVX512() {
		sets = append(sets, avx512)
	}
	if isa.AVX2() {
		sets = append(sets, avx2)
	}
	return sets
}

// The tiles by their rows.
var (
	half32AVX512 = []tileFunc{
		tile1x1F32AVX512, tile2x1F32AVX512, tile3x1F32AVX512, tile4x1F32AVX512, tile5x1F32AVX512, tile6x1F32AVX512,
		tile7x1F32AVX512, tile8x1F32AVX512, tile9x1F32AVX512, tile10x1F32AVX512, tile11x1F32AVX512, tile12x1F32AVX512,
		tile13x1F32AVX512, tile14x1F32AVX512,
	}
	one32AVX512 = []tileFunc{
		tile1x2F32AVX512, tile2x2F32AVX512, tile3x2F32AVX512, tile4x2F32AVX512, tile5x2F32AVX512, tile6x2F32AVX512,
		tile7x2F32AVX512, tile8x2F32AVX512, tile9x2F32AVX512, tile10x2F32AVX512, tile11x2F32AVX512, tile12x2F32AVX512,
		tile13x2F32AVX512, tile14x2F32AVX512,
	}
	two32AVX512 = []tileFunc{
		tile1x4F32AVX512, tile2x4F32AVX512, tile3x4F32AVX512, tile4x4F32AVX512, tile5x4F32AVX512, tile6x4F32AVX512,
		tile7x4F32AVX512,
	}
	half64AVX512 = []tileFunc{
		tile1x1F64AVX512, tile2x1F64AVX512, tile3x1F64AVX512, tile4x1F64AVX512, tile5x1F64AVX512, tile6x1F64AVX512,
		tile7x1F64AVX512, tile8x1F64AVX512, tile9x1F64AVX512, tile10x1F64AVX512, tile11x1F64AVX512, tile12x1F64AVX512,
		tile13x1F64AVX512, tile14x1F64AVX512,
	}
	one64AVX512 = []tileFunc{
		tile1x2F64AVX512, tile2x2F64AVX512, tile3x2F64AVX512, tile4x2F64AVX512, tile5x2F64AVX512, tile6x2F64AVX512,
		tile7x2F64AVX512, tile8x2F64AVX512, tile9x2F64AVX512, tile10x2F64AVX512, tile11x2F64AVX512, tile12x2F64AVX512,
		tile13x2F64AVX512, tile14x2F64AVX512,
	}
	two64AVX512 = []tileFunc{
		tile1x4F64AVX512, tile2x4F64AVX512, tile3x4F64AVX512, tile4x4F64AVX512, tile5x4F64AVX512, tile6x4F64AVX512,
		tile7x4F64AVX512,
	}
	half32AVX2 = []tileFunc{
		tile1x1F32AVX2, tile2x1F32AVX2, tile3x1F32AVX2, tile4x1F32AVX2, tile5x1F32AVX2, tile6x1F32AVX2, tile7x1F32AVX2,
		tile8x1F32AVX2, tile9x1F32AVX2, tile10x1F32AVX2, tile11x1F32AVX2, tile12x1F32AVX2,
	}
	one32AVX2 = []tileFunc{
		tile1x2F32AVX2, tile2x2F32AVX2, tile3x2F32AVX2, tile4x2F32AVX2, tile5x2F32AVX2, tile6x2F32AVX2,
	}
	two32AVX2 = []tileFunc{
		tile1x4F32AVX2, tile2x4F32AVX2, tile3x4F32AVX2,
	}
	half64AVX2 = []tileFunc{
		tile1x1F64AVX2, tile2x1F64AVX2, tile3x1F64AVX2, tile4x1F64AVX2, tile5x1F64AVX2, tile6x1F64AVX2, tile7x1F64AVX2,
		tile8x1F64AVX2, tile9x1F64AVX2, tile10x1F64AVX2, tile11x1F64AVX2, tile12x1F64AVX2,
	}
	one64AVX2 = []tileFunc{
		tile1x2F64AVX2, tile2x2F64AVX2, tile3x2F64AVX2, tile4x2F64AVX2, tile5x2F64AVX2, tile6x2F64AVX2,
	}
	two64AVX2 = []tileFunc{
		tile1x4F64AVX2, tile2x4F64AVX2, tile3x4F64AVX2,
	}
	depthwise32AVX512 = []tileFunc{
		depthwise1F32AVX512, depthwise2F32AVX512, depthwise3F32AVX512, depthwise4F32AVX512, depthwise5F32AVX512, depthwise6F32AVX512, depthwise7F32AVX512, depthwise8F32AVX512,
	}
	depthwise64AVX512 = []tileFunc{
		depthwise1F64AVX512, depthwise2F64AVX512, depthwise3F64AVX512, depthwise4F64AVX512, depthwise5F64AVX512, depthwise6F64AVX512, depthwise7F64AVX512, depthwise8F64AVX512,
	}
	depthwise32AVX2 = []tileFunc{
		depthwise1F32AVX2, depthwise2F32AVX2, depthwise3F32AVX2, depthwise4F32AVX2, depthwise5F32AVX2, depthwise6F32AVX2, depthwise7F32AVX2, depthwise8F32AVX2,
	}
	depthwise64AVX2 = []tileFunc{
		depthwise1F64AVX2, depthwise2F64AVX2, depthwise3F64AVX2, depthwise4F64AVX2, depthwise5F64AVX2, depthwise6F64AVX2, depthwise7F64AVX2, depthwise8F64AVX2,
	}
	halfBF16AVX512 = []tileFunc{
		tile1x1BF16AVX512, tile2x1BF16AVX512, tile3x1BF16AVX512, tile4x1BF16AVX512, tile5x1BF16AVX512, tile6x1BF16AVX512, tile7x1BF16AVX512, tile8x1BF16AVX512, tile9x1BF16AVX512, tile10x1BF16AVX512, tile11x1BF16AVX512, tile12x1BF16AVX512, tile13x1BF16AVX512, tile14x1BF16AVX512,
	}
	oneBF16AVX512 = []tileFunc{
		tile1x2BF16AVX512, tile2x2BF16AVX512, tile3x2BF16AVX512, tile4x2BF16AVX512, tile5x2BF16AVX512, tile6x2BF16AVX512, tile7x2BF16AVX512, tile8x2BF16AVX512, tile9x2BF16AVX512, tile10x2BF16AVX512, tile11x2BF16AVX512, tile12x2BF16AVX512, tile13x2BF16AVX512, tile14x2BF16AVX512,
	}
	twoBF16AVX512 = []tileFunc{
		tile1x4BF16AVX512, tile2x4BF16AVX512, tile3x4BF16AVX512, tile4x4BF16AVX512, tile5x4BF16AVX512, tile6x4BF16AVX512,
	}
)
