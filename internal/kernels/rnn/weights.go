// Package rnn computes layers of recurrent networks, LSTM and GRU, one layer
// and one direction at a time.
//
// Weights are packed by blocks of hidden units: the rows of all gates of a
// block are neighbouring columns of the register tiles, so that one tile has
// all that the block's new state needs. What the inputs contribute is
// multiplied for all times at once; then each time adds what the state
// contributes and applies the gates.
package rnn

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Element is the types of inputs, states and weights.
type Element = vec.Element

// Float is the types computed in: float64 for float64, float32 for the others.
type Float = tile.Float

// Mode is the kind of a layer.
type Mode uint8

// The kinds of layers. With σ the sigmoid, and x the input, h the hidden and c
// the cell state:
//
//	LSTM: i, f, o = σ(Wx + b + Vh + d), g = tanh(Wx + b + Vh + d),
//	      c′ = f·c + i·g, h′ = o·tanh(c′)
//	GRU:  r, z = σ(Wx + b + Vh + d), n = tanh(Wx + b + r·(Vh + d)),
//	      h′ = (1−z)·n + z·h
//
// The gates follow each other in weights as PyTorch orders them: i, f, g, o,
// and r, z, n.
const (
	LSTM Mode = iota
	GRU
)

// Gates returns the number of gates.
func (m Mode) Gates() int {
	if m == GRU {
		return 3
	}
	return 4
}

// slots is the number of sums that tiles make for each hidden unit. A GRU's are
// r, z, and the parts of n from the input and from the state.
const slots = 4

// slot returns the slot of a gate of the input's or the state's weights.
func (m Mode) slot(gate int, state bool) int {
	if m == GRU && gate == 2 && state {
		return 3
	}
	return gate
}

// Weights are the packed weights of one layer and direction.
type Weights[A Float] struct {
	Mode          Mode
	Input, Hidden int

	set    *tile.Set[A]
	blocks int // of hidden units, half a panel each
	input  []A // for each block two panels: for each feature the slots' columns
	state  []A
	bias   []A // for each block the slots
}

// Matrix is weights of a gate after another, [Gates·Hidden, columns].
type Matrix[T Element] struct {
	Data      []T
	Row, Step int // strides of rows and columns
}

// Pack packs weights of the input, [Gates·Hidden, input], and of the state,
// [Gates·Hidden, hidden], with a bias each or nil.
func Pack[A Float, T Element](mode Mode, input, hidden int, wx, wh Matrix[T], bx, bh []T) *Weights[A] {
	return pack(tile.Best[A](), mode, input, hidden, wx, wh, bx, bh)
}

func pack[A Float, T Element](set *tile.Set[A], mode Mode, input, hidden int, wx, wh Matrix[T], bx, bh []T) *Weights[A] {
	if mode > GRU {
		panic(fmt.Sprintf("rnn: no mode %d", mode))
	}
	half := set.Width / 2
	w := &Weights[A]{Mode: mode, Input: input, Hidden: hidden, set: set, blocks: (hidden + half - 1) / half}
	w.input = make([]A, w.blocks*slots*half*input)
	w.state = make([]A, w.blocks*slots*half*hidden)
	w.bias = make([]A, w.blocks*slots*half)
	packMatrix(w, w.input, wx, input, false)
	packMatrix(w, w.state, wh, hidden, true)
	packBias(w, bx, false)
	packBias(w, bh, true)
	return w
}

// Bytes returns the size of the packed weights.
func (w *Weights[A]) Bytes() int {
	return (len(w.input) + len(w.state) + len(w.bias)) * int(unsafe.Sizeof(*new(A)))
}

// column returns the block of a hidden unit, and where in the block's two
// panels the column of its slot is: the panel and the column in it.
func (w *Weights[A]) column(unit, slot int) (block, panel, col int) {
	half := w.set.Width / 2
	return unit / half, slot / 2, slot%2*half + unit%half
}

func packMatrix[A Float, T Element](w *Weights[A], dst []A, m Matrix[T], depth int, state bool) {
	width := w.set.Width
	for gate := range w.Mode.Gates() {
		for unit := range w.Hidden {
			block, panel, col := w.column(unit, w.Mode.slot(gate, state))
			to := (block*2+panel)*width*depth + col
			from := (gate*w.Hidden + unit) * m.Row
			for range depth {
				dst[to] = vec.Wide[A](m.Data[from])
				to += width
				from += m.Step
			}
		}
	}
}

func packBias[A Float, T Element](w *Weights[A], b []T, state bool) {
	if b == nil {
		return
	}
	for gate := range w.Mode.Gates() {
		for unit := range w.Hidden {
			block, panel, col := w.column(unit, w.Mode.slot(gate, state))
			w.bias[(block*2+panel)*w.set.Width+col] += vec.Wide[A](b[gate*w.Hidden+unit])
		}
	}
}
