package main

import (
	"context"
	"math"
	"regexp"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// narrower matches the names of the floats that f64 takes the place of.
var narrower = regexp.MustCompile(`\b(f32|f16|bf16)\b`)

// exactly computes a program with f64 in the place of all other floats: beside its results one sees
// how far those of the program err. The values are those of its parameters, by name.
func exactly(ctx context.Context, p *graph.Program, values map[string]stored) (outs [][]float64, err error) {
	wide, err := graph.Parse(narrower.ReplaceAllString(p.String(), "f64"))
	if err != nil {
		return nil, err
	}
	b := cpu.New()
	program, _ := graph.Optimize(wide, graph.Options{Supports: b.Supports})
	m, err := b.Compile(ctx, program, cpu.Device, backend.CompileOptions{})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var in []backend.Buffer
	defer func() { releaseAll(in) }()
	for _, q := range wide.Params {
		v := values[q.Name]
		data := v.data
		if d := v.shape.DType(); d.IsFloat() && d != ir.F64 {
			data = elements.EncodeFloats(ir.F64, elements.DecodeFloats(d, data))
		}
		one, err := hostmem.Wrap(q.Shape, cpu.Device, data, func() {})
		if err != nil {
			return nil, err
		}
		in = append(in, one)
	}
	results, err := m.Run(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	defer releaseAll(results)
	for _, r := range results {
		data, err := r.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		if !r.Shape().DType().IsFloat() {
			outs = append(outs, nil)
			continue
		}
		outs = append(outs, elements.DecodeFloats(ir.F64, data))
	}
	return outs, nil
}

// unitsErred is how far results err beside exact ones, in units in the last place of the largest
// element; NaN where the program's own floats are f64.
func unitsErred(got [][]byte, like []stored, exact [][]float64) float64 {
	most := 0.0
	for i, w := range like {
		d := w.shape.DType()
		if !d.IsFloat() {
			continue
		}
		if d == ir.F64 {
			return math.NaN()
		}
		worst, largest := 0.0, 0.0
		for k, x := range elements.DecodeFloats(d, got[i]) {
			worst, largest = max(worst, math.Abs(x-exact[i][k])), max(largest, math.Abs(exact[i][k]))
		}
		if worst > 0 {
			most = max(most, worst/largest/epsilon(d))
		}
	}
	return most
}
