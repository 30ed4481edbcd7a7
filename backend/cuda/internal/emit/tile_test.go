package emit

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestTilings states which tiles are chosen, and how often the depth is cut, on a
// device of 132 processors.
func TestTilings(t *testing.T) {
	for _, test := range []struct {
		name    string
		dtype   ir.DType
		batch   int
		m, n, k int
		want    string
	}{
		{"a large product", ir.F16, 1, 4096, 4096, 4096, "128×128, 1024 blocks, 1 part"},
		{"one row", ir.F16, 1, 1, 4096, 4096, "32×128, 32 blocks, 8 parts"},
		{"few channels of results", ir.F32, 1, 64, 32 * 56 * 56, 576, "64×128, 784 blocks, 1 part"},
		{"the gradient of their filters", ir.F32, 1, 64, 576, 32 * 56 * 56, "64×64, 9 blocks, 27 parts"},
		{"the gradient of filters in bf16", ir.BF16, 1, 256, 2304, 32 * 14 * 14, "128×128, 36 blocks, 3 parts"},
		{"one image", ir.F32, 1, 512, 49, 4608, "64×64, 8 blocks, 33 parts"},
		{"phases", ir.F32, 4, 128, 32 * 28 * 28, 512, "128×128, 784 blocks, 1 part"},
		{"sums of eight bytes", ir.F64, 1, 512, 512, 512, "64×64, 64 blocks, 4 parts"},
		{"a short depth", ir.F32, 1, 20, 20, 40, "64×64, 1 blocks, 1 part"},
		{"no depth", ir.F32, 1, 20, 200, 0, "128×128, 2 blocks, 1 part"},
		{"too many results to cut", ir.F32, 1, 128, 1 << 18, 1 << 20, "128×128, 2048 blocks, 1 part"},
	} {
		x := &tiling{dtype: test.dtype, batch: test.batch, m: test.m, n: test.n, k: test.k, total: test.batch * test.m * test.n}
		x.choose(Limits{Processors: 132, Threads: 1024, Tensor: true})
		parts := "part"
		if x.parts > 1 {
			parts += "s"
		}
		got := fmt.Sprintf("%d×%d, %d blocks, %d %s", x.bm, x.bn, x.batch*ceil(x.m, x.bm)*ceil(x.n, x.bn), x.parts, parts)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestDevicesWithoutTensorCores: they have no asynchronous copies either.
func TestDevicesWithoutTensorCores(t *testing.T) {
	g := Product{DType: ir.F16, M: 64, N: 64, K: 64, XRow: 64, XCol: 1, YRow: 1, YCol: 64, XAlign: 256, YAlign: 256, Post: Post{Act: Tanh}}
	p := g.Plan(Limits{Processors: 2, Threads: 1024})
	if want := "loris_tiles_Matrices_f16_TileForm_64_64_along_depth_along_depth_by_fma_true"; len(p.Launches) != 1 || p.Launches[0].Entry != want {
		t.Errorf("%v, want %s", p.Launches, want)
	}
}
