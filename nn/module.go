package nn

import (
	"iter"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/tracing"
)

// Module is a set of named variables. Base implements it.
type Module interface {
	// Params yields the trainable variables with their names, dotted as
	// PyTorch's ("0.weight"), in the order of registration. A variable that is
	// registered twice is yielded once, under its first name.
	Params() iter.Seq2[string, *loris.Variable]
	// Buffers yields, likewise, the variables that belong to the model but are
	// not trained, such as running statistics.
	Buffers() iter.Seq2[string, *loris.Variable]
	// SetTraining chooses between training and evaluation, for layers that
	// behave differently, in the module and all modules within.
	SetTraining(on bool)
}

// Layer is a module that maps one tensor to one.
type Layer interface {
	Module
	// Forward records the layer's output for x.
	Forward(x *loris.Tensor) *loris.Tensor
}

// Base holds the variables and inner modules of a module that embeds it. The zero Base is
// empty and in training mode. One goroutine fills it before use.
type Base struct {
	entries []entry
	eval    bool
}

// entry is a named variable or inner module.
type entry struct {
	name   string
	v      *loris.Variable
	buffer bool
	frozen bool // a parameter that counts as a buffer
	module Module
}

// Param registers a trainable variable and returns it. A name that is empty, is taken or
// has a dot panics with a *loris.OpError.
func (b *Base) Param(name string, v *loris.Variable) *loris.Variable {
	b.register(entry{name: name, v: v})
	return v
}

// Buffer registers a variable that is saved but not trained and returns it.
// Names are as in Param.
func (b *Base) Buffer(name string, v *loris.Variable) *loris.Variable {
	b.register(entry{name: name, v: v, buffer: true})
	return v
}

// Add registers an inner module, whose names are prefixed with name and a dot. Names are
// as in Param.
func (b *Base) Add(name string, m Module) {
	b.register(entry{name: name, module: m})
}

func (b *Base) register(e entry) {
	switch {
	case e.name == "" || strings.Contains(e.name, "."):
		panic(misuse("register", "name %q is empty or has a dot", e.name))
	case e.v == nil && e.module == nil:
		panic(misuse("register", "%q is nil", e.name))
	}
	for _, have := range b.entries {
		if have.name == e.name {
			panic(misuse("register", "name %q is used already", e.name))
		}
	}
	b.entries = append(b.entries, e)
}

// Params implements Module.
func (b *Base) Params() iter.Seq2[string, *loris.Variable] {
	return b.variables(false, Module.Params)
}

// Buffers implements Module.
func (b *Base) Buffers() iter.Seq2[string, *loris.Variable] {
	return b.variables(true, Module.Buffers)
}

func (b *Base) variables(buffers bool, within func(Module) iter.Seq2[string, *loris.Variable]) iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		seen := map[*loris.Variable]bool{}
		emit := func(name string, v *loris.Variable) bool {
			if seen[v] {
				return true
			}
			seen[v] = true
			return yield(name, v)
		}
		for _, e := range b.entries {
			if e.module == nil {
				if (e.buffer || e.frozen) == buffers && !emit(e.name, e.v) {
					return
				}
				continue
			}
			for name, v := range within(e.module) {
				if !emit(e.name+"."+name, v) {
					return
				}
			}
		}
	}
}

// SetTraining implements Module.
func (b *Base) SetTraining(on bool) {
	if tracing.Active() {
		tracing.Set(b)
	}
	b.eval = !on
	for _, e := range b.entries {
		if e.module != nil {
			e.module.SetTraining(on)
		}
	}
}

// Training reports whether the module is in training mode. A function that is compiled
// (loris.Compile) and asks for it is traced once for each mode.
func (b *Base) Training() bool {
	if tracing.Active() {
		tracing.Depend(b, func() any { return b.eval })
	}
	return !b.eval
}

// Func is a layer without variables that applies a function, such as an activation.
type Func func(x *loris.Tensor) *loris.Tensor

// Forward calls the function.
func (f Func) Forward(x *loris.Tensor) *loris.Tensor { return f(x) }

// Params yields nothing.
func (f Func) Params() iter.Seq2[string, *loris.Variable] { return nothing }

// Buffers yields nothing.
func (f Func) Buffers() iter.Seq2[string, *loris.Variable] { return nothing }

// SetTraining does nothing.
func (f Func) SetTraining(bool) {}

func nothing(func(string, *loris.Variable) bool) {}

// NumParams returns the number of trainable elements.
func NumParams(m Module) int {
	n := 0
	for _, v := range m.Params() {
		n += v.Shape().Numel()
	}
	return n
}

// value returns a variable's value for use with x, in x's session.
func value(v *loris.Variable, x *loris.Tensor) *loris.Tensor {
	if v == nil {
		return nil
	}
	return v.ValueIn(x.Session())
}
