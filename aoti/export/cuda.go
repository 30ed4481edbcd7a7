package export

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// The devices that packages are for.
const (
	deviceCPU  = "cpu"
	deviceCUDA = "cuda"
)

// defaultArchitectures have code for GPUs of 2020 and 2022, and PTX for all others since 2020.
var defaultArchitectures = []string{"sm_80", "sm_90", "compute_80"}

// checkDevice reads Options.Device.
func (o *Options) checkDevice() (device string, err error) {
	switch o.Device {
	case "", deviceCPU:
		if len(o.Architectures) > 0 {
			return "", fmt.Errorf("%w: Architectures are those of GPUs, and the Device is the CPU", ir.ErrArg)
		}
		return deviceCPU, nil
	case deviceCUDA:
		if o.Emitter != "" {
			return "", fmt.Errorf("%w: the Emitter %q makes no packages for CUDA", ir.ErrArg, o.Emitter)
		}
		if len(o.DynamicShapes) > 0 {
			return "", fmt.Errorf("%w: sizes of packages for CUDA cannot vary", backend.ErrUnsupported)
		}
		return deviceCUDA, nil
	}
	return "", fmt.Errorf(`%w: there is no Device %q: "cpu" or "cuda"`, ir.ErrArg, o.Device)
}

// planCUDA is plan for a GPU.
func (m *model) planCUDA(ctx context.Context, p *graph.Program, o *Options) (*graph.Program, error) {
	archs := o.Architectures
	if len(archs) == 0 {
		archs = defaultArchitectures
	}
	plan, optimised, err := cuda.PlanAhead(ctx, p, archs)
	if err != nil {
		return nil, err
	}
	m.plan, m.isa = plan, strings.Join(archs, " ")
	if n := m.seed(); n >= 0 {
		m.drawSeed(n)
	}
	return optimised, nil
}

// drawSeed has each run draw the Program's seed from the generator of the process, to a place in the
// workspace.
func (m *model) drawSeed(param int) {
	plan := m.plan
	at := ahead.Place{Offset: (plan.Workspace + placeAlign - 1) &^ (placeAlign - 1)}
	plan.Workspace = at.Offset + 8
	seed := ahead.Tensor{Buf: len(plan.Places), DType: ir.I64, View: strided.Dense([]int{1})}
	for i, q := range plan.Places {
		if q.Space == ahead.Param && q.Index == param {
			plan.Places[i] = at
		}
	}
	plan.Places = append(plan.Places, at)
	draw := ahead.Step{Op: "the seed of random numbers", Call: &ahead.Call{
		Function: "aoti_torch_cuda_randint_low_out",
		Args:     []ahead.Arg{seed, ahead.Int(math.MinInt64), ahead.Int(math.MaxInt64), ahead.List{1}, ahead.Int(1)},
	}}
	plan.Steps = append([]ahead.Step{draw}, plan.Steps...)
}

// gpuKernels lays the images of kernels out and returns where their list is.
func (e *encoder) gpuKernels() int64 {
	var all []int64
	for _, k := range e.m.plan.GPU {
		at := int64(len(e.words))
		for _, image := range k.Images {
			e.images = append(e.images, make([]byte, -len(e.images)&(weightAlign-1))...)
			e.put(int64(len(e.images)))
			e.images = append(e.images, image...)
		}
		all = append(all, e.string(k.Entry), int64(len(k.Images)), at)
	}
	at := int64(len(e.words))
	e.put(all...)
	return at
}

// faults puts what launches may find wrong and returns where.
func (e *encoder) faults() int64 {
	at := int64(len(e.words))
	for _, f := range e.m.plan.Faults {
		e.put(e.string(titled(f.Op, f.Line)), int64(f.Size))
	}
	return at
}

func (e *encoder) launch(l *ahead.Launch) {
	e.put(int64(l.Kernel))
	for _, size := range [...][3]int{l.Grid, l.Block} {
		e.put(int64(size[0]), int64(size[1]), int64(size[2]))
	}
	e.put(int64(len(l.Params)), int64(len(l.Addresses)))
	for _, word := range l.Params {
		e.put(int64(word))
	}
	for _, a := range l.Addresses {
		e.put(int64(a.Slot), int64(a.Buf), int64(a.Offset))
	}
}
