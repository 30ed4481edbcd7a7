//go:build cuda && linux && cgo

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// pattern returns n bytes that tell where they are, and of which test.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + i>>16 + seed)
	}
	return b
}

func TestUploadAndRead(t *testing.T) {
	_, b := newFake(t, 2)
	for _, n := range []int{0, 1, smallBytes, smallBytes + 1, chunkBytes, 3*chunkBytes + 5} {
		for i := range 2 {
			want := pattern(n, i)
			buf, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, n), gpu(i), want)
			check(t, err)
			if got, err := buf.Bytes(t.Context()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes on %v: they differ, or %v", n, buf.Device(), err)
			}
			if got := b.BytesInUse(gpu(i)); got != int64(n) || buf.Device() != gpu(i) || buf.Shape() != ir.MakeShape(ir.U8, n) {
				t.Errorf("%v on %v: %d bytes in use", buf.Shape(), buf.Device(), got)
			}
			buf.Retain()
			buf.Release()
			if got := b.BytesInUse(gpu(i)); got != int64(n) {
				t.Errorf("%d bytes in use with a reference left, want %d", got, n)
			}
			buf.Release()
			if got := b.BytesInUse(gpu(i)); got != 0 {
				t.Errorf("%d bytes in use after the release", got)
			}
		}
	}
}

func TestUploadOfBools(t *testing.T) {
	_, b := newFake(t, 1)
	buf, err := b.Upload(t.Context(), ir.MakeShape(ir.Bool, 4), gpu(0), []byte{0, 1, 2, 255})
	check(t, err)
	defer buf.Release()
	if got, err := buf.Bytes(t.Context()); err != nil || !bytes.Equal(got, []byte{0, 1, 1, 1}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWrongUploads(t *testing.T) {
	_, b := newFake(t, 1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	s := ir.MakeShape(ir.I32, 1)
	for _, c := range []struct {
		name string
		ctx  context.Context
		d    ir.Device
		data []byte
		want error
	}{
		{"too short", t.Context(), gpu(0), []byte{1}, ir.ErrShape},
		{"wrong index", t.Context(), gpu(1), []byte{1, 2, 3, 4}, ErrNoDevice},
		{"wrong index", t.Context(), gpu(255), []byte{1, 2, 3, 4}, ir.ErrDevice},
		{"another type", t.Context(), ir.Device{Type: ir.RegisterDeviceType("cudatest")}, []byte{1, 2, 3, 4}, ir.ErrDevice},
		{"cancelled", cancelled, gpu(0), []byte{1, 2, 3, 4}, context.Canceled},
	} {
		if buf, err := b.Upload(c.ctx, s, c.d, c.data); buf != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, buf, err, c.want)
		}
	}
	if n := b.BytesInUse(gpu(0)); n != 0 {
		t.Errorf("%d bytes in use", n)
	}
}

// Readers of one buffer, and uploads of many, go on beside each other with the
// pinned memory that there is.
func TestTransfersBesideEachOther(t *testing.T) {
	_, b := newFake(t, 1)
	n := 2*chunkBytes + 1
	want := pattern(n, 0)
	shared, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, n), gpu(0), want)
	check(t, err)
	var wg sync.WaitGroup
	for i := range 2 * maxChunks[1] {
		wg.Go(func() {
			if got, err := shared.Bytes(t.Context()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("the shared buffer differs, or %v", err)
			}
			for k := range 8 {
				own := pattern(1+k*smallBytes/4, i)
				buf, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, len(own)), gpu(0), own)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := buf.Bytes(t.Context()); err != nil || !bytes.Equal(got, own) {
					t.Errorf("buffer %d of %d differs, or %v", k, i, err)
				}
				buf.Release()
			}
		})
	}
	wg.Wait()
	shared.Release()
	if n := b.BytesInUse(gpu(0)); n != 0 {
		t.Errorf("%d bytes in use", n)
	}
}

// A read that is given up leaves nothing behind.
func TestCancelledTransfers(t *testing.T) {
	f, b := newFake(t, 1)
	want := pattern(2*chunkBytes, 0)
	buf, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, len(want)), gpu(0), want)
	check(t, err)
	defer buf.Release()
	_, err = buf.Bytes(t.Context())
	check(t, err)
	f.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := buf.Bytes(ctx)
		done <- err
	}()
	var uploads sync.WaitGroup
	for range 2 { // more than there are chunks
		uploads.Go(func() {
			for range maxChunks[1] {
				buf, err := b.Upload(ctx, ir.MakeShape(ir.U8, len(want)), gpu(0), want)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("upload: %v", err)
					}
					return
				}
				buf.Release()
			}
			t.Error("uploads went on though no copy was done")
		})
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	uploads.Wait()
	f.Resume()
	if got, err := buf.Bytes(t.Context()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after that the contents differ, or %v", err)
	}
}

func TestMisuseOfReferences(t *testing.T) {
	_, b := newFake(t, 1)
	buf, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, 1), gpu(0), []byte{1})
	check(t, err)
	buf.Release()
	for name, f := range map[string]func(){"Release": buf.Release, "Retain": buf.Retain} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); r == "<nil>" {
					t.Errorf("%s after the last Release does not panic", name)
				}
			}()
			f()
		}()
	}
}

// The pinned memory of a copy is freed when the copy is done.
func TestCloseWaitsForCopies(t *testing.T) {
	f, b := newFake(t, 1)
	f.Hold()
	s := ir.MakeShape(ir.U8, 2*smallBytes)
	buf, err := b.Upload(t.Context(), s, gpu(0), make([]byte, s.Bytes()))
	check(t, err)
	buf.Release()
	f.Calls()
	done := make(chan error)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		t.Errorf("closed during a copy: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, c := range f.Calls() {
		if strings.HasPrefix(c, "cuMemFreeHost") {
			t.Error("pinned memory is freed during a copy")
		}
	}
	f.Resume()
	check(t, <-done)
}
