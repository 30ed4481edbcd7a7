//go:build linux && cgo

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// golden is a tensor as scripts/make_host_goldens.py writes it.
type golden struct {
	DType   string    `json:"dtype"`
	Dims    []int     `json:"dims"`
	Strides []int64   `json:"strides"`
	Data    []float64 `json:"data"` // row-major; complex numbers as pairs
}

func (g *golden) tensor(t *testing.T) *tensor {
	t.Helper()
	d, err := ir.ParseDType(g.DType)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newStrided(ir.MakeShape(d, g.Dims...), g.Strides)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(h) })
	if d == ir.C64 || d == ir.C128 {
		err = storeAll(h, array[complex128]{g.complexes(), g.Dims})
	} else {
		err = storeAll(h, array[float64]{g.Data, g.Dims})
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (g *golden) complexes() []complex128 {
	out := make([]complex128, len(g.Data)/2)
	for i := range out {
		out[i] = complex(g.Data[2*i], g.Data[2*i+1])
	}
	return out
}

// check compares a result: dtype, sizes, the strides that matter, and values.
func (g *golden) check(t *testing.T, h *tensor) {
	t.Helper()
	s, err := shapeOf(h)
	if err != nil {
		t.Fatal(err)
	}
	if s.DType().String() != g.DType || !slices.Equal(s.Dims(), g.Dims) {
		t.Errorf("%v, want %s%v", s, g.DType, g.Dims)
		return
	}
	for i, n := range g.Dims {
		if n > 1 && s.Numel() > 0 && stridesOf(h)[i] != g.Strides[i] {
			t.Errorf("%v has strides %v, want %v", s, stridesOf(h), g.Strides)
			break
		}
	}
	var got []float64
	if s.DType() == ir.C64 || s.DType() == ir.C128 {
		a, err := load[complex128](h)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range a.data {
			got = append(got, real(x), imag(x))
		}
	} else {
		got = numbers(t, h)
	}
	for i, want := range g.Data {
		if d := math.Abs(got[i] - want); d > 2e-6*max(1, math.Abs(want)) && !(got[i] == want) {
			t.Errorf("element %d is %v, want %v", i, got[i], want)
			return
		}
	}
}

// The results of PyTorch's own functions, with their strides.
func TestGoldens(t *testing.T) { checkGoldens(t, "testdata/goldens.json", nil) }

// The same of quantised layers, and of what trains them.
func TestQuantGoldens(t *testing.T) { checkGoldens(t, "testdata/quant_goldens.json", nil) }

// anyOfEqual are the ops of which a Program may find another of equal elements than
// PyTorch does.
var anyOfEqual = map[string]bool{"cpu_topk": true, "cpu_kthvalue": true, "cpu_mode": true}

// checkGoldens computes all cases by the host's own functions, or those for which
// other has one by that.
func checkGoldens(t *testing.T, path string, other func(name string) opFunc) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name string            `json:"name"`
		Args []json.RawMessage `json:"args"`
		Outs []golden          `json:"outs"`

		Named map[string]json.RawMessage `json:"named"` // of ops without a C function
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		var fn opFunc
		if other != nil {
			if fn = other(c.Name); fn == nil {
				continue
			}
		}
		t.Run(fmt.Sprintf("%d/%s", i, c.Name), func(t *testing.T) {
			leakCheck(t)
			if c.Named != nil {
				checkNamed(t, c.Name, c.Named, c.Outs)
				return
			}
			s := &signatures[shimLines()["aoti_torch_"+c.Name]]
			var args []any
			at := 0
			for _, raw := range c.Args {
				a, words := goldenArg(t, s.params[at].kind, raw)
				args = append(args, a)
				at += words
			}
			outs := make([]*tensor, len(s.params)-at)
			for i := range outs {
				args = append(args, &outs[i])
			}
			err := invokeBy(t, fn, c.Name, args...)
			if errors.Is(err, errNoDecomposition) && fn != nil {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(outs) == 0 { // it is the first argument
				c.Outs[0].check(t, args[0].(*tensor))
			}
			for i, o := range outs {
				if fn == nil || i == 0 || !anyOfEqual[c.Name] {
					c.Outs[i].check(t, o)
				}
				release(o)
			}
		})
	}
}

// checkNamed runs an op as the proxy executor does.
func checkNamed(t *testing.T, name string, args map[string]json.RawMessage, want []golden) {
	t.Helper()
	v := values{}
	for k, raw := range args {
		switch a, _ := goldenArg(t, kindOther, raw); a := a.(type) {
		case bool:
			v[k] = map[bool]int{true: 1}[a]
		default:
			v[k] = a
		}
	}
	outs, err := externOp(name)(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(outs) != len(want) {
		t.Errorf("%d results, want %d", len(outs), len(want))
	}
	for i, o := range outs {
		want[i].check(t, o)
		release(o)
	}
}

// goldenArg returns an argument for invoke and how many words it takes.
func goldenArg(t *testing.T, kind argKind, raw json.RawMessage) (any, int) {
	t.Helper()
	var a struct {
		Tensor   *golden   `json:"tensor"`
		Tensors  []*golden `json:"tensors"`
		Optional *float64  `json:"optional"`
		Ints     []int64   `json:"ints"`
		Bools    []int32   `json:"bools"`
		Floats   []float64 `json:"floats"`
		Numbers  []float64 `json:"numbers"`
		Bool     *bool     `json:"bool"`
		Int      *int      `json:"int"`
		Float    *float64  `json:"float"`
		Text     *string   `json:"text"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	switch {
	case a.Tensor != nil:
		return a.Tensor.tensor(t), 1
	case a.Tensors != nil:
		list := make([]*tensor, len(a.Tensors))
		for i, g := range a.Tensors {
			if g != nil {
				list[i] = g.tensor(t)
			}
		}
		return list, 2
	case a.Optional != nil && kind == kindOptInt:
		n := int64(*a.Optional)
		return &n, 1
	case a.Optional != nil && kind == kindOptBool:
		n := int32(*a.Optional)
		return &n, 1
	case a.Optional != nil:
		return a.Optional, 1
	case a.Ints != nil:
		return a.Ints, 2
	case a.Bools != nil:
		return a.Bools, 2
	case a.Floats != nil:
		return a.Floats, 2
	case a.Numbers != nil:
		list := make([]*float64, len(a.Numbers))
		for i := range list {
			list[i] = &a.Numbers[i]
		}
		return list, 2
	case a.Bool != nil:
		return *a.Bool, 1
	case a.Int != nil:
		return *a.Int, 1
	case a.Float != nil:
		return *a.Float, 1
	case a.Text != nil:
		return *a.Text, 1
	}
	if kind.list() {
		return nil, 2
	}
	return nil, 1
}
