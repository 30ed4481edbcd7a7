package cpu

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/rnn"
)

// Stacks of recurrent layers are one step, in which weights are packed once for all times, or once for
// all runs where they are inputs that stay what they are.

func init() {
	for op, mode := range map[ir.Op]rnn.Mode{aten.LSTM: rnn.LSTM, aten.GRU: rnn.GRU, aten.RNNTanh: rnn.Tanh, aten.RNNReLU: rnn.ReLU} {
		composites[op] = true
		lowerings[op] = widened(singleOrDouble(
			func(c *call) { lowerRecurrent[float32](c, mode) }, func(c *call) { lowerRecurrent[float64](c, mode) }))
	}
}

// recurrentRun is a step that runs a stack of recurrent layers, over dense operands.
type recurrentRun[A rnn.Float] struct {
	l *lowering
	// recurrences has for each layer its directions.
	recurrences     []recurrence[A]
	directions      int
	time, batch     int
	hidden          int
	batchFirst      bool // x and y are [batch, time, …]
	x, y            operand
	h0, hn, c0, cn  operand    // the states before and after, [layers·directions, batch, hidden]
	between         [2]operand // outputs of layers but the last, in turn
	packed, scratch operand
	pack            func(lo, hi int) // packs blocks of the weights of the recurrence at hand
	at              int              // the recurrence at hand
	call            rnn.Call[A, A]
}

// recurrence is one layer in one direction.
type recurrence[A rnn.Float] struct {
	weights *rnn.Weights[A]
	params  []operand // the weights of the input and of the state, and a bias of each if there are any
	kept    [2]bool   // the weights of the input and of the state are packed already, in this run
}

// recurrentKey is what a packed matrix of weights depends on besides its contents. The element type is
// that of the value.
type recurrentKey struct {
	mode                rnn.Mode
	input, hidden, from int
	state               bool
}

// keptMatrix is a packed matrix of weights, which its input keeps.
type keptMatrix[A rnn.Float] struct{ packed []A }

func lowerRecurrent[A rnn.Float](c *call, mode rnn.Mode) {
	r := &recurrentRun[A]{l: c.l, directions: 1}
	if c.Bool("bidirectional") {
		r.directions = 2
	}
	states := 1
	if mode == rnn.LSTM {
		states = 2
	}
	r.size(c, c.Operands[1].Shape)
	var reads []operand
	for _, v := range c.Operands {
		reads = append(reads, c.dense(v))
	}
	r.x, r.h0 = reads[0], reads[1]
	r.recur(c, mode, reads[1+states:])
	r.y, r.hn = c.result(), c.result()
	writes := []operand{r.y, r.hn}
	if mode == rnn.LSTM {
		r.c0, r.cn = reads[2], c.result()
		writes = append(writes, r.cn)
	}
	writes = append(writes, r.takeMemory(c)...)
	r.pack = r.packBlocks
	c.emit(1, 1, writes, reads, nil)
	c.l.steps[len(c.l.steps)-1].Payload.loop = r.run
}

// size reads the sizes of the input and of states, and checks the results'.
func (r *recurrentRun[A]) size(c *call, state ir.Shape) {
	x := c.Operands[0].Shape
	r.time, r.batch, r.hidden = x.Dim(0), 1, state.Dim(-1)
	if x.Rank() == 3 {
		r.batch = x.Dim(1)
		if r.batchFirst = c.Bool("batch_first"); r.batchFirst {
			r.time, r.batch = r.batch, r.time
		}
	}
	all := c.Int("num_layers") * r.directions * r.batch * r.hidden
	bad := c.Shapes[0].Numel() != r.time*r.batch*r.directions*r.hidden
	for _, s := range c.Shapes[1:] {
		bad = bad || s.Numel() != all
	}
	for _, v := range c.Operands[1:len(c.Shapes)] {
		bad = bad || v.Shape.Numel() != all
	}
	if bad {
		panic(fmt.Errorf("%w: recurrent layers of %v and %v to %v", ir.ErrShape, x, state, c.Shapes))
	}
}

// recur makes the recurrences over params.
func (r *recurrentRun[A]) recur(c *call, mode rnn.Mode, params []operand) {
	each := 2
	if c.Bool("has_biases") {
		each = 4
	}
	n := c.Int("num_layers") * r.directions
	if len(params) != n*each {
		panic(fmt.Errorf("%w: %d weights of recurrent layers, must be %d", ir.ErrArg, len(params), n*each))
	}
	features, gates := c.Operands[0].Shape.Dim(-1), mode.Gates()*r.hidden
	for i := range n {
		if i == r.directions {
			features = r.hidden * r.directions
		}
		own := params[i*each:][:each]
		want := [4]int{gates * features, gates * r.hidden, gates, gates}
		for k, p := range own {
			if p.n != want[k] {
				panic(fmt.Errorf("%w: weights of %d elements in a recurrent layer, must be %d", ir.ErrShape, p.n, want[k]))
			}
		}
		r.recurrences = append(r.recurrences, recurrence[A]{weights: rnn.NewWeights[A](mode, features, r.hidden), params: own})
	}
}

