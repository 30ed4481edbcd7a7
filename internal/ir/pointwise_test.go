package ir

import (
	"bufio"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lines reads a file of testdata.
func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		out = append(out, s.Text())
	}
	return out
}

// parseAttrs reads "name=value,…" or "-".
func parseAttrs(text string) []Named {
	if text == "-" {
		return nil
	}
	var out []Named
	for _, f := range strings.Split(text, ",") {
		name, v, _ := strings.Cut(f, "=")
		if n, err := strconv.Atoi(v); err == nil {
			out = append(out, A(name, n))
		} else if x, err := strconv.ParseFloat(v, 64); err == nil {
			out = append(out, A(name, x))
		} else {
			out = append(out, A(name, v))
		}
	}
	return out
}

// catch returns the error that f panics with.
func catch(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok {
				panic(r)
			}
		}
	}()
	f()
	return nil
}

func TestPointwiseRowsAreComplete(t *testing.T) {
	for _, sp := range Ops() {
		if sp.Category != Pointwise {
			continue
		}
		if sp.Doc == "" || !strings.HasSuffix(sp.Doc, ".") {
			t.Errorf("%s: Doc %q is not a sentence", sp.Name, sp.Doc)
		}
		sc := sp.Scalar
		hasScalar := sc.F1 != nil || sc.F2 != nil || sc.F3 != nil || sc.I1 != nil || sc.I2 != nil || sc.I3 != nil
		if hasScalar == sp.Composite() && sp.Op != opCast {
			t.Errorf("%s: Scalar given %v, Decompose given %v", sp.Name, hasScalar, sp.Composite())
		}
		if sp.Differentiable() == (sp.NoGrad != "") {
			t.Errorf("%s: differentiable %v, NoGrad %q", sp.Name, sp.Differentiable(), sp.NoGrad)
		}
	}
}

// Every pointwise row is held against PyTorch, but for those with tests of their
// own.
func TestGoldenCoversTheTable(t *testing.T) {
	covered := map[string]bool{"where": true, "cast": true, "masked_fill": true}
	for _, l := range lines(t, "pointwise.txt") {
		if f := strings.Fields(l); f[0] == "dtypes" {
			covered[f[1]] = true
		}
	}
	for _, sp := range Ops() {
		if sp.Category == Pointwise && !covered[sp.Name] {
			t.Errorf("%s has no golden", sp.Name)
		}
	}
}

func TestResultDTypesMatchPyTorch(t *testing.T) {
	// PyTorch refuses these because of how it writes the op, not what it means.
	refused := map[DType][]string{
		Bool: {"softsign", "tanhshrink", "clamp"},
		F16:  {"special_erfcx", "special_log_ndtr"}, BF16: {"special_erfcx", "special_log_ndtr"},
	}
	for _, l := range lines(t, "pointwise.txt") {
		f := strings.Fields(l)
		if f[0] != "dtypes" {
			continue
		}
		op, ok := Lookup(f[1])
		if !ok {
			t.Errorf("no op %s", f[1])
			continue
		}
		n, _ := strconv.Atoi(f[3])
		for _, pair := range f[4:] {
			from, want, _ := strings.Cut(pair, "=")
			d, err := ParseDType(from)
			if err != nil {
				t.Fatal(err)
			}
			var in []any
			for range n {
				in = append(in, NewLeaf(testLeaf{}, MakeShape(d, 2), Device{}).Out(0))
			}
			got := "!"
			err = catch(func() { got = (&Builder{}).Call1(op, in, parseAttrs(f[2])...).DType().String() })
			if err != nil && !errors.Is(err, ErrDType) {
				t.Errorf("%s of %s: %v", f[1], from, err)
			}
			if got != want && !slices.Contains(refused[d], f[1]) {
				t.Errorf("%s(%s) of %s gives %s, PyTorch gives %s", f[1], f[2], from, got, want)
			}
		}
	}
}

