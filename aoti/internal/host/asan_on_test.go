//go:build asan

package host

var buildFlags = []string{"-DASAN"}
