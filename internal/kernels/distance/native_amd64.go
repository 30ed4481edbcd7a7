//go:build amd64 && !noasm

package distance

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../distance_amd64.s -stubs ../stubs_amd64.go -pkg distance

// available returns the kernels that the processor can run, the fastest first.
func available[T Float]() (list []*kernels[T]) {
	if isa.AVX512() {
		list = append(list, native[T](
			&kernels[float32]{"avx512", 32, 4,
				[3]normTiles[float32]{{manhattan4AVX512F32, manhattan1AVX512F32}, {euclidean4AVX512F32, euclidean1AVX512F32}, {greatest4AVX512F32, greatest1AVX512F32}},
				[2]sumTiles[float32]{{signs4AVX512F32, signs1AVX512F32}, {differences4AVX512F32, differences1AVX512F32}}},
			&kernels[float64]{"avx512", 16, 4,
				[3]normTiles[float64]{{manhattan4AVX512F64, manhattan1AVX512F64}, {euclidean4AVX512F64, euclidean1AVX512F64}, {greatest4AVX512F64, greatest1AVX512F64}},
				[2]sumTiles[float64]{{signs4AVX512F64, signs1AVX512F64}, {differences4AVX512F64, differences1AVX512F64}}}))
	}
	if isa.AVX2() {
		list = append(list, native[T](
			&kernels[float32]{"avx2", 16, 2,
				[3]normTiles[float32]{{manhattan4AVX2F32, manhattan1AVX2F32}, {euclidean4AVX2F32, euclidean1AVX2F32}, {greatest4AVX2F32, greatest1AVX2F32}},
				[2]sumTiles[float32]{{signs2AVX2F32, signs1AVX2F32}, {differences2AVX2F32, differences1AVX2F32}}},
			&kernels[float64]{"avx2", 8, 2,
				[3]normTiles[float64]{{manhattan4AVX2F64, manhattan1AVX2F64}, {euclidean4AVX2F64, euclidean1AVX2F64}, {greatest4AVX2F64, greatest1AVX2F64}},
				[2]sumTiles[float64]{{signs2AVX2F64, signs1AVX2F64}, {differences2AVX2F64, differences1AVX2F64}}}))
	}
	return append(list, portable[T]())
}

func native[T Float](f32 *kernels[float32], f64 *kernels[float64]) *kernels[T] {
	if k, ok := any(f32).(*kernels[T]); ok {
		return k
	}
	return any(f64).(*kernels[T])
}
