package local_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
)

// perceptron trains two layers on made-up data, of which each step has as many shards whatever the ranks.
type perceptron struct{ w [4]*loris.Variable }

func newPerceptron(m loris.Maker, state [][]float32) *perceptron {
	p := &perceptron{}
	for i, dims := range [][]int{{16, 24}, {24}, {24, 4}, {4}} {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for k := range x {
			x[k] = float32(math.Sin(float64(k*(i+3)))) * 0.3
		}
		if state != nil {
			x = state[i]
		}
		p.w[i] = loris.NewVariable(m.FromSlice(x, dims...))
	}
	return p
}

func (p *perceptron) gradients(m loris.Maker, step, shard int, d loris.DType) []*loris.Tensor {
	const batch = 6
	x, y := make([]float32, batch*16), make([]int64, batch)
	for i := range x {
		x[i] = float32(math.Cos(float64((step*64+shard)*len(x) + i)))
	}
	for i := range y {
		y[i] = int64(step+shard+i) % 4
	}
	w := make([]any, 4)
	for i, v := range p.w {
		w[i] = v.Value().Cast(d)
	}
	h := m.FromSlice(x, batch, 16).Cast(d).MatMul(w[0].(*loris.Tensor)).Add(w[1]).Tanh()
	return loris.Grad(loris.CrossEntropy(h.MatMul(w[2].(*loris.Tensor)).Add(w[3]), m.FromSlice(y, batch)), w...)
}

// train runs steps from one to another, of so many shards, and returns the weights.
func train(t *testing.T, ranks, shards, from, to int, d loris.DType, state [][]float32) [][]float32 {
	out := make([][]float32, 4)
	err := run(t, ranks, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		p := newPerceptron(m, state)
		first, n, _ := g.Shards()
		for step := from; step < to; step++ {
			err := s.Step(ctx, func() error {
				var grads [][]*loris.Tensor
				for k := range n {
					grads = append(grads, p.gradients(m, step, first+k, d))
				}
				for i, gr := range g.Average(grads...) {
					p.w[i].Assign(p.w[i].Value().Sub(gr.Cast(loris.F32).Mul(0.7)))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for i, v := range p.w {
			x, err := v.Value().Float32s(ctx)
			if err != nil {
				return err
			}
			if g.Rank() == ranks-1 {
				out[i] = x
			}
		}
		return nil
	}, dist.WithShards(shards), dist.WithBucketBytes(1000))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func digest(state [][]float32) string {
	h := sha256.New()
	for _, x := range state {
		_ = binary.Write(h, binary.LittleEndian, x) // to a hash, which cannot fail
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// TestSameBitsOnAnyNumberOfRanks trains with 8 shards a step on 1, 2, 4 and 8 ranks, and with restarts on
// fewer and fewer of them: the weights are the same bits.
func TestSameBitsOnAnyNumberOfRanks(t *testing.T) {
	const steps = 9
	for _, d := range []loris.DType{loris.F32, loris.BF16} {
		want := digest(train(t, 1, 8, 0, steps, d, nil))
		t.Logf("%v: %s", d, want)
		for _, n := range []int{2, 4, 8} {
			if got := digest(train(t, n, 8, 0, steps, d, nil)); got != want {
				t.Errorf("%v: %d ranks give %s, 1 gives %s", d, n, got, want)
			}
		}
		state := train(t, 4, 8, 0, 3, d, nil)
		state = train(t, 2, 8, 3, 6, d, state)
		if got := digest(train(t, 1, 8, 6, steps, d, state)); got != want {
			t.Errorf("%v: restarts on 4, 2 and 1 ranks give %s, 1 rank gives %s", d, got, want)
		}
	}
}

// Sixty-four ranks train with the bits of one.
func TestSixtyFourRanks(t *testing.T) {
	want := digest(train(t, 1, 64, 0, 2, loris.F32, nil))
	if got := digest(train(t, 64, 64, 0, 2, loris.F32, nil)); got != want {
		t.Errorf("64 ranks give %s, 1 gives %s", got, want)
	}
}
