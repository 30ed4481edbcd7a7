//go:build cuda && linux && cgo && !asan

package driver

const asan = false
