//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// observerKernels are the observers that train networks to be quantised. One writes
// its state back, the other returns it.
var observerKernels = map[string]eagerFunc{
	"_fused_moving_avg_obs_fq_helper": observed(func(o *observer, outs []*tensor) ([]*tensor, error) {
		return all(o.update(), outs...)
	}),
	"_fused_moving_avg_obs_fq_helper_functional": observed(func(o *observer, outs []*tensor) ([]*tensor, error) {
		for i, s := range o.state {
			t, err := save(s, dtypeOf(o.to[i]))
			if err != nil {
				return all(err, outs...)
			}
			outs = append(outs, t)
		}
		return outs, nil
	}),
}

// observed runs an observer and gives what it computed to end.
func observed(end func(o *observer, outs []*tensor) ([]*tensor, error)) eagerFunc {
	return func(v values) ([]*tensor, error) {
		o, err := observerOf(v)
		if err != nil {
			return nil, err
		}
		outs, err := o.run()
		if err != nil {
			return nil, err
		}
		return end(o, outs)
	}
}

// The parts of an observer's state.
const (
	observedMin = iota
	observedMax
	observedScale
	observedZero
	observedParts
)

// observer keeps a moving average of the range of a tensor, and rounds the tensor
// to the grid that follows from it.
type observer struct {
	x      array[float64]
	t      *tensor
	state  [observedParts]array[float64]
	to     [observedParts]*tensor
	axis   int // of the channels; -1 where the tensor is observed as a whole
	qmin   int
	qmax   int
	by     float32 // share of the new range
	even   bool    // the grid is symmetric
	watch  bool
	rounds bool
}

