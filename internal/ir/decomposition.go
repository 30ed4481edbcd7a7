package ir

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
)

// Decompositions keeps what composites are in terms of other ops, by op, attributes and operands'
// shapes, on which alone it depends. Builders that share one infer and decompose a use of an op that
// any of them has met without calling the row's functions again. It is safe for concurrent use.
type Decompositions struct {
	mu    sync.Mutex
	known map[string]*decomposition // guarded by mu
}

// maxDecompositions bounds what is kept. All of it is forgotten when it is reached: a program uses
// much fewer at a time.
const maxDecompositions = 1 << 13

// maxUse bounds the bytes that name a use, and so the memory that is kept and the comparisons of
// operands with those before them. Uses that need more have hundreds of operands, and are cheap
// beside these.
const maxUse = 4 << 10

// NewDecompositions returns an empty one.
func NewDecompositions() *Decompositions {
	return &Decompositions{known: map[string]*decomposition{}}
}

// decomposition is what the row of an op says of a use: the shapes of the results and, of a
// composite, the ops that make them.
type decomposition struct {
	shapes []Shape
	ops    []decomposedOp // of a composite; nil if they are not known
	// Values are numbered: the operands of the composite first, then the results of the ops.
	args []int // of all ops, in order
	outs []int
	last int // how many values there are
}

// decomposedOp is one use of an op after promotion, without its operands; args counts them.
type decomposedOp struct {
	sp     *Spec
	attr   string
	args   int
	shapes []Shape
}

// appendUse appends what the meaning of a use depends on: besides op, attributes and shapes, which
// operands are the same value, since the ops of a decomposition name one of these for all. It returns
// false for a composite of plain numbers, whose values are promoted into its ops, and for a use that
// takes more than maxUse bytes.
func appendUse(b []byte, a Args) ([]byte, bool) {
	b = binary.LittleEndian.AppendUint16(b, uint16(a.Spec.Op))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Attr)))
	b = append(b, a.Attr...)
	for i, v := range a.In {
		if v.Node.flags&(flagWrapped|flagNumber) != 0 && (a.Spec.Decompose != nil || a.Spec.Complex != nil) {
			return b, false
		}
		s := &v.Node.e.shapes[v.Index]
		b = append(b, byte(s.dtype), s.rank)
		for _, d := range s.dims[:s.rank] {
			b = binary.AppendUvarint(b, uint64(d))
		}
		b = binary.AppendUvarint(b, uint64(slices.Index(a.In[:i+1], v)))
		if len(b) > maxUse {
			return b, false
		}
	}
	return b, len(b) <= maxUse
}

