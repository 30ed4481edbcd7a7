package optim

import (
	"slices"

	"github.com/loris-ml/loris"
)

// batch is parameters that are updated in one memoised region.
type batch struct {
	params  []param
	first   int // of all parameters
	regions map[regionKey]*region
}

// region is the memoised updates of some of a batch's parameters.
type region struct {
	*loris.Memoized
	vars []*loris.Variable // the value and the state of each
}

// regionKey tells the regions of a batch apart.
type regionKey struct {
	updated uint32 // a bit for each parameter that has a gradient
	where   bool   // the update depends on a condition
}

// mostTogether is how many variables a region updates at most, but that one parameter may have more. A replay
// looks for each among the others.
const mostTogether = 24

// batchesOf cuts parameters into batches that follow each other, of which each is of one group and dtype. No
// variable is in one twice, so that its second update begins with what the first gives.
func batchesOf(params []param) (list []batch) {
	variables := 0
	for i := range params {
		p := &params[i]
		n := 1 + len(p.slots)
		if k := len(list) - 1; k >= 0 {
			b := &list[k]
			q := &b.params[0]
			same := func(q param) bool { return q.v == p.v }
			if variables+n <= mostTogether && q.group == p.group && computeDType(q.v) == computeDType(p.v) && !slices.ContainsFunc(b.params, same) {
				b.params = params[b.first : i+1]
				variables += n
				continue
			}
		}
		list = append(list, batch{params: params[i : i+1], first: i, regions: map[regionKey]*region{}})
		variables = n
	}
	return list
}

// update records the updates of the parameters that have gradients, which are those of all parameters. Where ok is
// given and false they stay as they are.
func (b *batch) update(o *Optimizer, grads []*loris.Tensor, f factorsOf, ok *loris.Tensor) {
	for i := 0; i < len(b.params); {
		// Gradients of several sessions, or on several devices, are taken apart.
		key, of := regionKey{where: ok != nil}, numbersFor{}
		in := make([]*loris.Tensor, 0, len(b.params)+2)
		for ; i < len(b.params); i++ {
			p, g := &b.params[i], grads[b.first+i]
			if g == nil {
				continue
			}
			to := numbersFor{g.Session(), p.group, g.Device(), computeDType(p.v)}
			if key.updated != 0 && of != to {
				break
			}
			of = to
			key.updated |= 1 << i
			in = append(in, g)
		}
		if key.updated == 0 {
			return
		}
		in = append(in, f(of)...)
		if ok != nil {
			in = append(in, ok)
		}
		r := b.region(o, key)
		r.Update(r.vars, in...)
	}
}

// region returns the memoised updates of some of the parameters.
func (b *batch) region(o *Optimizer, key regionKey) *region {
	r := b.regions[key]
	if r == nil {
		r = &region{}
		var list []param
		for i, p := range b.params {
			if key.updated>>i&1 != 0 {
				list, r.vars = append(list, p), append(append(r.vars, p.v), p.slots...)
			}
		}
		r.Memoized = loris.Memoize(func(in ...*loris.Tensor) []*loris.Tensor { return o.updateAll(list, in, key.where) })
		b.regions[key] = r
	}
	return r
}

// updateAll records the updates of parameters. in has the value and the state of each, then the gradients of all,
// the numbers of the rule, and the condition if there is one.
func (o *Optimizer) updateAll(list []param, in []*loris.Tensor, where bool) (next []*loris.Tensor) {
	variables := 0
	for _, p := range list {
		variables += 1 + len(p.slots)
	}
	grads, factors := in[variables:variables+len(list)], in[variables+len(list):]
	var ok *loris.Tensor
	if where {
		ok, factors = factors[len(factors)-1], factors[:len(factors)-1]
	}
	if len(factors) == 1 && factors[0].Rank() == 1 {
		all := factors[0]
		factors = make([]*loris.Tensor, all.Dim(0))
		for i := range factors {
			factors[i] = all.Select(0, i).Discard() // a rule may not use all
		}
	}
	for i, p := range list {
		was := in[len(next) : len(next)+1+len(p.slots)]
		for k, t := range o.updateOne(&p, was, grads[i], factors) {
			next = append(next, either(ok, t, was[k]))
		}
	}
	return next
}

// updateOne returns the next value and state of a parameter.
func (o *Optimizer) updateOne(p *param, was []*loris.Tensor, g *loris.Tensor, factors []*loris.Tensor) []*loris.Tensor {
	value, state := was[0], was[1:]
	dtype := value.DType()
	if p.master {
		value, state = state[len(state)-1], state[:len(state)-1]
	}
	d := computeDType(p.v)
	if g = cast(g, d); o.maximize {
		g = g.Neg()
	}
	next, state := o.groups[p.group].rule.update(cast(value, d), g, p.decay, state, factors)
	if p.master {
		state = append(state[:len(state):len(state)], next)
	}
	return append([]*loris.Tensor{cast(next, dtype)}, state...)
}

// either is next where ok is nil or true, and was elsewhere.
func either(ok, next, was *loris.Tensor) *loris.Tensor {
	if ok == nil {
		return next
	}
	return loris.Where(ok, next, was)
}

func cast(t *loris.Tensor, d loris.DType) *loris.Tensor {
	if t.DType() == d {
		return t
	}
	return t.Cast(d)
}
