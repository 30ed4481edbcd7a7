package export

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ahead"
)

// term is a term of a function of the symbols: d·(k over i)·(l over j), where k and l are how far the
// symbols are below their origins.
type term struct{ i, j, d int64 }

// vary makes the words a function of the sizes, from what they are for others: models of symbols are
// given for all combinations of the samples of each, the origin first.
func (e *encoder) vary(rest []*encoder) error {
	words := int64(len(e.words))
	if len(rest) > 0 {
		for _, o := range rest {
			if len(o.words) != len(e.words) || !bytes.Equal(o.code, e.code) || !bytes.Equal(o.text, e.text) || !bytes.Equal(o.literals, e.literals) || !slices.Equal(o.functions, e.functions) {
				return fmt.Errorf("%w: the code depends on sizes that vary", backend.ErrUnsupported)
			}
		}
		if err := e.roomForAll(rest); err != nil {
			return err
		}
	}
	var patches []int64
	count := 0
	values := make([]int64, 1+len(rest))
	for at := range words {
		values[0] = e.words[at]
		for i, o := range rest {
			values[i+1] = o.words[at]
		}
		t := e.tuning[int(at)]
		if t == roomy || constant(values) {
			continue
		}
		terms, ok := fit(values)
		if !ok && t == anyWill {
			continue
		}
		if !ok {
			return fmt.Errorf("%w: %s: a number in it is no polynomial of the sizes that vary", backend.ErrUnsupported, e.titleOf(int(at)))
		}
		count++
		patches = append(patches, at, int64(len(terms)))
		for _, x := range terms {
			patches = append(patches, x.i, x.j, x.d)
		}
	}
	e.words[wordWords], e.words[wordSymbols], e.words[wordSymbolAt] = words, int64(len(e.m.symbols)), words
	for i := range e.m.symbols {
		s := &e.m.symbols[i]
		e.put(e.string(s.Name), int64(s.uses[0][0]), int64(s.uses[0][1]), int64(s.Min), int64(s.Max), int64(s.origin))
	}
	e.words[wordPatches], e.words[wordPatchAt] = int64(count), int64(len(e.words))
	e.put(patches...)
	return nil
}

// titleOf names the step that a word belongs to.
func (e *encoder) titleOf(at int) string {
	name := "an input or an output"
	for _, t := range e.titles {
		if t.at > at {
			break
		}
		name = t.text
	}
	return name
}

// roomForAll returns an error unless buffers are largest at the origin, whose places all sizes use, and
// what lies in the memory of an output is as large as that for all.
func (e *encoder) roomForAll(rest []*encoder) error {
	plan := e.m.plan
	values := make([]int64, 1+len(rest))
	for b := range plan.Sizes {
		p := plan.Places[b]
		for i, o := range append([]*encoder{e}, rest...) {
			values[i] = int64(o.m.plan.Sizes[b])
			if p.Space != ahead.Output {
				continue
			}
			if q := o.m.results[p.Index]; q.Space == ahead.Output && o.m.outputs[q.Index].shape.Bytes() != o.m.plan.Sizes[b] {
				return fmt.Errorf("%w: the memory of output %d depends on sizes that vary", backend.ErrUnsupported, p.Index)
			}
		}
		if constant(values) {
			continue
		}
		terms, ok := fit(values)
		for k := int64(0); ok && k < e.reach(0); k += e.stride(0) {
			for l := int64(0); ok && l < e.reach(1); l += e.stride(1) {
				ok = value(terms, k, l) <= values[0]
			}
		}
		if !ok {
			return fmt.Errorf("%w: the size of a value is no simple function of the sizes that vary, or grows while they shrink", backend.ErrUnsupported)
		}
	}
	return nil
}

// reach returns how far below its origin a symbol may be; one where there is none of the number.
func (e *encoder) reach(symbol int) int64 {
	if symbol >= len(e.m.symbols) {
		return 1
	}
	return int64(e.m.symbols[symbol].origin)
}

// stride returns the distance of the values of a symbol for which sizes are looked at.
func (e *encoder) stride(symbol int) int64 { return max(1, e.reach(symbol)/50) }

func constant(values []int64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

func value(terms []term, k, l int64) (v int64) {
	over := func(n, i int64) int64 { return [...]int64{1, n, n * (n - 1) / 2}[i] }
	for _, t := range terms {
		v += t.d * over(k, t.i) * over(l, t.j)
	}
	return v
}

// fit returns the function that has given values for all combinations of samples, the first symbol's
// changing fastest; false if that is no polynomial of at most the second degree in each. Differences
// of the values are its terms (Newton).
func fit(values []int64) ([]term, bool) {
	d := slices.Clone(values)
	for step := 1; step < len(d); step *= samples {
		for order := 1; order < samples; order++ {
			for at := len(d) - 1; at >= 0; at-- {
				if at/step%samples >= order {
					d[at] -= d[at-step]
				}
			}
		}
	}
	var terms []term
	for at, v := range d {
		i, j := int64(at%samples), int64(at/samples)
		switch {
		case v == 0:
		case i == samples-1 || j == samples-1:
			return nil, false
		default:
			terms = append(terms, term{i, j, v})
		}
	}
	return terms, true
}
