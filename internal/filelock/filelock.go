// Package filelock locks open files between processes. A lock ends with its process, however
// that ends.
package filelock

import (
	"context"
	"os"
	"time"
)

// Lock waits until the file is locked for this descriptor alone, or ctx ends, which is the
// error then. Files of systems that know no locks are not locked, and that is no error.
// Closing the file unlocks it.
func Lock(ctx context.Context, f *os.File) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		ok, err := Try(f)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}
