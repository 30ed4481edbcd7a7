package optim

import (
	"slices"

	"github.com/loris-ml/loris"
)

// group is what differs between parameters of one optimiser.
type group struct {
	rule  rule
	decay float64
	scale float64 // of the rate
}

type groupOption struct {
	match func(name string, v *loris.Variable) bool
	opts  []Option
}

// Group gives the parameters for which match is true settings of their own: LRScale and
// WeightDecay. A parameter belongs to the first Group that matches it.
func Group(match func(name string, v *loris.Variable) bool, opts ...Option) Option {
	return Option{"Group", func(c *config) { c.groups = append(c.groups, groupOption{match, opts}) }}
}

// LRScale, in a Group, multiplies the rate, which may follow a schedule, for its parameters.
func LRScale(v float64) Option { return Option{"LRScale", func(c *config) { c.scale = v }} }

// MasterWeights keeps the values of f16 and bf16 parameters in f32, too, as variables "master" of
// the State: steps that are too small for the parameter's dtype add up. Parameters that are
// loaded or assigned later do not change them; make the optimiser after that.
func MasterWeights() Option { return Option{"MasterWeights", func(c *config) { c.master = true }} }

// makeGroups makes the rules of the groups, and of all other parameters.
func (c *config) makeGroups(algorithm string, r func(c config) rule) []group {
	var out []group
	for _, g := range append(slices.Clone(c.groups), groupOption{}) {
		own := *c
		own.scale = 1
		for _, o := range g.opts {
			check(algorithm, o.name == "LRScale" || o.name == "WeightDecay", "a Group has no option %s", o.name)
			o.set(&own)
		}
		check(algorithm, own.decay >= 0, "the weight decay is %v, must not be negative", own.decay)
		check(algorithm, own.scale >= 0, "LRScale is %v, must not be negative", own.scale)
		out = append(out, group{r(own), own.decay, own.scale})
	}
	return out
}

// groupOf returns the number of a parameter's group.
func (c *config) groupOf(name string, v *loris.Variable) int {
	i := slices.IndexFunc(c.groups, func(g groupOption) bool { return g.match(name, v) })
	if i < 0 {
		return len(c.groups)
	}
	return i
}
