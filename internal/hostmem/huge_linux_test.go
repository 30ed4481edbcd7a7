package hostmem

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

// TestBigBlocksAskForBigPages looks in the kernel's list of mappings for what it was
// told about a big block.
func TestBigBlocksAskForBigPages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skipf("the kernel has no big pages for memory that is not set apart: %v", err)
	}
	b := must(NewAllocator().New(ir.MakeShape(ir.U8, 4*hugePage), ir.Device{}))
	defer b.Release()
	middle := uintptr(unsafe.Pointer(&b.Data()[2*hugePage]))
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skipf("the kernel does not list mappings: %v", err)
	}
	defer f.Close()
	found := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var lo, hi uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &lo, &hi); n == 2 {
			found = lo <= middle && middle < hi
			continue
		}
		if flags, ok := strings.CutPrefix(s.Text(), "VmFlags:"); ok && found {
			if !slices.Contains(strings.Fields(flags), "hg") {
				t.Errorf("the block at %#x has the flags%s", middle, flags)
			}
			return
		}
	}
	t.Skip("the kernel does not say what mappings are like")
}
