// Command rl learns to balance a pole on a cart by deep Q-learning (Mnih et al., "Human-level control
// through deep reinforcement learning", 2015; double, by van Hasselt et al., 2016):
//
//	go run ./examples/rl
//
// Players on goroutines of their own ask the network, each through a fork of the session, while the
// learner trains it: they see the weights of the last step that has ended, whole.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"golang.org/x/sync/errgroup"
)

const players, batchSize, longest, discount, follow = 2, 128, 500, 0.99, 0.01

// state is the cart's position and velocity and the pole's angle and angular velocity.
type state [4]float32

// transition is the states before and after an action, the action, and 1 unless the pole fell.
type transition [10]float32

func main() {
	score, err := run(context.Background(), 20_000)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rl:", err)
		os.Exit(1)
	}
	fmt.Printf("the pole stands for %.0f of %d steps\n", score, longest)
}

// run learns by a step for each transition, and returns for how many steps the pole stands, on average over episodes without chance.
func run(ctx context.Context, steps int) (score float64, err error) {
	session, err := loris.New(loris.WithSeed(1), loris.WithFlushDenormals())
	if err != nil {
		return 0, err
	}
	defer session.Close(ctx)
	net := nn.NewSequential(nn.NewLinear(4, 128, nn.With(session.With())), nn.Func(nn.ReLU),
		nn.NewLinear(128, 128, nn.With(session.With())), nn.Func(nn.ReLU), nn.NewLinear(128, 2, nn.With(session.With())))
	if err := session.MarkStep(ctx); err != nil { // the initial weights are there for the players
		return 0, err
	}
	group, playing := errgroup.WithContext(ctx)
	seen := make(chan transition, players)
	for i := range players {
		fork, r := session.Fork(), rand.New(rand.NewPCG(uint64(i), 0))
		group.Go(func() error {
			for n := 0; ; { // at random at first, and less and less so
				length, err := play(playing, fork, net, r, max(0.05, 1-float64(n)/2000), seen)
				if err != nil {
					return err
				}
				n += length
			}
		})
	}
	group.Go(func() error { return learn(playing, session, net, steps, seen) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return 0, err
	}
	for i := range uint64(20) {
		length, err := play(ctx, session, net, rand.New(rand.NewPCG(100, i)), 0, make(chan transition, longest))
		if err != nil {
			return 0, err
		}
		score += float64(length) / 20
	}
	return score, nil
}

// learn takes a training step for each transition that a player has seen.
func learn(ctx context.Context, session *loris.Session, net *nn.Sequential, steps int, seen <-chan transition) error {
	opt, slow := optim.NewAdamW(net.Params(), 1e-3), optim.NewEMA(net.Params(), 1-follow)
	r, known := rand.New(rand.NewPCG(1, 1)), []transition{}
	for n := range steps {
		select {
		case t := <-seen:
			known = append(known, t)
		case <-ctx.Done():
			return ctx.Err()
		}
		var batch []float32
		for range batchSize {
			batch = append(batch, known[r.IntN(len(known))][:]...)
		}
		parts := session.With().FromSlice(batch, batchSize, 10).SplitWithSizes([]int{4, 4, 1, 1}, loris.Dim(1))
		before, after, action, alive := parts[0], parts[1], parts[2].Cast(loris.I64), parts[3]
		next := net.Forward(after).Argmax(loris.Dim(1), loris.Keepdim(true))
		slow.Swap() // what actions are worth is learnt from weights that follow the others slowly
		worth := net.Forward(after).Gather(1, next).Mul(alive).Mul(discount).Add(1)
		slow.Swap()
		opt.Minimize(net.Forward(before).Gather(1, action).SmoothL1Loss(worth.Detach()))
		slow.Update()
		if err := session.MarkStep(ctx); err != nil {
			return err
		}
		if (n+1)%2000 == 0 {
			fmt.Printf("%d of %d steps\n", n+1, steps)
		}
	}
	return context.Canceled // ends the players
}

// play plays an episode, with a share of the actions at random, and returns its length.
func play(ctx context.Context, fork *loris.Session, net nn.Layer, r *rand.Rand, random float64, seen chan<- transition) (length int, err error) {
	s, fell := state{r.Float32()/10 - 0.05, r.Float32()/10 - 0.05, r.Float32()/10 - 0.05, r.Float32()/10 - 0.05}, false
	for ; !fell && length < longest; length++ {
		action := float64(r.IntN(2))
		if r.Float64() >= random {
			if action, err = net.Forward(fork.With().FromSlice(s[:], 1, 4)).Argmax().Item(ctx); err != nil {
				return 0, err
			}
		}
		t := transition{s[0], s[1], s[2], s[3], 8: float32(action), 9: 1}
		if s, fell = s.push(action); fell {
			t[9] = 0
		}
		copy(t[4:], s[:])
		select {
		case seen <- t:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return length, nil
}

// push accelerates the cart to the left (0) or right (1) for 0.02 s, and reports whether the pole fell
// (Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control
// problems", 1983; SI units).
func (s state) push(action float64) (next state, fell bool) {
	const gravity, mass, pole, halfLength, force, dt = 9.8, 1.1, 0.1, 0.5, 10.0, 0.02
	x, v, angle, turn := float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
	sin, cos := math.Sincos(angle)
	inner := (force*(2*action-1) + pole*halfLength*turn*turn*sin) / mass
	angular := (gravity*sin - cos*inner) / (halfLength * (4.0/3 - pole*cos*cos/mass))
	linear := inner - pole*halfLength*angular*cos/mass
	next = state{float32(x + dt*v), float32(v + dt*linear), float32(angle + dt*turn), float32(turn + dt*angular)}
	return next, math.Abs(float64(next[0])) > 2.4 || math.Abs(float64(next[2])) > 12*math.Pi/180
}
