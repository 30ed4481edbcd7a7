package torchexport

import (
	"github.com/loris-ml/loris"
)

// tensor is a value of a running program. PyTorch's programs change tensors in place, and a view sees
// what is done to the tensor that it views; Loris's tensors never change. So a tensor here is a place
// whose value is replaced, and a view knows how its value is made of the viewed one and how a new
// value of it is written back.
type tensor struct {
	t *loris.Tensor // the value; of a view when the base had changed seen times

	base  *tensor // what this is a view of; nil for a tensor of its own
	read  func(base *loris.Tensor) *loris.Tensor
	write func(base, value *loris.Tensor) *loris.Tensor // nil where a view cannot be written back
	root  *tensor                                       // the last base; itself for a tensor of its own
	seen  int

	changes int // of a root: how often it was written
}

// newTensor returns a place with a value of its own.
func newTensor(t *loris.Tensor) *tensor {
	x := &tensor{t: t}
	x.root = x
	return x
}

// value returns the present value. A view whose base has changed is made again.
func (x *tensor) value() *loris.Tensor {
	if x.base != nil && x.seen != x.root.changes {
		x.t, x.seen = x.read(x.base.value()), x.root.changes
	}
	return x.t
}

// writable reports whether a value can be written back to the root.
func (x *tensor) writable() bool {
	for ; x.base != nil; x = x.base {
		if x.write == nil {
			return false
		}
	}
	return true
}

// set replaces the value, of the bases too.
func (x *tensor) set(t *loris.Tensor) {
	if x.base == nil {
		x.changes++
	} else {
		x.base.set(x.write(x.base.value(), t))
	}
	x.t, x.seen = t, x.root.changes
}

// view returns a view of x whose value is made by read; write puts a new value into the base's and may
// be nil.
func (x *tensor) view(read func(*loris.Tensor) *loris.Tensor, write func(base, value *loris.Tensor) *loris.Tensor) *tensor {
	return &tensor{t: read(x.value()), base: x, read: read, write: write, root: x.root, seen: x.root.changes}
}
