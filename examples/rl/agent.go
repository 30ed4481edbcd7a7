package main

import (
	"context"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

const (
	discount = 0.99
	follow   = 0.01 // what share of the way the target goes in each step
)

// agent is a network that says what each action is worth, and one that follows it slowly.
type agent struct {
	net, target *nn.Sequential
	choose      *loris.Function
	train       *loris.Function
}

func newAgent(m loris.Maker) *agent {
	a := &agent{net: newNetwork(m), target: newNetwork(m)}
	forEach(a, func(v, t *loris.Variable) { t.Assign(v.Value()) })
	a.choose = loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{a.net.Forward(in[0]).Argmax(loris.Dim(1))}
	})
	opt := optim.NewAdamW(a.net.Params(), 1e-3)
	a.train = loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		before, after, action, alive := in[0], in[1], in[2], in[3]
		next := a.net.Forward(after).Argmax(loris.Dim(1), loris.Keepdim(true))
		worth := a.target.Forward(after).Gather(1, next).Squeeze(loris.Dim(1)).Mul(alive).Mul(discount).Add(1)
		guess := a.net.Forward(before).Gather(1, action.Unsqueeze(1)).Squeeze(loris.Dim(1))
		loss := guess.SmoothL1Loss(worth.Detach())
		opt.Minimize(loss)
		forEach(a, func(v, t *loris.Variable) { t.Assign(t.Value().Lerp(v.Value(), follow)) })
		return []*loris.Tensor{loss}
	})
	return a
}

func newNetwork(m loris.Maker) *nn.Sequential {
	return nn.NewSequential(
		nn.NewLinear(observed, 128, nn.With(m)), nn.Func(nn.ReLU),
		nn.NewLinear(128, 128, nn.With(m)), nn.Func(nn.ReLU),
		nn.NewLinear(128, actions, nn.With(m)))
}

// forEach calls fn with each weight of the network and its target.
func forEach(a *agent, fn func(v, t *loris.Variable)) {
	targets := map[string]*loris.Variable{}
	for name, t := range a.target.Params() {
		targets[name] = t
	}
	for name, v := range a.net.Params() {
		fn(v, targets[name])
	}
}

// act returns the action that the network holds for the best. m makes the input in the caller's session.
func (a *agent) act(ctx context.Context, m loris.Maker, s state) (int, error) {
	out, err := a.choose.Call(ctx, m.FromSlice(s[:], 1, observed))
	if err != nil {
		return 0, err
	}
	best, err := out[0].Item(ctx)
	return int(best), err
}

// learn takes a training step.
func (a *agent) learn(ctx context.Context, m loris.Maker, batch []transition) (loss *loris.Tensor, err error) {
	var before, after, alive []float32
	var action []int64
	for _, t := range batch {
		before, after, action = append(before, t.before[:]...), append(after, t.after[:]...), append(action, int64(t.action))
		if t.fell {
			alive = append(alive, 0)
		} else {
			alive = append(alive, 1)
		}
	}
	out, err := a.train.Call(ctx, m.FromSlice(before, len(batch), observed), m.FromSlice(after, len(batch), observed),
		m.FromSlice(action), m.FromSlice(alive))
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// test plays episodes without chance and returns their mean length.
func (a *agent) test(ctx context.Context, fork *loris.Session, episodes int) (float64, error) {
	m, cart, total := fork.With(), newCartPole(100), 0
	for range episodes {
		for cart.reset(); ; {
			action, err := a.act(ctx, m, cart.state)
			if err != nil {
				return 0, err
			}
			if fell, over := cart.step(action); fell || over {
				break
			}
		}
		total += cart.steps
	}
	return float64(total) / float64(episodes), nil
}
