package ir

func init() {
	register("nll_loss(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean', int ignore_index=-100) -> Tensor", Spec{
		Doc:      "-self[target] for log-probabilities self [C] or [N, C, d…] and class indices target [] or [N, d…]; weight [C] scales classes, reduction is none, mean (by weight) or sum, and targets equal to ignore_index count nothing. Another target outside [0, C) is an error when it runs. As torch.nn.functional.nll_loss.",
		Category: Neural, Decompose: nllLoss,
	})
	register("cross_entropy(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean', int ignore_index=-100, float label_smoothing=0.0) -> Tensor", Spec{
		Doc:      "Cross entropy of logits self [C] or [N, C, d…] and either class indices [] or [N, d…], as nll_loss of log_softmax, or class probabilities of self's shape and dtype. As torch.nn.functional.cross_entropy.",
		Category: Neural, Decompose: crossEntropy, VJP: vjpCrossEntropy,
	})
}

// classLoss is what nll_loss and cross_entropy read from their arguments.
type classLoss struct {
	x      Value // the scores, widened
	dim    int   // of the classes
	n      int   // number of classes
	weight Value // per class, widened and shaped to broadcast against x; absent if none
	probs  bool  // the target holds probabilities
	target Value // probabilities widened, or class indices as i64
	// safe and valid are set for class indices, and have x's dimensions with one class. safe is the
	// target, 0 where it is ignored; valid is true where it is not.
	safe, valid Value
	mean, sum   bool
	smoothing   float64
}

func newClassLoss(b *Builder, a Args) *classLoss {
	x, t := a.Tensor("self"), a.Tensor("target")
	c := &classLoss{x: b.widen(x), target: t}
	if !x.DType().IsFloat() {
		a.Fail(ErrDType, "self must be floating, got %v", x.DType())
	}
	if x.Rank() == 0 {
		a.Fail(ErrShape, "self needs a dimension of classes")
	}
	if x.Rank() > 1 {
		c.dim = 1
	}
	c.n = x.Dim(c.dim)
	r := lossReduction(a)
	c.mean, c.sum = r == "mean", r == "sum"
	if w := a.Tensor("weight"); !w.IsNil() {
		if w.Shape() != MakeShape(x.DType(), c.n) {
			a.Fail(ErrShape, "weight must be %v, got %v", MakeShape(x.DType(), c.n), w.Shape())
		}
		dims := make([]int, x.Rank())
		for i := range dims {
			dims[i] = 1
		}
		dims[c.dim] = c.n
		c.weight = b.Reshape(b.widen(w), dims...)
	}
	return c
}

// indices reads a target of class indices.
func (c *classLoss) indices(b *Builder, a Args) {
	t := c.target
	dims := c.x.Shape().Dims()
	want := append(append([]int{}, dims[:c.dim]...), dims[c.dim+1:]...)
	if !t.DType().IsInt() {
		a.Fail(ErrDType, "target must hold class indices of an integer dtype, got %v", t.DType())
	}
	if !t.Shape().SameDims(MakeShape(I64, want...)) {
		a.Fail(ErrShape, "target must have dimensions %v, got %v", want, t.Shape().Dims())
	}
	dims[c.dim] = 1
	t = b.Reshape(b.Cast(t, I64), dims...)
	c.valid = b.ne(t, b.Const(a.Int("ignore_index"), I64))
	c.safe = b.Where(c.valid, t, b.Const(0, I64))
	c.target = t
}

// counts returns the weight that each element of the loss carries, 0 where the
// target is ignored; it keeps the class dimension at size 1.
func (c *classLoss) counts(b *Builder) Value {
	d := c.x.DType()
	if c.weight.IsNil() {
		return b.Cast(c.valid, d)
	}
	w := b.IndexSelect(b.Reshape(c.weight, c.n), 0, b.Reshape(c.safe, -1))
	return b.Where(c.valid, b.Reshape(w, c.safe.Shape().Dims()...), b.Const(0.0, d))
}

// finish drops the class dimension and reduces; the mean is over denom.
func (c *classLoss) finish(b *Builder, loss, denom Value, d DType) Value {
	switch {
	case c.sum:
		loss = b.Sum(loss, nil, false)
	case c.mean:
		loss = b.Div(b.Sum(loss, nil, false), denom)
	default:
		dims := loss.Shape().Dims()
		loss = b.Reshape(loss, append(dims[:c.dim], dims[c.dim+1:]...)...)
	}
	return b.Cast(loss, d)
}

func nllLoss(b *Builder, a Args) []Value {
	c := newClassLoss(b, a)
	c.indices(b, a)
	w := c.counts(b)
	picked := b.widen(b.Gather(a.Tensor("self"), c.dim, c.safe)) // so that the gradient has the dtype of self
	loss := b.Where(c.valid, b.Neg(b.Mul(picked, w)), b.Const(0.0, c.x.DType()))
	return []Value{c.finish(b, loss, b.Sum(w, nil, false), a.In[0].DType())}
}

