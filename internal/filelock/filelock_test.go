package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Lock(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if ok, err := Try(second); ok || err != nil {
		t.Fatalf("locked twice: %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := Lock(ctx, second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- Lock(t.Context(), second) }()
	first.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
