package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
	"github.com/loris-ml/loris/safetensors"
)

// exported is a program that was written as a package.
type exported struct {
	program
	path    string        // of the package; its example is beside it
	took    time.Duration // for the export, of a first time
	copying time.Duration // for an archive of the weights alone
	weights int64         // bytes
	beyond  int64         // bytes that are no weights
	exact   [][]float64   // results with f64 in the place of all other floats
}

// exportAll writes the programs whose names match, for a version of PyTorch and a device, with what Loris
// computes on the CPU beside them. The error joins those of programs, the others of which are returned.
func exportAll(ctx context.Context, folder, only, torch, device string) (list []*exported, err error) {
	re, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, p := range programs() {
		if !re.MatchString(p.name) {
			continue
		}
		e := &exported{program: p, path: filepath.Join(folder, p.name+".pt2")}
		if err := e.write(ctx, torch, device); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		list = append(list, e)
	}
	if len(list)+len(wrong) == 0 {
		return nil, fmt.Errorf("no program matches %q", only)
	}
	return list, errors.Join(wrong...)
}

// write writes the package, its inputs and outputs, and the program as text with all weights, from
// which Inductor's package of the same model is made.
func (e *exported) write(ctx context.Context, torch, device string) error {
	b, err := e.build(ctx)
	if err != nil {
		return err
	}
	if err := loris.MarkStep(ctx); err != nil { // weights and inputs are there before anything is timed
		return err
	}
	p, values, err := e.writeText(ctx, b)
	if err != nil {
		return err
	}
	var pkg bytes.Buffer
	begin := time.Now()
	if err := export.Function(ctx, &pkg, b.fn, b.inputs, export.Options{Module: b.module, Torch: torch, Device: device}); err != nil {
		return err
	}
	e.took, e.beyond = time.Since(begin), int64(pkg.Len())-e.weights
	if e.copying, err = archiveTime(e.weights); err != nil {
		return err
	}
	if err := os.WriteFile(e.path, pkg.Bytes(), 0o644); err != nil {
		return err
	}
	outs := b.fn(b.inputs...)
	data, err := loris.Fetch(ctx, append(b.inputs[:len(b.inputs):len(b.inputs)], outs...)...)
	if err != nil {
		return err
	}
	var all []safetensors.Tensor
	for i, t := range b.inputs {
		name := "in" + strconv.Itoa(i)
		values[name] = stored{t.Shape(), data[i]}
		all = append(all, tensorOf(name, t.Shape(), data[i]))
	}
	if e.exact, err = exactly(ctx, p, values); err != nil {
		return fmt.Errorf("in f64: %w", err)
	}
	for i, t := range outs {
		all = append(all, tensorOf("out"+strconv.Itoa(i), t.Shape(), data[len(b.inputs)+i]))
	}
	return safetensors.WriteFile(beside(e.path), all, nil)
}

// archiveTime returns how long an archive of so many bytes alone takes.
func archiveTime(n int64) (time.Duration, error) {
	data := make([]byte, n)
	var out bytes.Buffer
	begin := time.Now()
	err := pt2.WriteArchive(&out, "model", []pt2.NewMember{pt2.MemberOf("weights", data)})
	return time.Since(begin), err
}

func tensorOf(name string, s ir.Shape, data []byte) safetensors.Tensor {
	dims := make([]int64, s.Rank())
	for i, d := range s.Dims() {
		dims[i] = int64(d)
	}
	return safetensors.Tensor{Name: name, DType: safetensors.DType(strings.ToUpper(s.DType().String())), Shape: dims, Data: data}
}

// writeText writes the program as NAME.lir and the values of its parameters that are no inputs as
// NAME.weights, both of which it returns. Inputs are called "in0", "in1", …
func (e *exported) writeText(ctx context.Context, b *built) (p *graph.Program, values map[string]stored, err error) {
	s := b.inputs[0].Session()
	handles := make([]*executor.Tensor, len(b.inputs))
	for i, t := range b.inputs {
		handles[i] = (*executor.Tensor)(t)
	}
	fn := func(in []*executor.Tensor) (outs []*executor.Tensor, err error) {
		given := make([]*loris.Tensor, len(in))
		for i, t := range in {
			given[i] = (*loris.Tensor)(t)
		}
		err = loris.Try(func() {
			for _, t := range b.fn(given...) {
				outs = append(outs, (*executor.Tensor)(t))
			}
		})
		return outs, err
	}
	r, err := (*executor.Session)(s).Record(ctx, handles, func() *executor.Tensor { return new(executor.Tensor) }, fn)
	if err != nil {
		return nil, nil, err
	}
	values = map[string]stored{}
	var weights []safetensors.Tensor
	for i, p := range r.Params {
		q := &r.Program.Params[i]
		if p.Input >= 0 {
			q.Name = "in" + strconv.Itoa(p.Input)
			continue
		}
		q.Name = "w" + strconv.Itoa(i)
		data := p.Value
		if p.Variable != nil {
			if data, err = (*loris.Variable)(p.Variable).Value().Bytes(ctx); err != nil {
				return nil, nil, err
			}
		}
		values[q.Name] = stored{q.Shape, data}
		if !p.Number {
			e.weights += int64(len(data))
		}
		weights = append(weights, tensorOf(q.Name, q.Shape, data))
	}
	stem := strings.TrimSuffix(e.path, ".pt2")
	if err := safetensors.WriteFile(stem+".weights", weights, nil); err != nil {
		return nil, nil, err
	}
	return r.Program, values, os.WriteFile(stem+".lir", []byte(r.Program.String()), 0o644)
}
