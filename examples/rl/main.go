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
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"github.com/loris-ml/loris"
	"golang.org/x/sync/errgroup"
)

const (
	players   = 2
	batchSize = 128
	memory    = 20_000 // transitions that are remembered
	warmup    = 500    // transitions before the first step
)

// transition is what came of an action.
type transition struct {
	before, after state
	action        int
	fell          bool
}

func main() {
	steps := flag.Int("steps", 20_000, "training steps, one for each transition")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := run(ctx, os.Stdout, *steps); err != nil {
		fmt.Fprintln(os.Stderr, "rl:", err)
		os.Exit(1)
	}
}

// run learns and returns for how many steps of 500 the pole stands, on average.
func run(ctx context.Context, w io.Writer, steps int) (score float64, err error) {
	session, err := loris.New(loris.WithSeed(1), loris.WithFlushDenormals())
	if err != nil {
		return 0, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	a := newAgent(session.With())
	if err := session.MarkStep(ctx); err != nil { // the initial weights are there for the players
		return 0, err
	}
	seen := make(chan transition, players)
	group, playing := errgroup.WithContext(ctx)
	done, end := context.WithCancel(playing)
	for i := range players {
		group.Go(func() error { return play(done, session.Fork(), a, uint64(i), seen) })
	}
	group.Go(func() error {
		defer end()
		return learn(playing, w, session, a, steps, seen)
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	score, err = a.test(ctx, session.Fork(), 20)
	fmt.Fprintf(w, "the pole stands for %.0f of %d steps\n", score, longest)
	return score, err
}

// play plays until the context ends, at random at first and less and less so.
func play(ctx context.Context, fork *loris.Session, a *agent, seed uint64, seen chan<- transition) error {
	m, cart := fork.With(), newCartPole(seed)
	for n := 0; ; n++ {
		t := transition{before: cart.state, action: cart.rand.IntN(actions)}
		if cart.rand.Float64() > max(0.05, 1-float64(n)/2000) {
			var err error
			if t.action, err = a.act(ctx, m, cart.state); err != nil {
				return ignoreEnd(ctx, err)
			}
		}
		var over bool
		t.fell, over = cart.step(t.action)
		t.after = cart.state
		if t.fell || over {
			cart.reset()
		}
		select {
		case seen <- t:
		case <-ctx.Done():
			return nil
		}
	}
}

// ignoreEnd drops the error of a call that was ended because the learner is done.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// learn takes a step for each transition that a player has seen.
func learn(ctx context.Context, w io.Writer, session *loris.Session, a *agent, steps int, seen <-chan transition) error {
	r := rand.New(rand.NewPCG(1, 1))
	var known []transition
	for n := 0; n < steps+warmup; n++ {
		var t transition
		select {
		case t = <-seen:
		case <-ctx.Done():
			return ctx.Err()
		}
		if len(known) < memory {
			known = append(known, t)
		} else {
			known[n%memory] = t
		}
		if n < warmup {
			continue
		}
		batch := make([]transition, batchSize)
		for i := range batch {
			batch[i] = known[r.IntN(len(known))]
		}
		loss, err := a.learn(ctx, session.With(), batch)
		if err != nil {
			return err
		}
		if step := n - warmup + 1; step%2000 == 0 {
			last, err := loss.Item(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "step %5d  loss %.4f\n", step, last)
		}
	}
	return nil
}
