package main

import (
	"math"
	"math/rand/v2"
)

// The cart, in SI units: Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve
// difficult learning control problems", 1983. A pole stands on a cart that is pushed left or right.
const (
	gravity, cartMass, poleMass = 9.8, 1.0, 0.1
	halfLength, force, dt       = 0.5, 10.0, 0.02
	track, tilt                 = 2.4, 12 * math.Pi / 180 // an episode ends beyond them
	longest                     = 500                     // steps of an episode
	observed, actions           = 4, 2
)

// state is the cart's position and velocity and the pole's angle and angular velocity.
type state [observed]float32

type cartPole struct {
	state state
	steps int
	rand  *rand.Rand
}

func newCartPole(seed uint64) *cartPole {
	c := &cartPole{rand: rand.New(rand.NewPCG(seed, 0))}
	c.reset()
	return c
}

func (c *cartPole) reset() {
	c.steps = 0
	for i := range c.state {
		c.state[i] = c.rand.Float32()*0.1 - 0.05
	}
}

// step pushes for dt. It reports whether the pole fell, and whether the episode ends otherwise.
func (c *cartPole) step(action int) (fell, over bool) {
	x, v, angle, turn := float64(c.state[0]), float64(c.state[1]), float64(c.state[2]), float64(c.state[3])
	push := force * float64(2*action-1)
	const mass = cartMass + poleMass
	sin, cos := math.Sincos(angle)
	inner := (push + poleMass*halfLength*turn*turn*sin) / mass
	angular := (gravity*sin - cos*inner) / (halfLength * (4.0/3 - poleMass*cos*cos/mass))
	linear := inner - poleMass*halfLength*angular*cos/mass
	c.state = state{float32(x + dt*v), float32(v + dt*linear), float32(angle + dt*turn), float32(turn + dt*angular)}
	c.steps++
	fell = math.Abs(float64(c.state[0])) > track || math.Abs(float64(c.state[2])) > tilt
	return fell, !fell && c.steps == longest
}
