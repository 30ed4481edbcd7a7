//go:build !linux

package aoti

import (
	"errors"

	"github.com/loris-ml/loris/aoti/internal/pt2"
)

// mapSection maps nothing.
func mapSection(*pt2.Section) (*mapping, error) { return nil, errors.ErrUnsupported }
