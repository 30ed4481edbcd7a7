//go:build cgo

package failures

// aotiLoads says that libraries can be loaded.
const aotiLoads = true