// find returns what is known of a use; key is set if it can be kept.
func (k *Decompositions) find(a Args, key []byte) (d *decomposition, _ []byte) {
	key, ok := appendUse(key[:0], a)
	if !ok {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[string(key)], key
}

// keep adds what a use means.
func (k *Decompositions) keep(key []byte, d *decomposition) {
	if key == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxDecompositions {
		clear(k.known)
	}
	k.known[string(key)] = d
}

// meaning returns what the row says of a use, kept or computed.
func (b *Builder) meaning(a Args) *decomposition {
	var key []byte
	if b.Decompositions != nil {
		var d *decomposition
		if d, key = b.Decompositions.find(a, b.key); key != nil {
			b.key = key
		}
		if d != nil {
			return d
		}
	}
	d := &decomposition{}
	if decompose := a.Decomposition(); decompose != nil {
		d.decompose(a, decompose)
	} else {
		d.shapes = a.Spec.Infer(a)
	}
	if b.Decompositions != nil {
		b.Decompositions.keep(key, d)
	}
	return d
}

// reportAs, deferred, reports an error in a part of a use of an op as one of the op.
func (a Args) reportAs() {
	switch e := recover().(type) {
	case nil:
	case *OpError:
		msg := e.Msg
		if e.Op != a.Spec.Name {
			msg = "in " + e.Op + ": " + msg
		}
		panic(NewOpError(a.Spec.Name, e.Err, a.In, "%s", msg))
	case error:
		for _, kind := range []error{ErrShape, ErrDType} { // those of MakeShape
			if errors.Is(e, kind) {
				panic(NewOpError(a.Spec.Name, kind, a.In, "%v", e))
			}
		}
		panic(e)
	default:
		panic(e)
	}
}

// decompose records the decomposition of a composite in a scratch Builder. An error in it is
// reported as one of the composite.
func (d *decomposition) decompose(a Args, decompose func(*Builder, Args) []Value) {
	defer a.reportAs()
	used := make([]uint32, len(a.In))
	for i, v := range a.In {
		used[i] = v.Node.Used
	}
	var made []*Node
	scratch := Builder{Lines: LinesOff, unhashed: true, onNode: func(n *Node) { made = append(made, n) }}
	outs := decompose(&scratch, a)
	for i, v := range a.In {
		v.Node.Used = used[i] // the scratch nodes consume nothing
	}
	for _, v := range outs {
		d.shapes = append(d.shapes, v.Shape())
	}
	d.describe(a.In, made, outs)
}

// describe notes the ops that the results depend on, unless they use other values than the operands
// and each other's.
func (d *decomposition) describe(in []Value, made []*Node, outs []Value) {
	at := make(map[Value]int, len(in))
	for i := len(in) - 1; i >= 0; i-- {
		at[in[i]] = i
	}
	position := make(map[*Node]int, len(made))
	for i, n := range made {
		position[n] = i
	}
	needed := make([]bool, len(made))
	need := func(v Value) bool {
		if _, ok := at[v]; ok {
			return true
		}
		i, ok := position[v.Node]
		if ok {
			needed[i] = true
		}
		return ok
	}
	for _, v := range outs {
		if !need(v) {
			return
		}
	}
	for i := len(made) - 1; i >= 0; i-- {
		if !needed[i] {
			continue
		}
		for _, v := range made[i].Inputs() {
			if !need(v) {
				return
			}
		}
	}
	ref := func(v Value) int {
		if i, ok := at[v]; ok {
			return i
		}
		return position[v.Node] + v.Index
	}
	d.last = len(in)
	ops := make([]decomposedOp, 0, len(made))
	for i, n := range made {
		if !needed[i] {
			continue
		}
		for _, v := range n.Inputs() {
			d.args = append(d.args, ref(v))
		}
		position[n] = d.last
		d.last += n.NumOutputs()
		ops = append(ops, decomposedOp{n.spec(), n.Attr(), len(n.Inputs()), n.Shapes()})
	}
	for _, v := range outs {
		d.outs = append(d.outs, ref(v))
	}
	d.ops = ops
}

// Decompose records a use of a composite in terms of other ops, as its row says.
func (b *Builder) Decompose(a Args) []Value {
	d := b.meaning(a)
	if d.ops == nil {
		return a.Decomposition()(b, a)
	}
	values := append(make([]Value, 0, d.last), a.In...)
	args := d.args
	var in []Value
	for i := range d.ops {
		q := &d.ops[i]
		in = in[:0]
		for _, r := range args[:q.args] {
			in = append(in, values[r])
		}
		args = args[q.args:]
		if n, rewritten := b.emit(q.sp, q.attr, in, q.shapes); n != nil {
			for k := range q.shapes {
				values = append(values, n.Out(k))
			}
		} else {
			values = append(values, rewritten...)
		}
	}
	out := make([]Value, len(d.outs))
	for i, r := range d.outs {
		out[i] = values[r]
	}
	return out
}

// Meaning is what a use of a composite is in terms of other ops.
type Meaning struct{ of *decomposition }

// Meaning returns that of a use. key is scratch memory.
func (k *Decompositions) Meaning(a Args, key *[]byte) Meaning {
	d, found := k.find(a, *key)
	if found != nil {
		*key = found
	}
	if d == nil {
		b := Builder{Decompositions: k}
		d = b.meaning(a)
	}
	return Meaning{d}
}

// Alike compares what two uses of one composite mean. It returns false unless they are the same ops on
// the same values but for attributes and shapes, of which pair is called with those of each op in both;
// pair ends the comparison by returning false.
func (m Meaning) Alike(o Meaning, pair func(op Op, attrs [2]string, shapes [2][]Shape) bool) bool {
	d, e := m.of, o.of
	if d.ops == nil || len(d.ops) != len(e.ops) || !slices.Equal(d.args, e.args) || !slices.Equal(d.outs, e.outs) {
		return false
	}
	for i := range d.ops {
		p, q := &d.ops[i], &e.ops[i]
		if p.sp != q.sp || p.args != q.args || !pair(p.sp.Op, [2]string{p.attr, q.attr}, [2][]Shape{p.shapes, q.shapes}) {
			return false
		}
	}
	return true
}
