package ref

import (
	"context"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
)

func init() { kernels[aten.Scan] = scan }

// scan evaluates the body once for each element.
func scan(c *call) {
	l := graph.LoopOf(c.Args)
	k, x := len(l.Init), len(l.Xs)
	carry := make([][]byte, k)
	for i := range carry {
		carry[i] = c.in[i].data
	}
	results, kept := c.out[k:k+l.Results()], c.out[k+l.Results():]
	for n := range l.Length {
		at := n
		if l.Reverse {
			at = l.Length - 1 - n
		}
		if l.Every > 0 && n%l.Every == 0 {
			for i, t := range kept {
				copy(element(t, at/l.Every), carry[i])
			}
		}
		in := append([][]byte(nil), carry...)
		for _, t := range c.in[k : k+x] {
			in = append(in, element(t, at))
		}
		for _, t := range c.in[k+x:] {
			in = append(in, t.data)
		}
		out, err := eval(context.Background(), l.Body, in, 0)
		if err != nil {
			panic(err)
		}
		carry = out[:k]
		for i, t := range results {
			copy(element(t, at), out[k+i])
		}
	}
	for i, data := range carry {
		copy(c.out[i].data, data)
	}
}

// element returns the bytes of element i of the first dimension.
func element(t tensor, i int) []byte {
	size := len(t.data) / t.shape.Dim(0)
	return t.data[i*size : (i+1)*size]
}
