package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
)

// collapse returns the labels that a path of classes stands for.
func collapse(path []int, blank int) (labels []int64) {
	for i, c := range path {
		if c != blank && (i == 0 || path[i-1] != c) {
			labels = append(labels, int64(c))
		}
	}
	return labels
}

// ctcOf is the definition: the logarithm of the probability of all paths that collapse to labels.
func ctcOf(logProbs func(t, c int) float64, steps, classes, blank int, labels []int64) float64 {
	sum, path := 0.0, make([]int, steps)
	var walk func(t int, log float64)
	walk = func(t int, log float64) {
		if t == steps {
			if slices.Equal(collapse(path, blank), labels) {
				sum += math.Exp(log)
			}
			return
		}
		for c := range classes {
			path[t] = c
			walk(t+1, log+logProbs(t, c))
		}
	}
	walk(0, 0)
	return -math.Log(sum)
}

// ctcCase is a batch of log-probabilities [T, N, C] with labels and lengths.
type ctcCase struct {
	steps, classes  int
	labels          [][]int64 // padded with -1
	inputs, outputs []int64
	blank           int
}

var ctcCases = map[string]ctcCase{
	"different lengths": {5, 3, [][]int64{{1, 2}, {2, -1}, {-1, -1}}, []int64{5, 4, 3}, []int64{2, 1, 0}, 0},
	"repeated labels":   {5, 3, [][]int64{{1, 1}, {2, 2}}, []int64{5, 3}, []int64{2, 2}, 0},
	"another blank":     {4, 3, [][]int64{{0, 1}, {1, 0}}, []int64{4, 2}, []int64{2, 2}, 2},
	"too short":         {4, 3, [][]int64{{1, 1, 2}, {1, 2, -1}}, []int64{3, 4}, []int64{3, 2}, 0},
	"no labels":         {3, 2, [][]int64{{}, {}}, []int64{3, 1}, []int64{0, 0}, 0},
}

func (c ctcCase) tensors(m loris.Maker) (logits *loris.Variable, labels, inputs, outputs *loris.Tensor) {
	n := len(c.labels)
	x := make([]float64, c.steps*n*c.classes)
	for i := range x {
		x[i] = math.Sin(float64(3*i*i)) * 2
	}
	logits = loris.NewVariable(m.FromSlice(x, c.steps, n, c.classes))
	return logits, m.FromSlice(slices.Concat(c.labels...), n, len(c.labels[0])), m.FromSlice(c.inputs), m.FromSlice(c.outputs)
}

func TestCTCIsTheSumOfAllPaths(t *testing.T) {
	m := newSession(t).With()
	for name, c := range ctcCases {
		for _, zero := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/zero %v", name, zero), func(t *testing.T) {
				logits, labels, inputs, outputs := c.tensors(m)
				logs := logits.Value().LogSoftmax(2)
				loss := func(reduction string) *loris.Tensor {
					return CTCLoss{Blank: c.blank, Reduction: reduction, ZeroInfinity: zero}.Forward(logs, labels, inputs, outputs)
				}
				p, err := logs.Float64s(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				n := len(c.labels)
				want, mean, sum := make([]float64, n), 0.0, 0.0
				for i := range want {
					at := func(t, k int) float64 { return p[(t*n+i)*c.classes+k] }
					want[i] = ctcOf(at, int(c.inputs[i]), c.classes, c.blank, c.labels[i][:c.outputs[i]])
					if zero && math.IsInf(want[i], 1) {
						want[i] = 0
					}
					sum += want[i]
					mean += want[i] / float64(max(c.outputs[i], 1)) / float64(n)
				}
				near(t, loss("none"), want...)
				near(t, loss("sum"), sum)
				near(t, loss(""), mean)
			})
		}
	}
}

func TestCTCIsPyTorchs(t *testing.T) {
	logits, labels, inputs, outputs := ctcCases["different lengths"].tensors(newSession(t).With())
	got := CTCLoss{Reduction: "none"}.Forward(logits.Value().LogSoftmax(2), labels, inputs, outputs)
	near(t, got, 1.2285989605702452, 2.5338271611870455, 3.1489631821240227) // torch 2.15
}

// near compares elements; infinities must be the same.
func near(t *testing.T, got *loris.Tensor, want ...float64) {
	t.Helper()
	g, err := got.Reshape(-1).Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if g[i] != want[i] && !(math.Abs(g[i]-want[i]) < 1e-9) {
			t.Errorf("element %d is %v, want %v", i, g[i], want[i])
		}
	}
}

// The gradient is that of differences, and 0 where the loss does not count.
func TestCTCGradient(t *testing.T) {
	m := newSession(t).With()
	for name, c := range ctcCases {
		t.Run(name, func(t *testing.T) {
			logits, labels, inputs, outputs := c.tensors(m)
			f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
				loss := CTCLoss{Blank: c.blank, ZeroInfinity: true}.Forward(in[0].LogSoftmax(2), labels, inputs, outputs)
				return []*loris.Tensor{loss, loris.Grad(loss, in[0])[0]}
			})
			at := func(x []float64) (float64, []float64) {
				out, err := f.Call(t.Context(), m.FromSlice(x, logits.Shape().Dims()...))
				if err != nil {
					t.Fatal(err)
				}
				v, err := out[0].Item(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				g, err := out[1].Float64s(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return v, g
			}
			x, err := logits.Value().Float64s(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, g := at(x)
			const h = 1e-5
			for i := range x {
				up, down := slices.Clone(x), slices.Clone(x)
				up[i], down[i] = x[i]+h, x[i]-h
				u, _ := at(up)
				d, _ := at(down)
				if want := (u - d) / (2 * h); !(math.Abs(g[i]-want) < 1e-7) {
					t.Errorf("the gradient at %d is %v, by differences %v", i, g[i], want)
				}
			}
		})
	}
}

func TestCTCMistakes(t *testing.T) {
	m := newSession(t).With()
	x, labels, n := m.Zeros(4, 2, 3), m.FromSlice([]int64{1, 2, 1, 2}, 2, 2), m.FromSlice([]int64{2, 2})
	for name, f := range map[string]func() *loris.Tensor{
		"reduction": func() *loris.Tensor { return CTCLoss{Reduction: "max"}.Forward(x, labels, n, n) },
		"blank":     func() *loris.Tensor { return CTCLoss{Blank: 3}.Forward(x, labels, n, n) },
		"rank":      func() *loris.Tensor { return CTCLoss{}.Forward(x.Select(0, 0), labels, n, n) },
		"labels":    func() *loris.Tensor { return CTCLoss{}.Forward(x, labels.Narrow(0, 0, 1), n, n) },
		"lengths":   func() *loris.Tensor { return CTCLoss{}.Forward(x, labels, n, n.Cast(loris.I32)) },
	} {
		var e *loris.OpError
		if err := loris.Try(func() { f() }); !errors.As(err, &e) || e.Op != "nn.CTCLoss" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
