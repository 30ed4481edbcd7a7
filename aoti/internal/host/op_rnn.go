//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/rnn"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// modeLSTM is PyTorch's number of the only kind of layer that its oneDNN layers
// have.
const modeLSTM = 2

func mkldnnRNNLayer(c call) error {
	// input weight0 weight1 weight2 weight3 hx_ cx_ reverse batch_sizes. mode
	// hidden_size num_layers has_biases bidirectional batch_first train ret0..ret3
	l := layer{
		x: c.tensor(0), wx: c.tensor(1), wh: c.tensor(2), bx: c.tensor(3), bh: c.tensor(4), h: c.tensor(5), c: c.tensor(6),
		reverse: c.bool(7), hidden: c.int(11), biases: c.bool(13),
	}
	if c.int(10) != modeLSTM {
		return fmt.Errorf("%w: a recurrent layer of mode %d; PyTorch has oneDNN's for LSTM only", errUnimplemented, c.int(10))
	}
	if err := l.run(); err != nil {
		return err
	}
	// What a layer in training keeps for its gradient is nobody's but that
	// gradient's, which no function of the shim computes.
	space, err := newUndefined()
	for i, t := range []*tensor{l.y, l.hn, l.cn, space} {
		c.give(17+i, t)
	}
	return err
}

// layer is one layer and direction of an LSTM, time first.
type layer struct {
	x, wx, wh, bx, bh, h, c *tensor
	reverse, biases         bool
	hidden                  int
	y, hn, cn               *tensor
}

func (l *layer) run() error {
	if err := sameDTypes(l.x, l.wx, l.wh, l.h, l.c); err != nil {
		return err
	}
	if l.biases {
		if err := sameDTypes(l.x, l.bx, l.bh); err != nil {
			return err
		}
	}
	switch l.x.dtype {
	case C.LORI_F32:
		return runLayer[float32, float32](l)
	case C.LORI_F64:
		return runLayer[float64, float64](l)
	case C.LORI_BF16:
		return runLayer[vec.BF16, float32](l)
	case C.LORI_F16:
		return runLayer[vec.F16, float32](l)
	}
	return fmt.Errorf("%w: a recurrent layer of PyTorch's %d", ir.ErrDType, l.x.dtype)
}

// sizes checks the operands and returns the times, the rows and the features.
func (l *layer) sizes() (steps, batch, input int, err error) {
	gates := int64(4 * l.hidden)
	is, hs := gateSizes(l.wx), gateSizes(l.wh)
	if l.x.ndim != 3 || is == nil || hs == nil {
		return 0, 0, 0, fmt.Errorf("%w: a recurrent layer of %d dimensions", ir.ErrShape, l.x.ndim)
	}
	xs := sizesOf(l.x)
	state := xs[1] * int64(l.hidden)
	bad := is[0] != gates || is[1] != xs[2] || hs[0] != gates || hs[1] != int64(l.hidden) || int64(l.h.numel) != state || int64(l.c.numel) != state
	if l.biases {
		bad = bad || int64(l.bx.numel) != gates || int64(l.bh.numel) != gates
	}
	if bad {
		return 0, 0, 0, fmt.Errorf("%w: a recurrent layer of %d hidden over %v with weights %v and %v", ir.ErrShape, l.hidden, xs, is, hs)
	}
	return int(xs[0]), int(xs[1]), int(xs[2]), nil
}

// rnnKey is what packed weights depend on besides the input's weights.
type rnnKey struct {
	wx, wh, bx, bh rnnPlace
	dtype          int32
}

type rnnPlace struct {
	storage *C.lori_storage
	offset  int64
	row     int64
}

func place(t *tensor) rnnPlace {
	if t == nil || t.storage == nil {
		return rnnPlace{}
	}
	return rnnPlace{t.storage, int64(t.offset), int64(stridesOf(t)[0])}
}

func runLayer[T rnn.Element, A rnn.Float](l *layer) error {
	steps, batch, input, err := l.sizes()
	if err != nil {
		return err
	}
	var held []*tensor
	defer func() {
		for _, t := range held {
			release(t)
		}
	}()
	dense := func(t *tensor) []T {
		d, e := made(func() *tensor { return C.lori_dense(t) })
		if e != nil {
			err = e
			return nil
		}
		held = append(held, d)
		return elements[T](d)
	}
	x, h0, c0 := dense(l.x), dense(l.h), dense(l.c)
	if err != nil {
		return err
	}
	w, err := l.weights(func() any {
		var bx, bh []T
		if l.biases {
			bx, bh = dense(l.bx), dense(l.bh)
		}
		return rnn.Pack[A](rnn.LSTM, input, l.hidden, rnnMatrix[T](l.wx), rnnMatrix[T](l.wh), bx, bh)
	})
	if err != nil {
		return err
	}
	s, err := shapeOf(l.x)
	if err != nil {
		return err
	}
	state, err := shapeOf(l.h)
	if err != nil {
		return err
	}
	for _, n := range []struct {
		to **tensor
		s  ir.Shape
	}{{&l.y, s.WithDims(steps, batch, l.hidden)}, {&l.hn, state}, {&l.cn, state}} {
		if *n.to, err = newTensor(n.s); err != nil {
			return err
		}
	}
	call := rnn.Call[T, A]{
		Weights: w.(*rnn.Weights[A]), Time: steps, Batch: batch, Reverse: l.reverse,
		X:  rnn.Sequence[T]{Data: x, Time: batch * input, Batch: input},
		Y:  rnn.Sequence[T]{Data: elements[T](l.y), Time: batch * l.hidden, Batch: l.hidden},
		H0: h0, C0: c0, HN: elements[T](l.hn), CN: elements[T](l.cn),
	}
	call.Run()
	return nil
}

// weights packs the weights, and keeps them with the input's if all of them are
// constants, which are bound and freed together.
func (l *layer) weights(pack func() any) (any, error) {
	for _, t := range []*tensor{l.wh, l.bx, l.bh} {
		if t != nil && t.storage != nil && t.layout == C.LORI_STRIDED && !isConstant(t) {
			return pack(), nil
		}
	}
	return kept(l.wx, rnnKey{place(l.wx), place(l.wh), place(l.bx), place(l.bh), int32(l.x.dtype)}, pack), nil
}

// gateSizes returns the rows and columns of weights: [gates·hidden, input], or
// packed for oneDNN [1, 1, input, gates, hidden]; nil for others.
func gateSizes(t *tensor) []int64 {
	s := sizesOf(t)
	switch {
	case t.layout == C.LORI_STRIDED && len(s) == 2:
		return s
	case t.layout == C.LORI_MKLDNN && len(s) == 5 && s[0] == 1 && s[1] == 1:
		return []int64{s[3] * s[4], s[2]}
	}
	return nil
}

func rnnMatrix[T rnn.Element](t *tensor) rnn.Matrix[T] {
	if t.layout != C.LORI_MKLDNN {
		s := stridesOf(t)
		return rnn.Matrix[T]{Data: elements[T](t), Row: int(s[0]), Step: int(s[1])}
	}
	d, src, err := blockedOf[T](t)
	if err == nil && len(d.dims) != 5 {
		err = fmt.Errorf("%w: weights %v of a recurrent layer", errBlocked, d.dims)
	}
	if err != nil {
		panic(err) // becomes the call's error
	}
	in, hidden := d.dims[2], d.dims[4]
	dense := make([]T, in*d.dims[3]*hidden)
	if err := unpackBlocked(d, dense, src, []int{0, 0, 1, hidden * in, in}); err != nil {
		panic(err)
	}
	return rnn.Matrix[T]{Data: dense, Row: in, Step: 1}
}
