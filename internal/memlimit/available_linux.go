package memlimit

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available returns the bytes that the process may have, as far as the system says.
func available() int64 {
	limit := int64(math.MaxInt64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = clamp(uint64(info.Totalram), uint64(info.Unit))
	}
	var as unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &as) == nil {
		limit = min(limit, clamp(as.Cur, 1))
	}
	return min(limit, controlGroup(os.DirFS("/")))
}

// clamp returns n units as an int64, the largest one if it is more.
func clamp(n, unit uint64) int64 {
	if unit != 0 && n > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return int64(n * unit)
}

// controlGroup returns the least memory limit of the process's control groups and of those above
// them, in both versions of the interface; the largest int64 if there is none.
func controlGroup(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, where version 2 has the hierarchy 0 and no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			// Beside version 1 the second version is mounted apart.
			limit = min(limit, groupLimit(root, "sys/fs/cgroup", parts[2], "memory.max"),
				groupLimit(root, "sys/fs/cgroup/unified", parts[2], "memory.max"))
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			if c == "memory" {
				limit = min(limit, groupLimit(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
			}
		}
	}
	return limit
}

// groupLimit returns the least limit of a group and those above it. In a container the path may be
// that of the host: then what is mounted is the container's own group.
func groupLimit(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(mount, dir, file))
		if err == nil {
			// "max" is no number, and version 1 says "none" by a number of nearly 2⁶³.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
		if dir == "/" {
			return limit
		}
	}
}
