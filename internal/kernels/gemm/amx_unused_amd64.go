//go:build !noasm && !linux

package gemm

// permitTiles reports that nothing is known of how to ask this system for tiles.
func permitTiles() bool { return false }
