package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/internal/cache"
)

func TestCacheCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "loris")
	if code, _, errOut := invoke(t, "", "cache", "stat", "--dir", dir); code != command.ExitError || !strings.Contains(errOut, "there is no cache at "+dir) {
		t.Errorf("no cache: exit code %d, %q", code, errOut)
	}
	d, err := cache.OpenDisk(dir, cache.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := d.Put(cache.NewDiskKey([]byte{byte(i)}), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	var list []cacheEntry
	if err := json.Unmarshal([]byte(succeed(t, "cache", "ls", "--json", "--dir", dir)), &list); err != nil || len(list) != 3 {
		t.Fatalf("ls: %v, %v", list, err)
	}
	if out := succeed(t, "cache", "ls", "--dir", dir); strings.Count(out, "\n") != 3 || !strings.HasPrefix(out, list[0].Key) {
		t.Errorf("ls: %q", out)
	}
	if out := succeed(t, "cache", "stat", "--dir", dir); out != dir+": 3 entries, 3.1 KiB, 0 temporary files\n" {
		t.Errorf("stat: %q", out)
	}
	if out := succeed(t, "cache", "verify", "--dir", dir); out != "3 entries read, 3.1 KiB, 0 damaged\n" {
		t.Errorf("verify: %q", out)
	}
	files, err := filepath.Glob(filepath.Join(dir, list[1].Key+"*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Truncate(files[0], 500); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := invoke(t, "", "cache", "verify", "--dir", dir); code != command.ExitError || !strings.Contains(out, list[1].Key) || !strings.Contains(out, "1 damaged") {
		t.Errorf("verify of a damaged entry: exit code %d, %q", code, out)
	}
	succeed(t, "cache", "clear", "--dir", dir)
	if out := succeed(t, "cache", "ls", "--dir", dir); out != "" {
		t.Errorf("after clear: %q", out)
	}
	if code, _, errOut := invoke(t, "", "cache", "purge"); code != command.ExitUsage || !strings.Contains(errOut, "unknown command") {
		t.Errorf("purge: exit code %d, %q", code, errOut)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{userCache: filepath.Join(user, "loris"), "": "", "x/y": "x/y"} {
		if got, err := cacheDir(given); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestTrainWithCache(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "cache")
	out := succeed(t, trainArgs(dir, "--epochs", "1", "--cache="+folder)...)
	if want := fmt.Sprintf("%d graphs came from the cache on disk\n", 0); !strings.Contains(out, want) {
		t.Errorf("%q lacks %q", out, want)
	}
}
