//go:build !linux

package aoti

import (
	"errors"

	"github.com/loris-ml/loris/internal/pt2"
)

// mapSection maps nothing.
func mapSection(*pt2.Section) (*mapping, error) { return nil, errors.ErrUnsupported }

// newMemory returns memory of the Go heap.
func newMemory(size int64) (*mapping, error) {
	return newMapping(make([]byte, size), func() error { return nil }), nil
}
