//go:build cgo

package flat

import (
	"context"

	"github.com/loris-ml/loris/aoti"
)

// load opens a compiled package, whose library it unloads.
func load(ctx context.Context, path string) error {
	r, err := aoti.Load(ctx, path)
	if err != nil {
		return err
	}
	return r.Close()
}
