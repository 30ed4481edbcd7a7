// Package build tells one build of this module from another, for caches that
// outlive the process.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"sync"
)

const module = "github.com/loris-ml/loris"

// ID returns a text that two builds share only if they have the same source of
// this module: its checksum where it is a dependency, else the revision it was
// built from, else a hash of the executable. It is empty if there is none of
// them.
var ID = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if id := fromInfo(info); id != "" {
			return id
		}
	}
	return hashExecutable()
})

// fromInfo returns the ID that the build noted, or "".
func fromInfo(info *debug.BuildInfo) string {
	for _, d := range info.Deps {
		if d.Path != module {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		return d.Sum // none for a directory
	}
	if info.Main.Path != module {
		return ""
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["vcs.modified"] != "false" {
		return ""
	}
	return settings["vcs.revision"]
}

func hashExecutable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
