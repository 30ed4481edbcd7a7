//go:build cuda && linux && cgo

package emit

import (
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// TestTileRegisters holds what the compiler says of tiles: nothing is spilled, and
// a multiprocessor has registers for the warps that keep it busy.
func TestTileRegisters(t *testing.T) {
	c := compilerOf(t)
	const twice = "__launch_bounds__(256, 2) "
	for _, test := range []struct {
		bounds, frame, function string
		warps, want             int  // of a block and of a multiprocessor
		short                   bool // is compiled in short tests, too
	}{
		{twice, "ConvFrame", "tiles<Convolution<f16, false, true>, TileForm<128, 128, by_chunks, by_chunks, by_mma, true>>", 8, 16, true},
		{"", "ConvFrame", "tiles<Convolution<f32, true, false>, TileForm<128, 128, along_depth, across_rows, by_fma, true>>", 8, 8, true},
		{"", "ConvFrame", "tiles<Convolution<bf16, true, false>, TileForm<128, 128, along_depth, across_rows, by_mma, true>>", 8, 8, false},
		{"", "ConvFrame", "tiles<Convolution<f64, true, false>, TileForm<128, 32, along_depth, across_rows, by_fma, true>>", 4, 8, false},
		{"", "ProductFrame", "tiles<Matrices<i8>, TileForm<128, 128, along_depth, across_rows, by_fma, false>>", 8, 8, false},
	} {
		for _, arch := range []string{"sm_80", "sm_90"} {
			if !longtest.Enabled() && (arch != "sm_90" || !test.short) {
				continue
			}
			_, log, err := c.Compile(librarySource(test.bounds+"tile", test.frame, test.function), "tile.cu", arch, append([]string{"--ptxas-options=-v"}, options...))
			if err != nil {
				t.Fatal(err)
			}
			registers := said(t, log, `Used (\d+) registers`)
			blocks := registerFile / (32 * test.warps * ((registers + 7) / 8 * 8))
			t.Logf("%s, %s: %d registers, %d warps", test.function, arch, registers, blocks*test.warps)
			if n := said(t, log, `(\d+) bytes spill stores`); n > 0 {
				t.Errorf("%s, %s: %d bytes are spilled", test.function, arch, n)
			}
			if blocks*test.warps < test.want {
				t.Errorf("%s, %s: %d registers are too many for %d warps", test.function, arch, registers, test.want)
			}
		}
	}
}
