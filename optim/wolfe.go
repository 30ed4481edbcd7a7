package optim

import "math"

// The strong Wolfe conditions on the length of a step: the loss falls by at least decrease of what the
// slope promises, and the slope at the end is at most flat of that at the start.
const (
	decrease = 1e-4
	flat     = 0.9
	// maxTrials bounds the evaluations of a search.
	maxTrials = 25
)

// trial is a point at a length along the direction, with the slope there.
type trial struct {
	point
	length, slope float64
}

// wolfe looks for a length that satisfies the conditions: it goes further until a minimum is
// bracketed, and makes the bracket smaller, as in chapter 3.5 of Nocedal and Wright. along evaluates a
// length and slopeAt returns the slope of an evaluation; a bracket of at most narrow is not searched.
// It returns the best that it has found, which may be the start.
func wolfe(along func(length float64) (point, error), from point, slope, length float64, slopeAt func(point) float64, narrow float64) (point, float64, error) {
	start := trial{from, 0, slope}
	fits := func(t trial) bool { return t.loss <= start.loss+decrease*t.length*start.slope }
	level := func(t trial) bool { return math.Abs(t.slope) <= flat*-start.slope }
	try := func(length float64) (trial, error) {
		p, err := along(length)
		if err != nil {
			return trial{}, err
		}
		return trial{p, length, slopeAt(p)}, nil
	}
	low, high := start, trial{} // of the bracket: low has the least loss, and falls towards high
	bracketed := false
	for trials := 0; trials < maxTrials; trials++ {
		if bracketed {
			if math.Abs(high.length-low.length) <= narrow {
				break
			}
			length = between(low, high)
		}
		t, err := try(length)
		if err != nil {
			return point{}, 0, err
		}
		switch {
		case !fits(t) || t.loss >= low.loss && (bracketed || low.length > 0):
			high, bracketed = t, true
		case level(t):
			return t.point, t.length, nil
		case bracketed && t.slope*(high.length-low.length) >= 0 || !bracketed && t.slope >= 0:
			low, high, bracketed = t, low, true
		default:
			if low = t; !bracketed {
				length *= 4
			}
		}
	}
	return low.point, low.length, nil
}

// between returns a length within a bracket: where the cubic through both ends has its minimum, but not
// too near an end.
func between(a, b trial) float64 {
	d := b.length - a.length
	theta := a.slope + b.slope - 3*(b.loss-a.loss)/d
	at := 0.5
	if root := theta*theta - a.slope*b.slope; root >= 0 {
		r := math.Copysign(math.Sqrt(root), d)
		if c := 1 - (b.slope+r-theta)/(b.slope-a.slope+2*r); !math.IsNaN(c) {
			at = min(max(c, 0.1), 0.9)
		}
	}
	return a.length + at*d
}
