package memlimit

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestControlGroups(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, none},
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 1000},
		"version 2, a group above": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/memory.max": "900\n"}, 900},
		"version 2, a container's own": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "77\n"}, 77},
		"version 2, the host's path": {map[string]string{
			"proc/self/cgroup": "0::/docker/x\n", "sys/fs/cgroup/memory.max": "77\n"}, 77},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/m\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "500\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 500},
		"both versions": {map[string]string{
			"proc/self/cgroup": "4:memory:/m\n0::/u\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "500\n",
			"sys/fs/cgroup/unified/u/memory.max": "400\n"}, 400},
		"no limit": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, none},
		"damaged":  {map[string]string{"proc/self/cgroup": "nothing\n0::../../..\n", "sys/fs/cgroup/memory.max": "-3\n"}, none},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := controlGroup(root); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
