//go:build linux && cgo && (amd64 || arm64)

package vecmath

// The flags: ISO C keeps compilers from contracting products and sums, which the
// pairs of doubles rely on; the names must be found by libraries opened later.

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
// #cgo LDFLAGS: -rdynamic -lm
import "C"

const provided = true
