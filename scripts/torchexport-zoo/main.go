// Command torchexport-zoo runs the program of a folder (model.pt2) on the inputs in want.safetensors,
// holds the results against PyTorch's, and prints a row of the table that zoo.py makes, as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/loris-ml/loris"
	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/torchexport"
)

// row is what is told of a model. Times are seconds.
type row struct {
	Nodes  int     `json:"nodes"`
	Output float64 `json:"error_of_outputs"`
	Grad   float64 `json:"grad"`
	// How far gradients are off from PyTorch's in f64: ours, and PyTorch's in f32.
	Exact      float64 `json:"exact"`
	TorchExact float64 `json:"torch_exact"`
	Load       float64 `json:"load"`
	First      float64 `json:"first"`
	Again      float64 `json:"again"`
}

func main() {
	r, err := run(context.Background(), os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

type zoo struct {
	f *safetensors.File
	m *torchexport.Model
}

func run(ctx context.Context, dir string) (*row, error) {
	f, err := safetensors.Open(filepath.Join(dir, "want.safetensors"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &row{}
	start := time.Now()
	m, err := torchexport.Load(ctx, filepath.Join(dir, "model.pt2"))
	if err != nil {
		return nil, err
	}
	r.Load = time.Since(start).Seconds()
	r.Nodes = m.Nodes()
	z := &zoo{f, m}
	for k := 0; z.has(fmt.Sprintf("%d.in0", k)); k++ {
		if err := z.outputs(ctx, k, r); err != nil {
			return nil, fmt.Errorf("case %d: %w", k, err)
		}
	}
	return r, z.gradients(ctx, r)
}

func (z *zoo) has(name string) bool {
	_, ok := z.f.Lookup(name)
	return ok
}

func (z *zoo) tensor(name string) (*loris.Tensor, error) {
	shape, data, err := tensorfile.Read(z.f, name)
	if err != nil {
		return nil, err
	}
	return loris.FromBytes(data, shape), nil
}

func (z *zoo) inputs(k int) (ins []*loris.Tensor, err error) {
	for z.has(fmt.Sprintf("%d.in%d", k, len(ins))) {
		t, err := z.tensor(fmt.Sprintf("%d.in%d", k, len(ins)))
		if err != nil {
			return nil, err
		}
		ins = append(ins, t)
	}
	return ins, nil
}

// outputs compares those of a case, and times a second run.
func (z *zoo) outputs(ctx context.Context, k int, r *row) error {
	ins, err := z.inputs(k)
	if err != nil {
		return err
	}
	for again := range 2 {
		start := time.Now()
		outs, err := z.m.Call(ctx, ins...)
		if err != nil {
			return err
		}
		if err := loris.Sync(ctx, outs...); err != nil {
			return err
		}
		for _, o := range outs {
			if err := o.Wait(ctx); err != nil {
				return err
			}
		}
		if took := time.Since(start).Seconds(); again == 1 {
			r.Again = took
		} else {
			r.First = max(r.First, took)
		}
		if err := z.compareAll(ctx, k, outs, r); err != nil {
			return err
		}
		if err := loris.MarkStep(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (z *zoo) compareAll(ctx context.Context, k int, outs []*loris.Tensor, r *row) error {
	n := 0
	for z.has(fmt.Sprintf("%d.out%d", k, n)) {
		n++
	}
	if len(outs) != n {
		return fmt.Errorf("%d outputs, PyTorch has %d", len(outs), n)
	}
	for i, o := range outs {
		off, err := z.compare(ctx, fmt.Sprintf("%d.out%d", k, i), o)
		if err != nil {
			return err
		}
		r.Output = max(r.Output, off)
	}
	return nil
}

// compare returns the largest difference over the largest element.
func (z *zoo) compare(ctx context.Context, name string, got *loris.Tensor) (float64, error) {
	want, err := z.tensor(name)
	if err != nil {
		return 0, err
	}
	if want.Shape() != got.Shape() {
		return 0, fmt.Errorf("%s is %v, PyTorch's %v", name, got.Shape(), want.Shape())
	}
	off, err := difference(ctx, got, want, math.SmallestNonzeroFloat32)
	if err == nil && !(off <= tooFar) {
		err = fmt.Errorf("%s is off by %v of the largest element", name, off)
	}
	return off, err
}

// tooFar is a difference, relative to the largest element, that no rounding explains.
const tooFar = 0.1

// nearlyZero is the largest element of a gradient below which differences are held against it instead: some
// gradients are 0 but for rounding.
const nearlyZero = 1e-6

// difference returns the largest difference over the largest element of want, or over least.
func difference(ctx context.Context, got, want *loris.Tensor, least float64) (float64, error) {
	a, err := got.Cast(loris.F64).Float64s(ctx)
	if err != nil {
		return 0, err
	}
	b, err := want.Cast(loris.F64).Float64s(ctx)
	if err != nil {
		return 0, err
	}
	largest, worst := least, 0.0
	for i := range b {
		if !math.IsInf(b[i], 0) {
			largest = max(largest, math.Abs(b[i]))
		}
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			continue
		}
		if d := math.Abs(a[i] - b[i]); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	return worst / largest, nil
}

// gradients compares those of five steps of SGD, where the folder has PyTorch's.
func (z *zoo) gradients(ctx context.Context, r *row) error {
	var vars []*loris.Variable
	var names []string
	for n, v := range z.m.Params() {
		if z.has("grad." + n) {
			vars, names = append(vars, v), append(names, n)
		}
	}
	if len(vars) == 0 {
		return nil
	}
	ins, err := z.inputs(0)
	if err != nil {
		return err
	}
	opt := optim.NewSGD(func(yield func(string, *loris.Variable) bool) {
		for i, v := range vars {
			if !yield(names[i], v) {
				return
			}
		}
	}, 1e-2)
	var grads []*loris.Tensor
	for step := range 5 {
		outs, err := z.m.Call(ctx, ins...)
		if err != nil {
			return err
		}
		grads = opt.Grads(outs[0].Cast(loris.F32).Square().Mean())
		if step < 4 {
			opt.Step(grads)
		}
		loris.Keep(grads...)
		if err := loris.MarkStep(ctx); err != nil {
			return err
		}
	}
	largest := 0.0
	for i, n := range names {
		if err := z.gradient(ctx, r, n, grads[i]); err != nil {
			return err
		}
		most, err := grads[i].Cast(loris.F64).Abs().Amax().Item(ctx)
		if err != nil {
			return err
		}
		largest = max(largest, most)
	}
	if !(largest > 0) || math.IsInf(largest, 0) {
		return fmt.Errorf("nothing is compared: the largest gradient is %v", largest)
	}
	return nil
}

// gradient compares one. It may be far from PyTorch's only where that is as far from the one in f64.
func (z *zoo) gradient(ctx context.Context, r *row, name string, got *loris.Tensor) error {
	theirs, err := z.tensor("grad." + name)
	if err != nil {
		return err
	}
	off, err := difference(ctx, got, theirs, nearlyZero)
	if err != nil {
		return err
	}
	r.Grad = max(r.Grad, off)
	if !z.has("exact." + name) {
		if !(off <= tooFar) {
			return fmt.Errorf("the gradient of %s is off by %v of the largest element", name, off)
		}
		return nil
	}
	exact, err := z.tensor("exact." + name)
	if err != nil {
		return err
	}
	ours, err := difference(ctx, got, exact, nearlyZero)
	if err != nil {
		return err
	}
	torch, err := difference(ctx, theirs, exact, nearlyZero)
	if err != nil {
		return err
	}
	r.Exact, r.TorchExact = max(r.Exact, ours), max(r.TorchExact, torch)
	if !(ours <= tooFar) && ours > 10*torch {
		return fmt.Errorf("the gradient of %s is off by %v of the largest element, PyTorch's by %v", name, ours, torch)
	}
	return nil
}
