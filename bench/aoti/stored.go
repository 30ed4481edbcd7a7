package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
)

// stored is a tensor of a package's file.
type stored struct {
	shape ir.Shape
	data  []byte
}

// example is what a package is run with, and what PyTorch makes of it.
type example struct {
	in, out []stored
	// random says that the outputs are drawn, so that they need not be the same.
	random bool
}

// readExample reads in0, in1, … and out0, out1, … of a file.
func readExample(path string) (e example, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	if e.in, err = readAll(f, "in"); err != nil {
		return e, err
	}
	_, e.random = f.Metadata()["seed"]
	e.out, err = readAll(f, "out")
	return e, err
}

func readAll(f *safetensors.File, prefix string) (all []stored, err error) {
	for {
		info, ok := f.Lookup(prefix + strconv.Itoa(len(all)))
		if !ok {
			return all, nil
		}
		dtype, err := ir.ParseDType(strings.ToLower(string(info.DType)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", info.Name, err)
		}
		dims := make([]int, len(info.Shape))
		for i, d := range info.Shape {
			dims[i] = int(d)
		}
		shape, err := ir.NewShape(dtype, dims)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", info.Name, err)
		}
		data, err := f.Bytes(info.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, stored{shape, bytes.Clone(data)})
	}
}

// allowed is how much an element may differ, relative to the largest.
func allowed(d ir.DType) float64 {
	switch d {
	case ir.BF16:
		return 3e-2
	case ir.F16:
		return 4e-3
	case ir.F32, ir.C64:
		return 1e-4
	case ir.F64, ir.C128:
		return 1e-12
	}
	return 0
}

// difference is the largest of an element of the results and one that PyTorch
// computed, relative to the largest element of the tensor; an error if it is more than
// is allowed. Of dtypes that are no floats all bytes must be the same.
func difference(got [][]byte, want []stored) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%d outputs, PyTorch has %d", len(got), len(want))
	}
	worst := 0.0
	for i, w := range want {
		if len(got[i]) != len(w.data) {
			return 0, fmt.Errorf("out%d has %d bytes, PyTorch's %d", i, len(got[i]), len(w.data))
		}
		d := distance(w.shape.DType(), got[i], w.data)
		if !(d <= allowed(w.shape.DType())) {
			return d, fmt.Errorf("out%d differs from PyTorch's by %.1e of its largest element, more than %.1e", i, d, allowed(w.shape.DType()))
		}
		worst = max(worst, d)
	}
	return worst, nil
}

// distance is the largest difference of two elements, relative to the largest of b; it is
// infinite where only one is a number.
func distance(d ir.DType, a, b []byte) float64 {
	if bytes.Equal(a, b) {
		return 0
	}
	switch d {
	case ir.C64:
		d = ir.F32
	case ir.C128:
		d = ir.F64
	}
	if !d.IsFloat() {
		return math.Inf(1)
	}
	x, y := elements.DecodeFloats(d, a), elements.DecodeFloats(d, b)
	worst, largest := 0.0, 0.0
	for i := range x {
		switch {
		case x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]):
		case math.IsNaN(x[i]-y[i]) || math.IsInf(x[i]-y[i], 0):
			return math.Inf(1)
		default:
			worst = max(worst, math.Abs(x[i]-y[i]))
		}
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) {
			largest = max(largest, math.Abs(y[i]))
		}
	}
	if worst == 0 {
		return 0
	}
	return worst / largest
}
