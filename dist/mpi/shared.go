//go:build linux && (amd64 || arm64)

package mpi

import (
	"os"
	"strings"
)

// unlinkShared takes the names from the shared memory through which the ranks of this machine talk, once
// all of them have it: so it ends with the last of them, however they end. maps is the process's map.
func unlinkShared(maps string) {
	for line := range strings.Lines(maps) {
		i := strings.Index(line, "/dev/shm/")
		if i < 0 {
			continue
		}
		path, _, _ := strings.Cut(strings.TrimSpace(line[i:]), " ") // what follows says that it has no name any more
		name := strings.TrimPrefix(path, "/dev/shm/")
		if strings.HasPrefix(name, "mpich_shm_") || strings.HasPrefix(name, "sm_segment.") {
			_ = os.Remove(path) // another rank may have been first
		}
	}
}
