//go:build !linux

package pt2

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// NewPrivate makes a private copy of a library to load. Libraries are loaded on
// Linux only: elsewhere it is an error that wraps [errors.ErrUnsupported].
func NewPrivate(context.Context, Source, string) (*Private, error) {
	return nil, fmt.Errorf("pt2: libraries of models are loaded on Linux only, not on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