// readCrossEntropy tells class probabilities from indices and checks them.
func readCrossEntropy(b *Builder, a Args) *classLoss {
	c := newClassLoss(b, a)
	if c.smoothing = a.float("label_smoothing"); !(c.smoothing >= 0 && c.smoothing <= 1) {
		a.Fail(ErrArg, "label_smoothing must be between 0 and 1, got %v", c.smoothing)
	}
	t := c.target
	if c.probs = t.DType().IsFloat(); !c.probs {
		c.indices(b, a)
		return c
	}
	if !t.Shape().SameDims(c.x.Shape()) {
		a.Fail(ErrShape, "class probabilities must have the dimensions of self, %v, got %v", c.x.Shape().Dims(), t.Shape().Dims())
	}
	c.target = b.Cast(t, c.x.DType())
	return c
}

// denominator is what the mean divides by.
func (c *classLoss) denominator(b *Builder) Value {
	if c.probs {
		return b.Const(float64(c.x.Shape().Numel())/float64(max(c.n, 1)), c.x.DType())
	}
	return b.Sum(c.counts(b), nil, false)
}

// wanted returns the distribution over the classes that the loss is taken
// against, smoothed and weighted: loss = -Σ wanted·log_softmax(x).
func (c *classLoss) wanted(b *Builder) Value {
	d := c.x.DType()
	q := c.target
	if !c.probs {
		dims := make([]int, c.x.Rank())
		for i := range dims {
			dims[i] = 1
		}
		dims[c.dim] = c.n
		hot := b.eq(b.Reshape(b.Iota(c.n, I64), dims...), c.safe)
		q = b.Cast(hot, d)
	}
	q = c.smoothed(b, q)
	if !c.weight.IsNil() {
		q = b.Mul(q, c.weight)
	}
	if !c.probs {
		q = b.Where(c.valid, q, b.Const(0.0, d))
	}
	return q
}

// smoothed mixes a distribution with the even one.
func (c *classLoss) smoothed(b *Builder, q Value) Value {
	if c.smoothing == 0 {
		return q
	}
	d := c.x.DType()
	return b.Add(b.Mul(q, b.Const(1-c.smoothing, d)), b.Const(c.smoothing/float64(c.n), d))
}

func crossEntropy(b *Builder, a Args) []Value {
	c := readCrossEntropy(b, a)
	d, dims := c.x.DType(), []int{c.dim}
	z := b.shifted(c.x, c.dim)
	logSum := b.log(b.Sum(b.Exp(z), dims, true))
	if c.probs {
		loss := b.Sum(b.Mul(c.wanted(b), b.Sub(logSum, z)), dims, true)
		return []Value{c.finish(b, loss, c.denominator(b), a.In[0].DType())}
	}
	// Only the wanted logit is read, so that no log-probabilities of all classes
	// need to be kept.
	w := c.counts(b)
	loss := b.Mul(b.Sub(logSum, b.Gather(z, c.dim, c.safe)), w)
	if c.smoothing != 0 {
		all := b.Sub(logSum, z)
		if !c.weight.IsNil() {
			all = b.Mul(all, c.weight)
		}
		even := b.Mul(b.Sum(all, dims, true), b.Const(c.smoothing/float64(c.n), d))
		loss = b.Add(b.Mul(loss, b.Const(1-c.smoothing, d)), even)
	}
	// Where, and not a product with 0, drops ignored elements: they may be infinite or NaN.
	loss = b.Where(c.valid, loss, b.Const(0.0, d))
	return []Value{c.finish(b, loss, b.Sum(w, nil, false), a.In[0].DType())}
}

// vjpCrossEntropy is (softmax(x)·Σ wanted - wanted)·g: it needs no gradient of
// the gather, and a fusing backend never stores the one-hot wanted. Weights have
// a gradient only with class probabilities, as in ATen.
func vjpCrossEntropy(b *Builder, a Args, out, grad []Value) []Value {
	c := readCrossEntropy(b, a)
	g := b.widen(grad[0])
	switch {
	case c.mean:
		g = b.Div(g, c.denominator(b))
	case !c.sum:
		dims := c.x.Shape().Dims()
		dims[c.dim] = 1
		g = b.Reshape(g, dims...)
	}
	dims := []int{c.dim}
	q := c.wanted(b)
	var total Value
	if c.probs || c.smoothing != 0 {
		total = b.Sum(q, dims, true)
	} else {
		total = c.counts(b)
	}
	p := b.callNamed("softmax", []any{c.x, c.dim})
	gx := b.Mul(b.Sub(b.Mul(p, total), q), g)
	gs := []Value{b.Cast(gx, a.In[0].DType()), {}}
	if !c.weight.IsNil() {
		gs = append(gs, Value{})
	}
	if c.probs {
		c.vjpProbs(b, a, g, gs)
	}
	return gs
}

// vjpProbs fills in the gradients of class probabilities and their weights.
func (c *classLoss) vjpProbs(b *Builder, a Args, g Value, gs []Value) {
	gt := b.Neg(b.Mul(b.callNamed("log_softmax", []any{c.x, c.dim}), g))
	if !c.weight.IsNil() {
		gw := b.sumTo(b.Mul(gt, c.smoothed(b, c.target)), c.weight.Shape())
		gs[2] = b.Cast(b.Reshape(gw, c.n), a.In[2].DType())
		gt = b.Mul(gt, c.weight)
	}
	if c.smoothing != 0 {
		gt = b.Mul(gt, b.Const(1-c.smoothing, c.x.DType()))
	}
	gs[1] = b.Cast(gt, a.In[1].DType())
}
