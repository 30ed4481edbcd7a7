//go:build !race

// Package race tells tests whether the race detector is compiled in: it makes
// pools drop what they keep, so that allocations can't be counted.
package race

// Enabled says whether the race detector is compiled in.
const Enabled = false
