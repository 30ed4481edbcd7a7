//go:build !linux || (!amd64 && !arm64) || noasm

package code

import "unsafe"

// Usable returns ErrUnsupported.
func Usable() error { return ErrUnsupported }

// Func is code that can be called; there is none here.
type Func struct{}

// New returns ErrUnsupported.
func New([]byte) (*Func, error) { return nil, ErrUnsupported }

// Call is never reached: there is no Func to call it on.
func (f *Func) Call(unsafe.Pointer) {}

// CallFlushing is never reached either.
func (f *Func) CallFlushing(unsafe.Pointer) {}

// Size returns 0.
func (f *Func) Size() int { return 0 }

// AppendTo returns b.
func (f *Func) AppendTo(b []byte) []byte { return b }
