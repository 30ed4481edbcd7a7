// Package rnn computes layers of recurrent networks, LSTM, GRU and RNN, one layer
// and one direction at a time.
//
// Weights are packed by blocks of hidden units: the rows of all gates of a
// block are neighbouring columns of the register tiles, so that one tile has
// all that the block's new state needs. What the inputs contribute is
// multiplied for many times at once; then each time adds what the state
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
//	Tanh: h′ = tanh(Wx + b + Vh + d)
//	ReLU: h′ = max(Wx + b + Vh + d, 0)
//
// The gates follow each other in weights as PyTorch orders them: i, f, g, o,
// and r, z, n.
const (
	LSTM Mode = iota
	GRU
	Tanh
	ReLU
)

// Gates returns the number of gates.
func (m Mode) Gates() int {
	switch m {
	case LSTM:
		return 4
	case GRU:
		return 3
	}
	return 1
}

// slots returns the number of sums that tiles make for each hidden unit. A GRU's
// are r, z, and the parts of n from the input and from the state.
func (m Mode) slots() int {
	if m == GRU {
		return 4
	}
	return m.Gates()
}

// slot returns the slot of a gate of the input's or the state's weights.
func (m Mode) slot(gate int, state bool) int {
	if m == GRU && gate == 2 && state {
		return 3
	}
	return gate
}

// Weights are the packed weights of one layer and direction. Use and PackBlocks
// fill those that NewWeights makes.
type Weights[A Float] struct {
	Mode          Mode
	Input, Hidden int

	set    *tile.Set[A]
	blocks int // of hidden units, whose slots are two panels
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
	w := newWeights(set, mode, input, hidden)
	w.Use(make([]A, w.Len()))
	PackBlocks(w, wx, wh, bx, bh, 0, w.Blocks())
	return w
}

// NewWeights returns weights that have no memory yet.
func NewWeights[A Float](mode Mode, input, hidden int) *Weights[A] {
	return newWeights(tile.Best[A](), mode, input, hidden)
}

func newWeights[A Float](set *tile.Set[A], mode Mode, input, hidden int) *Weights[A] {
	if mode > ReLU {
		panic(fmt.Sprintf("rnn: no mode %d", mode))
	}
	units := 2 * set.Width / mode.slots()
	return &Weights[A]{Mode: mode, Input: input, Hidden: hidden, set: set, blocks: ceil(hidden, units)}
}

// Len returns the number of elements of the packed weights.
func (w *Weights[A]) Len() int { return w.row() * (w.Input + w.Hidden + 1) }

// row returns the number of slots of all hidden units, in whole blocks.
func (w *Weights[A]) row() int { return w.blocks * 2 * w.set.Width }

// units returns the number of hidden units of a block.
func (w *Weights[A]) units() int { return 2 * w.set.Width / w.Mode.slots() }

// Use gives the weights memory for Len elements, which PackBlocks fills; nil takes it away.
func (w *Weights[A]) Use(mem []A) {
	if mem == nil {
		w.input, w.state, w.bias = nil, nil, nil
		return
	}
	row := w.row()
	w.input, mem = mem[:row*w.Input], mem[row*w.Input:]
	w.state, w.bias = mem[:row*w.Hidden], mem[row*w.Hidden:][:row]
}

// MatrixLen returns the number of elements of the packed weights of the input, or of the state.
func (w *Weights[A]) MatrixLen(state bool) int {
	if state {
		return w.row() * w.Hidden
	}
	return w.row() * w.Input
}

// UseMatrix gives the weights of the input, or of the state, memory of their own for MatrixLen elements,
// which PackMatrix fills or has filled.
func (w *Weights[A]) UseMatrix(state bool, mem []A) {
	if state {
		w.state = mem
	} else {
		w.input = mem
	}
}

// Blocks returns the number of blocks that PackBlocks packs.
func (w *Weights[A]) Blocks() int { return w.blocks }

// Bytes returns the size of the packed weights.
func (w *Weights[A]) Bytes() int {
	return (len(w.input) + len(w.state) + len(w.bias)) * int(unsafe.Sizeof(*new(A)))
}

// PackBlocks packs blocks lo..hi-1 of weights as Pack takes them.
func PackBlocks[A Float, T Element](w *Weights[A], wx, wh Matrix[T], bx, bh []T, lo, hi int) {
	PackMatrix(w, wx, false, lo, hi)
	PackMatrix(w, wh, true, lo, hi)
	PackBiases(w, bx, bh, lo, hi)
}

// PackMatrix packs blocks lo..hi-1 of the weights of the input, or of the state.
func PackMatrix[A Float, T Element](w *Weights[A], m Matrix[T], state bool, lo, hi int) {
	dst, depth := w.input, w.Input
	if state {
		dst, depth = w.state, w.Hidden
	}
	for block := lo; block < hi; block++ {
		packMatrix(w, dst, m, depth, block, state)
	}
}

// PackBiases packs blocks lo..hi-1 of the biases.
func PackBiases[A Float, T Element](w *Weights[A], bx, bh []T, lo, hi int) {
	for block := lo; block < hi; block++ {
		bias := w.bias[block*2*w.set.Width:][:2*w.set.Width]
		clear(bias)
		packBias(w, bias, bx, block, false)
		packBias(w, bias, bh, block, true)
	}
}

// gateOf returns the row of the weights in column col of a block, among its two
// panels, or -1 for a column of zeros.
func (w *Weights[A]) gateOf(block, col int, state bool) int {
	units := w.units()
	unit, slot := block*units+col%units, col/units
	for gate := range w.Mode.Gates() {
		if unit < w.Hidden && w.Mode.slot(gate, state) == slot {
			return gate*w.Hidden + unit
		}
	}
	return -1
}

func packMatrix[A Float, T Element](w *Weights[A], dst []A, m Matrix[T], depth, block int, state bool) {
	width := w.set.Width
	dst = dst[block*2*width*depth:][:2*width*depth]
	var room [piece]T
	var wide [piece]A
	for col := range 2 * width {
		to, from := col/width*width*depth+col%width, w.gateOf(block, col, state)
		if from < 0 {
			for k := range depth {
				dst[to+k*width] = 0
			}
			continue
		}
		for k := 0; k < depth; k += piece {
			for i, v := range readRow(m, &room, &wide, from, k, min(piece, depth-k)) {
				dst[to+i*width] = v
			}
			to += piece * width
		}
	}
}

// piece is how many elements of a row are read together.
const piece = 64

// readRow returns elements of a row as A: where they lie, in room if they lie apart, or converted in wide.
func readRow[A Float, T Element](m Matrix[T], room *[piece]T, wide *[piece]A, row, first, n int) []A {
	from := m.Data[row*m.Row+first*m.Step:]
	if m.Step == 1 {
		from = from[:n]
	} else {
		for i := range n {
			room[i] = from[i*m.Step]
		}
		from = room[:n]
	}
	if same, ok := any(from).([]A); ok {
		return same
	}
	vec.Load(wide[:n], from)
	return wide[:n]
}

func packBias[A Float, T Element](w *Weights[A], dst []A, b []T, block int, state bool) {
	if b == nil {
		return
	}
	for col := range dst {
		if row := w.gateOf(block, col, state); row >= 0 {
			dst[col] += vec.Wide[A](b[row])
		}
	}
}
