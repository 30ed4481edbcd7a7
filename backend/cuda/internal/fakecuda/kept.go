//go:build cuda && linux && cgo

package fakecuda

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// paths are where the headers of kernels are, and what was compiled with them.
type paths struct{ headers, cache string }

// folder finds the paths, once in a process. Compiled kernels are kept in a
// folder that is named after the compiler and the headers; folders that no test
// used for a week are removed.
var folder = sync.OnceValues(func() (paths, error) {
	root, err := moduleRoot()
	if err != nil {
		return paths{}, err
	}
	p := paths{headers: filepath.Join(root, "backend", "cuda", "internal", "fakecuda", "testdata")}
	version, err := exec.Command("g++", "--version").Output()
	if err != nil {
		return paths{}, fmt.Errorf("g++ --version: %w", err)
	}
	h := sha256.New()
	h.Write(version)
	for _, name := range []string{"device.h", "fiber.h", "nvrtc.c"} {
		text, err := os.ReadFile(filepath.Join(p.headers, name))
		if err != nil {
			return paths{}, err
		}
		h.Write(text)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	base = filepath.Join(base, "loris", "fakecuda")
	p.cache = filepath.Join(base, fmt.Sprintf("%x", h.Sum(nil)[:8]))
	if err := os.MkdirAll(p.cache, 0o700); err != nil {
		return paths{}, err
	}
	now := time.Now()
	if err := os.Chtimes(p.cache, now, now); err != nil {
		return paths{}, err
	}
	old, err := filepath.Glob(filepath.Join(base, "*"))
	if err != nil {
		return paths{}, err
	}
	for _, dir := range old {
		if info, err := os.Stat(dir); err == nil && now.Sub(info.ModTime()) > 7*24*time.Hour {
			os.RemoveAll(dir) // another process may do so, too
		}
	}
	return p, nil
})
