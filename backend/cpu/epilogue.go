package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Epilogue says what the kernel of a dense instruction does to its results.
func (l *lowering) Epilogue(in *graph.Instr) (fuse.Rule, bool) {
	out := l.Program.Shape(in.Out)
	switch in.Op {
	case aten.MatMul:
		_, ok := floatMatmuls[out.DType()]
		return fuse.Rule{Channel: out.Rank() - 1}, ok && l.Program.Shape(in.Args[1]).Rank() >= 2
	case aten.Convolution:
		_, ok := convolutions[out.DType()]
		return fuse.Rule{Channel: 1, Affine: true}, ok && !l.addsWindows(in)
	}
	return fuse.Rule{}, false
}

// activationKinds are the kernels' activations, by those of epilogues.
var activationKinds = [...]vec.Kind{
	fuse.Identity: vec.Identity, fuse.ReLU: vec.ReLU, fuse.GELU: vec.GELU, fuse.GELUTanh: vec.GELUTanh, fuse.SiLU: vec.SiLU, fuse.Sigmoid: vec.Sigmoid,
	fuse.Tanh: vec.Tanh,
}
