//go:build !linux

package hostmem

// adviseHuge stands for asking for big pages, where there is no way to.
func adviseHuge([]byte) {}