// takeMemory takes what the run needs besides its operands.
func (r *recurrentRun[A]) takeMemory(c *call) []operand {
	packed, scratch := 0, 0
	for i := range r.recurrences {
		w := r.recurrences[i].weights
		packed, scratch = max(packed, w.Len()), max(scratch, w.Scratch(r.time, r.batch))
	}
	d := c.Shapes[0].DType()
	r.packed, r.scratch = c.l.temp(d, packed), c.l.temp(d, scratch)
	out := []operand{r.packed, r.scratch}
	for i := range min(len(r.recurrences)/r.directions-1, len(r.between)) {
		r.between[i] = c.l.temp(d, r.y.n)
		out = append(out, r.between[i])
	}
	return out
}

// run runs the recurrences one after another.
func (r *recurrentRun[A]) run(ctx context.Context) error {
	m, d := r.l.mem, r.directions
	defer func() { r.call = rnn.Call[A, A]{} }()
	for r.at = range r.recurrences {
		if err := r.l.limiter.Yield(ctx); err != nil {
			return err
		}
		w, layer := r.recurrences[r.at].weights, r.at/d
		w.Use(elements[A](m, r.packed))
		r.useKept()
		r.l.limiter.For(w.Blocks(), r.packGrain(w), r.pack)
		r.call = rnn.Call[A, A]{
			Weights: w, Time: r.time, Batch: r.batch, Reverse: r.at%d == 1,
			X: r.sequence(r.between[(layer+1)%2], w.Input, false), Y: r.sequence(r.between[layer%2], d*r.hidden, false),
			H0: r.state(r.h0), HN: r.state(r.hn), C0: r.state(r.c0), CN: r.state(r.cn),
			Limiter: r.l.limiter, Scratch: elements[A](m, r.scratch),
		}
		if layer == 0 {
			r.call.X = r.sequence(r.x, w.Input, r.batchFirst)
		}
		if layer == len(r.recurrences)/d-1 {
			r.call.Y = r.sequence(r.y, d*r.hidden, r.batchFirst)
		}
		if r.y.n > 0 {
			r.call.Y.Data = r.call.Y.Data[r.at%d*r.hidden:]
		}
		r.call.Run()
		w.Use(nil)
	}
	return nil
}

// sequence is an operand with the given number of features.
func (r *recurrentRun[A]) sequence(o operand, features int, batchFirst bool) rnn.Sequence[A] {
	s := rnn.Sequence[A]{Time: r.batch * features, Batch: features}
	if batchFirst {
		s.Time, s.Batch = features, r.time*features
	}
	if o.n > 0 {
		s.Data = elements[A](r.l.mem, o)
	}
	return s
}

// state returns the part of a state that is the recurrence's at hand; nil if there is none.
func (r *recurrentRun[A]) state(o operand) []A {
	if o.n == 0 {
		return nil
	}
	n := r.batch * r.hidden
	return elements[A](r.l.mem, o)[r.at*n:][:n]
}

// useKept has the recurrence at hand use those matrices that the inputs keep packed.
func (r *recurrentRun[A]) useKept() {
	v := &r.recurrences[r.at]
	for i, state := range []bool{false, true} {
		k := r.keptMatrix(v, i, state)
		if v.kept[i] = k != nil; v.kept[i] {
			v.weights.UseMatrix(state, k.packed)
		}
	}
}

// keptMatrix returns a matrix of weights as the input keeps it packed; nil where it does not.
func (r *recurrentRun[A]) keptMatrix(v *recurrence[A], i int, state bool) *keptMatrix[A] {
	m, w := r.l.mem, v.weights
	in := m.steady(v.params[i].buf)
	if in == nil {
		return nil
	}
	key := recurrentKey{w.Mode, w.Input, w.Hidden, v.params[i].off, state}
	if had := hostmem.Kept[recurrentKey, keptMatrix[A]](in, &key); had != nil {
		return had
	}
	n := w.MatrixLen(state)
	return hostmem.Keep(in, key, int64(n*sizeOf[A]()), m.limit, func() *keptMatrix[A] {
		k := &keptMatrix[A]{make([]A, n)}
		own := rnn.NewWeights[A](w.Mode, w.Input, w.Hidden)
		own.UseMatrix(state, k.packed)
		r.l.limiter.For(w.Blocks(), r.packGrain(w), func(lo, hi int) { rnn.PackMatrix(own, r.matrix(v, i), state, lo, hi) })
		return k
	})
}

// packGrain is how many blocks of weights are worth a goroutine.
func (r *recurrentRun[A]) packGrain(w *rnn.Weights[A]) int {
	return r.l.grain(packCost * float64(w.Len()/max(w.Blocks(), 1)))
}

// matrix returns the weights of the input, 0, or of the state, 1, of a recurrence.
func (r *recurrentRun[A]) matrix(v *recurrence[A], i int) rnn.Matrix[A] {
	return rnn.Matrix[A]{Data: elements[A](r.l.mem, v.params[i]), Row: [2]int{v.weights.Input, r.hidden}[i], Step: 1}
}

// packBlocks packs what is not kept of the recurrence at hand.
func (r *recurrentRun[A]) packBlocks(lo, hi int) {
	v, m := &r.recurrences[r.at], r.l.mem
	for i, state := range []bool{false, true} {
		if !v.kept[i] {
			rnn.PackMatrix(v.weights, r.matrix(v, i), state, lo, hi)
		}
	}
	var bx, bh []A
	if len(v.params) == 4 {
		bx, bh = elements[A](m, v.params[2]), elements[A](m, v.params[3])
	}
	rnn.PackBiases(v.weights, bx, bh, lo, hi)
}
