package loris

import (
	"weak"

	"github.com/loris-ml/loris/executor"
)

// Block is a part of the steps of a program that records the same ops whenever it
// is given inputs of the same graph: the update of a weight, a layer. A step that
// records it where the last steps did takes little time for it, however many ops
// it has. Unlike a Function it is no graph of its own: it takes part in the step as
// its ops do.
//
// It may be used by many goroutines, with sessions of their own.
type Block struct {
	fn func(in ...*Tensor) []*Tensor
	// self is what recorders know the block by, without keeping it.
	self weak.Pointer[Block]
}

// NewBlock returns a Block of what fn records from its inputs. What fn does must
// depend on nothing but their shapes, dtypes and devices, and it must not read
// elements, mark steps or assign variables. It is called each time where it uses
// other tensors, variables, numbers or random ops: all but random ops can be
// inputs, numbers by Maker.Scalar.
func NewBlock(fn func(in ...*Tensor) []*Tensor) *Block {
	b := &Block{fn: fn}
	b.self = weak.Make(b)
	return b
}

// Record records the ops of the block on inputs, which belong to one session, and
// returns its results. Whether a MarkStep computes what fn records and neither
// returns nor uses is not said. Mistakes panic with an *OpError.
func (b *Block) Record(in ...*Tensor) []*Tensor {
	if len(in) == 0 {
		return b.fn()
	}
	for _, t := range in {
		t.session("block")
	}
	return tensors(in[0].session("block").Replay(b.self, newTensor, handles(in), func() []*executor.Tensor {
		return handles(b.fn(in...))
	}))
}
