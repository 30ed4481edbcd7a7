package build

import (
	"runtime/debug"
	"testing"
)

func TestFromInfo(t *testing.T) {
	main := func(path string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: path}, Settings: settings}
	}
	dep := func(d debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/app"}, Deps: []*debug.Module{{Path: "example.com/x", Sum: "h1:x"}, &d}}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a clean revision":        {main(module, revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "abc"},
		"a changed one":           {main(module, revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), ""},
		"no revision":             {main(module), ""},
		"another module's":        {main("example.com/app", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), ""},
		"a dependency":            {dep(debug.Module{Path: module, Sum: "h1:y"}), "h1:y"},
		"replaced by another":     {dep(debug.Module{Path: module, Sum: "h1:y", Replace: &debug.Module{Path: "example.com/fork", Sum: "h1:z"}}), "h1:z"},
		"replaced by a directory": {dep(debug.Module{Path: module, Sum: "h1:y", Replace: &debug.Module{Path: "../loris"}}), ""},
	} {
		if got := fromInfo(c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestID(t *testing.T) {
	if ID() == "" {
		t.Error("this build has no ID")
	}
	if h := hashExecutable(); len(h) != 64 || h != hashExecutable() {
		t.Errorf("the executable's hash is %q", h)
	}
}
