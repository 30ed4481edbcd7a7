//go:build !noasm

package gemm

import "golang.org/x/sys/unix"

// permitTiles asks the system to let the process use tiles, whose contents it then saves
// (Documentation/arch/x86/xstate.rst).
func permitTiles() bool {
	const archReqXCompPerm, xfeatureTileData = 0x1023, 18
	_, _, err := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXCompPerm, xfeatureTileData, 0)
	return err == 0
}
