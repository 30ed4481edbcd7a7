package parallel

import (
	"iter"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/nn"
)

// Layers makes layers whose weights are divided among the ranks of a group: each rank computes a part of
// the features, or of the heads. All ranks compute on the same inputs and get the same loss. A layer begins
// with the weights of the layer of package nn that it divides: those that one rank would have.
type Layers struct {
	group *dist.Group
	cuts  map[*loris.Variable]cut
}

// cut says how a variable is divided: dimension dim of the whole has groups runs, of each of which this
// rank has an equal part.
type cut struct{ dim, groups int }

// NewLayers returns a maker of layers that are divided among the ranks of a group.
func NewLayers(g *dist.Group) *Layers { return &Layers{g, map[*loris.Variable]cut{}} }

// take returns this rank's part of a variable.
func (l *Layers) take(whole *loris.Variable, c cut) *loris.Variable {
	part := loris.NewVariable(l.part(whole.Value(), c).Discard())
	l.cuts[part] = c
	return part
}

// part records this rank's part of a tensor.
func (l *Layers) part(x *loris.Tensor, c cut) *loris.Tensor {
	n := l.group.Size()
	return x.Unflatten(c.dim, c.groups, n, -1).Narrow(c.dim+1, l.group.Rank(), 1).Reshape(resized(x, c.dim, x.Dim(c.dim)/n)...)
}

func resized(x *loris.Tensor, dim, size int) []int {
	dims := x.Dims()
	dims[dim] = size
	return dims
}

// Whole records all ranks' parts of a parameter, joined; of one that is not divided its value. All ranks of the
// group record it.
func (l *Layers) Whole(v *loris.Variable) *loris.Tensor {
	if c, ok := l.cuts[v]; ok {
		return l.join(v, c)
	}
	return v.Value()
}

// join records the whole of a variable that is divided.
func (l *Layers) join(v *loris.Variable, c cut) *loris.Tensor {
	x := v.Value()
	if l.group.Size() == 1 {
		return x
	}
	size := x.Dim(c.dim)
	y := l.group.AllGather(x.Unflatten(c.dim, c.groups, 1, size/c.groups), c.dim+1)
	return y.Reshape(resized(x, c.dim, size*l.group.Size())...)
}

func (l *Layers) divides(layer string, what string, n int) {
	if n <= 0 || n%l.group.Size() != 0 {
		panic(ir.NewOpError("parallel."+layer, loris.ErrArg, nil, "%d %s cannot be divided among %d ranks", n, what, l.group.Size()))
	}
}

// Grad records the gradients of a loss, which is the same on all ranks, with respect to parameters: this
// rank's parts of those that are divided, and all of the others.
func (l *Layers) Grad(loss *loris.Tensor, params iter.Seq2[string, *loris.Variable]) []*loris.Tensor {
	var wrt []any
	var same []int // not divided
	for _, v := range params {
		if _, ok := l.cuts[v]; !ok {
			same = append(same, len(wrt))
		}
		wrt = append(wrt, v)
	}
	if l.group.Size() == 1 {
		return loris.Grad(loss, wrt...)
	}
	// Gradients are those of the sum over ranks of what each differentiates.
	out := loris.Grad(loss.Div(l.group.Size()), wrt...)
	parts := make([]*loris.Tensor, len(same))
	for i, k := range same {
		parts[i] = out[k]
	}
	for i, x := range l.group.Sum(parts) {
		out[same[i]] = x
	}
	return out
}

// Column is a linear layer of which each rank has a part of the outputs.
type Column struct {
	nn.Base
	Weight *loris.Variable // [out/ranks, in]
	Bias   *loris.Variable // [out/ranks], nil without one
}

// Column returns a linear layer from in to out features, which the number of ranks must divide. Options are
// those of nn.NewLinear.
func (l *Layers) Column(in, out int, opts ...nn.Option) *Column {
	l.divides("Column", "outputs", out)
	whole := nn.NewLinear(in, out, opts...)
	c := &Column{}
	c.Weight = c.Param("weight", l.take(whole.Weight, cut{0, 1}))
	if whole.Bias != nil {
		c.Bias = c.Param("bias", l.take(whole.Bias, cut{0, 1}))
	}
	return c
}

// Forward maps x [*, in], the same on all ranks, to this rank's outputs [*, out/ranks].
func (c *Column) Forward(x *loris.Tensor) *loris.Tensor {
	return x.Linear(c.Weight.ValueIn(x.Session()), loris.Bias(valueOf(c.Bias, x)))
}

func valueOf(v *loris.Variable, x *loris.Tensor) *loris.Tensor {
	if v == nil {
		return nil
	}
	return v.ValueIn(x.Session())
}

