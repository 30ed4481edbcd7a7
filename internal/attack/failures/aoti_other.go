//go:build !linux || !cgo

package failures

const aotiLoads = false
