//go:build cuda && linux && cgo

package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// realHeaders returns the folder of CUDA's headers and the flags to use them.
func realHeaders(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("LORIS_CUDA_INCLUDE")
	if dir == "" {
		t.Skip(`LORIS_CUDA_INCLUDE is not set; scripts/cuda-env.sh brings the headers`)
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	flags := []string{"-I", dir, "-DLORI_CUDA_HEADERS", "-DLORI_NVRTC_HEADERS"}
	if _, err := os.Stat(filepath.Join(dir, "cublasLt.h")); err == nil {
		return append(flags, "-DLORI_CUBLASLT_HEADERS", "-DWITH_CUBLASLT")
	}
	t.Log("cublasLt.h is not there; its declarations are not compared")
	return flags
}

func gcc(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("gcc", append([]string{"-std=gnu11", "-I", "."}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestDeclarationsAreThoseOfTheHeaders(t *testing.T) {
	flags := realHeaders(t)
	gcc(t, append(flags, "-fsyntax-only", "testdata/headers.c")...)
}

func TestLayoutsAreThoseOfTheHeaders(t *testing.T) {
	flags := realHeaders(t)
	ours := []string{}
	if flags[len(flags)-1] == "-DWITH_CUBLASLT" {
		ours = append(ours, "-DWITH_CUBLASLT")
	}
	print := func(flags []string) string {
		exe := filepath.Join(t.TempDir(), "layout")
		gcc(t, append(flags, "-o", exe, "testdata/layout.c")...)
		out, err := exec.Command(exe).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got, want := print(ours), print(flags); got != want {
		t.Errorf("declared here:\n%s\nin the headers:\n%s", got, want)
	}
}
