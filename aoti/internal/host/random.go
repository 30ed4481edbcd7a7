package host

import (
	"math"
	"sync"
)

// DefaultSeed is the seed of the generator before SetSeed, PyTorch's own.
const DefaultSeed = 67280421310721

// generator is PyTorch's generator for the CPU: a Mersenne twister of 32 bits, and
// the second of the last pair of normal numbers. The draws follow PyTorch's order,
// so that a seed gives the same numbers.
type generator struct {
	mu     sync.Mutex // held for the draws of one op
	state  [624]uint32
	next   int
	normal float64 // guarded by mu: left from a pair, if spare
	spare  bool
}

var rng = func() *generator {
	g := new(generator)
	g.seed(DefaultSeed)
	return g
}()

// SetSeed sets the seed of the random numbers that libraries draw from this host,
// as torch.manual_seed does. The draws of models that run at once are mixed.
func SetSeed(seed uint64) {
	rng.mu.Lock()
	defer rng.mu.Unlock()
	rng.seed(seed)
}

// seed uses the lower half, as PyTorch does.
func (g *generator) seed(seed uint64) {
	g.state[0] = uint32(seed)
	for i := 1; i < len(g.state); i++ {
		prev := g.state[i-1]
		g.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	g.next, g.spare = len(g.state), false
}

func (g *generator) refill() {
	const shift, upper, lower, matrix = 397, 1 << 31, 1<<31 - 1, 0x9908b0df
	n := len(g.state)
	for i := range g.state {
		y := g.state[i]&upper | g.state[(i+1)%n]&lower
		v := g.state[(i+shift)%n] ^ y>>1
		if y&1 != 0 {
			v ^= matrix
		}
		g.state[i] = v
	}
	g.next = 0
}

func (g *generator) uint32() uint32 {
	if g.next == len(g.state) {
		g.refill()
	}
	y := g.state[g.next]
	g.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// uint64 draws twice, the upper half first.
func (g *generator) uint64() uint64 {
	hi := uint64(g.uint32())
	return hi<<32 | uint64(g.uint32())
}

// single and double are uniform in [0, 1), by 24 and 53 bits.
func (g *generator) single() float32 { return float32(g.uint32()&(1<<24-1)) / (1 << 24) }
func (g *generator) double() float64 { return float64(g.uint64()&(1<<53-1)) / (1 << 53) }

// gauss draws a normal number by Box and Muller; every second one is left from
// the draw before.
func (g *generator) gauss() float64 {
	if g.spare {
		g.spare = false
		return g.normal
	}
	u, v := g.double(), g.double()
	r := math.Sqrt(-2 * math.Log1p(-v))
	sin, cos := math.Sincos(2 * math.Pi * u)
	g.normal, g.spare = r*sin, true
	return r * cos
}

// int draws from [low, high); ranges of 2²⁸ and more take 64 bits.
func (g *generator) int(low int64, span uint64) int64 {
	if span >= 1<<28 {
		return low + int64(g.uint64()%span)
	}
	return low + int64(uint64(g.uint32())%span)
}

// uniforms fills x with numbers in [from, to).
func (g *generator) uniforms(x []float64, from, to float64, wide bool) {
	for i := range x {
		if wide {
			x[i] = g.double()*(to-from) + from
		} else {
			x[i] = float64(g.single()*float32(to-from) + float32(from))
		}
	}
}

// normals fills x. From 16 numbers on they are made in blocks of 16 uniform ones;
// a last block that is not whole is drawn anew over the last 16.
func (g *generator) normals(x []float64, mean, std float64, wide bool) {
	const block = 16
	if len(x) < block {
		for i := range x {
			x[i] = g.gauss()*std + mean
		}
		return
	}
	g.uniforms(x, 0, 1, wide)
	for i := 0; i+block <= len(x); i += block {
		normalBlock(x[i:i+block], mean, std)
	}
	if len(x)%block != 0 {
		last := x[len(x)-block:]
		g.uniforms(last, 0, 1, wide)
		normalBlock(last, mean, std)
	}
}

func normalBlock(x []float64, mean, std float64) {
	half := len(x) / 2
	for j := range half {
		r := math.Sqrt(-2 * math.Log(1-x[j]))
		sin, cos := math.Sincos(2 * math.Pi * x[j+half])
		x[j], x[j+half] = r*cos*std+mean, r*sin*std+mean
	}
}
