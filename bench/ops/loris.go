package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// ours is a call as a compiled model of the CPU backend.
type ours struct {
	model  backend.Model
	inputs []backend.Buffer
	shapes []ir.Shape // of the results
}

// openLoris compiles the values and uploads what they are computed from.
func openLoris(ctx context.Context, roots []ir.Value) (*ours, error) {
	b, err := backend.For(cpu.Device)
	if err != nil {
		return nil, err
	}
	var w graph.Walker
	po := w.Walk(roots)
	written, leaves := graph.FromPostOrder("ops", &po)
	p, _ := graph.Optimize(written, graph.Options{Supports: b.Supports, Rematerialize: true})
	o := &ours{}
	if o.model, err = b.Compile(ctx, p, cpu.Device, backend.CompileOptions{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCase, err)
	}
	for _, r := range p.Returns {
		o.shapes = append(o.shapes, p.Shape(r))
	}
	for _, l := range leaves {
		buf, err := b.Upload(ctx, l.Shapes()[0], cpu.Device, leafData(l))
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
		o.inputs = append(o.inputs, buf)
	}
	return o, nil
}

// leafData returns the bytes of an operand or a number.
func leafData(n *ir.Node) []byte {
	d := n.Shapes()[0].DType()
	switch l := n.Leaf().(type) {
	case *dataLeaf:
		return l.data
	case *ir.ScalarLeaf:
		if d.IsFloat() {
			return elements.EncodeFloats(d, []float64{l.AsFloat()})
		}
		if l.IsFloat {
			return elements.EncodeInts(d, []int64{ir.FloatToInt(d, l.Float)})
		}
		return elements.EncodeInts(d, []int64{l.Int})
	}
	panic(fmt.Sprintf("a leaf %T", n.Leaf()))
}

func (o *ours) run(ctx context.Context) ([]backend.Buffer, error) {
	return o.model.Run(ctx, o.inputs, nil)
}

// results runs the call and returns its raw results.
func (o *ours) results(ctx context.Context) ([][]byte, error) {
	out, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	defer release(out)
	list := make([][]byte, len(out))
	for i, b := range out {
		raw, err := b.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		list[i] = slices.Clone(raw)
	}
	return list, nil
}

func release(list []backend.Buffer) {
	for _, b := range list {
		b.Release()
	}
}

// turn runs the call for a while and returns the least nanoseconds of a run.
func (o *ours) turn(ctx context.Context, d time.Duration, threads int) (int64, error) {
	before := runtime.GOMAXPROCS(threads)
	defer runtime.GOMAXPROCS(before)
	least := int64(1<<63 - 1)
	for end := time.Now().Add(d); ; {
		begin := time.Now()
		out, err := o.run(ctx)
		if err != nil {
			return 0, err
		}
		release(out)
		now := time.Now()
		least = min(least, now.Sub(begin).Nanoseconds())
		if now.After(end) {
			return least, nil
		}
	}
}

func (o *ours) close() error {
	release(o.inputs)
	return o.model.Close()
}
