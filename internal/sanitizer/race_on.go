//go:build race

package sanitizer

// Race says whether the race detector is compiled in.
const Race = true
