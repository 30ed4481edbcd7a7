package importer

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Call records an op of the table in session s, with arguments by position and by ATen's name, and
// returns its outputs. Tensors are *loris.Tensor or []*loris.Tensor, the rest is as ir.Builder.Call
// takes it. An op without operands is placed on d, or, if d is the zero Device, where its result is
// used. Mistakes panic with an *ir.OpError at the user's line.
func Call(s *loris.Session, d ir.Device, op ir.Op, pos []any, named ...ir.Named) []*loris.Tensor {
	for i, v := range pos {
		pos[i] = executorArg(v)
	}
	tensors := false
	for i, n := range named {
		named[i].Value = executorArg(n.Value)
	}
	for _, v := range pos {
		tensors = tensors || isTensor(v)
	}
	for _, n := range named {
		tensors = tensors || isTensor(n.Value)
	}
	ex := (*executor.Session)(s)
	if !tensors && len(named) == 0 {
		out := new(executor.Tensor)
		ex.CallOn(d, op, out, pos)
		return []*loris.Tensor{(*loris.Tensor)(out)}
	}
	outs := ex.Call(op, func() *executor.Tensor { return new(executor.Tensor) }, pos, named)
	ts := make([]*loris.Tensor, len(outs))
	for i, t := range outs {
		ts[i] = (*loris.Tensor)(t)
	}
	return ts
}

// executorArg returns the executor's form of an argument.
func executorArg(v any) any {
	switch v := v.(type) {
	case *loris.Tensor:
		if v == nil {
			return nil
		}
		return (*executor.Tensor)(v)
	case []*loris.Tensor:
		out := make([]*executor.Tensor, len(v))
		for i, t := range v {
			out[i] = (*executor.Tensor)(t)
		}
		return out
	}
	return v
}

func isTensor(v any) bool {
	switch v := v.(type) {
	case *executor.Tensor:
		return true
	case []*executor.Tensor:
		return len(v) > 0
	}
	return false
}
