//go:build linux && cgo

package host

import (
	"maps"

	"github.com/loris-ml/loris/internal/ir"
)

// opEntry is what the host adds to the row of ir that has an op's name. An op without an
// entry is its row: parameters are bound by their names, and results lie as layoutOf says.
//
// An op moves to ir by a row there and by deleting its entry here.
type opEntry struct {
	// eager computes the op on tensors of the host. It is for what no Program says (results
	// whose size depends on data, PyTorch's own random numbers, packed weights), and goes
	// before the decomposition and the row there.
	eager eagerFunc
	// decompose records the op for arguments that are not those of its row, or for an op
	// without one. Accelerators take it, and the host where there is no eager.
	decompose decomposeFunc
	// view says that eager makes a view of its operand, which no device takes part in.
	view bool
}

// opTable is the host's one table of ops, by ATen's name without the overload.
var opTable = newOpTable(
	[]map[string]eagerFunc{
		viewKernels, creationKernels, randomKernels, linalgKernels, histogramKernels,
		fbgemmKernels, quantKernels, observerKernels, collectiveKernels,
	},
	[]map[string]decomposeFunc{mathDecompositions, randomDecompositions, attentionDecompositions},
	selectOps, orderOps,
)

func newOpTable(eager []map[string]eagerFunc, decompose []map[string]decomposeFunc, entries ...map[string]opEntry) map[string]opEntry {
	kernels, programs := map[string]eagerFunc{}, map[string]decomposeFunc{}
	for _, g := range eager {
		maps.Copy(kernels, g)
	}
	for _, g := range decompose {
		maps.Copy(programs, g)
	}
	table := map[string]opEntry{}
	for name, fn := range kernels {
		table[name] = opEntry{eager: fn, decompose: programs[name], view: views[name]}
	}
	for name, fn := range programs {
		table[name] = opEntry{eager: kernels[name], decompose: fn, view: views[name]}
	}
	for _, g := range entries {
		maps.Copy(table, g)
	}
	return table
}

// views are the ops of viewKernels whose results share memory on every device.
var views = map[string]bool{
	"permute": true, "slice": true, "narrow": true, "squeeze": true, "view_dtype": true, "view_as_real": true, "view_as_complex": true, "alias": true,
}

// eagerKernelOf returns the function that computes an op on tensors of the host, or nil.
func eagerKernelOf(name string) eagerFunc {
	e := opTable[name]
	if e.eager != nil {
		return e.eager
	}
	if fn := decompositionOf(name); fn != nil {
		return func(v values) ([]*tensor, error) {
			r, err := fn(v)
			if err != nil {
				return nil, err
			}
			return r.allResults(r.onHost())
		}
	}
	return nil
}

// decompositionOf returns what records an op as a Program, or nil. An op that the host computes by
// a kernel of its own is not its row, unless its entry says so.
func decompositionOf(name string) decomposeFunc {
	e := opTable[name]
	if e.decompose != nil || e.eager != nil {
		return e.decompose
	}
	op, ok := ir.Lookup(name)
	if !ok {
		return nil
	}
	return func(v values) (*decomposition, error) { return decomposeRow(op, v) }
}

// row records the row of ir of that name.
func row(name string) decomposeFunc {
	return func(v values) (*decomposition, error) { return decomposeRow(lookup(name), v) }
}
