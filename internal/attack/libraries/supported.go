//go:build linux && cgo

// Package libraries says whether compiled packages can be loaded: their libraries need the system's
// dynamic linker.
package libraries

// Supported says that they can.
const Supported = true