func TestPromotionMatchesPyTorch(t *testing.T) {
	operand := func(kind, name string) Value {
		d, err := ParseDType(name)
		if err != nil {
			t.Fatal(err)
		}
		switch kind {
		case "dim":
			return ShapeOnly(MakeShape(d, 2))
		case "zero":
			return ShapeOnly(MakeShape(d))
		}
		return NewScalar(&ScalarLeaf{}, d, Device{}, true).Out(0)
	}
	for _, l := range lines(t, "promote.txt") {
		f := strings.Fields(l)
		x, y := operand(f[0], f[1]), operand(f[2], f[3])
		if got := resultType(x, y).String(); got != f[4] {
			t.Errorf("ResultType(%s %s, %s %s) = %s, PyTorch gives %s", f[0], f[1], f[2], f[3], got, f[4])
		}
		if f[0] == "dim" && f[2] == "dim" {
			if got := PromoteTypes(x.DType(), y.DType()).String(); got != f[4] {
				t.Errorf("PromoteTypes(%s, %s) = %s, PyTorch gives %s", f[1], f[3], got, f[4])
			}
		}
	}
}

// goldenCase is one block of pointwise.txt.
type goldenCase struct {
	op    Op
	attrs []Named
	d     DType
}

// TestPointwiseMatchesPyTorch holds results and gradients against PyTorch's, at
// ordinary and at special values.
func TestPointwiseMatchesPyTorch(t *testing.T) {
	var c goldenCase
	for _, l := range lines(t, "pointwise.txt") {
		f := strings.Fields(l)
		switch f[0] {
		case "dtypes":
		case "case":
			op, ok := Lookup(f[1])
			d, err := ParseDType(f[3])
			if !ok || err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			c = goldenCase{op, parseAttrs(f[2]), d}
		default:
			c.check(t, l)
		}
	}
}

func (c *goldenCase) check(t *testing.T, line string) {
	operands, rest, _ := strings.Cut(line, " -> ")
	result, grads, _ := strings.Cut(rest, " ; ")
	var xs []Value
	var in []any
	for _, f := range strings.Fields(operands) {
		x := leafOf(parseScalar(t, c.d, f), 1)
		xs, in = append(xs, x), append(in, x)
	}
	b := expanding()
	y := b.Call1(c.op, in, c.attrs...)
	e := evaluator{}
	var got scalar
	err := catch(func() { got = e.eval(y) })
	if result == "!" || err != nil {
		if result != "!" || !errors.Is(err, ErrZeroDivision) {
			t.Errorf("%s(%s) = %v, %v; PyTorch gives %s", c.op, operands, got, err, result)
		}
		return
	}
	c.compare(t, operands, "", got, result)
	if grads == "" {
		return
	}
	for i, g := range gradients(b, y, xs) {
		want := strings.Fields(grads)[i]
		if g.IsNil() {
			t.Errorf("%s(%s): no gradient %d", c.op, operands, i)
			continue
		}
		c.compare(t, operands, "gradient "+strconv.Itoa(i)+" of ", e.eval(g), want)
	}
}

func (c *goldenCase) compare(t *testing.T, operands, what string, got scalar, text string) {
	want := parseScalar(t, got.d, text)
	ok := got == want
	if got.d.IsFloat() {
		ok = near(got.F, want.F, c.tolerance(), 1e-16)
		if what == "" && got.F == 0 && want.F == 0 {
			ok = math.Signbit(got.F) == math.Signbit(want.F)
		}
	}
	if !ok {
		t.Errorf("%s%s(%s) %v of %s = %v, PyTorch gives %s", what, c.op, c.d, c.attrs, operands, got, text)
	}
}

// tolerance is the relative error allowed. PyTorch keeps the 1/6 of
// hardsigmoid's gradient in single precision.
func (c *goldenCase) tolerance() float64 {
	if c.op.String() == "hardsigmoid" {
		return 1e-7
	}
	return 1e-13
}
