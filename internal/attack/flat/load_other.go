//go:build !linux || !cgo

package flat

import (
	"context"

	"github.com/loris-ml/loris/internal/pt2"
)

// load reads a compiled package: no library can be opened here.
func load(_ context.Context, path string) error {
	p, err := pt2.Open(path)
	if err != nil {
		return err
	}
	return p.Close()
}