func observerOf(v values) (*observer, error) {
	o := &observer{axis: -1, qmin: v.int("quant_min", 0), qmax: v.int("quant_max", 255), by: float32(v.float("averaging_const", 0))}
	var err error
	if o.t, o.x, err = argument[float64](v, "self"); err != nil {
		return nil, err
	}
	if dtypeOf(o.t) != ir.F32 {
		return nil, fmt.Errorf("%w: an observer of %v", ir.ErrDType, dtypeOf(o.t))
	}
	for i, name := range [observedParts]string{"running_min", "running_max", "scale", "zero_point"} {
		if o.to[i], o.state[i], err = argument[float64](v, name); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*bool{"observer_on": &o.watch, "fake_quant_on": &o.rounds} {
		t, err := v.tensor(name)
		if err != nil {
			return nil, err
		}
		on, err := scalarOf(t, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		*to = on != 0
	}
	o.even = v.bool("symmetric_quant", false)
	n := 1
	if v.bool("per_row_fake_quant", false) {
		if o.axis, err = dimension(v.int("ch_axis", 0), len(o.x.dims)); err != nil {
			return nil, err
		}
		if o.watch && o.axis != 0 {
			return nil, fmt.Errorf("%w: channels in dimension %d are observed", ir.ErrArg, o.axis)
		}
		n = atLeast1(o.x.dims)[o.axis]
	}
	if len(o.state[observedMin].data) == 0 && o.axis >= 0 {
		for i := range o.state {
			o.state[i] = array[float64]{make([]float64, n), []int{n}}
		}
		for i := range n {
			o.state[observedMin].data[i], o.state[observedMax].data[i] = math.Inf(1), math.Inf(-1)
		}
	}
	for _, s := range o.state {
		if len(s.data) != n {
			return nil, fmt.Errorf("%w: state %v of an observer of %v", ir.ErrShape, s.dims, o.x.dims)
		}
	}
	if o.qmin >= o.qmax {
		return nil, fmt.Errorf("%w: a grid from %d to %d", ir.ErrArg, o.qmin, o.qmax)
	}
	return o, nil
}

// update writes the state back.
func (o *observer) update() error {
	for i, t := range o.to {
		if int(t.numel) != len(o.state[i].data) {
			if err := resizeTensor(t, []int64{int64(len(o.state[i].data))}, 0); err != nil {
				return err
			}
		}
		if err := storeAll(t, array[float64]{o.state[i].data, dimsOf(t)}); err != nil {
			return err
		}
	}
	return nil
}

func dimsOf(t *tensor) []int {
	var dims []int
	for _, n := range sizesOf(t) {
		dims = append(dims, int(n))
	}
	return dims
}

// channels calls fn for the elements of each channel, which begin at at.
func (o *observer) channels(fn func(channel int, at, n int)) {
	if o.axis < 0 {
		fn(0, 0, len(o.x.data))
		return
	}
	dims := atLeast1(o.x.dims)
	inner := product(dims[o.axis+1:])
	for i := 0; i*inner < len(o.x.data); i++ {
		fn(i%dims[o.axis], i*inner, inner)
	}
}

// run returns the rounded tensor, and where it was inside the grid.
func (o *observer) run() ([]*tensor, error) {
	if o.watch {
		o.observe()
	}
	y := array[float64]{append([]float64(nil), o.x.data...), o.x.dims}
	inside := array[float64]{make([]float64, len(y.data)), y.dims}
	for i := range inside.data {
		inside.data[i] = 1
	}
	if o.rounds {
		for c := range o.state[observedScale].data {
			lo, hi := float32(o.state[observedMin].data[c]), float32(o.state[observedMax].data[c])
			if !(lo <= hi) {
				return nil, fmt.Errorf("%w: a range from %v to %v", ir.ErrArg, lo, hi)
			}
			scale, zero := gridOfRange(lo, hi, o.qmin, o.qmax, o.even)
			o.state[observedScale].data[c], o.state[observedZero].data[c] = float64(scale), float64(zero)
		}
		o.channels(func(c, at, n int) {
			scale, zero := float32(o.state[observedScale].data[c]), o.state[observedZero].data[c]
			inv := 1 / scale
			for i := at; i < at+n; i++ {
				q := zero + math.RoundToEven(float64(float32(y.data[i])*inv))
				cut := min(max(q, float64(o.qmin)), float64(o.qmax))
				if q != cut {
					inside.data[i] = 0
				}
				y.data[i] = float64(float32(cut-zero) * scale)
			}
		})
	}
	out, err := save(y, ir.F32)
	if err != nil {
		return nil, err
	}
	mask, err := save(inside, ir.Bool)
	return all(err, out, mask)
}

// observe moves the averages towards the range of the tensor.
func (o *observer) observe() {
	channels := len(o.state[observedMin].data)
	lows, highs := make([]float64, channels), make([]float64, channels)
	for c := range channels {
		lows[c], highs[c] = math.Inf(1), math.Inf(-1)
	}
	o.channels(func(c, at, n int) {
		for _, x := range o.x.data[at:][:n] {
			lows[c], highs[c] = min(lows[c], x), max(highs[c], x)
		}
	})
	for c := range channels {
		o.move(&o.state[observedMin].data[c], lows[c])
		o.move(&o.state[observedMax].data[c], highs[c])
	}
}

func (o *observer) move(running *float64, now float64) {
	if math.IsInf(*running, 0) {
		*running = now
		return
	}
	r := float32(*running)
	*running = float64(r + float32(o.by*(float32(now)-r)))
}

// leastScale is the least step of a grid.
const leastScale = 6.1e-5

// gridOfRange returns the step and the zero point of the grid from qmin to qmax
// that reaches from lo to hi and has zero on it.
func gridOfRange(lo, hi float32, qmin, qmax int, even bool) (float32, int) {
	even = even && lo < 0 && hi > 0
	if even {
		most := float32(max(math.Abs(float64(lo/float32(-((qmax-qmin)/2+1)))), math.Abs(float64(hi/float32((qmax-qmin)/2)))))
		lo, hi = most*float32(-((qmax-qmin)/2+1)), most*float32((qmax-qmin)/2)
	}
	lo, hi = min(lo, 0), max(hi, 0)
	scale := (float64(hi) - float64(lo)) / float64(qmax-qmin)
	if float32(scale) == 0 || math.IsInf(float64(1/float32(scale)), 0) {
		scale = 0.1
	}
	if scale < leastScale {
		amplifier := float32(leastScale) / float32(scale)
		scale = float64(float32(leastScale))
		switch {
		case lo == 0:
			hi = float32(leastScale) * float32(qmax-qmin)
		case hi == 0:
			lo = -float32(leastScale) * float32(qmax-qmin)
		default:
			lo, hi = lo*amplifier, hi*amplifier
		}
	}
	// The zero point follows from either end; the one of the smaller terms is nearer.
	fromLow, fromHigh := float64(qmin)-float64(lo)/scale, float64(qmax)-float64(hi)/scale
	zero := fromHigh
	if math.Abs(float64(qmin))-math.Abs(float64(lo)/scale) < math.Abs(float64(qmax))-math.Abs(float64(hi)/scale) {
		zero = fromLow
	}
	if even {
		zero = float64(qmin+qmax) / 2
	}
	return float32(scale), int(min(max(math.RoundToEven(zero), float64(qmin)), float64(qmax)))
}