// Row is a linear layer of which each rank has a part of the inputs, such as the outputs of a Column.
type Row struct {
	nn.Base
	Weight *loris.Variable // [out, in/ranks]
	Bias   *loris.Variable // [out], the same on all ranks; nil without one
	group  *dist.Group
}

// Row returns a linear layer from in features, which the number of ranks must divide, to out. Options are
// those of nn.NewLinear.
func (l *Layers) Row(in, out int, opts ...nn.Option) *Row {
	l.divides("Row", "inputs", in)
	whole := nn.NewLinear(in, out, opts...)
	r := &Row{group: l.group}
	r.Weight = r.Param("weight", l.take(whole.Weight, cut{1, 1}))
	if whole.Bias != nil {
		r.Bias = r.Param("bias", whole.Bias)
	}
	return r
}

// Forward maps this rank's inputs x [*, in/ranks] to all outputs [*, out], which all ranks get.
func (r *Row) Forward(x *loris.Tensor) *loris.Tensor {
	y := r.group.AllReduce(x.Linear(r.Weight.ValueIn(x.Session())), dist.Sum)
	if r.Bias != nil {
		y = y.Add(r.Bias.ValueIn(x.Session()))
	}
	return y
}

// Embedding is a table of vectors of which each rank has a part of the rows.
type Embedding struct {
	nn.Base
	Weight *loris.Variable // [n/ranks, dim]
	group  *dist.Group
}

// Embedding returns a table of n vectors, which the number of ranks must divide, of dim elements. Options are
// those of nn.NewEmbedding but PaddingIdx.
func (l *Layers) Embedding(n, dim int, opts ...nn.Option) *Embedding {
	l.divides("Embedding", "rows", n)
	e := &Embedding{group: l.group}
	e.Weight = e.Param("weight", l.take(nn.NewEmbedding(n, dim, opts...).Weight, cut{0, 1}))
	return e
}

// Forward maps indices x [*], i64 or i32 and the same on all ranks, to the rows [*, dim], which all ranks
// get. An index out of range has a row of zeros.
func (e *Embedding) Forward(x *loris.Tensor) *loris.Tensor {
	rows := e.Weight.Shape().Dims()[0]
	own := x.Sub(e.group.Rank() * rows) // a number, so that graphs agree
	has := own.Ge(0).LogicalAnd(own.Lt(rows))
	y := loris.Embedding(e.Weight.ValueIn(x.Session()), loris.Where(has, own, 0))
	return e.group.AllReduce(loris.Where(has.Unsqueeze(-1), y, 0.0), dist.Sum)
}

// Attention is multi-head self-attention of which each rank has a part of the heads.
type Attention struct {
	nn.Base
	InProjWeight *loris.Variable // [3·dim/ranks, dim]
	InProjBias   *loris.Variable // [3·dim/ranks]
	OutProj      *Row

	heads, size int
	causal      bool
}

// Attention returns self-attention of dim features in heads, whose number the number of ranks must divide.
// With causal a position attends to those before it. Parameters have the names of nn.MultiheadAttention.
// The options are With of package nn.
func (l *Layers) Attention(dim, heads int, causal bool, opts ...nn.Option) *Attention {
	l.divides("Attention", "heads", heads)
	whole := nn.NewMultiheadAttention(dim, heads, opts...)
	a := &Attention{heads: heads / l.group.Size(), size: dim / heads, causal: causal}
	a.InProjWeight = a.Param("in_proj_weight", l.take(whole.InProjWeight, cut{0, 3}))
	a.InProjBias = a.Param("in_proj_bias", l.take(whole.InProjBias, cut{0, 3}))
	a.OutProj = &Row{group: l.group}
	a.OutProj.Weight = a.OutProj.Param("weight", l.take(whole.OutProj.Weight, cut{1, 1}))
	a.OutProj.Bias = a.OutProj.Param("bias", whole.OutProj.Bias)
	a.Add("out_proj", a.OutProj)
	return a
}

// Forward maps x [*, length, dim], the same on all ranks, to the same shape, which all ranks get.
func (a *Attention) Forward(x *loris.Tensor) *loris.Tensor {
	p := x.Linear(valueOf(a.InProjWeight, x), loris.Bias(valueOf(a.InProjBias, x))).Chunk(3, loris.Dim(-1))
	for i := range p {
		p[i] = p[i].Unflatten(-1, a.heads, a.size).Transpose(-3, -2)
	}
	y := loris.ScaledDotProductAttention(p[0], p[1], p[2], loris.IsCausal(a.causal)).Transpose(-3, -2)
	return a.OutProj.Forward(y.Flatten(loris.StartDim(-2)))
}
