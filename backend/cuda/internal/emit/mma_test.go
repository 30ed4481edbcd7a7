package emit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// mmaKernels multiply an x of 16 × 16, which lies by rows, with a y of 16 × 8 that
// lies by rows or by columns, and add one half: each warp a pair of its own. The
// last columns of x are not copied.
const mmaKernels = `
struct MmaFrame { char *dst, *x, *y; };

template <class T, bool by_rows> INLINE void mma_test(const MmaFrame& f) {
  __shared__ Pack<u16, 8> x[2][16][2], y[2][16][2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T* const from_x = (const T*)f.x + warp * 256 + lane / 2 * 16 + lane % 2 * 8;
  cp_async<16>(&x[warp][lane / 2][lane % 2], from_x, lane % 2 ? 8 : 16);
  cp_async_commit();
  const char* const from_y = f.y + warp * 256;
  if (by_rows)
    cp_async<8>((char*)&y[warp][lane / 2] + lane % 2 * 8, from_y + lane * 8, 8);
  else
    for (int i = 0; i < 2; i++) cp_async<4>((char*)&y[warp][lane / 4] + lane % 4 * 4 + i * 16, from_y + lane / 4 * 32 + i * 16 + lane % 4 * 4, 4);
  cp_async_commit();
  cp_async_wait<1>();
  __syncwarp();
  u32 a[4], both[4], b[2];
  ldmatrix<false>(a, &x[warp][lane % 16][lane / 16]);
  cp_async_wait<0>();
  __syncwarp();
  if (by_rows)
    ldmatrix<true>(both, &y[warp][lane % 16][0]); // the lanes from 16 on repeat it
  else
    ldmatrix<false>(both, &y[warp][lane % 8][lane / 8 % 2]);
  b[0] = both[0], b[1] = both[1];
  f32 c[4] = {0.5f, 0.5f, 0.5f, 0.5f};
  mma<T>(c, a, b);
  u32* const dst = (u32*)f.dst + warp * 64 + lane / 4 * 4 + lane % 4;
  dst[0] = pack_pair<T>(c[0], c[1]);
  dst[32] = pack_pair<T>(c[2], c[3]);
}

INLINE void mma_test_tf32(const MmaFrame& f) {
  const int warp = threadIdx.x / 32, row = threadIdx.x % 32 / 4, col = threadIdx.x % 4;
  const f32 *const x = (const f32*)f.x + warp * 256, *const y = (const f32*)f.y + warp * 128;
  f32 c[4] = {0.5f, 0.5f, 0.5f, 0.5f};
  for (int k = 0; k < 16; k += 8) {
    u32 a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = k + i / 2 * 4 + col < 12 ? to_tf32(x[(row + i % 2 * 8) * 16 + k + i / 2 * 4 + col]) : 0;
    for (int i = 0; i < 2; i++) b[i] = to_tf32(y[(k + i * 4 + col) * 8 + row]);
    mma_tf32(c, a, b);
  }
  f32* const dst = (f32*)f.dst + warp * 128;
  for (int i = 0; i < 4; i++) dst[(row + i / 2 * 8) * 8 + col * 2 + i % 2] = c[i];
}
`

func TestMMA(t *testing.T) {
	d := newDevice(t)
	functions := []string{"mma_test_tf32"}
	for _, dt := range []string{"f16", "bf16"} {
		functions = append(functions, "mma_test<"+dt+", true>", "mma_test<"+dt+", false>")
	}
	plans := make([]routine, len(functions))
	var entries []string
	source := mmaKernels
	for i, f := range functions {
		plans[i].launch(f, "MmaFrame", (&slots{}).at(0, 0).at(1, 0).at(2, 0), [3]int{1, 1, 1}, [3]int{64, 1, 1})
		entries = append(entries, plans[i].Launches[0].Entry)
		source += libraryEntry(entries[i], "MmaFrame", f)
	}
	d.complete["mma"] = prelude + library + source
	d.add("mma", source, entries)

	r := rand.New(rand.NewPCG(1, 1))
	x, y := random(2*256, func() int { return r.IntN(5) - 2 }), random(2*128, func() int { return r.IntN(5) - 2 })
	for i, f := range functions {
		dt := ir.F32
		switch {
		case strings.Contains(f, "bf16"):
			dt = ir.BF16
		case strings.Contains(f, "f16"):
			dt = ir.F16
		}
		row, col := 8, 1 // the strides of y
		if strings.Contains(f, "false") {
			row, col = 1, 16
		}
		var want []byte
		for at := range 2 * 16 * 8 {
			sum := 0
			for k := range 12 {
				sum += x[at/128*256+at%128/8*16+k] * y[at/128*128+k*row+at%8*col]
			}
			want = append(want, halves(dt, 2*sum+1)...)
		}
		d.routine(f, &plans[i].Plan, [][]byte{make([]byte, len(want)), elements(dt, x), elements(dt, y)}, []ir.DType{dt}, 0, want)
	}
	d.run()
}

// halves returns n/2 as an element.
func halves(dt ir.DType, n int) []byte {
	switch v := float64(n) / 2; dt {
	case ir.F16:
		return bytesOf([]uint16{half.F64ToF16(v)})
	case ir.BF16:
		return bytesOf([]uint16{half.F64ToBF16(v)})
	default:
		return bytesOf([]float32{float32(v)})
	}
}
